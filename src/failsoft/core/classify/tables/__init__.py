"""The rules as data, one file a subject: signal -> kind, grouped, every group with its source.

Adding a library means adding a row. A kind is a name in ``failsoft.core.classify.kinds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", int, str)


class Group(NamedTuple, Generic[K]):
    """Rows that share a source."""

    source: str
    rows: Mapping[K, str]


def merge(groups: tuple[Group[K], ...]) -> dict[K, str]:
    """All rows of a table as one mapping."""
    merged: dict[K, str] = {}
    for group in groups:
        merged.update(group.rows)
    return merged
