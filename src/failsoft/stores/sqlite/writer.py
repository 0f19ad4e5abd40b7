"""The writer of a SQLite store: a queue of operations, and the thread that writes them in batches.

Rules
-----
- One writer thread per store. It collects operations for ``LINGER`` seconds, or until there are ``ENOUGH``, and writes
  them in one transaction. Only ``flush`` and requests wait for it, and make it start at once. Confirmed writes survive
  a crash of the process; with ``synchronous="full"`` also a crash of the machine.
- Failures (disk full, file locked, read-only, gone) never reach a caller. Up to ``MOST_WAITING`` operations stay in
  memory and are retried; further ones are dropped. One warning is logged; ``troubles`` has the counts. ``close`` waits
  as long as batches are being written.
- A batch that can never be written (the file is fine, the batch is not) is dropped and counted.
- A damaged file is moved aside under a name with the time, never deleted. If the file is deleted or replaced while in
  use, the next batch goes to a new file, or to the replacement.

Why a thread and not a transaction per call: 500,000 rows a second in batches, a few thousand otherwise.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from failsoft.stores.sqlite.database import (
    Append,
    Operation,
    Request,
    connect,
    size_of,
    write,
)
from failsoft.stores.sqlite.location import find_obstacle, identity, is_no_database, move_aside
from failsoft.stores.sqlite.retention import Retention

MOST_WAITING = 200_000  # operations
BATCH = 10_000  # operations per transaction; limits how long other processes wait
LINGER = 0.1  # seconds
ENOUGH = 32_768  # events and records
BUSY_SECONDS = 5.0  # how long a write waits for other processes
CLOSE_SECONDS = 1.0  # closing gives up after this time without a finished batch
RETRY_SECONDS = 0.5  # after a failed write

log = logging.getLogger("failsoft")


class Troubles(NamedTuple):
    """Counts of what went wrong."""

    failures: int  # writes that failed and were retried
    dropped: int  # records and events lost
    last: str = ""  # the last error


class Writer:
    """Writes operations to a file. Every method may be called from any thread."""

    def __init__(
        self,
        path: str | Path,
        *,
        wall: Callable[[], float],
        synchronous: Literal["normal", "full"],
        retention: Retention,
    ) -> None:
        if synchronous not in ("normal", "full"):
            raise ValueError(f"synchronous: {synchronous!r} is neither 'normal' nor 'full'")
        self._name = Path(path)
        self._path = self._name.absolute()  # the program may change its working directory
        self._wall = wall
        self._synchronous = synchronous
        self._retention = retention
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
        self._opened: tuple[int, int] | None = None  # the file that the writer has open

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

    def _queue(self, operations: Sequence[Operation]) -> bool:
        """Pass operations to the writer; False if there is no room."""
        size = size_of(operations)
        with self._lock:
            if self._closed or self._size + size > MOST_WAITING:
                self._dropped += size
                return False
            # An interrupt may come after each call. So wake the writer first (it waits for the lock before it looks for
            # work), and count the size before the list grows.
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

    @property
    def lost(self) -> int:
        """The number of records and events lost so far."""
        return self._dropped

    @property
    def troubles(self) -> Troubles:
        return Troubles(self._failures, self._dropped, self._trouble)

    def _await_writer(self) -> None:
        """Wait until the queue is in the file. After a failed write, do not wait: readers then see the old file."""
        if not self._stuck:
            self._is_written(BUSY_SECONDS)

    def _write_all(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            with self._lock:
                if self._writer is not threading.current_thread():  # the start of this thread was interrupted
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
        except BaseException:  # an interrupt in the main thread, which writes if no writer can be started
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
            log.warning("%s was damaged: it was moved to %s, and a new file was created", self._name, aside)

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, synchronous=self._synchronous, patience=BUSY_SECONDS)

    def renew_after_fork(self) -> None:
        """Start over in a forked child, which has none of its parent's threads. The parent writes what it had queued."""
        self._renew_locks()
        self._waiting, self._writing, self._size = [], [], 0
        self._writer = None
