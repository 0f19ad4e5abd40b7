"""The limits on a file's events: their age, and their size.

The writer prunes every ten minutes, and whenever an eighth of ``max_size`` has been added. The file then stops growing,
but does not shrink.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from failsoft.observe.success_runs import iso
from failsoft.stores.sqlite.database import ROW, Append, prune

PRUNE_EVERY = 600.0  # seconds
LONGEST_JUMP = 3600.0  # seconds of a forward jump of the wall clock that retention accepts


class Retention:
    """The limits of one file, and what was written since they were last applied."""

    def __init__(self, wall: Callable[[], float], max_age: float | None, max_size: int | None) -> None:
        self._wall = wall
        self.max_age = max_age  # seconds
        self.max_size = max_size  # bytes
        self._pruned = 0.0  # wall-clock time of the last pruning
        self._opened_at = wall(), time.monotonic()
        self._added = 0  # bytes written since then

    def add(self, events: Append) -> None:
        """Count a row that was written."""
        self._added += len(events.body) + ROW

    def apply(self, connection: sqlite3.Connection) -> None:
        """Prune if it is due."""
        if self.max_age is None and self.max_size is None:
            return
        now = self._trusted_time(self.max_age)
        grown = self.max_size is not None and self._added * 8 > self.max_size
        if 0 <= now - self._pruned < PRUNE_EVERY and not grown:
            return
        self._pruned, self._added = now, 0
        before = None if self.max_age is None else iso(max(0.0, now - self.max_age))
        prune(connection, before=before, most=None, size=self.max_size)

    def _trusted_time(self, max_age: float | None) -> float:
        """Return the wall-clock time with forward jumps cut to ``LONGEST_JUMP``: a jump must not empty the trace."""
        wall, monotonic = self._opened_at
        most = wall + time.monotonic() - monotonic + min(LONGEST_JUMP, (max_age or LONGEST_JUMP) / 2)
        return min(self._wall(), most)
