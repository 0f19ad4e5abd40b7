"""Read a SQLite store through one connection that follows the file's name and does not wait long.

Rules
-----
- Any thread may read, but only one reads at a time.
- If the file was deleted, moved aside or replaced, the file that has its name now is read.
- If another process locks out readers, a read waits ``PATIENCE`` seconds and finds nothing. For the next ``PATIENCE``
  seconds, further reads find nothing without waiting.
- A forked child opens the file anew and never touches its parent's connection.
- The connection is closed with the reader: programs need not close their stores.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from failsoft.stores.sqlite.database import connect_to_read
from failsoft.stores.sqlite.location import find_obstacle, identity

PATIENCE = 1.0  # seconds


class Reader:
    """The connection through which a store is read."""

    def __init__(self, path: Path, complain: Callable[[Exception], None]) -> None:
        self._path = path
        self._complain = complain
        self.lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # the file that the connection has open
        self._blocked_until = 0.0

    def select(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """Return all rows; none if there is no file or it cannot be read."""
        with self.lock:
            found = identity(self._path)
            if found is None or found != self._file:
                self._close()
            if found is None and (obstacle := find_obstacle(self._path)):
                self._complain(OSError(obstacle))  # report it now, not with the first write
            if found is None or (self._connection is None and monotonic() < self._blocked_until):
                return []
            try:
                if self._connection is None:
                    self._connection, self._file = connect_to_read(self._path, patience=PATIENCE), found
                return self._connection.execute(sql, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                self._complain(error)
                self._close()
                self._blocked_until = monotonic() + PATIENCE
                return []

    def close(self) -> None:
        with self.lock:
            self._close()

    def __del__(self) -> None:
        self._close()

    def renew_after_fork(self) -> None:
        """Replace the lock and the connection inherited from the parent process."""
        _INHERITED.append(self._connection)
        self.lock, self._connection = threading.Lock(), None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_INHERITED: list[sqlite3.Connection | None] = []  # a parent's connections, kept so that they are not closed here
