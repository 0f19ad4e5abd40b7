"""Check the arguments of calls by name against a tool's signature, before the tool runs.

Compiled once per tool, with the first call by name. ``core.model.argument_types`` checks simple annotations; pydantic checks the
others, and is imported only for those. An annotation that cannot be resolved, or that pydantic does not support, is not
checked. Direct Python calls are not checked at all.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import typing
from collections.abc import Callable, Collection, Mapping
from types import CoroutineType, SimpleNamespace
from typing import Annotated, Any, Unpack, get_args, get_origin

from failsoft.core.model import builtin_faults
from failsoft.core.model.argument_types import JSON, Misfit, Reader, Richer, reader
from failsoft.core.model.compared import report_misuse
from failsoft.core.model.fault import Fault
from failsoft.core.model.outcome import Outcome
from failsoft.core.turn.machine import Node

_UNNAMED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
_VALIDATES = "__get_pydantic_core_schema__"  # method of pydantic's validators, and of types like them
_UNFINISHED = (asyncio.Future, CoroutineType, Node)
_OUTCOME_TEXT = "<Outcome '"
_ALL: frozenset[type] = frozenset()  # every class

Check = Callable[[Mapping[str, Any]], Mapping[str, Any] | Fault]
"""The arguments to use, the very same mapping if nothing was converted; or their fault."""


def compile_check(fn: Callable[..., Any], signature: inspect.Signature | None) -> Check | None:
    """Compile the check of a function's arguments; None if there is nothing to check."""
    readers: dict[str, Reader] = {}
    others: Reader | None = None  # reads ``**kwargs``
    for parameter in () if signature is None else signature.parameters.values():
        annotation = Any if parameter.kind in _UNNAMED else _resolve(fn, parameter)
        if get_origin(annotation) is Unpack:  # **kwargs of a TypedDict
            readers |= _typed_keywords(*get_args(annotation))
            continue
        made = _reader(annotation)
        if parameter.kind is parameter.VAR_KEYWORD:
            others = made
        elif made is not None:
            readers[parameter.name] = _or_none(made) if parameter.default is None else made
    if signature is None or (others is None and not readers):
        return None
    return _make_check(readers, others, frozenset(signature.parameters))


def doubt_arguments(tool_id: str, given: Mapping[str, Any], signature: inspect.Signature | None) -> None:
    """Log arguments that must be awaited first, unless an annotation refuses them, and texts that show an ``Outcome``."""
    for name, parameter in {} if signature is None else signature.parameters.items():
        value = given.get(name)
        if isinstance(value, _UNFINISHED) and parameter.annotation is parameter.empty:
            report_misuse(tool_id, f"{name} is {_unfinished(value)}")
        elif type(value) is str and _OUTCOME_TEXT in value:
            report_misuse(tool_id, f"{name} has the text of an Outcome in it: use outcome.value, or outcome.unwrap()")


def _unfinished(value: object) -> str:
    if isinstance(value, Node):
        return f"the handle of the call {value.id!r}, and a function needs its value: give `await handle.value()`"
    return f"a {type(value).__name__}, not its result: write await before it"


def _make_check(readers: Mapping[str, Reader], others: Reader | None, known: Collection[str]) -> Check:
    exact = {name: each.exact for name, each in readers.items()}
    unknown: Collection[type] = _ALL if others is None else ()

    def check(given: Mapping[str, Any]) -> Mapping[str, Any] | Fault:
        for name, value in given.items():
            if (classes := exact.get(name, unknown)) is not _ALL and type(value) not in classes:
                return read(given)
        return given

    def read(given: Mapping[str, Any]) -> Mapping[str, Any] | Fault:
        made: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        for name, value in given.items():
            if isinstance(value, Outcome):
                wrong[name] = f"{name} is the Outcome of another call: pass outcome.value."
                continue
            each = readers.get(name) or (None if name in known else others)
            if each is not None and isinstance(value, _UNFINISHED):
                wrong[name] = f"{name} is {_unfinished(value)}."
                continue
            try:
                made[name] = value if each is None else each.read(value, False)
            except Misfit as misfit:
                wrong[name] = misfit.explain(name)
        if wrong:
            return builtin_faults.bad_arguments(invalid=wrong, detail=" ".join(wrong.values()))
        return given if all(made[name] is value for name, value in given.items()) else made

    return check


def _or_none(each: Reader) -> Reader:
    """Accept None as well, for a parameter whose default is None."""

    def read(value: Any, strict: bool) -> Any:
        return None if value is None else each.read(value, strict)

    return Reader(each.wanted, each.exact | {type(None)}, read)


# --- annotations ----------------------------------------------------------------------------------------------------------


def _resolve(fn: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """A parameter's annotation; ``Any`` if there is none, or if its names cannot be found."""
    if parameter.annotation is parameter.empty:
        return Any
    found: Any = fn
    while isinstance(found, functools.partial):
        found = found.func
    if inspect.isclass(found):
        found = found.__init__
    elif not inspect.isroutine(found):
        found = type(found).__call__
    names = getattr(inspect.unwrap(getattr(found, "__func__", found)), "__globals__", {})
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return typing.get_type_hints(holder, globalns=names, include_extras=True)[parameter.name]
    except Exception:  # annotations are user code, which may raise anything
        return Any


def _reader(annotation: Any) -> Reader | None:
    try:
        return reader(annotation, _rich_reader)
    except Exception:  # the annotation is not a type
        return None


def _typed_keywords(typed_dict: Any) -> dict[str, Reader]:
    try:
        hints = typing.get_type_hints(typed_dict, include_extras=True)
    except Exception:  # names that cannot be found
        return {}
    return {name: made for name, hint in hints.items() if (made := _reader(hint)) is not None}


class _Refused(Misfit):
    """pydantic's objections to a value."""

    def explain(self, name: str) -> str:
        return f"{self.place(name)}: {self.wanted}."


def _rich_reader(annotation: Any) -> Reader | None:
    """Read with pydantic. A limited type, such as ``Annotated[int, Gt(0)]``, is first read like the type itself."""
    from pydantic import TypeAdapter, ValidationError  # start-up: few annotations need it

    try:
        adapter: Any = TypeAdapter(annotation)
    except Exception:  # an unsupported class, or names that cannot be resolved
        return None
    first = _limited_type(annotation)

    def read(value: Any, strict: bool) -> Any:
        if value.__class__ not in JSON:
            return value
        if first is not None:
            value = first.read(value, strict)
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            if not _is_json(value):
                return value
            refusal = error
        except Exception as error:  # raised by a user's validator
            raise _Refused(f"it could not be read: {type(error).__name__}", value) from None
        try:
            return adapter.validate_json(json.dumps(value))  # strict models accept dates and sets from JSON only
        except ValidationError as error:
            refusal = error
        except Exception:  # deeply nested, for instance
            pass
        problems = refusal.errors(include_url=False, include_input=False)
        raise _Refused("; ".join(map(_describe, problems)), value)

    return Reader(str(annotation), frozenset(), read)


def _limited_type(annotation: Any) -> Reader | None:
    """Return the reader of the simple type inside an ``Annotated`` that only limits values.

    None for any other annotation, and if a validator may want the value as it is.
    """
    if get_origin(annotation) is not Annotated:
        return None
    notes = [part for note in annotation.__metadata__ for part in (note, *(getattr(note, "metadata", None) or ()))]
    if any(hasattr(note, _VALIDATES) or getattr(note, "discriminator", None) for note in notes):
        return None
    try:
        return reader(get_args(annotation)[0])
    except Richer:
        return None


def _describe(problem: Mapping[str, Any]) -> str:
    place = ".".join(map(str, problem["loc"]))
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def _is_json(value: Any, depth: int = 100) -> bool:
    if not depth:
        return False
    if value.__class__ is list:
        return all(_is_json(item, depth - 1) for item in value)
    if value.__class__ is dict:
        return all(_is_json(item, depth - 1) for item in value.values())
    return value.__class__ in JSON
