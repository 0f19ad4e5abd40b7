"""The option ``verify``: a function, or a tool that reads back what became of a write.

    verify: {tool: get_order, arguments: {order_id: $order_id}, happened_if: {status: paid}, none_if: {$failed: NOT_FOUND}}

Patterns
--------
- A mapping matches a mapping that has all its keys with matching values, and a list that has a matching item.
- A list matches if one of its entries does. ``[]`` matches only an empty list.
- ``"*"`` matches everything but null and empty texts, lists and mappings. Any other value matches equal values.
- ``{$failed: NOT_FOUND}`` matches if the reading tool failed with that code, or with one of a list of codes, and the other
  side said so (a status, a provider's code) or the tool itself (``NothingDone``). A local error shows nothing.
- ``$name`` is the write's argument ``name``, ``$name.part`` a part of it. It matches only equal values, even if it
  contains a pattern. Write a text that begins with a dollar sign with two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from reprlib import repr as brief
from typing import Any, Final

from failsoft.core.model.fault import Code
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.validation import read_code
from failsoft.core.startup.named_tuple import NamedTuple

FAILED: Final = "$failed"  # key of a pattern: the reading tool failed with one of these codes
MATCH: Final = "$match"  # in ``value``: the part that matched ``happened_if``
_KEYS: Final = ("tool", "arguments", "happened_if", "none_if", "value")
_LIKE: Final = '{"tool": "get_order", "arguments": {"order_id": "$order_id"}, "happened_if": {"status": "paid"}}'
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["tool"],
    "properties": {
        "tool": {"type": "string", "minLength": 1, "description": "A tool that reads."},
        "arguments": {"type": "object", "description": "Its arguments; $name is an argument of the write."},
        "happened_if": {"description": "A pattern of its value: the write took effect."},
        "none_if": {"description": "A pattern of its value: the write was not done, and cannot be done any more."},
        "value": {
            "type": "string",
            "pattern": r"^\$match(\..+)?$",
            "description": "The value of the write: $match is what matched happened_if, $match.id a part of it.",
        },
    },
    "anyOf": [{"required": ["happened_if"]}, {"required": ["none_if"]}],
    "additionalProperties": False,
    "examples": [{"tool": "get_order", "arguments": {"order_id": "$order_id"}, "happened_if": {"status": "paid"}}],
}


class VerifyTool(NamedTuple):
    """A tool that reads back the result of a write, and the patterns for its value."""

    tool: str
    arguments: Mapping[str, Any]
    happened_if: tuple[Any, ...]  # one pattern, or none
    none_if: tuple[Any, ...]  # one pattern, or none
    value: str | None  # the value of the write: "$match" or a part of it; None: it is not known

    def names(self) -> Iterator[str]:
        """Yield the names of the write's arguments that the option refers to."""
        for written in (self.arguments, *self.happened_if, *self.none_if):
            for part in _parts(written, without=FAILED):
                if isinstance(part, str) and part.startswith("$") and not part.startswith("$$"):
                    yield part[1:].partition(".")[0]


def read_verify(value: Any) -> Any:
    """Read the option: None, a function or a ``VerifyTool``. Raises ValueError with what would be right."""
    if value is None or isinstance(value, VerifyTool):
        return value
    if isinstance(value, Mapping):
        return _read_tool(value)
    if callable(value) and not isinstance(value, type) and _takes_three(value):
        return value
    raise ValueError(f"{brief(value)} is not a function verify(arguments, key, fault), nor a mapping such as {_LIKE}")


def read_codes(codes: Any) -> tuple[Code, ...]:
    """Read the codes of ``$failed``: one, or a list of them."""
    return tuple(read_code(code) for code in (codes if isinstance(codes, list | tuple) else (codes,)))


def _takes_three(function: Callable[..., Any]) -> bool:
    """True if a function can be called with three positional arguments, or does not say."""
    try:
        signature(function).bind(None, None, None)
    except ValueError:  # it has no signature
        return True
    except TypeError:
        return False
    return True


def _read_tool(written: Mapping[Any, Any]) -> VerifyTool:
    for key in written:
        if key not in _KEYS:
            raise ValueError(f"{brief(key)} is not one of {', '.join(_KEYS)}{did_you_mean(str(key), _KEYS)}")
    tool, arguments, value = written.get("tool"), written.get("arguments", {}), written.get("value")
    if not (isinstance(tool, str) and tool):
        raise ValueError(f"tool: {brief(tool)} is not the id of a tool: write {_LIKE}")
    if not (isinstance(arguments, Mapping) and all(isinstance(name, str) for name in arguments)):
        raise ValueError(f"arguments: {brief(arguments)} is not a mapping from arguments to values")
    happened_if, none_if = ((written[name],) if name in written else () for name in ("happened_if", "none_if"))
    if not (happened_if or none_if):
        raise ValueError("expected a pattern: happened_if, none_if or both")
    if happened_if == none_if:
        raise ValueError("happened_if and none_if are the same, so no answer could decide: change or drop one")
    for name in ("happened_if", "none_if"):
        _check_pattern(name, written.get(name))
    if value is not None:
        if not isinstance(value, str) or not (value == MATCH or value.startswith(f"{MATCH}.")):
            raise ValueError(f'value: {brief(value)} is not "{MATCH}" or a part of it, such as "{MATCH}.id"')
        if not happened_if:
            raise ValueError("value: without happened_if nothing can match")
    return VerifyTool(tool, dict(arguments), happened_if, none_if, value)


def _check_pattern(name: str, pattern: Any) -> None:
    for key in _find_keys(pattern):
        if key != FAILED and key.startswith("$") and (close := did_you_mean(key, (FAILED,))):
            raise ValueError(f"{name}: {brief(key)} is not known{close}")
    for codes in find_codes(pattern):
        _check_codes(name, codes)


def _check_codes(name: str, codes: Any) -> None:
    try:
        if not read_codes(codes):
            raise ValueError("the list is empty")
    except ValueError as wrong:
        raise ValueError(f"{name}: {FAILED}: {wrong}") from None


def find_codes(pattern: Any) -> Iterator[Any]:
    """Yield the values under ``$failed`` in a pattern."""
    return (part[FAILED] for part in _parts(pattern) if isinstance(part, Mapping) and FAILED in part)


def _find_keys(pattern: Any) -> Iterator[str]:
    return (key for part in _parts(pattern) if isinstance(part, Mapping) for key in part if isinstance(key, str))


def _parts(value: Any, *, without: str | None = None) -> Iterator[Any]:
    """Yield a value and everything in it, except what is under the key ``without``."""
    yield value
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key != without:
                yield from _parts(part, without=without)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part, without=without)
