"""Two ways to wait for another OS thread, and how to run an algorithm that waits in either way.

An algorithm is written once, as a coroutine that awaits a ``Signal``. On an event loop it suspends. The blocking kind
blocks the OS thread and never suspends, so ``run_blocking`` can run the algorithm to its end without an event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Signal(Protocol):
    """A signal that another OS thread gives once."""

    @property
    def give(self) -> Callable[[], bool | None]:
        """Give the signal, from any OS thread. False if the waiting side is gone."""

    async def wait(self) -> None:
        """Wait for the signal."""


class LoopSignal:
    """A signal for the current task: its event loop goes on while it waits."""

    __slots__ = ("_given", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._given: asyncio.Future[None] = self._loop.create_future()

    def give(self) -> bool:
        return resolve_threadsafe(self._loop, self._given, None)

    async def wait(self) -> None:
        await self._given


class BlockingSignal:
    """A signal for the current OS thread, which blocks while it waits."""

    __slots__ = ("_lock", "give")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.give: Callable[[], None] = self._lock.release

    async def wait(self) -> None:
        self._lock.acquire()


def resolve_threadsafe(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], value: T) -> bool:
    """Resolve a future of another OS thread's loop. False if that loop has been closed."""
    try:
        loop.call_soon_threadsafe(_resolve, future, value)
    except RuntimeError:
        return False
    return True


def _resolve(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def run_blocking(algorithm: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends to its end."""
    try:
        algorithm.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        algorithm.close()  # if it was interrupted before it began, Python would warn
    raise RuntimeError("a blocking algorithm has suspended")
