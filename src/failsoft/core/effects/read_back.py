"""Read back what became of a write: fill in the reading tool's arguments, and judge what it returned.

The patterns are described in ``core.model.verify_tool``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from failsoft.core.model.effect import BELIEVED
from failsoft.core.model.fault import Fault
from failsoft.core.model.json_values import plain
from failsoft.core.model.verified import NO_VALUE, Verified
from failsoft.core.model.verify_tool import FAILED, VerifyTool, find_codes, read_codes
from failsoft.core.redact.sanitise import sanitise

_LONGEST = 1_000_000  # characters of a text that is read as JSON
MOST_NODES: Final = 100_000  # values in an answer: reading more would hold up the event loop
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_NO_MATCH: Final = object()
_UNSTATED: Final = (
    " (a local error, not an answer of the other side: let the tool return a value, raise the service's own error, or "
    "raise failsoft.NothingDone with this code)"
)


class MissingArgumentError(LookupError):
    """A ``verify`` refers to an argument that the call does not have."""


def fill_in_arguments(spec: VerifyTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for the reading tool. Raises ``MissingArgumentError``."""
    return {name: _filled(value, arguments) for name, value in spec.arguments.items()}


def judge(
    spec: VerifyTool, arguments: Mapping[str, Any], values: Sequence[Any] = (), fault: Fault | None = None
) -> Verified:
    """Judge the value of the reading tool, or its fault.

    ``values`` has more than one entry if a framework's message may mean several values.
    """
    if any(_is_too_large(value) for value in values):
        return Verified.unknown(f"{spec.tool} returned more than {MOST_NODES} values: let it return fewer")
    found = _NO_MATCH
    for pattern in spec.happened_if:
        found = _first_match(_fill_in_pattern(pattern, arguments), values, fault)
    nothing = any(
        _first_match(_fill_in_pattern(one, arguments), values, fault) is not _NO_MATCH for one in spec.none_if
    )
    if found is not _NO_MATCH and nothing:
        return Verified.unknown(f"happened_if and none_if both match what {spec.tool} returned")
    if nothing:
        return Verified.none()
    if found is not _NO_MATCH:
        return Verified.happened(_find_value(spec.value, found))
    if fault is not None:
        return unread(spec, fault)
    return Verified.unknown(f"neither happened_if nor none_if matches what {spec.tool} returned")


def unread(spec: VerifyTool, fault: Fault) -> Verified:
    """The answer if the reading tool did not run, or failed in a way that shows nothing."""
    said = any(
        fault.code in read_codes(codes) for one in (*spec.happened_if, *spec.none_if) for codes in find_codes(one)
    )
    why = _UNSTATED if said and fault.source not in BELIEVED else ""
    return Verified.unknown(sanitise(f"{spec.tool} failed: {fault.code}: {fault.message}{why}"))


def _is_too_large(value: Any) -> bool:
    """True if plain containers hold too many values. A value that contains itself counts as too large."""
    left, waiting = MOST_NODES, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            inside: Any = dict.values(one)
        elif isinstance(one, list | tuple | set | frozenset):
            inside = one
        else:
            continue
        left -= len(inside)
        if left < 0:
            return True
        waiting += inside
    return False


class _Literal:
    """An argument of the write in a pattern. It matches only equal values, even if it looks like a pattern itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = plain(value)


def _fill_in_pattern(pattern: Any, arguments: Mapping[str, Any]) -> Any:
    return _filled(plain(pattern), arguments, _Literal)


def _filled(written: Any, arguments: Mapping[str, Any], wrap: Callable[[Any], Any] | None = None) -> Any:
    """Replace the placeholders by the write's arguments; ``wrap`` is applied to each."""
    if isinstance(written, str):
        if not written.startswith("$"):
            return written
        if written.startswith("$$"):
            return written[1:]
        argument = _argument(written, arguments)
        return argument if wrap is None else wrap(argument)
    if isinstance(written, Mapping):
        return {key: part if key == FAILED else _filled(part, arguments, wrap) for key, part in written.items()}
    if isinstance(written, list | tuple):
        return [_filled(part, arguments, wrap) for part in written]
    return written


def _argument(text: str, arguments: Mapping[str, Any]) -> Any:
    name, *path = text[1:].split(".")
    if name not in arguments:
        raise MissingArgumentError(f"the call has no argument {sanitise(name)}")
    value = arguments[name]
    for part in path:
        value = _part(value, part)
        if value is _NO_MATCH:
            raise MissingArgumentError(f"the argument {sanitise(name)} has no {sanitise(part)}")
    return value


def _part(value: Any, name: str) -> Any:
    value = plain(value)
    if isinstance(value, Mapping):
        return value.get(name, _NO_MATCH)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return _NO_MATCH


def _find_value(path: str | None, found: Any) -> Any:
    if path is None:
        return NO_VALUE
    for part in path.split(".")[1:]:
        found = _part(found, part)
        if found is _NO_MATCH:
            return NO_VALUE
    return found


def _first_match(pattern: Any, values: Sequence[Any], fault: Fault | None) -> Any:
    """Return the part that matches; ``_NO_MATCH`` if nothing does."""
    if fault is not None:
        alternatives = pattern if isinstance(pattern, list) else [pattern]
        failed = any(isinstance(one, Mapping) and _has_failed(one, fault) for one in alternatives)
        return None if failed else _NO_MATCH
    for value in values:
        found = _match(pattern, plain(value))
        if found is not _NO_MATCH:
            if isinstance(found, _Item):
                return found.value
            return found if isinstance(value, str) else value
    return _NO_MATCH


def _has_failed(pattern: Mapping[str, Any], fault: Fault) -> bool:
    """True if the reading tool failed as the pattern says, and the other side said so: a missing local file shows nothing."""
    return FAILED in pattern and fault.source in BELIEVED and fault.code in read_codes(pattern[FAILED])


class _Item:
    """The item of a list that matched."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _match(pattern: Any, value: Any) -> Any:
    """Return the value, or the item of it that matches; ``_NO_MATCH`` if none does. The value is plain data."""
    if isinstance(pattern, list):
        if not pattern:
            return value if value == [] else _NO_MATCH
        return next((found for one in pattern if (found := _match(one, value)) is not _NO_MATCH), _NO_MATCH)
    if isinstance(pattern, Mapping):
        return _match_mapping(pattern, value)
    if isinstance(pattern, _Literal):
        return value if _is_same(pattern.value, value) else _NO_MATCH
    if pattern == "*":
        return _NO_MATCH if any(value is empty or value == empty for empty in _EMPTY) else value
    return value if _is_same(pattern, value) else _NO_MATCH


def _is_same(one: Any, other: Any) -> bool:
    """True if two plain values are equal, and of one type: 1 is 1.0, but neither True nor "1"."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(part, other[key]) for key, part in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return (type(one) is type(other) or (_is_number(one) and _is_number(other))) and bool(one == other)


def _match_mapping(pattern: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, str):
        value = _read_json(value)
    if isinstance(value, list):
        item = next((item for item in value if _match(pattern, item) is not _NO_MATCH), _NO_MATCH)
        return _NO_MATCH if item is _NO_MATCH else _Item(item)
    if not isinstance(value, Mapping) or FAILED in pattern:
        return _NO_MATCH
    fits = all(key in value and _match(part, value[key]) is not _NO_MATCH for key, part in pattern.items())
    return value if fits else _NO_MATCH


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_json(text: str) -> Any:
    if len(text) > _LONGEST or not text.lstrip().startswith(("{", "[")):
        return text
    import json  # lazy: few tools are verified

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
