"""Records and events in one SQLite file: what happened survives a crash of the process.

Rules
-----
- One writer thread per store. It lets things come together for ``LINGER`` seconds, or until they are ``ENOUGH``, and
  writes them in one transaction. Nobody waits for it but ``flush``, and for that it begins at once. What ``flush`` has
  confirmed survives a crash of the process; with ``synchronous="full"`` also of the machine.
- Several processes may use one file (WAL): each writes in short transactions and waits for the others' to end.
- The file has a version. An older one is brought up step by step (``MIGRATIONS``); a newer one is not touched.
- Troubles (disk full, file locked, read-only, gone) never reach a caller: what cannot be written is kept in memory up
  to ``MOST_WAITING`` and tried again, then dropped; one warning, and counts in ``troubles``. Closing waits for as long
  as it goes forward.
- A file that is not ours is never touched. One of ours that is damaged is moved aside, with its name and the time in its
  new name, never deleted. One that is deleted or replaced while it is in use is made anew, or gone on with, at the next
  batch.
- Retention: ``prune`` drops events by age, number and size. With ``max_age`` or ``max_size`` the writer does so itself,
  every ten minutes and whenever an eighth of ``max_size`` has been added; the file then grows no further, though it
  does not shrink.
- What can never be written (the file is fine, the batch is not) is dropped and counted.
- A run of plain successes (``observe.success_runs``) is one row, at the position of its last event; readers see the events.
- A forked child writes with a thread and a connection of its own; what its parent has queued is the parent's to write.
  SQLite has locks of its own, which stay as they are in the child: so a fork waits until it is done with, though not
  for longer than ``FORK_SECONDS``.

Why a thread and not one transaction a call: 500,000 rows a second in batches against a few thousand alone.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

from failsoft.observe.success_runs import Run, iso, pack
from failsoft.stores.ports import Kind
from failsoft.stores.sqlite.database import (
    ROW,
    Append,
    Claim,
    Operation,
    Put,
    Request,
    Take,
    as_text,
    connect,
    expand,
    prune,
    size_of,
    write,
)
from failsoft.stores.sqlite.location import find_obstacle, identity, is_no_database, move_aside
from failsoft.stores.sqlite.reader import Reader

MOST_WAITING = 200_000  # operations
BATCH = 10_000  # operations in one transaction: another process waits no longer than this takes
LINGER = 0.1  # seconds
ENOUGH = 32_768  # events and records
BUSY_SECONDS = 5.0  # for which a write waits for others'
CLOSE_SECONDS = 1.0  # without a batch getting done, after which closing gives up
RETRY_SECONDS = 0.5  # after a write that failed
FORK_SECONDS = 0.5
PRUNE_EVERY = 600.0
LONGEST_JUMP = 3600.0  # seconds by which retention follows a wall clock that was set ahead

log = logging.getLogger("failsoft")
_encode = json.JSONEncoder(check_circular=False).encode


class Troubles(NamedTuple):
    """What could not be done."""

    failures: int  # writes that failed and were tried again
    dropped: int  # operations that were given up
    last: str = ""  # what was wrong


class SqliteStore:
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
        if synchronous not in ("normal", "full"):
            raise ValueError(f"synchronous: {synchronous!r} is neither 'normal' nor 'full'")
        self._name = Path(path)
        self._path = self._name.absolute()  # the program may go elsewhere
        self._wall = wall
        self._synchronous = synchronous
        self._max_age = max_age  # seconds
        self._max_size = max_size  # bytes
        self._pruned = 0.0  # when, by the wall clock
        self._opened_at = wall(), time.monotonic()
        self._added = 0  # bytes since then
        self._renew_locks()
        self._waiting: list[Operation] = []  # in order
        self._writing: list[Operation] = []  # a batch on its way to the file
        self._size = 0  # of what is waiting or on its way, in events and records
        self._settled = 0  # of what is done with: written, or given up
        self._writer: threading.Thread | None = None
        self._closed = False
        self._failures = self._dropped = 0
        self._trouble = ""
        self._known_dropped = 0  # when somebody was last told
        self._reader = Reader(self._path, self._complain)
        self._opened: tuple[int, int] | None = None  # the file that the writer has found under the name
        _ALIVE.add(self)

    # -- writing: queued, never raising ------------------------------------------------------------------------------

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        self._queue([Put(kind, key, json.dumps(value), None if ttl is None else self._wall() + ttl)])

    def delete(self, kind: Kind, key: str) -> None:
        self._queue([Put(kind, key, None, None)])

    def take(self, kind: Kind, key: str) -> Any:
        """Read and delete a value in one step; None where there is none, and where the file cannot be written."""
        request = Take(kind, key)
        if not self._ask(request, BUSY_SECONDS):
            return None
        return None if request.value is None else json.loads(request.value)

    def claim(
        self, kind: Kind, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float
    ) -> Mapping[str, Any]:  # fmt: skip
        """Keep the values whose keys are free, and wait until they are in the file; the values of the other keys."""
        texts = {key: json.dumps(value) for key, value in values.items()}
        request = Claim(kind, texts, None if ttl is None else self._wall() + ttl)
        if not self._ask(request, timeout):
            raise TimeoutError(f"{self._name}: nothing could be written within {timeout:g} s")
        return {key: json.loads(text) for key, text in request.taken.items()}

    def _renew_locks(self) -> None:
        # Entered with ``with`` on the lock itself: no signal is handled in its __enter__, unlike in a Condition's
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # for the writer
        self._at_work = threading.Lock()  # while SQLite writes
        self._waiters: list[tuple[int, threading.Lock]] = []  # what they want to be settled, and what wakes them

    def _ask(self, request: Request, timeout: float) -> bool:
        """Have the writer make a change, in its order; False if it is not known to be in the file by then.

        Requests that wait at the same time share a transaction.
        """
        if self._queue([request]):
            self._is_written(timeout)
        with self._lock:
            request.withdrawn = not request.done
            return request.done

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        if isinstance(events, Run):
            self._queue([Append(as_text(events.turn_id), events.timestamp, len(events), pack(events))])
        else:
            self._queue(
                [Append(as_text(event.get("turn_id")), event.get("timestamp"), 1, _encode(event)) for event in events]
            )

    def _queue(self, operations: Sequence[Operation]) -> bool:
        """Hand operations to the writer; False if there is no room for them."""
        size = size_of(operations)
        with self._lock:
            if self._closed or self._size + size > MOST_WAITING:
                self._dropped += size
                return False
            begins = not self._waiting
            self._waiting.extend(operations)
            self._size += size
            if self._writer is None:
                self._start_writer()
            elif begins or self._size >= ENOUGH:  # it is not woken for nothing
                self._changed.notify_all()
            return True

    def _start_writer(self) -> None:
        """Start the writer. An interpreter that is about to end may refuse: then ``flush`` writes."""
        writer = threading.Thread(target=self._write_all, name="failsoft sqlite", daemon=True)
        try:
            writer.start()
        except RuntimeError:
            return
        self._writer = writer

    def flush(self, timeout: float) -> bool:
        """Wait until all is in the file; False if it is not by then, or if some has been dropped since last time."""
        known = self._known_dropped
        if not self._is_written(timeout):
            return False
        dropped = self._dropped
        self._known_dropped = max(self._known_dropped, dropped)
        return dropped == known

    def _is_written(self, timeout: float) -> bool:
        """Have what is there now written, if it can be."""
        waiter = threading.Lock()
        waiter.acquire()
        with self._lock:
            goal = self._settled + self._size
            if self._settled >= goal:
                return True
            self._waiters.append((goal, waiter))
            self._changed.notify_all()
            if self._waiting and self._writer is None:
                self._write_here(time.monotonic() + timeout)
        try:
            wait = 0.0 if self._closed else min(max(timeout, 0.0), threading.TIMEOUT_MAX)
            return waiter.acquire(timeout=wait) or self._settled >= goal
        finally:
            with self._lock:
                self._waiters = [other for other in self._waiters if other[1] is not waiter]

    def _write_here(self, deadline: float) -> None:
        """Write what is waiting in this thread, as no other can be started."""
        connection: sqlite3.Connection | None = None
        while self._waiting and time.monotonic() < deadline:
            connection = self._write_batch(connection)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Write what is waiting, and let go of the file."""
        written, goes_on = False, True
        while goes_on and not written:
            before = self._settled
            written = self._is_written(CLOSE_SECONDS)
            goes_on = self._settled > before
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            writer, lost = self._writer, self._size
        if lost:
            self._complain(TimeoutError(f"{lost} events and records were not written in time"))
        if writer is not None:
            writer.join(CLOSE_SECONDS if written else CLOSE_SECONDS / 10)  # it may still wait for others
        self._reader.close()

    @property
    def path(self) -> Path:
        return self._name

    @property
    def lost(self) -> int:
        """How many records and events were given up so far."""
        return self._dropped

    @property
    def troubles(self) -> Troubles:
        return Troubles(self._failures, self._dropped, self._trouble)

    # -- reading: what this process has put before is seen, also while it is on its way -------------------------------

    def get(self, kind: Kind, key: str) -> Any:
        """The value, None if there is none or its time is over."""
        sql = "SELECT key, value, until FROM record WHERE kind = ? AND key = ?"
        kept = self._alive(kind, sql, (kind, key), lambda other: other == key)
        return json.loads(kept[key]) if key in kept else None

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        """All (key, value) in the scope, in the order of their keys."""
        sql = "SELECT key, value, until FROM record WHERE kind = ?"
        values: tuple[str, ...] = (kind,)
        if scope:
            sql += " AND (key = ? OR (key >= ? AND key < ?))"
            values += (scope, f"{scope}/", f"{scope}0")  # 0 comes after the slash
        kept = self._alive(kind, sql, values, lambda key: not scope or key == scope or key.startswith(f"{scope}/"))
        return [(key, json.loads(kept[key])) for key in sorted(kept)]

    def _alive(self, kind: Kind, sql: str, values: tuple[str, ...], wanted: Callable[[str], bool]) -> dict[str, str]:
        with self._lock:  # before the file is read: what is written meanwhile is seen in one or the other
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
        """Up to ``limit`` (position, event), oldest first, from behind a position; of one turn, if one is named."""
        self._is_written(BUSY_SECONDS)
        where, values = (
            ("", (after, limit)) if turn_id is None else ("AND turn_id = ?", (after, as_text(turn_id), limit))
        )
        sql = f"SELECT position, body FROM event WHERE position > ? {where} ORDER BY position LIMIT ?"  # noqa: S608 - ours
        found = ((at, event) for row in self._reader.select(sql, values) for at, event in expand(*row) if at > after)
        return [*islice(found, limit)]

    def turns(self, limit: int = 100) -> list[str]:
        """The ids of the turns with the latest events, the latest first."""
        self._is_written(BUSY_SECONDS)
        sql = "SELECT turn_id FROM event WHERE turn_id IS NOT NULL GROUP BY turn_id ORDER BY max(position) DESC LIMIT ?"
        return [turn_id for (turn_id,) in self._reader.select(sql, (limit,))]

    def prune(self, *, before: str | None = None, most: int | None = None, size: int | None = None) -> int:
        """Drop events older than an ISO time, all but the latest ``most``, and what goes beyond ``size`` bytes."""
        self._is_written(BUSY_SECONDS)
        connection = self._connect()
        try:
            gone = prune(connection, before=before, most=most, size=size)
            with suppress(
                sqlite3.OperationalError
            ):  # somebody else is busy in it: the space is used again all the same
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
        return gone

    # -- the writer --------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                self._changed.wait_for(lambda: self._waiters or self._closed or self._size >= ENOUGH, LINGER)
                if not self._waiting:
                    break
            connection = self._write_batch(connection)
        if connection is not None:
            connection.close()

    def _write_batch(self, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Write the next operations in one transaction; the connection to go on with, None if another is needed."""
        with self._lock:
            self._writing, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        try:
            with self._at_work:
                connection = self._follow(connection)
                write(connection, self._writing, self._wall())
        except (sqlite3.OperationalError, sqlite3.NotSupportedError, OSError) as error:
            return self._recover(connection, error)
        except Exception as error:
            return self._recover(connection, error, hopeless=not is_no_database(error))
        for operation in self._writing:
            if isinstance(operation, Append):
                self._added += len(operation.body) + ROW
            elif isinstance(operation, Request):
                operation.done = not operation.withdrawn
        self._settle()
        self._retain(connection)
        return connection

    def _follow(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        """A connection to the file that has the name now: it may have been deleted, or moved aside by another process."""
        found = identity(self._path)
        if connection is not None and found == self._opened:
            return connection
        if connection is not None:
            connection.close()
        self._opened = found
        connection = self._connect()
        self._opened = identity(self._path)
        return connection

    def _settle(self) -> None:
        """The batch is done with."""
        with self._lock:
            size = size_of(self._writing)
            self._size -= size
            self._settled += size
            self._writing = []
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        for goal, waiter in self._waiters:
            if goal <= self._settled and waiter.locked():
                waiter.release()

    def _retain(self, connection: sqlite3.Connection) -> None:
        """Now and then, drop what is too old or too much."""
        if self._max_age is None and self._max_size is None:
            return
        now = self._trusted_time(self._max_age)
        grown = self._max_size is not None and self._added * 8 > self._max_size
        if 0 <= now - self._pruned < PRUNE_EVERY and not grown:
            return
        self._pruned, self._added = now, 0
        before = None if self._max_age is None else iso(max(0.0, now - self._max_age))
        try:
            prune(connection, before=before, most=None, size=self._max_size)
        except Exception as error:  # whatever it is, the writer goes on
            self._complain(error)

    def _trusted_time(self, max_age: float | None) -> float:
        """The wall clock, but not much further on than this process has run: a clock that jumps must not empty the trace."""
        wall, monotonic = self._opened_at
        most = wall + time.monotonic() - monotonic + min(LONGEST_JUMP, (max_age or LONGEST_JUMP) / 2)
        return min(self._wall(), most)

    def _recover(
        self, connection: sqlite3.Connection | None, error: Exception, *, hopeless: bool = False
    ) -> sqlite3.Connection | None:
        """Put the batch back, and wait a little before the next try; one that can never be written is dropped."""
        self._complain(error)
        if connection is not None:
            connection.close()
        if is_no_database(error):
            self._move_aside()
        if hopeless:
            self._dropped += size_of(self._writing)
            self._settle()
            return None
        with self._lock:
            self._waiting = self._writing + self._waiting
            self._writing = []
            if self._closed:
                self._dropped += self._size
                self._settled += self._size
                self._waiting, self._size = [], 0
                self._wake_waiters()
            self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)
        return None

    def renew_after_fork(self) -> None:
        """A forked child has its parent's locks as they were, none of its threads, and must not touch its connections."""
        self._renew_locks()
        self._reader.renew_after_fork()
        self._waiting, self._writing, self._size = [], [], 0
        self._writer = None

    def locks(self) -> tuple[threading.Lock, threading.Lock]:
        """Whoever has them keeps this store from using SQLite."""
        return self._at_work, self._reader.lock

    def _complain(self, error: Exception) -> None:
        self._failures += 1
        looks = not isinstance(error, TimeoutError)  # what takes too long may take as long again
        self._trouble = (looks and find_obstacle(self._path)) or str(error)
        if self._failures == 1:
            log.warning("%s: the store cannot be used now (%s); calls go on without it", self._name, self._trouble)

    def _move_aside(self) -> None:
        if identity(self._path) != self._opened:
            return  # another process has done so: what is there now is new
        try:
            aside = move_aside(self._path, time.strftime("%Y%m%dT%H%M%S"))
        except OSError as error:
            self._complain(error)
        else:
            log.warning("%s was damaged: it is now %s, and a new one is begun", self._name, aside)

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, synchronous=self._synchronous, patience=BUSY_SECONDS)


_ALIVE: WeakSet[SqliteStore] = WeakSet()


_held: dict[int, list[threading.Lock]] = {}  # by threads that are about to fork


def _before_fork() -> None:
    until = time.monotonic() + FORK_SECONDS
    locks = [lock for store in list(_ALIVE) for lock in store.locks()]
    _held[threading.get_ident()] = [lock for lock in locks if lock.acquire(timeout=max(0.0, until - time.monotonic()))]


def _after_fork_in_parent() -> None:
    for lock in _held.pop(threading.get_ident(), ()):
        lock.release()


def _after_fork() -> None:
    _held.clear()
    for store in list(_ALIVE):
        store.renew_after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
