"""Records and events in one SQLite file, which survives a crash of the process.

Rules
-----
- One writer thread per store. It collects operations for ``LINGER`` seconds, or until there are ``ENOUGH``, and writes
  them in one transaction. Only ``flush`` and requests wait for it, and make it start at once. Confirmed writes survive
  a crash of the process; with ``synchronous="full"`` also a crash of the machine.
- Several processes may use one file (WAL). Each writes in short transactions and waits for the others.
- The file has a schema version. An older file is migrated step by step (``MIGRATIONS``); a newer one is not touched.
- Failures (disk full, file locked, read-only, gone) never reach a caller. Up to ``MOST_WAITING`` operations stay in
  memory and are retried; further ones are dropped. One warning is logged; ``troubles`` has the counts. ``close`` waits
  as long as batches are being written.
- A file that is not a failsoft store is never touched. A damaged store is moved aside under a name with the time, never
  deleted. If the file is deleted or replaced while in use, the next batch goes to a new file, or to the replacement.
- ``prune`` drops events by age, number and size. With ``max_age`` or ``max_size`` the writer prunes as well
  (``retention``).
- A batch that can never be written (the file is fine, the batch is not) is dropped and counted.
- A run of plain successes (``observe.success_runs``) is one row, at the position of its last event. Readers see the
  single events.
- A forked child writes with its own thread and connection (``fork``). The parent writes what it had queued.

Why one class for writer and readers: a reader sees what is still queued, so both use the queue and its lock.
Why a thread and not a transaction per call: 500,000 rows a second in batches, a few thousand otherwise.
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
from typing import Any, Final, Literal, NamedTuple

from failsoft.observe.success_runs import Run, pack
from failsoft.stores.ports import Kind
from failsoft.stores.sqlite.breakers import SqliteBreakers
from failsoft.stores.sqlite.database import (
    Append,
    Claim,
    Operation,
    Put,
    Request,
    Swap,
    Take,
    as_text,
    connect,
    expand,
    prune,
    size_of,
    write,
)
from failsoft.stores.sqlite.fork import hold_at_fork
from failsoft.stores.sqlite.location import find_obstacle, identity, is_no_database, move_aside
from failsoft.stores.sqlite.reader import Reader
from failsoft.stores.sqlite.retention import Retention

MOST_WAITING = 200_000  # operations
BATCH = 10_000  # operations per transaction; limits how long other processes wait
LINGER = 0.1  # seconds
ENOUGH = 32_768  # events and records
BUSY_SECONDS = 5.0  # how long a write waits for other processes
CLOSE_SECONDS = 1.0  # closing gives up after this time without a finished batch
RETRY_SECONDS = 0.5  # after a failed write

log = logging.getLogger("failsoft")
_encode = json.JSONEncoder(check_circular=False).encode
_DAMAGED: Final = object()


class Troubles(NamedTuple):
    """Counts of what went wrong."""

    failures: int  # writes that failed and were retried
    dropped: int  # records and events lost
    last: str = ""  # the last error


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
        self._path = self._name.absolute()  # the program may change its working directory
        self._wall = wall
        self._synchronous = synchronous
        self._retention = Retention(wall, max_age, max_size)
        self._renew_locks()
        self._waiting: list[Operation] = []  # in order
        self._writing: list[Operation] = []  # the current batch
        self._size = 0  # records and events in both lists
        self._finished = 0  # records and events finished: written or dropped
        self._writer: threading.Thread | None = None
        self._closed = False
        self._stuck = False  # the last write has failed
        self._failures = self._dropped = 0
        self._trouble = ""
        self._reported = 0  # losses already reported by ``flush``
        self._reader = Reader(self._path, self._complain)
        self._opened: tuple[int, int] | None = None  # the file that the writer has open
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

    def _renew_locks(self) -> None:
        # Enter the lock itself, not the condition: a signal could be handled inside Condition.__enter__
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # wakes the writer
        self._at_work = threading.Lock()  # held while SQLite writes
        self._waiters: list[tuple[int, threading.Lock]] = []  # the count each waits for, and the lock that wakes it

    def ask(self, request: Request, timeout: float) -> bool:
        """Let the writer perform a request in order; False if it is not confirmed within ``timeout`` seconds.

        Requests that wait at the same time share a transaction.
        """
        try:
            if self._queue([request]):
                self._is_written(timeout)
        finally:
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
        """Pass operations to the writer; False if there is no room."""
        size = size_of(operations)
        with self._lock:
            if self._closed or self._size + size > MOST_WAITING:
                self._dropped += size
                return False
            # An interrupt may come after each call. So the writer, which has to wait for the lock, is woken before there is
            # work, and the size is counted before the list grows.
            if not self._waiting or self._size + size >= ENOUGH:  # otherwise the writer is awake already
                self._changed.notify_all()
            self._size += size
            self._waiting.extend(operations)
            if self._writer is None:
                self._start_writer()
            return True

    def _start_writer(self) -> None:
        """Start the writer. If the interpreter is shutting down and refuses, ``flush`` writes instead."""
        writer = threading.Thread(target=self._write_all, name="failsoft sqlite", daemon=True)
        self._writer = writer
        try:
            writer.start()
        except RuntimeError:
            self._writer = None
        except BaseException:  # interrupted; if the thread has been started, it ends at once
            self._writer = None
            raise

    def flush(self, timeout: float) -> bool:
        """Wait until everything is in the file; False if it is not in time, or if there were losses since last time."""
        known = self._reported
        if not self._is_written(timeout):
            return False
        dropped = self._dropped
        self._reported = max(self._reported, dropped)
        return dropped == known

    def _is_written(self, timeout: float) -> bool:
        """Wait until everything queued so far is written or dropped."""
        waiter = threading.Lock()
        waiter.acquire()
        try:
            with self._lock:
                goal = self._finished + self._size
                if self._finished >= goal:
                    return True
                self._waiters.append((goal, waiter))
                self._changed.notify_all()
                if self._waiting and self._writer is None:
                    self._write_here(time.monotonic() + timeout)
            wait = 0.0 if self._closed else min(max(timeout, 0.0), threading.TIMEOUT_MAX)
            return waiter.acquire(timeout=wait) or self._finished >= goal
        finally:
            with self._lock:
                self._waiters = [other for other in self._waiters if other[1] is not waiter]

    def _write_here(self, deadline: float) -> None:
        """Write the queue in this thread, because no writer can be started."""
        connection: sqlite3.Connection | None = None
        while self._waiting and time.monotonic() < deadline:
            connection = self._write_batch(connection)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Write the queue and close the file. A writer whose last write has failed tries once more."""
        stuck, written, has_progressed = self._stuck, False, not self._stuck
        while has_progressed and not written:
            before = self._finished
            written = self._is_written(CLOSE_SECONDS)
            has_progressed = self._finished > before
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            writer, dropped = self._writer, self._dropped
        if writer is not None:  # it may be waiting for another process
            writer.join(CLOSE_SECONDS if written or stuck else CLOSE_SECONDS / 10)
        if lost := self._size + self._dropped - dropped:
            self._complain(TimeoutError(f"{lost} events and records were not written in time"))
        self.breakers.close()
        self._reader.close()

    @property
    def path(self) -> Path:
        return self._name

    @property
    def file(self) -> Path:
        """The absolute path, whatever the working directory is now."""
        return self._path

    @property
    def lost(self) -> int:
        """The number of records and events lost so far."""
        return self._dropped

    @property
    def troubles(self) -> Troubles:
        return Troubles(self._failures, self._dropped, self._trouble)

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

    def _await_writer(self) -> None:
        """Wait until readers can see what is queued, unless it cannot be written now: they see what is in the file then."""
        if not self._stuck:
            self._is_written(BUSY_SECONDS)

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

    # -- the writer --------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            with self._lock:
                if self._writer is not threading.current_thread():  # an interrupt kept it from being known
                    break
                self._changed.wait_for(lambda: self._waiting or self._closed)
                self._changed.wait_for(lambda: self._waiters or self._closed or self._size >= ENOUGH, LINGER)
                if not self._waiting:
                    break
            connection = self._write_batch(connection)
        if connection is not None:
            connection.close()

    def _write_batch(self, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Write the next batch in one transaction; return the connection to reuse, None if a new one is needed."""
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
        except BaseException:  # an interrupt, where no writer can be started
            with self._lock:
                self._waiting, self._writing = self._writing + self._waiting, []
            raise
        for operation in self._writing:
            if isinstance(operation, Append):
                self._retention.add(operation)
            elif isinstance(operation, Request):
                operation.done = not operation.withdrawn
        self._finish_batch()
        try:
            self._retention.apply(connection)
        except Exception as error:  # the writer must go on
            self._complain(error)
        return connection

    def _follow(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        """Return a connection to the file that has the name now. The old one may have been deleted or moved aside."""
        found = identity(self._path)
        if connection is not None and found == self._opened:
            return connection
        if connection is not None:
            connection.close()
        self._opened = found
        connection = self._connect()
        self._opened = identity(self._path)
        return connection

    def _finish_batch(self) -> None:
        """Count the batch as finished, and wake those who wait for it."""
        with self._lock:
            self._stuck = False
            size = size_of(self._writing)
            self._size -= size
            self._finished += size
            self._writing = []
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        for goal, waiter in self._waiters:
            if goal <= self._finished and waiter.locked():
                waiter.release()
        self._waiters = [other for other in self._waiters if other[0] > self._finished]  # interrupted ones, too

    def _recover(
        self, connection: sqlite3.Connection | None, error: Exception, *, hopeless: bool = False
    ) -> sqlite3.Connection | None:
        """Queue the batch again and wait before the next try; drop a batch that can never be written."""
        self._complain(error)
        if connection is not None:
            connection.close()
        if is_no_database(error):
            self._move_aside()
        if hopeless:
            self._dropped += size_of(self._writing)
            self._finish_batch()
            return None
        with self._lock:
            self._stuck = True
            self._waiting = self._writing + self._waiting
            self._writing = []
            if self._closed:
                self._dropped += self._size
                self._finished += self._size
                self._waiting, self._size = [], 0
                self._wake_waiters()
            self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)
        return None

    def renew_after_fork(self) -> None:
        """Replace the locks, threads and connections inherited from the parent process."""
        self._renew_locks()
        self._reader.renew_after_fork()
        self._waiting, self._writing, self._size = [], [], 0
        self._writer = None
        self.breakers.renew_after_fork()

    def locks(self) -> tuple[threading.Lock, threading.Lock]:
        """The locks that keep this store from using SQLite while they are held."""
        return self._at_work, self._reader.lock

    def _complain(self, error: Exception) -> None:
        self._failures += 1
        looks = not isinstance(error, TimeoutError)  # after a timeout, looking may block as long again
        self._trouble = (looks and find_obstacle(self._path)) or str(error)
        if self._failures == 1:
            log.warning("%s: the store cannot be used now (%s); calls go on without it", self._name, self._trouble)

    def _move_aside(self) -> None:
        if identity(self._path) != self._opened:
            return  # another process has moved it: the file there now is new
        try:
            aside = move_aside(self._path, time.strftime("%Y%m%dT%H%M%S"))
        except OSError as error:
            self._complain(error)
        else:
            log.warning("%s was damaged: it is now %s, and a new one is begun", self._name, aside)

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, synchronous=self._synchronous, patience=BUSY_SECONDS)
