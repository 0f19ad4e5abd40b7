"""The option ``failed_if``: how a tool's value shows that the call has failed.

Rules
-----
- In code it may be a function of the value. It returns False or None for a success; True, an error text, an exception or
  a ``Fault`` for a failure.
- In YAML and in code it may be a pattern: a mapping from fields to the values that show a failure. All fields must match.
  ``message`` names the field with the error text. ``text`` is a regular expression for values that have none of the
  fields: a structured flag comes before text.
- A field may be a path (``result.ok``), or a nested mapping. A list of values matches any of them, and ``"*"`` matches
  whatever is not null, false, 0 or empty.
- ``when`` holds the fields if one of them is called ``message``, ``text`` or ``when``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction, signature
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, Final

from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault

_LIKE = '{"ok": false, "message": "error"}'
ANY_VALUE: Final = "*"
_SCALARS = (str, int, float, bool, type(None))
_OWN = ("message", "text", "when")
_DEEPEST = 8
_SCALAR_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_FIELDS_SCHEMA: dict[str, Any] = {
    "anyOf": [_SCALAR_SCHEMA, {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1}, {"type": "object"}]
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "properties": {
        "message": {"type": "string", "minLength": 1, "description": "The field with the error text."},
        "text": {
            "type": "string",
            "minLength": 1,
            "description": "A regular expression found in a failed tool's text; for values that have none of the fields.",
        },
        "when": {
            "type": "object",
            "description": "The fields, if one of them is called message, text or when.",
            "additionalProperties": _FIELDS_SCHEMA,
        },
    },
    "additionalProperties": _FIELDS_SCHEMA,
    "examples": [{"ok": False, "message": "error"}],
}


class FieldMatch(NamedTuple):
    """A field, by its path, and the values of it that show a failure."""

    path: str
    values: tuple[str | float | bool | None, ...]


class FailurePattern(NamedTuple):
    """A pattern of failed values."""

    fields: tuple[FieldMatch, ...]  # all must match
    message: str | None = None  # the path of the error text
    text: str | None = None  # a regular expression, for values without these fields


if TYPE_CHECKING:
    FailedIf = Callable[[Any], bool | str | Fault | BaseException | None] | Mapping[str, Any] | FailurePattern


def read_failed_if(value: Any) -> Any:
    """Read the option: None, a function or a ``FailurePattern``. Raises ValueError with what would be right."""
    if value is None or isinstance(value, FailurePattern):
        return value
    if isinstance(value, Mapping):
        return _read_pattern(value)
    if callable(value):
        if iscoroutinefunction(value) or iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
            raise ValueError(f"{brief(value)} is async and would not be awaited: give a plain function")
        if not _takes_one(value):
            raise ValueError(f"{brief(value)} cannot be called with the value alone: give a function of one argument")
        return value
    raise ValueError(f"expected a pattern such as {_LIKE}, or in code a function of the value, got {brief(value)}")


def _takes_one(function: Callable[..., Any]) -> bool:
    """True if a function can be called with one positional argument, or does not say."""
    try:
        signature(function).bind(None)
    except ValueError:  # it has no signature
        return True
    except TypeError:
        return False
    return True


def _read_pattern(written: Mapping[Any, Any]) -> FailurePattern:
    own = {name: written[name] for name in _OWN if name in written}
    when = own.get("when")
    fields = {name: value for name, value in written.items() if name not in own}
    if when is not None:
        if not isinstance(when, Mapping):
            raise ValueError(f"when: {brief(when)} is not a mapping: write the fields, as in {{ok: false}}")
        if fields:
            raise ValueError(f"when: {brief(next(iter(fields)))} is beside it: move all fields into when")
        fields = {**when}
    message, text = _read_name(own), _read_text(own)
    matches = tuple(_read_fields(fields, "", 0))
    if not matches and text is None:
        raise ValueError(f"it has no condition: name a field that shows a failure, as in {_LIKE}")
    if not matches and message is not None:
        raise ValueError("message: no field is compared, so the text is the message: drop it")
    return FailurePattern(matches, message, text)


def _read_name(own: Mapping[str, Any]) -> str | None:
    name = own.get("message")
    if "message" not in own or (isinstance(name, str) and name and all(name.split("."))):
        return name
    raise ValueError(
        f"message: {brief(name)} is not the name of a field: message names the field with the error text; to compare a "
        "field called message, write when: {message: …}"
    )


def _read_text(own: Mapping[str, Any]) -> str | None:
    text = own.get("text")
    if "text" not in own:
        return None
    if not isinstance(text, str) or not text:
        raise ValueError(
            f"text: {brief(text)} is not a regular expression; to compare a field called text, write when: {{text: …}}"
        )
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as wrong:
        raise ValueError(f"text: {brief(text)} is not a regular expression: {wrong}") from None
    return text


def _read_fields(fields: Mapping[Any, Any], within: str, depth: int) -> list[FieldMatch]:
    found: list[FieldMatch] = []
    for name, value in fields.items():
        path = f"{within}{name}"
        if not isinstance(name, str) or not all(name.split(".")):
            raise ValueError(f"{brief(name)} is not the name of a field: write a text such as ok, or a path: result.ok")
        if isinstance(value, Mapping):
            if not value or depth == _DEEPEST:
                raise ValueError(
                    f"{path}: {'is empty' if not value else 'is nested too deeply'}: compare it with a value"
                )
            found += _read_fields(value, f"{path}.", depth + 1)
            continue
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not values or not all(isinstance(one, _SCALARS) for one in values):
            raise ValueError(f"{path}: {brief(value)} is not a text, a number, true, false or null, nor a list of them")
        if isinstance(value, str) and value.lower() in ("true", "false"):
            raise ValueError(
                f"{path}: {brief(value)} is a text: write {value.lower()} without quotes, or [{value!r}] to compare texts"
            )
        found.append(FieldMatch(path, values))
    return found
