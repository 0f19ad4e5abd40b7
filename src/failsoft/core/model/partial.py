"""Partial results: a tool returns ``partial(rows, missing=["page 3"])`` if it got only a part of its result."""

from __future__ import annotations

from typing import Any

from failsoft.core.startup.named_tuple import NamedTuple


class Partial(NamedTuple):
    """The part of a result that a tool got, and what is missing."""

    value: Any
    missing: Any


def partial(value: Any, *, missing: Any) -> Any:
    """Return this from a tool that has only a part of its result.

    A partial result counts as a transient failure. It is retried; if no attempt returns more, the best part becomes the
    call's value. With ``accept_partial=True`` the first part is accepted at once. With ``False`` no part is accepted:
    the call fails and ``outcome.partial`` holds the best part. Typed as Any to keep the tool's return type valid.
    """
    return Partial(value, missing)


def more_complete(one: Partial | None, other: Partial | None) -> Partial | None:
    """The result that misses less; the later one if both miss the same or it cannot be counted."""
    if one is None or other is None:
        return one or other
    return one if _lacks(one) < _lacks(other) else other


def _lacks(part: Partial) -> int:
    try:
        return len(part.missing)
    except TypeError:
        return 1
