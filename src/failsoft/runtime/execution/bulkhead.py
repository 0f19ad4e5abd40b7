"""The bulkhead: a limit on concurrent attempts of a tool, with a bounded queue, for tasks and OS threads alike.

Rules
-----
- A slot that is given back goes to the caller that has waited longest and whose event loop is still open.
- A caller is identified by its ``wake``. ``release`` gives back that caller's slot or place in the queue, and does nothing
  if it has neither. So a caller can always call it, whatever step was interrupted.
- In a forked child all slots are free: callers that hold one or wait for one are in the parent.
- The garbage collector may end a forgotten call at any point, in the same OS thread, which gives a slot back. Therefore
  the lock is reentrant.
- ``wake`` may be called twice; the second call may raise RuntimeError.
- No function is called while a slot changes hands, so that no signal is handled and no garbage collected there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Wake = Callable[[], bool | None]  # False: the caller is gone


class Bulkhead:
    """``limit`` slots. A caller that finds none is woken once it owns a slot."""

    def __init__(self, limit: int, queue: int) -> None:
        self._limit = limit
        self._queue = queue
        self.renew()

    def renew(self) -> None:
        """Start over."""
        self._free = self._limit
        self._holding: dict[Wake, None] = {}
        self._waiting: deque[Wake] = deque()
        self._lock = threading.RLock()

    def acquire(self, wake: Wake) -> Literal["taken", "queued", "full"]:
        with self._lock:
            full = len(self._waiting) >= self._queue
            if self._free:
                self._holding[wake] = None
                self._free -= 1
                return "taken"
            if full:
                return "full"
            self._waiting.append(wake)
            return "queued"

    def release(self, wake: Wake) -> None:
        """Give back a slot, or stop waiting for one."""
        with self._lock:
            if wake in self._waiting:
                self._waiting.remove(wake)
                return
            while wake in self._holding:
                if not self._waiting:
                    del self._holding[wake]
                    self._free += 1
                    return
                following = self._waiting[0]
                del self._waiting[0]
                del self._holding[wake]
                self._holding[following] = None
                wake = following
                try:
                    is_there = wake() is not False
                except BaseException:  # an interrupt, before or after the caller was woken
                    with suppress(RuntimeError):
                        wake()
                    raise
                if is_there:
                    return

    @property
    def taken(self) -> int:
        return self._limit - self._free

    @property
    def waiting(self) -> int:
        return len(self._waiting)
