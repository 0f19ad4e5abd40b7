"""Records and events in one SQLite file, which survives a crash of the process.

Rules
-----
- Writing is queued (``writer``). Reads see what is still in the queue.
- Several processes may use one file (WAL). Each writes in short transactions and waits for the others.
- The file has a schema version. An older file is migrated step by step (``MIGRATIONS``); a newer one is not touched.
- A file that is not a failsoft store is never touched.
- ``prune`` drops events by age, number and size. With ``max_age`` or ``max_size`` the writer prunes as well
  (``retention``).
- A run of plain successes (``observe.success_runs``) is one row, at the position of its last event. Readers see the
  single events.
- A forked child writes with its own thread and connection (``fork``). The parent writes what it had queued.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from failsoft.observe.success_runs import Run, pack
from failsoft.stores.ports import Kind
from failsoft.stores.sqlite.breakers import SqliteBreakers
from failsoft.stores.sqlite.database import (
    Append,
    Claim,
    Put,
    Swap,
    Take,
    as_text,
    expand,
    prune,
)
from failsoft.stores.sqlite.fork import hold_at_fork
from failsoft.stores.sqlite.reader import Reader
from failsoft.stores.sqlite.retention import Retention
from failsoft.stores.sqlite.writer import BUSY_SECONDS, Writer

log = logging.getLogger("failsoft")
_encode = json.JSONEncoder(check_circular=False).encode
_DAMAGED: Final = object()


class SqliteStore(Writer):
    """A store in a file. Every method may be called from any thread."""

    def __init__(
        self,
        path: str | Path,
        *,
        wall: Callable[[], float] = time.time,
        synchronous: Literal["normal", "full"] = "normal",
        max_age: float | None = None,
        max_size: int | None = None,
    ) -> None:
        super().__init__(path, wall=wall, synchronous=synchronous, retention=Retention(wall, max_age, max_size))
        self._reader = Reader(self._path, self._complain)
        self.breakers = SqliteBreakers(self)
        hold_at_fork(self)

    # -- writing: queued, never raises -------------------------------------------------------------------------------

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        self._queue([Put(kind, key, json.dumps(value), None if ttl is None else self._wall() + ttl)])

    def delete(self, kind: Kind, key: str) -> None:
        self._queue([Put(kind, key, None, None)])

    def take(self, kind: Kind, key: str) -> Any:
        """Read and delete a value in one step; None if there is none or the file cannot be written."""
        request = Take(kind, key)
        if not self.ask(request, BUSY_SECONDS):
            return None
        return None if request.value is None else json.loads(request.value)

    def claim(
        self, kind: Kind, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float
    ) -> Mapping[str, Any]:  # fmt: skip
        """Keep the values whose keys are free, wait until they are in the file, and return the values of the others."""
        texts = {key: json.dumps(value) for key, value in values.items()}
        request = Claim(kind, texts, None if ttl is None else self._wall() + ttl)
        if not self.ask(request, timeout):
            raise TimeoutError(f"{self._name}: nothing could be written within {timeout:g} s")
        return {key: json.loads(text) for key, text in request.taken.items()}

    def swap(
        self, kind: Kind, changes: Mapping[str, tuple[Any, Any]], *, ttl: float | None = None, timeout: float
    ) -> bool:  # fmt: skip
        """Replace several values if all are as expected, and wait until that is in the file."""
        texts = {key: (old, None if new is None else json.dumps(new)) for key, (old, new) in changes.items()}
        request = Swap(kind, texts, None if ttl is None else self._wall() + ttl)
        if not self.ask(request, timeout):
            raise TimeoutError(f"{self._name}: nothing could be written within {timeout:g} s")
        return request.swapped

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        if isinstance(events, Run):
            self._queue([Append(as_text(events.turn_id), events.timestamp, len(events), pack(events))])
        else:
            self._queue(
                [Append(as_text(event.get("turn_id")), event.get("timestamp"), 1, _encode(event)) for event in events]
            )

    @property
    def path(self) -> Path:
        return self._name

    @property
    def file(self) -> Path:
        """The absolute path, whatever the working directory is now."""
        return self._path

    # -- reading: sees what this process has put before, even if it is still queued ------------------------------------

    def get(self, kind: Kind, key: str) -> Any:
        """Return the value; None if there is none or it has expired."""
        sql = "SELECT key, value, until FROM record WHERE kind = ? AND key = ?"
        kept = self._alive(kind, sql, (kind, key), lambda other: other == key)
        return json.loads(kept[key]) if key in kept else None

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        """Return all (key, value) in the scope, ordered by key."""
        sql = "SELECT key, value, until FROM record WHERE kind = ?"
        values: tuple[str, ...] = (kind,)
        if scope:
            sql += " AND (key = ? OR (key >= ? AND key < ?))"
            values += (scope, f"{scope}/", f"{scope}0")  # "0" follows "/" in ASCII
        kept = self._alive(kind, sql, values, lambda key: not scope or key == scope or key.startswith(f"{scope}/"))
        found = [(key, self._read_value(kind, kept[key])) for key in sorted(kept)]
        return [(key, value) for key, value in found if value is not _DAMAGED]

    def _read_value(self, kind: Kind, text: str) -> Any:
        """Read one value of several: one that is damaged must not hide the others."""
        try:
            return json.loads(text)
        except ValueError:
            log.warning("%s: a damaged record (%s) is left out", self._name, kind)
            return _DAMAGED

    def _alive(self, kind: Kind, sql: str, values: tuple[str, ...], wanted: Callable[[str], bool]) -> dict[str, str]:
        with self._lock:  # before reading the file: an operation written meanwhile is then in the list or in the file
            under_way = [*self._writing, *self._waiting]
        found: dict[str, tuple[str | None, float | None]] = {
            key: (value, until) for key, value, until in self._reader.select(sql, values)
        }
        for operation in under_way:
            if isinstance(operation, Put) and operation.kind == kind:
                found[operation.key] = (operation.value, operation.until)
        now = self._wall()
        return {
            key: value
            for key, (value, until) in found.items()
            if value is not None and (until is None or until > now) and wanted(key)
        }

    def read(
        self, *, after: int = 0, limit: int = 1000, turn_id: str | None = None
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return up to ``limit`` (position, event) after a position, oldest first; only of ``turn_id``, if given."""
        self._await_writer()
        where, values = (
            ("", (after, limit)) if turn_id is None else ("AND turn_id = ?", (after, as_text(turn_id), limit))
        )
        sql = f"SELECT position, body FROM event WHERE position > ? {where} ORDER BY position LIMIT ?"  # noqa: S608 - ours
        found = ((at, event) for row in self._reader.select(sql, values) for at, event in expand(*row) if at > after)
        return [*islice(found, limit)]

    def turns(self, limit: int = 100) -> list[str]:
        """Return the ids of the turns with the latest events, latest first."""
        self._await_writer()
        sql = "SELECT turn_id FROM event WHERE turn_id IS NOT NULL GROUP BY turn_id ORDER BY max(position) DESC LIMIT ?"
        return [turn_id for (turn_id,) in self._reader.select(sql, (limit,))]

    def prune(self, *, before: str | None = None, most: int | None = None, size: int | None = None) -> int:
        """Drop events older than an ISO time, all but the latest ``most``, and those beyond ``size`` bytes."""
        self._is_written(BUSY_SECONDS)
        connection = self._connect()
        try:
            gone = prune(connection, before=before, most=most, size=size)
            with suppress(sqlite3.OperationalError):  # another process uses the file: its space is reused anyway
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
        return gone

    def close(self) -> None:
        """Write the queue and close the file. A writer whose last write has failed tries once more."""
        super().close()
        self.breakers.close()
        self._reader.close()

    def renew_after_fork(self) -> None:
        """Replace the locks, threads and connections inherited from the parent process."""
        super().renew_after_fork()
        self._reader.renew_after_fork()
        self.breakers.renew_after_fork()

    def locks(self) -> tuple[threading.Lock, threading.Lock]:
        """The locks that keep this store from using SQLite while they are held."""
        return self._at_work, self._reader.lock
