"""The classification rules as data: signal to kind, one file per subject, every group with its source.

Adding a library means adding rows. A kind is a name in ``core.classify.kinds``. Imports nothing of failsoft. Guarded by
``tests/core/classify/test_tables.py`` and by ``tests/corpus``.
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
