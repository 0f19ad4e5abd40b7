"""A limit on how many attempts of a tool run at a time, with a bounded queue; for tasks and threads alike.

Rules
-----
- A slot that is given back goes to the caller that has waited longest and is still there: an event loop may have been
  closed.
- A caller is known by its ``wake``. ``leave`` gives back what that caller has, a slot or a place in the queue, and does
  nothing if it has neither. So a caller can always leave, wherever it was interrupted.
- A forked child has all slots: callers that hold one, or wait, do so in the parent.
- The garbage collector may end a forgotten call in the middle of any of this, in the same thread, and that gives a slot
  back: so the lock lets its own thread in.
- ``wake`` may be called twice; the second time it may raise RuntimeError.
- Where a slot changes hands, no function is called in between: no signal is handled there, and no garbage collected.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Wake = Callable[[], bool | None]  # False: nobody is there any more


class Bulkhead:
    """``limit`` slots. A caller that finds none leaves a ``wake`` that is called once a slot is its own."""

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
                except BaseException:  # an interrupt; whether before or after it was woken is not known
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
