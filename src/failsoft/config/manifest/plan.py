"""Plans: a turn as data.

Rules
-----
- ``{"$ref": "flights"}`` in a call's arguments, at any depth, is replaced by the value of the call ``flights``, which
  runs first. ``flights.price`` and ``flights[0].id`` refer to parts of that value; a call with exactly that id wins.
  ``{"$literal": ...}`` is replaced by its content, unread. Each must be the only key of its mapping.
- A call without an id is called ``<tool>-1``, ``<tool>-2`` and so on, skipping ids in use.
- Refused: an id used twice, a reference to no call, and a cycle. All problems are reported together. An unknown tool is
  not a problem of the plan: its call fails, the others run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from failsoft.config.layering import Layer
from failsoft.config.manifest.block import Block, Duration, Flag, From, Milliseconds, Text, Whole, as_written, keys_of
from failsoft.config.manifest.detect import refuse_other
from failsoft.config.manifest.load import open_document
from failsoft.config.manifest.problem import Path, raise_problems
from failsoft.config.manifest.protection_blocks import Retry
from failsoft.config.manifest.reading import Document
from failsoft.config.manifest.validate import parse
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.options import RetryOptions
from failsoft.core.turn.cycles import find_cycles, format_cycle

REF, LITERAL = "$ref", "$literal"
DEEPEST = 64  # levels of arguments; a mapping made in Python may contain itself
MOST_PARTS = 1_000_000  # values in the arguments of one call
_PATH_START = re.compile(r"[.\[]")
_STEP = r"""\.([^.\[\]"']+)|\[(-?[0-9]{1,9})\]|\[(?:"([^"]*)"|'([^']*)')\]"""
_PATH_STEP, _WHOLE_PATH = re.compile(_STEP), re.compile(f"(?:{_STEP})+")


class Ref(NamedTuple):
    """A reference in a planned call's arguments to the value of another call, or to a part of it."""

    id: str
    path: tuple[str | int, ...] = ()  # keys and positions that lead to the part


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCall:
    """One call of a plan."""

    id: str
    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)  # may contain Refs
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # call id -> arguments that its value fills
    required: bool | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None  # None: the tool's timeout
    retry: Layer | RetryOptions | None = None  # merged into the tool's options
    idempotency_key: str | None = None
    place: str = ""  # file:line:column

    def fill(self, find: Callable[[Ref], Any]) -> dict[str, Any]:
        """Return the arguments with every ``Ref`` replaced by ``find(ref)``."""
        waiting = {argument for arguments in self.needs.values() for argument in arguments}
        return {name: _fill(value, find) if name in waiting else value for name, value in self.args.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A turn as data."""

    calls: tuple[PlannedCall, ...]
    timeout: float | None = None  # None: the runtime's timeout
    max_calls: int | None = None  # None: the runtime's limit
    max_calls_per_tool: int | None = None
    thread: str | None = None
    name: str = ""


class CallBlock(Block):
    """A call of a plan."""

    id: Text = as_written("The call's id within the plan.")
    tool: Text = Field(description="The id of the tool.")
    args: dict[str, Any] = as_written(
        'Its arguments; {"$ref": "<call>"} means another call\'s value, {"$ref": "<call>.price"} a part of it.'
    )
    depends_on: tuple[Text, ...] = as_written("Calls that must succeed before this one starts.")
    required: Flag | None = as_written("What a failed dependency means: true escalates, false skips.")
    defaults: dict[Text, Any] = as_written("Values that replace a failed dependency's, by argument.")
    timeout: Duration = as_written("How long an attempt may take.")
    timeout_ms: Milliseconds = as_written("How long an attempt may take, in milliseconds.")
    retry: Retry = as_written("Its retry options, merged into the tool's.", "retry", "retry_policy")
    idempotency_key: Text = as_written("Its idempotency key, which makes repeating it safe.")

    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("arguments", "params", "parameters", "input", "inputs", "kwargs"), "write args"),
        **dict.fromkeys(("needs", "after", "requires", "dependencies", "wait_for"), "write depends_on: [<call>]"),
        **dict.fromkeys(
            ("name", "function", "uses", "tool_name"), "write tool for the tool's id, id for the call's own"
        ),
        **dict.fromkeys(
            ("fallbacks", "breaker", "read_only", "idempotent", "rate"), "it is an option of the tool, in the manifest"
        ),
        **dict.fromkeys(("if", "when", "condition"), "a plan has no conditions: leave the call out, or decide in code"),
    }

    def make(self) -> dict[str, Any]:
        return self.given()


class PlanBlock(Block):
    """A turn as data."""

    instead: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("steps", "tasks", "plan", "nodes"), "write calls"),
        "on_timeout": "it is not part of a plan: write turn: {on_timeout: cancel} in the manifest",
        **dict.fromkeys(("id", "name"), "a plan has none: ids belong to its calls"),
    }

    timeout: Duration = as_written("How long the turn may take.")
    timeout_ms: Milliseconds = as_written("How long the turn may take, in milliseconds.")
    max_calls: Whole = as_written("How many calls the turn may make, those inside its calls included.")
    max_calls_per_tool: Whole = as_written("How many calls of any one tool the turn may make.")
    thread: Text = as_written("The thread that the turn belongs to.")
    calls: tuple[Annotated[Mapping[str, Any], From(CallBlock)], ...] = Field(description="The calls.")

    def make(self) -> dict[str, Any]:
        return self.given()


def load_plan(source: str | bytes | Mapping[str, Any], *, name: str = "") -> Plan:
    """Read a plan: the text of a file (YAML or JSON) called ``name``, or a mapping."""
    document = open_document(source, name or "plan")
    refuse_other(document, "plan")
    plan = parse(PlanBlock, document)
    written: Sequence[Mapping[str, Any]] = _readable(document.value) if plan is None else plan.pop("calls")
    ids = _name(written)
    calls = tuple(
        _read_call(document, ("calls", number), {**call, "id": id}, {*ids})
        for number, (call, id) in enumerate(zip(written, ids, strict=True))
    )
    _refuse_wrong_ids(document, calls)
    raise_problems(document.problems)
    assert plan is not None, "a document that cannot be parsed has problems"
    return Plan(**plan, calls=calls, name=document.name)


def _readable(value: Any) -> list[dict[str, Any]]:
    """Collect the readable parts of a faulty plan's calls, so that wrong references are reported too."""
    calls = value.get("calls") if isinstance(value, Mapping) else None
    found = []
    for call in calls if isinstance(calls, list | tuple) else ():
        as_written: Mapping[str, Any] = call if isinstance(call, Mapping) else {}
        kept: dict[str, Any] = {"tool": as_written["tool"] if isinstance(as_written.get("tool"), str) else "?"}
        if isinstance(as_written.get("id"), str):
            kept["id"] = as_written["id"]
        if isinstance(as_written.get("args"), Mapping):
            kept["args"] = {str(name): value for name, value in as_written["args"].items()}
        for name in keys_of(CallBlock, "depends_on"):
            if isinstance(as_written.get(name), list | tuple):
                kept["depends_on"] = [id for id in as_written[name] if isinstance(id, str)]
        found.append(kept)
    return found


def _fill(value: Any, find: Callable[[Ref], Any]) -> Any:
    if isinstance(value, Ref):
        return find(value)
    if isinstance(value, dict):
        return {key: _fill(item, find) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, find) for item in value]
    return value


def read_ref(text: str, ids: Collection[str]) -> Ref | None:
    """Parse a reference to a call or a part of its value; None if the text after the id is not a path.

    An exact id wins, then the longest id that is followed by a path. A reference to no call keeps its whole text, or
    the text before a path.
    """
    if text in ids:
        return Ref(text)
    starts = [found.start() for found in _PATH_START.finditer(text) if found.start()]
    for start in [each for each in reversed(starts) if text[:each] in ids] or starts[:1]:
        path = _read_path(text[start:])
        if path is not None:
            return Ref(text[:start], path)
        if text[:start] in ids:
            return None
    return Ref(text)


def _read_path(text: str) -> tuple[str | int, ...] | None:
    if not _WHOLE_PATH.fullmatch(text):
        return None
    steps = _PATH_STEP.findall(text)
    return tuple(int(index) if index else key or double or single for key, index, double, single in steps)


def reach(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return the part of a value at ``path``; raise ``LookupError`` with a sentence if there is none."""
    for number, step in enumerate(path):
        try:
            value = _step(value, step)
        except (LookupError, AttributeError, TypeError):
            there = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path[: number + 1])
            known = [key for key in value if isinstance(key, str)] if isinstance(value, Mapping) else ()
            hint = did_you_mean(str(step), known)
            if isinstance(step, str) and isinstance(value, list | tuple):
                hint = f": it is a list of {len(value)}" + (f", write [{step}]" if step.isdecimal() else "")
            if not number and step in ("value", "result", "output"):
                hint += "; the call's id alone refers to its value"
            raise LookupError(f"has no {there}{hint}") from None
    return value


def _step(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value[step]
    if isinstance(step, int):
        if isinstance(value, str | bytes):
            raise TypeError(step)
        return value[step]
    if step.startswith("_"):
        raise AttributeError(step)
    return getattr(value, step)  # a field of a dataclass, a model or a named tuple


def _name(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids of all calls, generated ones included."""
    taken = {call["id"] for call in calls if "id" in call}
    numbers: Counter[str] = Counter()
    ids = []
    for call in calls:
        id = call.get("id")
        while id is None or (id in taken and "id" not in call):
            numbers[call["tool"]] += 1
            id = f"{call['tool']}-{numbers[call['tool']]}"
        ids.append(id)
    return ids


def _read_call(document: Document, path: Path, call: dict[str, Any], ids: Collection[str]) -> PlannedCall:
    refs = _Refs(document, ids)
    args = {name: refs.read(value, (*path, "args", name), name) for name, value in call.pop("args", {}).items()}
    for special in args.keys() & {REF, LITERAL}:
        message = "is not an argument: args maps names to values, so put the reference under a name"
        document.problems.append(document.problem((*path, "args", special), message, key=True))
    needs = {**dict.fromkeys(call.pop("depends_on", ()), ()), **refs.needs}
    return PlannedCall(**call, args=args, needs=needs, place=document.place(path))


class _Refs:
    """Reads the arguments of one call, and collects the calls that they refer to."""

    def __init__(self, document: Document, ids: Collection[str]) -> None:
        self._ids = ids
        self.needs: dict[str, tuple[str, ...]] = {}
        self._document = document
        self._too_deep = False
        self._parts = 0

    def read(self, value: Any, path: Path, argument: str, depth: int = 1) -> Any:
        if self._too_deep:  # report it once: a value that contains itself never ends
            return None
        self._parts += 1
        if depth > DEEPEST or self._parts > MOST_PARTS:
            self._too_deep = True
            why = f"is nested more than {DEEPEST} deep" if depth > DEEPEST else f"has more than {MOST_PARTS} parts"
            self._note(path[:4], f"{why}: use fewer levels or parts")
            return None
        if isinstance(value, Mapping):
            if value.keys() & {REF, LITERAL}:
                return self._read_special(value, path, argument)
            return {key: self.read(item, (*path, key), argument, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.read(item, (*path, number), argument, depth + 1) for number, item in enumerate(value)]
        return value

    def _read_special(self, value: Mapping[str, Any], path: Path, argument: str) -> Any:
        if len(value) > 1:
            key = REF if REF in value else LITERAL
            self._note(path, f"{key} stands alone: drop the other keys, or put it all below {LITERAL}")
        elif LITERAL in value:
            return value[LITERAL]
        elif not isinstance(value[REF], str):
            self._note((*path, REF), "is not the id of a call: write a text")
        elif (ref := read_ref(value[REF], self._ids)) is None:
            self._note((*path, REF), f"{value[REF]!r:.80} is not a path: write it like flights.price or flights[0].id")
        else:
            self.needs[ref.id] = tuple(dict.fromkeys((*self.needs.get(ref.id, ()), argument)))
            return ref
        return None

    def _note(self, path: Path, message: str) -> None:
        self._document.problems.append(self._document.problem(path, message))


def _refuse_wrong_ids(document: Document, calls: Sequence[PlannedCall]) -> None:
    ids = Counter(call.id for call in calls)
    seen: set[str] = set()
    for number, call in enumerate(calls):
        path: Path = ("calls", number)
        if call.id in seen:
            _note(document, (*path, "id"), f"{call.id} is used twice: give each call its own id")
        seen.add(call.id)
        for need, arguments in call.needs.items():
            if need not in ids:
                where: Path = (*path, "args", arguments[0]) if arguments else (*path, "depends_on")
                instead = did_you_mean(need.lstrip("$#/@"), ids) or ": name the id of one"
                _note(document, where, f"{call.id} depends on {need}, which is not a call of this plan{instead}")
    for cycle in find_cycles({call.id: call.needs for call in calls}):
        number = next(number for number, call in enumerate(calls) if call.id == cycle[0])
        as_written = f"these calls wait for each other in a cycle, {format_cycle(cycle)}: drop one of the references"
        _note(document, ("calls", number), as_written)


def _note(document: Document, path: Path, message: str) -> None:
    document.problems.append(document.problem(path, message))
