"""Records and events in one SQLite file: what happened survives a crash of the process.

Rules
-----
- One writer thread per store. It takes all that has come up and writes it in one transaction; nobody waits for it but
  ``flush``. What ``flush`` has confirmed survives a crash of the process; with ``synchronous="full"`` also of the
  machine.
- Several processes may use one file (WAL): each writes in short transactions and waits for the others' to end.
- The file has a version. An older one is brought up step by step (``MIGRATIONS``); a newer one is not touched.
- Troubles (disk full, file locked, read-only, gone) never reach a caller: what cannot be written is kept in memory up
  to ``MOST_WAITING`` and tried again, then dropped; one warning, and counts in ``troubles``.
- A file that is no database is moved aside, with its name and the time in its new name, never deleted.
- Retention: ``prune`` drops events by age and by size.
- A run of plain successes (``core.runs``) is one row, at the position of its last event; readers see the events.
- A forked child writes with a thread and a connection of its own; what its parent has queued is the parent's to write.

Why a thread and not one transaction a call: 500,000 rows a second in batches against a few thousand alone.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

from failsoft.core.runs import Run, pack, unpack
from failsoft.stores.base import Kind

MOST_WAITING = 200_000  # operations
BATCH = 10_000  # operations in one transaction: another process waits no longer than this takes
BUSY_SECONDS = 5.0
RETRY_SECONDS = 0.5  # after a write that failed
TOGETHER = 64  # rows in one statement: with each one the interpreter's lock is let go and waited for

MIGRATIONS = (
    # 1: the first form
    """
    CREATE TABLE record (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, until REAL,
                         PRIMARY KEY (kind, key)) WITHOUT ROWID;
    CREATE TABLE event (position INTEGER PRIMARY KEY AUTOINCREMENT, turn_id TEXT, timestamp TEXT, count INTEGER NOT NULL,
                        body NOT NULL);
    CREATE INDEX event_by_turn ON event (turn_id, position) WHERE turn_id IS NOT NULL;
    """,
)

log = logging.getLogger("failsoft")


class Put(NamedTuple):
    """A record on its way to the file."""

    kind: str
    key: str
    value: str | None  # None: deleted
    until: float | None


class Append(NamedTuple):
    """An event, or a run of them, on its way to the file."""

    turn_id: str | None
    timestamp: str | None
    events: int
    body: str | bytes  # JSON, or a packed run


class Troubles(NamedTuple):
    """What could not be done."""

    failures: int  # writes that failed and were tried again
    dropped: int  # operations that were given up


class SqliteStore:
    """A store in a file. Every method may be called from any thread."""

    def __init__(
        self,
        path: str | Path,
        *,
        wall: Callable[[], float] = time.time,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        if synchronous not in ("normal", "full"):
            raise ValueError(f"synchronous: {synchronous!r} is neither 'normal' nor 'full'")
        self._path = Path(path)
        self._wall = wall
        self._synchronous = synchronous
        self._changed = threading.Condition()
        self._waiting: list[Put | Append] = []  # in order
        self._writing: list[Put | Append] = []  # a batch on its way to the file
        self._size = 0  # of what is waiting, in events and records
        self._writer: threading.Thread | None = None
        self._closed = False
        self._failures = self._dropped = 0
        self._reading = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        _ALIVE.add(self)

    # -- writing: queued, never raising ------------------------------------------------------------------------------

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        self._queue([Put(kind, key, json.dumps(value), None if ttl is None else self._wall() + ttl)])

    def delete(self, kind: Kind, key: str) -> None:
        self._queue([Put(kind, key, None, None)])

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        if isinstance(events, Run):
            self._queue([Append(events.turn_id, events.timestamp, len(events), pack(events))])
        else:
            self._queue(
                [Append(event.get("turn_id"), event.get("timestamp"), 1, json.dumps(event)) for event in events]
            )

    def _queue(self, operations: Sequence[Put | Append]) -> None:
        size = _size(operations)
        with self._changed:
            if self._closed or self._size + size > MOST_WAITING:
                self._dropped += size
                return
            self._waiting.extend(operations)
            self._size += size
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="failsoft sqlite", daemon=True)
                self._writer.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until all that was taken is in the file; False if it is not by then."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._writing), timeout)

    def close(self) -> None:
        """Write what is waiting, and let go of the file."""
        self.flush(BUSY_SECONDS)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            writer = self._writer
        if writer is not None:
            writer.join(BUSY_SECONDS)
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    @property
    def path(self) -> Path:
        return self._path

    @property
    def troubles(self) -> Troubles:
        return Troubles(self._failures, self._dropped)

    # -- reading: what this process has put before is seen, also while it is on its way -------------------------------

    def get(self, kind: Kind, key: str) -> Any:
        """The value, None if there is none or its time is over."""
        sql = "SELECT key, value, until FROM record WHERE kind = ? AND key = ?"
        kept = self._alive(kind, sql, (kind, key), lambda other: other == key)
        return json.loads(kept[key]) if key in kept else None

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        """All (key, value) in the scope, in the order of their keys."""
        sql = "SELECT key, value, until FROM record WHERE kind = ?"
        kept = self._alive(kind, sql, (kind,), lambda key: not scope or key == scope or key.startswith(f"{scope}/"))
        return [(key, json.loads(kept[key])) for key in sorted(kept)]

    def _alive(self, kind: Kind, sql: str, values: tuple[str, ...], wanted: Callable[[str], bool]) -> dict[str, str]:
        with self._changed:  # before the file is read: what is written meanwhile is seen in one or the other
            under_way = [*self._writing, *self._waiting]
        found: dict[str, tuple[str | None, float | None]] = {
            key: (value, until) for key, value, until in self._select(sql, values)
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
        """Up to ``limit`` (position, event), oldest first, from behind a position; of one turn, if one is named."""
        self.flush(BUSY_SECONDS)
        where, values = ("", (after, limit)) if turn_id is None else ("AND turn_id = ?", (after, turn_id, limit))
        sql = f"SELECT position, body FROM event WHERE position > ? {where} ORDER BY position LIMIT ?"  # noqa: S608 - ours
        found = ((at, event) for row in self._select(sql, values) for at, event in _expand(*row) if at > after)
        return [*islice(found, limit)]

    def turns(self, limit: int = 100) -> list[str]:
        """The ids of the turns with the latest events, the latest first."""
        self.flush(BUSY_SECONDS)
        sql = "SELECT turn_id FROM event WHERE turn_id IS NOT NULL GROUP BY turn_id ORDER BY max(position) DESC LIMIT ?"
        return [turn_id for (turn_id,) in self._select(sql, (limit,))]

    def prune(self, *, before: str | None = None, most: int | None = None) -> int:
        """Drop events older than an ISO time, and all but the latest ``most``; how many that were."""
        self.flush(BUSY_SECONDS)
        connection = self._connect()
        try:
            with connection:
                gone = 0
                if before is not None:
                    gone += _delete(connection, "timestamp < ?", before)
                if most is not None:
                    gone += _delete(connection, "position <= (SELECT max(position) FROM event) - ?", most)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
        finally:
            connection.close()
        return gone

    def _select(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading:
            try:
                if self._reader is None:
                    if not self._path.exists():
                        return []
                    self._reader = self._connect()
                return self._reader.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                self._complain(error)
                self._reader = None
                return []

    # -- the writer --------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    break
                self._writing, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            try:
                connection = connection or self._connect()
                _write(connection, self._writing, self._wall())
            except (sqlite3.Error, OSError) as error:
                connection = self._recover(connection, error)
            else:
                with self._changed:
                    self._size -= _size(self._writing)
                    self._writing = []
                    self._changed.notify_all()
        if connection is not None:
            connection.close()

    def _recover(self, connection: sqlite3.Connection | None, error: Exception) -> sqlite3.Connection | None:
        """Put the batch back, and wait a little before the next try."""
        self._complain(error)
        if connection is not None:
            connection.close()
        if _is_no_database(error):
            self._move_aside()
        with self._changed:
            self._waiting = self._writing + self._waiting
            self._writing = []
            if self._closed:
                self._dropped += self._size
                self._waiting, self._size = [], 0
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)
        return None

    def renew_after_fork(self) -> None:
        """A forked child has its parent's locks as they were, none of its threads, and must not touch its connections."""
        _INHERITED.append(self._reader)
        self._changed, self._reading = threading.Condition(), threading.Lock()
        self._waiting, self._writing, self._size = [], [], 0
        self._writer = self._reader = None

    def _complain(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == 1:
            log.warning("%s: the store cannot be used now (%s); calls go on without it", self._path, error)

    def _move_aside(self) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}")
        try:
            self._path.replace(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            self._complain(error)
        else:
            log.warning("%s was no usable database: it is now %s, and a new one is begun", self._path, aside)

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            _migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _write(connection: sqlite3.Connection, operations: Sequence[Put | Append], now: float) -> None:
    events = [operation for operation in operations if isinstance(operation, Append)]
    puts = [operation for operation in operations if isinstance(operation, Put)]
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if events:
            (last,) = connection.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'event'"
            ).fetchone()
            places = islice(accumulate((event.events for event in events), initial=last), 1, None)
            rows = [(place, *event) for place, event in zip(places, events, strict=True)]
            for begin in range(0, len(rows), TOGETHER):
                some = rows[begin : begin + TOGETHER]
                values = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
                connection.execute(f"INSERT INTO event VALUES {values}", [*chain(*some)])  # noqa: S608 - ours
        for put in puts:
            if put.value is None:
                connection.execute("DELETE FROM record WHERE kind = ? AND key = ?", (put.kind, put.key))
            else:
                connection.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", put)
        if puts:
            connection.execute("DELETE FROM record WHERE until <= ?", (now,))


def _delete(connection: sqlite3.Connection, where: str, value: Any) -> int:
    (gone,) = connection.execute(f"SELECT total(count) FROM event WHERE {where}", (value,)).fetchone()  # noqa: S608 - ours
    connection.execute(f"DELETE FROM event WHERE {where}", (value,))  # noqa: S608 - ours
    return int(gone)


def _expand(position: int, body: str | bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """A row as the events that it holds."""
    if isinstance(body, str):
        yield position, json.loads(body)
    else:
        run = unpack(body)
        yield from enumerate(run, position - len(run) + 1)


def _size(operations: Sequence[Put | Append]) -> int:
    return sum(operation.events if isinstance(operation, Append) else 1 for operation in operations)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the form that this version knows, one step at a time."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise sqlite3.NotSupportedError(f"the file has version {version}; this failsoft knows {len(MIGRATIONS)}")
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")  # of several processes one does it
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            for statement in step.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _is_no_database(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


_ALIVE: WeakSet[SqliteStore] = WeakSet()
_INHERITED: list[sqlite3.Connection | None] = []  # of a parent process: kept, so that they are not closed here


def _after_fork() -> None:
    for store in list(_ALIVE):
        store.renew_after_fork()


os.register_at_fork(after_in_child=_after_fork)
