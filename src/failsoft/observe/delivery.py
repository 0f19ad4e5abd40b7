"""Hand events to somebody else's code without depending on it (T27).

Rules
-----
- Every consumer has its own daemon thread and its own bounded queue: one that hangs keeps nobody else waiting.
- A consumer that keeps up has seen an event before the call that caused it goes on. One that once took longer than
  ``PATIENCE`` is waited for no more, only fed.
- One that raises is logged once and counted; what does not fit into its queue is dropped and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

PATIENCE = 0.05
CAPACITY = 100_000

log = logging.getLogger("failsoft")


class Delivery:
    """One consumer of batches and the thread that feeds it."""

    def __init__(self, consume: Callable[[Sequence[Any]], None], *, name: str, wait: bool) -> None:
        self._consume = consume
        self._name = name
        self._wait = wait
        self._queue: deque[Sequence[Any]] = deque()
        self._changed = threading.Condition()
        self._given = self._taken = self._size = 0
        self._thread: threading.Thread | None = None
        self._closed = False
        self.failed = 0
        self.dropped = 0

    def put(self, batch: Sequence[Any]) -> None:
        """Queue a batch; wait for a consumer that keeps up."""
        with self._changed:
            if self._closed or self._size + len(batch) > CAPACITY:
                self.dropped += len(batch)
                return
            self._start()
            self._queue.append(batch)
            self._size += len(batch)
            self._given += 1
            self._changed.notify_all()
        if self._wait and threading.current_thread() is not self._thread and not self.flush(PATIENCE):
            self._wait = False
            log.warning("%s is slow: calls do not wait for it any more", self._name)

    def flush(self, timeout: float) -> bool:
        """Wait until all that was put has been taken."""
        with self._changed:
            goal = self._given
            return self._changed.wait_for(lambda: self._taken >= goal, timeout)

    def close(self, timeout: float) -> None:
        """Take nothing more; give the consumer this long for what it has."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def renew_after_fork(self) -> None:
        """A forked child has its parent's lock as it was, and none of its threads."""
        self._changed = threading.Condition()
        self._thread = None
        self._queue.clear()
        self._taken, self._size = self._given, 0

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"failsoft {self._name}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return
                batch = self._queue.popleft()
                self._size -= len(batch)
            try:
                self._consume(batch)
            except Exception:
                self.failed += 1
                if self.failed == 1:
                    log.exception("%s failed; calls go on without it", self._name)
            with self._changed:
                self._taken += 1
                self._changed.notify_all()


def each(consumer: Callable[[Any], None]) -> Callable[[Sequence[Any]], None]:
    """A consumer of single events as a consumer of batches."""

    def consume(batch: Sequence[Any]) -> None:
        for event in batch:
            consumer(event)

    return consume


def left(deadline: float) -> float:
    """Seconds until a monotonic deadline, none if it has passed."""
    return max(0.0, deadline - monotonic())
