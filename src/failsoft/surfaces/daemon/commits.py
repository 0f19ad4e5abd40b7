"""Group commit: answers wait until the store has saved what they acknowledge, and share one wait.

Rules
-----
- ``wait`` returns True once everything recorded before is durable, False if the store has lost something or is too slow.
- One commit runs at a time. Callers that come meanwhile wait for the next one: the slower the store, the larger the
  groups.
- Commits begin at least ``PACE`` seconds apart. Each one wakes four OS threads, which costs as much as a whole request. The
  first one after a pause begins at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

PATIENCE = 1.5  # seconds
PACE = 0.01  # seconds


class Commits:
    """The commits of one daemon. ``commit(deadline)`` blocks until everything so far is durable."""

    def __init__(self, commit: Callable[[float], bool]) -> None:
        self._commit = commit
        self._waiting: list[asyncio.Future[bool]] = []  # the callers that wait for the next commit
        self._running: asyncio.Task[None] | None = None
        self._begun = -PACE  # when the latest commit began
        self._thread = ThreadPoolExecutor(1, "failsoft commit")

    async def wait(self) -> bool:
        """Wait until everything recorded so far is durable; False if it may be lost."""
        waiting: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await waiting

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                if (early := self._begun + PACE - loop.time()) > 0:
                    await asyncio.sleep(early)
                self._begun = loop.time()
                waiting, self._waiting = self._waiting, []
                try:
                    durable = await loop.run_in_executor(self._thread, self._commit, monotonic() + PATIENCE)
                except Exception:  # a store that raises has not confirmed anything
                    durable = False
                for each in waiting:
                    if not each.done():
                        each.set_result(durable)
        finally:
            self._running = None

    def close(self) -> None:
        """End the OS thread."""
        self._thread.shutdown(wait=False)
