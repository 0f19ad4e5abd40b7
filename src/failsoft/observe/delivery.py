"""Deliver events to user code without depending on it.

Rules
-----
- Every consumer has its own daemon thread and bounded queue: a consumer that hangs does not delay the others.
- Calls do not wait for a consumer unless it was added with ``wait``. Then a consumer that keeps up sees an event before
  the call that caused it continues. If the consumer itself works for most of ``patience`` seconds, calls stop waiting for it.
  If the machine is too busy to run the consumer, a call waits longer: ``ROUNDS`` times at most.
- A delivery thread never waits for a consumer, so consumers may make calls.
- The first exception of a consumer is logged, sanitised; all are counted. The consumer stays.
- When a queue is full, its oldest batches are dropped and counted; the first loss is reported to ``on_drop``.
- A consumer with ``ask`` is woken when ``LOT`` events are queued, when half of the queue is full, and when a caller
  waits for it. Every ``idle`` seconds it asks for more events. Wake-ups are rare because each takes the interpreter
  from the calls.
- With ``together`` a consumer gets a list of all batches that are queued when it is woken, up to ``LOT`` events.
- Locks are entered with ``with`` on the lock itself: a signal can interrupt the ``__enter__`` of a Condition, not that
  of a lock.
- ``tick`` runs on the consumer's thread after each batch; it returns the seconds until its next run, or None.
  ``on_close`` runs there after the last batch.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any

from failsoft.observe.exception_text import exception_text

PATIENCE = 0.05
ROUNDS = 20  # times ``patience``, while the machine is too busy to run the consumer
CAPACITY = 100_000
IDLE = 0.5
LOT = 16_384  # events: half a megabyte of plain successes, about fifteen of failures

log = logging.getLogger("failsoft")


class _DeliveryThread(threading.Thread):
    """A thread that feeds a consumer."""


class Delivery:
    """One consumer of batches and the thread that feeds it."""

    def __init__(
        self,
        consume: Callable[[Any], None],
        *,
        name: str,
        wait: bool,
        ask: Callable[[], None] | None = None,
        complain: Callable[[BaseException], None] | None = None,
        tick: Callable[[], float | None] | None = None,
        on_drop: Callable[[int], None] | None = None,
        on_close: Callable[[], None] | None = None,
        together: bool = False,
        capacity: int | None = None,
        patience: float | None = None,
        idle: float | None = None,
    ) -> None:
        self._consume = consume
        self._capacity = CAPACITY if capacity is None else capacity
        self._together = together
        self._ask = ask
        self._tick = tick
        self._complain = complain or self._log
        self._on_drop = on_drop
        self._on_close = on_close
        self.name = name
        self._wait = wait
        self._patience = patience
        self._idle = idle
        self._queue: deque[tuple[Any, int, int]] = deque()  # batches, the events in each, and the batch's number
        self._renew_lock()
        self._given = self._taken = self._wanted = 0  # numbers of the last batch that was queued, finished, due
        self._size = 0  # events in the queue
        self._worked = 0.0  # seconds spent on finished batches
        self._began: float | None = None  # when the current batch was started
        self._thread: threading.Thread | None = None
        self._closed = False
        self.failed = 0
        self.dropped = 0
        self.offered = 0  # events put, accepted or not
        self._reported = 0  # losses already reported by ``flush``
        if ask is not None:
            self._start()

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # wakes the consumer's thread
        self._waiters: list[tuple[int, threading.Lock]] = []  # the batch each waits for, and the lock that wakes it

    def put(self, batch: Sequence[Any], size: int | None = None) -> None:
        """Queue a batch, and wait for a consumer that keeps up."""
        self.offer(batch, size)
        self.wait()

    def offer(self, batch: Any, size: int | None = None) -> None:
        """Queue a batch; drop the oldest ones if there is no room."""
        size = len(batch) if size is None else size
        with self._lock:
            self.offered += size
            lost = size
            if not self._closed and self._start():
                lost = self._make_room(size)
                # An interrupt may come after each call. So the batch is counted before it is queued, and the thread is
                # woken before that: it cannot take the batch earlier, because it waits for the lock.
                if self._ask is None or self._size + size >= min(LOT, self._capacity // 2):
                    self._wanted = self._given + 1
                    self._changed.notify_all()
                self._size += size
                self._given += 1
                self._queue.append((batch, size, self._given))
            first = lost and not self.dropped and not self._closed
            self.dropped += lost
        if first and self._on_drop is not None:
            self._on_drop(lost)

    def _make_room(self, size: int) -> int:
        """Drop the oldest batches until ``size`` events fit or none is queued; return how many events were dropped."""
        lost = 0
        while self._queue and self._size + size > self._capacity:
            _, dropped, _ = self._queue.popleft()
            self._size -= dropped
            lost += dropped
        return lost

    def wait(self) -> None:
        """Wait until a consumer that keeps up has finished every batch so far; return at once if calls do not wait for it."""
        if not self._wait or self._taken >= self._given or isinstance(threading.current_thread(), _DeliveryThread):
            return
        patience = PATIENCE if self._patience is None else self._patience
        with self._lock:
            worked = self._time_at_work()
        for _ in range(ROUNDS):
            if self._is_taken(patience):
                return
            with self._lock:
                if self._time_at_work() - worked >= patience / 2:
                    break
        else:
            return  # the machine is too busy to run the consumer
        self._wait = False
        log.warning("%s is slow: calls do not wait for it any more", self.name)

    def _time_at_work(self) -> float:
        return self._worked if self._began is None else self._worked + monotonic() - self._began

    @property
    def queued(self) -> int:
        """Events that wait for the consumer."""
        return self._size

    @property
    def losses(self) -> int:
        """Failed batches plus dropped events."""
        return self.failed + self.dropped

    def flush(self, timeout: float) -> bool:
        """Wait until all batches so far are finished; False if they are not in time, or if there were losses.

        After a loss, the next ``flush`` (and every one already waiting) returns False; later ones do not.
        """
        reported = self._reported
        if not self._is_taken(timeout):
            return False
        lost = self.losses
        self._reported = max(self._reported, lost)
        return lost == reported

    def _is_taken(self, timeout: float) -> bool:
        if threading.current_thread() is self._thread:
            return True  # a consumer does not wait for itself
        waiter = threading.Lock()
        waiter.acquire()
        try:
            with self._lock:
                goal = self._given
                self._want()
                if self._taken >= goal:
                    return True
                self._waiters.append((goal, waiter))
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
        """Accept nothing more; give the consumer ``timeout`` seconds for its queue.

        A consumer that closes its own delivery gets nothing more.
        """
        thread, deadline = self._thread, monotonic() + timeout
        own = threading.current_thread() is thread
        if not own:
            self.flush(timeout)
        with self._lock:
            self._closed = True
            if own:
                self._queue.clear()
                self._size = 0
            self._changed.notify_all()
        if self._on_close is not None and thread is not None and not own:
            thread.join(remaining(deadline))

    def renew_after_fork(self) -> None:
        """Replace the lock and the thread of the parent process."""
        self._renew_lock()
        self._thread = None
        self._queue.clear()
        self._taken, self._wanted, self._size, self._began = self._given, self._given, 0, None
        if self._ask is not None and not self._closed:
            self._start()

    def _start(self) -> bool:
        """Start the thread unless it runs; False if none can be started: the interpreter is ending."""
        if self._thread is None:
            thread = _DeliveryThread(target=self._run, name=f"failsoft {self.name}", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:
                self._thread = None
                return False
            except BaseException:  # interrupted; if the thread has been started, it ends at once
                self._thread = None
                raise
        return True

    def _run(self) -> None:
        idle = IDLE if self._idle is None else self._idle
        wait = None if self._ask is None else idle
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():  # an interrupt prevented its registration
                    return
                self._changed.wait_for(self._is_due, wait)
                if not self._queue and self._closed:
                    break
                due = self._is_due()
                batch = self._next() if due else None
            if due:
                self._hand_over(batch)
                batch = None  # do not keep the last batch alive while idle
            elif self._ask is not None:
                self._ask()
                with self._lock:
                    self._want()
            if self._tick is not None:
                wait = self._next_tick(self._tick)
        if self._on_close is not None:
            self._guard(self._on_close)

    def _next(self) -> Any:
        """The next batch of the queue; with ``together`` a list of as many batches as make a lot."""
        batch, size, _ = self._queue.popleft()
        if self._together:
            batch = [batch]
            while self._queue and size < LOT:
                more, count, _ = self._queue.popleft()
                batch.append(more)
                size += count
        self._size -= size
        return batch

    def _next_tick(self, tick: Callable[[], float | None]) -> float | None:
        seconds: list[float | None] = [None]
        self._guard(lambda: seconds.append(tick()))
        return seconds[-1]

    def _guard(self, use: Callable[[], None]) -> None:
        """Run user code: count its exceptions, and log the first."""
        try:
            use()
        except BaseException as error:  # also SystemExit: it would end only this thread, and the delivery with it
            self.failed += 1
            if self.failed == 1:
                self._complain(error)

    def _is_due(self) -> bool:
        return (bool(self._queue) and self._taken < self._wanted) or self._closed

    def _hand_over(self, batch: Any) -> None:
        self._began = monotonic()
        self._guard(lambda: self._consume(batch))
        with self._lock:
            self._worked, self._began = self._time_at_work(), None
            self._taken = self._queue[0][2] - 1 if self._queue else self._given  # dropped batches count as finished
            for goal, waiter in self._waiters:
                if goal <= self._taken and waiter.locked():
                    waiter.release()
            self._waiters = [each for each in self._waiters if each[0] > self._taken]  # drops interrupted callers too

    def _log(self, error: BaseException) -> None:
        log.error("%s failed; calls go on without it\n%s", self.name, exception_text(error))


def each(consumer: Callable[[Any], None]) -> Callable[[Iterable[Any]], None]:
    """Turn a consumer of single events into a consumer of batches; after an exception it gets the next event."""

    def consume(batch: Iterable[Any]) -> None:
        first: BaseException | None = None
        for event in batch:
            try:
                consumer(event)
            except BaseException as error:
                first = error if first is None else first
        if first is not None:
            raise first

    return consume


def remaining(deadline: float) -> float:
    """Seconds until a monotonic deadline; 0 if it has passed."""
    return max(0.0, deadline - monotonic())
