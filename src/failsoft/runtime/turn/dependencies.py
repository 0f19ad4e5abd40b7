"""Dependencies of a turn's call: handles in ``depends_on``, and handles inside its arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import CoroutineType, MethodType
from typing import Any, NoReturn

from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.sanitise import mask_id
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.errors import TurnError
from failsoft.runtime.turn.handle import NO_ARGUMENTS, SHOWN, Handle, HandleScheduler

PLAIN = frozenset({str, int, float, bool, type(None)})
_MISUSES = (CoroutineType, MethodType, Outcome, asyncio.Future, set, frozenset)
DEEPEST = 100  # levels at which a handle may lie in an argument


def find_needs(handle: Handle[Any], depends_on: Iterable[Handle[Any] | str]) -> bool:
    """Find the calls that this one waits for, and the arguments that their values fill.

    False if a call was named by its id, which may be wrong.
    """
    scheduler = handle.scheduler
    if scheduler.shown:
        _refuse_text(handle.arguments)
    if type(depends_on) is not list and isinstance(depends_on, str | Handle | None):
        raise TurnError("depends_on: write a list of handles or ids, also for one: depends_on=[…]")
    needs = []
    known = True
    for other in depends_on:
        if type(other) is Handle and other.scheduler is scheduler:
            needs.append(other.id)
        else:
            needs.append(_name(other, scheduler))
            known = False
    for value in handle.arguments.values():
        if type(value) not in PLAIN:
            handle.fills = _find_fills(handle)
            needs += [id for id in handle.fills if id not in needs]
            break
    handle.needs = tuple(needs)
    return known


def refuse_misused(arguments: Iterable[Any]) -> None:
    """Raise for handles among the arguments of a function, which needs values."""
    for value in arguments:
        if isinstance(value, Handle):
            raise TurnError(
                f"{value.id!r} is a handle, and a function needs its value: submit the call with turn.call(tool, {{…}}), or "
                "give `await handle.value()`"
            )


def _refuse_text(arguments: Mapping[str, Any]) -> None:
    """Raise for arguments with the text of a handle in them."""
    for name, value in arguments.items():
        if _has_text(value, DEEPEST):
            raise TurnError(
                f"{name}: there is a handle as text in it, and the tool would get {SHOWN!r}…, not the value. Pass the handle "
                "itself, or use `await handle.value()`"
            )


def _has_text(value: Any, depth: int) -> bool:
    if isinstance(value, str):
        return SHOWN in value
    if not depth or not isinstance(value, Mapping | list | tuple):
        return False
    return any(_has_text(item, depth - 1) for item in (value.values() if isinstance(value, Mapping) else value))


def _find_fills(handle: Handle[Any]) -> dict[str, tuple[str, ...]]:
    """The arguments that other calls fill, by the id of the call."""
    fills: dict[str, tuple[str, ...]] = {}
    for name, value in handle.arguments.items():
        if type(value) not in PLAIN:
            for other in _search(value):
                if other.scheduler is not handle.scheduler:
                    _refuse_other_turn(other)
                fills[other.id] = (*fills.get(other.id, ()), name)
    return fills


def refuse_handles(defaults: Mapping[str, Any] | None) -> None:
    """Refuse handles in ``defaults``: a default must be a value."""
    for name, value in (defaults or {}).items():
        if type(value) not in PLAIN and _search(value):
            raise TurnError(f"defaults: {name!r} has a handle in it, and its value may not come either: write a value")


class Part(NamedTuple):
    """A placeholder in a call's arguments for a part of another call's value."""

    handle: Handle[Any]
    path: tuple[str | int, ...]
    find: Callable[[Any, tuple[str | int, ...]], Any]  # extracts the part from the value


class MissingPartError(LookupError):
    """A value does not have the part that another call needs."""

    def __init__(self, argument: str, why: str) -> None:
        super().__init__(f"{argument}: {why}")
        self.argument = argument
        self.why = why


def fill_in(handle: Handle[Any]) -> None:
    """Replace handles by their values, and failed ones by defaults.

    Raises ``MissingPartError`` if a value does not have the part that an argument refers to, and there is no default.
    """
    arguments = {**handle.arguments, **(handle.substitutes or {})}
    made: dict[int, Any] = {}
    filled = {}
    for name, value in arguments.items():
        try:
            filled[name] = _resolved(value, made)
        except MissingPartError as missing:
            if name not in handle.defaults:
                raise MissingPartError(name, missing.why) from None
            filled[name] = handle.defaults[name]
            handle.substitutes = {**(handle.substitutes or {}), name: handle.defaults[name]}
    handle.arguments = filled
    handle.fills = NO_ARGUMENTS  # they are filled in


def _name(other: Handle[Any] | str, scheduler: HandleScheduler) -> str:
    """The id of a call that another call waits for."""
    if isinstance(other, str):
        return mask_id(other)
    if not isinstance(other, Handle):
        raise TurnError(f"depends_on: a call is named by its handle or its id, not by {type(other).__name__}")
    if other.scheduler is not scheduler:
        _refuse_other_turn(other)
    return other.id


def _refuse_other_turn(handle: Handle[Any]) -> NoReturn:
    raise TurnError(f"{handle.id!r} belongs to another turn: await it there and pass its value on")


def _search(value: Any) -> list[Handle[Any]]:
    """The handles in a value. A value with handles must not contain itself, or hold them too deep."""
    found: list[Handle[Any]] = []
    deepest, loops = 0, False
    seen: set[int] = set()  # containers that were searched
    around: list[int] = []  # containers of the current one
    todo: list[tuple[Any, bool]] = [(value, False)]
    while todo:
        one, is_done = todo.pop()
        if is_done:
            around.pop()
        elif isinstance(one, Handle | Part):
            found.append(one if isinstance(one, Handle) else one.handle)
            deepest = max(deepest, len(around))
        elif type(one) not in PLAIN and isinstance(one, _MISUSES):
            _refuse_misuse(one)
        elif type(one) not in PLAIN and isinstance(one, Mapping | list | tuple):
            if isinstance(one, Mapping) and any(isinstance(key, Handle) for key in one):
                raise TurnError(
                    "a handle is the key of a mapping in an argument: await its value, and use that as the key"
                )
            if id(one) in seen:
                loops = loops or id(one) in around
                continue
            seen.add(id(one))
            around.append(id(one))
            todo.append((one, True))
            items = one.values() if isinstance(one, Mapping) else one
            todo += [(item, False) for item in reversed([*items])]
    if found and loops:
        raise TurnError("an argument contains itself, and a handle: give the handle as an argument of its own")
    if deepest > DEEPEST:
        raise TurnError(f"a handle lies more than {DEEPEST} levels deep in an argument: give it as one of its own")
    return found


def _refuse_misuse(value: Any) -> None:
    """Raise for values that hide a handle where its value cannot be filled in, and for values that are not ready."""
    if isinstance(value, CoroutineType):
        name = value.__qualname__
        value.close()  # or Python warns as well
        raise TurnError(f"an argument is the coroutine {name}: write await before it, or pass the call's handle")
    if isinstance(value, Outcome):
        raise TurnError(f"an argument is the Outcome of {value.id!r}: pass outcome.value, or the call's handle")
    if isinstance(value, asyncio.Future):
        raise TurnError(f"an argument is a {type(value).__name__}, not its result: write await before it")
    if isinstance(value, MethodType):
        if isinstance(value.__self__, Handle):
            raise TurnError(f"an argument is the method {value.__name__} of a handle: pass the handle itself")
    elif any(isinstance(item, Handle) for item in value):
        raise TurnError("a handle is in a set in an argument: use a list")


def _resolved(value: Any, made: dict[int, Any]) -> Any:
    """The value with results in place of handles. ``made``: finished containers by their id."""
    if isinstance(value, Handle):
        return value.result
    if isinstance(value, Part):
        try:
            return value.find(value.handle.result, value.path)
        except LookupError as error:
            raise MissingPartError("", f"The value of {value.handle.id} {error.args[0]}") from None
    if type(value) in PLAIN or not isinstance(value, Mapping | list | tuple):
        return value
    if id(value) not in made:
        made[id(value)] = _filled(value, made) if _search(value) else value
    return made[id(value)]


def _filled(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _resolved(item, made) for key, item in value.items()}
    items = [_resolved(item, made) for item in value]
    make = getattr(value, "_make", type(value))  # a named tuple stays one
    return items if isinstance(value, list) else make(items)
