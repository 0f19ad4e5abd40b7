"""A limit on how many attempts of a tool run at a time, with a bounded queue; for tasks and threads alike.

Rules
-----
- A slot that is given back is handed to whoever has waited longest and is still there: an event loop may have been closed.
- A forked child has all slots: whoever holds one, or waits, does so in the parent.
- The garbage collector may end a forgotten call in the middle of any of this, in the same thread, and that gives a slot
  back: so the lock lets its own thread in, and nothing is called between finding no slot and standing in line.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

Wake = Callable[[], bool | None]  # False: nobody is there any more


class Slots:
    """``limit`` slots. Whoever finds none leaves a ``wake`` that is called once a slot is theirs."""

    def __init__(self, limit: int, queue: int) -> None:
        self._limit = limit
        self._queue = queue
        self.renew()

    def renew(self) -> None:
        """Start over."""
        self._free = self._limit
        self._waiting: deque[Wake] = deque()
        self._lock = threading.RLock()

    def take(self, wake: Wake) -> Literal["taken", "queued", "full"]:
        with self._lock:
            full = len(self._waiting) >= self._queue
            if self._free:
                self._free -= 1
                return "taken"
            if full:
                return "full"
            self._waiting.append(wake)
            return "queued"

    def give(self) -> None:
        """Return a slot: to the one who has waited longest, if anybody does."""
        taken: bool | None = False
        while taken is False:
            with self._lock:
                wake = self._waiting.popleft() if self._waiting else None
                if wake is None:
                    self._free += 1
                    return
            taken = wake()

    def leave(self, wake: Wake) -> None:
        """Stop waiting; if the slot has been handed over in the meantime, pass it on."""
        with self._lock:
            if wake in self._waiting:
                self._waiting.remove(wake)
                return
        self.give()

    @property
    def waiting(self) -> int:
        return len(self._waiting)
