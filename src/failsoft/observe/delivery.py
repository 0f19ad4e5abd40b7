"""Deliver events to user code without depending on it.

Rules
-----
- Every consumer has its own daemon thread and bounded queue: one that hangs does not delay the others.
- A consumer that keeps up sees an event before the call that caused it continues. A call waits at most ``PATIENCE``
  seconds. If the consumer itself was working for most of that time, calls stop waiting for it. (A machine too busy to
  run the consumer does not count against it.)
- The first exception of a consumer is logged, sanitised; all are counted. Events that do not fit its queue are dropped
  and counted.
- A consumer with ``ask`` is woken when ``LOT`` events are queued, when a caller waits for it, and every ``IDLE``
  seconds, when it asks for more. Each wake-up takes the interpreter from the calls.
- Locks are entered with ``with`` on the lock itself: a signal can interrupt the ``__enter__`` of a Condition, not that
  of a lock.
- ``tick`` runs on the consumer's thread after each batch; it returns the seconds until its next run, or None.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from failsoft.observe.exception_text import exception_text

PATIENCE = 0.05
CAPACITY = 100_000
IDLE = 0.5
LOT = 16_384  # events: half a megabyte of plain successes, about fifteen of failures

log = logging.getLogger("failsoft")


class Delivery:
    """One consumer of batches and the thread that feeds it."""

    def __init__(
        self,
        consume: Callable[[Any], None],
        *,
        name: str,
        wait: bool,
        ask: Callable[[], None] | None = None,
        complain: Callable[[Exception], None] | None = None,
        tick: Callable[[], float | None] | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        self._consume = consume
        self._capacity = capacity
        self._ask = ask
        self._tick = tick
        self._complain = complain or self._log
        self._name = name
        self._wait = wait
        self._queue: deque[tuple[Any, int]] = deque()  # batches with their number of events
        self._renew_lock()
        self._given = self._taken = self._wanted = self._size = 0  # batches queued, finished, due; events in the queue
        self._worked = 0.0  # seconds spent on finished batches
        self._began: float | None = None  # when the current batch was started
        self._thread: threading.Thread | None = None
        self._closed = False
        self.failed = 0
        self.dropped = 0
        self.offered = 0  # events put, accepted or not
        self._told = 0  # losses already reported by ``flush``
        if ask is not None:
            self._start()

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # wakes the consumer's thread
        self._waiters: list[tuple[int, threading.Lock]] = []  # the batch each waits for, and the lock that wakes it

    def put(self, batch: Sequence[Any], size: int | None = None) -> None:
        """Queue a batch, and wait for a consumer that keeps up."""
        size = len(batch) if size is None else size
        with self._lock:
            self.offered += size
            if self._closed or self._size + size > self._capacity:
                self.dropped += size
                return
            self._start()
            self._queue.append((batch, size))
            self._size += size
            self._given += 1
            if self._ask is None or self._size >= LOT:
                self._want()
            worked = self._time_at_work()
        if self._wait and threading.current_thread() is not self._thread and not self._is_taken(PATIENCE):
            with self._lock:
                if self._time_at_work() - worked < PATIENCE / 2:
                    return  # the consumer has hardly run
            self._wait = False
            log.warning("%s is slow: calls do not wait for it any more", self._name)

    def _time_at_work(self) -> float:
        return self._worked if self._began is None else self._worked + monotonic() - self._began

    @property
    def losses(self) -> int:
        """Failed batches plus dropped events."""
        return self.failed + self.dropped

    def flush(self, timeout: float) -> bool:
        """Wait until all batches so far are finished; False if they are not in time, or if there were losses.

        After a loss, the next ``flush`` (and every one already waiting) returns False; later ones do not.
        """
        told = self._told
        if not self._is_taken(timeout):
            return False
        lost = self.losses
        self._told = max(self._told, lost)
        return lost == told

    def _is_taken(self, timeout: float) -> bool:
        waiter = threading.Lock()
        waiter.acquire()
        with self._lock:
            goal = self._given
            self._want()
            if self._taken >= goal:
                return True
            self._waiters.append((goal, waiter))
        try:
            # Not a Condition: an interrupt in its wait() could leave the lock in either state
            return waiter.acquire(timeout=min(max(timeout, 0.0), threading.TIMEOUT_MAX)) or self._taken >= goal
        finally:
            with self._lock:
                self._waiters = [other for other in self._waiters if other[1] is not waiter]

    def _want(self) -> None:
        """Make everything in the queue due now."""
        self._wanted = self._given
        self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Accept nothing more; give the consumer ``timeout`` seconds for its queue."""
        self.flush(timeout)
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def renew_after_fork(self) -> None:
        """Replace the lock and the thread of the parent process."""
        self._renew_lock()
        self._thread = None
        self._queue.clear()
        self._taken, self._wanted, self._size, self._began = self._given, self._given, 0, None
        if self._ask is not None and not self._closed:
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"failsoft {self._name}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        wait = None if self._ask is None else IDLE
        while True:
            with self._lock:
                self._changed.wait_for(self._is_due, wait)
                if not self._queue and self._closed:
                    return
                due = self._is_due()
                batch, size = self._queue.popleft() if due else (None, 0)
                self._size -= size
            if due:
                self._hand_over(batch)
                batch = None  # do not keep the last batch alive while idle
            elif self._ask is not None:
                self._ask()
                with self._lock:
                    self._want()
            if self._tick is not None:
                wait = self._next_tick(self._tick)

    def _next_tick(self, tick: Callable[[], float | None]) -> float | None:
        try:
            return tick()
        except Exception as error:
            self.failed += 1
            if self.failed == 1:
                self._complain(error)
            return None

    def _is_due(self) -> bool:
        return self._taken < self._wanted or self._closed

    def _hand_over(self, batch: Any) -> None:
        self._began = monotonic()
        try:
            self._consume(batch)
        except Exception as error:
            self.failed += 1
            if self.failed == 1:
                self._complain(error)
        with self._lock:
            self._worked, self._began = self._time_at_work(), None
            self._taken += 1
            for goal, waiter in self._waiters:
                if goal <= self._taken and waiter.locked():
                    waiter.release()
            self._waiters = [each for each in self._waiters if each[0] > self._taken]  # drops interrupted callers too

    def _log(self, error: Exception) -> None:
        log.error("%s failed; calls go on without it\n%s", self._name, exception_text(error))


def each(consumer: Callable[[Any], None]) -> Callable[[Sequence[Any]], None]:
    """Turn a consumer of single events into a consumer of batches."""

    def consume(batch: Sequence[Any]) -> None:
        for event in batch:
            consumer(event)

    return consume


def left(deadline: float) -> float:
    """Seconds until a monotonic deadline; 0 if it has passed."""
    return max(0.0, deadline - monotonic())
