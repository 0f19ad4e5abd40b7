"""The rules as data, one file a subject: signal -> kind, grouped, every group with its source.

Adding a library means adding a row. A kind is a name in ``failsoft.core.classify.kinds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K", int, str)


class Group(Generic[K]):
    """Rows that share a source."""

    __slots__ = ("rows", "source")

    def __init__(self, source: str, rows: Mapping[K, str]) -> None:
        self.source = source
        self.rows: Mapping[K, str] = rows


def merge(groups: tuple[Group[K], ...]) -> dict[K, str]:
    """All rows of a table as one mapping."""
    merged: dict[K, str] = {}
    for group in groups:
        merged.update(group.rows)
    return merged
