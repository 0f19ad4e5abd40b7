"""A value that is not whole: a tool returns ``partial(rows, missing=["page 3"])`` when it got only so far."""

from __future__ import annotations

from typing import Any, NamedTuple


class Partial(NamedTuple):
    """What a tool got, and what it did not get."""

    value: Any
    missing: Any


def partial(value: Any, *, missing: Any) -> Any:
    """Return this from a tool that has only a part of its result.

    It counts as a transient failure: it is retried, and if no attempt brings more, the best part is the call's value.
    With ``accept_partial=True`` it is taken at once; with ``False`` never: the call fails, ``outcome.partial`` has it.
    Typed as Any so that a tool's own return type stays true.
    """
    return Partial(value, missing)


def more_complete(one: Partial | None, other: Partial | None) -> Partial | None:
    """The one that lacks less; the later one where that cannot be told."""
    if one is None or other is None:
        return one or other
    return one if _lacks(one) < _lacks(other) else other


def _lacks(part: Partial) -> int:
    try:
        return len(part.missing)
    except TypeError:
        return 1
