"""Repetition: decide whether a thread makes no progress because the same call keeps returning the same result.

Rules
-----
- Calls are the same if tool and arguments are. Only their fingerprints are kept, never a value.
- ``NO_PROGRESS_AFTER`` successful calls with an unchanged result within ``NO_PROGRESS_WINDOW`` seconds are no progress. It is
  reported once; the calls that follow count as long as there are that many in the window.
- A changed result starts the count again. So does a result that cannot be compared: an object without readable fields,
  or a value that is too large, too deep or contains itself.
- A fingerprint is a number made of the hashes of plain values. No method of a value's own class is called, so hostile
  objects cost nothing and cannot raise or block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from failsoft.core.startup.named_tuple import NamedTuple

NO_PROGRESS_AFTER: Final = 5  # identical calls with an unchanged result
NO_PROGRESS_WINDOW: Final = 60.0  # seconds
MOST_NODES: Final = 1_000  # values inside a value that gets a fingerprint
MOST_CHARACTERS: Final = 1_000_000  # of all its texts together
DEEPEST: Final = 32

_PLAIN: Final = frozenset({int, float, bool, complex, type(None)})
_CONTAINERS: Final = frozenset({list, tuple, dict, set, frozenset})
_TEXTS: Final = frozenset({str, bytes})
_HASHED_MODULES: Final = frozenset({"datetime", "decimal", "uuid", "fractions"})
_CHANGING: Final = frozenset({"id", "tool_call_id", "response_metadata"})  # fields of a framework's message


class Repeats(NamedTuple):
    """The latest successes of one call whose result has not changed."""

    result: int  # the fingerprint
    times: tuple[float, ...]  # of the calls in the window, the newest last
    reported: bool = False


def note_result(
    before: Repeats | None, result: int | None, now: float, most: int = NO_PROGRESS_AFTER
) -> Repeats | None:
    """Note a success; None if its result cannot be compared. ``most``: the number of times that are kept."""
    if result is None:
        return None
    if before is None or before.result != result:
        return Repeats(result, (now,))
    times = (*_recent(before.times, now), now)[-max(most, NO_PROGRESS_AFTER) :]
    return Repeats(result, times, before.reported and len(times) >= NO_PROGRESS_AFTER)


def count_repeats(repeats: Repeats | None, now: float) -> int:
    """Return how many identical calls have had the same result within the window."""
    return 0 if repeats is None else len(_recent(repeats.times, now))


def is_refused(repeats: Repeats | None, max_repeats: int | None, now: float) -> bool:
    """True if the next identical call is refused."""
    return max_repeats is not None and count_repeats(repeats, now) >= max_repeats


def _recent(times: tuple[float, ...], now: float) -> tuple[float, ...]:
    return times if now - times[0] <= NO_PROGRESS_WINDOW else tuple([t for t in times if now - t <= NO_PROGRESS_WINDOW])


# --- fingerprints -----------------------------------------------------------------------------------------------------


class _IncomparableError(Exception):
    """A value has no fingerprint."""


def fingerprint(value: Any) -> int | None:
    """Return a number that equal plain values share; None if the value cannot be compared. Valid in this process only."""
    try:
        if type(value) in _PLAIN:
            return hash((type(value), value))
        return _hash(value, DEEPEST, [MOST_NODES, MOST_CHARACTERS])
    except Exception:  # it is incomparable, or its metaclass raises
        return None


def _hash(value: Any, depth: int, left: list[int]) -> int:
    kind = type(value)
    if kind in _PLAIN:
        return hash((kind, value))
    if kind in _TEXTS:
        left[1] -= len(value)
        if left[1] < 0:
            raise _IncomparableError
        return hash(value) if kind is str else hash((kind, value))
    left[0] -= 1
    if left[0] < 0 or not depth:
        raise _IncomparableError
    if kind in _CONTAINERS:
        return _hash_container(kind, value, depth, left)
    if isinstance(value, type):
        return id(value)
    if kind.__module__ in _HASHED_MODULES:
        return _hash_known(kind, value)
    return _hash_object(value, depth, left)


def _hash_container(kind: type, value: Any, depth: int, left: list[int]) -> int:
    if kind is dict:
        return _hash_fields(kind, value, depth, left)
    _pay(left, len(value))
    parts = [hash((type(one), one)) if type(one) in _PLAIN else _hash(one, depth - 1, left) for one in value]
    return hash((kind, *parts)) if kind is list or kind is tuple else hash((kind, len(parts), sum(parts)))


def _hash_known(kind: type, value: Any) -> int:
    """Hash a value of a standard library's class. The time zone of a time may be of any class."""
    zone = getattr(value, "tzinfo", None)
    return hash((kind, value)) if zone is None else hash((kind, value.replace(tzinfo=None), type(zone)))


def _pay(left: list[int], nodes: int) -> None:
    left[0] -= nodes
    if left[0] < 0:
        raise _IncomparableError


def _hash_fields(kind: type, fields: Mapping[Any, Any], depth: int, left: list[int], skipped: Any = ()) -> int:
    _pay(left, len(fields))
    parts = [
        hash((_hash(key, 1, left), _hash(one, depth - 1, left)))
        for key, one in fields.items()
        if not (skipped and type(key) is str and key in skipped)
    ]
    return hash((kind, len(parts), sum(parts)))  # a sum: the order does not matter


def _hash_object(value: Any, depth: int, left: list[int]) -> int:
    """Hash an object by its class and its fields: a dataclass, a pydantic model, an enum, a named tuple."""
    kind = type(value)
    if isinstance(value, tuple):
        return hash((kind, _hash(tuple.__getitem__(value, slice(None)), depth, left)))
    if isinstance(value, dict):
        _pay(left, dict.__len__(value))
        return hash((kind, _hash(dict.copy(value), depth, left)))
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        raise _IncomparableError from None
    if type(fields) is not dict or not fields or isinstance(value, list | set | frozenset):
        raise _IncomparableError  # its state is not in its fields
    return _hash_fields(kind, fields, depth, left, _CHANGING if "tool_call_id" in fields else ())
