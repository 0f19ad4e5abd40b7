"""A limit on how many attempts of a tool run at a time, with a bounded queue; for tasks and threads alike."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

Wake = Callable[[], None]


class Slots:
    """``limit`` slots. Whoever finds none leaves a ``wake`` that is called once a slot is theirs."""

    def __init__(self, limit: int, queue: int) -> None:
        self._free = limit
        self._queue = queue
        self._waiting: deque[Wake] = deque()
        self.lock = threading.Lock()

    def take(self, wake: Wake) -> Literal["taken", "queued", "full"]:
        with self.lock:
            if self._free:
                self._free -= 1
                return "taken"
            if len(self._waiting) >= self._queue:
                return "full"
            self._waiting.append(wake)
            return "queued"

    def give(self) -> None:
        """Return a slot: to the one who has waited longest, if anybody does."""
        with self.lock:
            wake = self._waiting.popleft() if self._waiting else None
            if wake is None:
                self._free += 1
        if wake is not None:
            wake()

    def leave(self, wake: Wake) -> None:
        """Stop waiting; if the slot has been handed over in the meantime, pass it on."""
        with self.lock:
            if wake in self._waiting:
                self._waiting.remove(wake)
                return
        self.give()

    @property
    def waiting(self) -> int:
        return len(self._waiting)
