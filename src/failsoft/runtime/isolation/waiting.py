"""How to wait for a process: on an event loop, or blocking. The algorithms above are written once, for both.

Rules
-----
- ``ready`` and ``result`` are awaited. On an event loop they suspend; in the blocking kind they block and never suspend,
  so that ``finish`` can run a whole algorithm to its end without a loop.
- Deadlines are real time, also where the event loop's time is virtual: processes live in real time.
"""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Waiting(Protocol):
    """What the algorithms need of their caller's world."""

    async def ready(self, reads: Sequence[int], writes: Sequence[int], until: float | None) -> bool:
        """Wait until one of the descriptors is ready; False if ``until`` comes first."""

    async def result(self, future: Future[T]) -> T:
        """Wait for a result that another call brings."""


class OnLoop:
    """Waits without holding up the event loop, and without a thread."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def ready(self, reads: Sequence[int], writes: Sequence[int], until: float | None) -> bool:
        loop = self._loop
        waiter: asyncio.Future[bool] = loop.create_future()
        for fd in reads:
            loop.add_reader(fd, _settle, waiter, True)
        for fd in writes:
            loop.add_writer(fd, _settle, waiter, True)
        timer = None if until is None else self._alarm(max(0.0, until - time.monotonic()), waiter)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            for fd in reads:
                loop.remove_reader(fd)
            for fd in writes:
                loop.remove_writer(fd)

    def _alarm(self, delay: float, waiter: asyncio.Future[bool]) -> asyncio.TimerHandle | threading.Timer:
        loop = self._loop
        if not hasattr(loop, "failsoft_outside"):
            return loop.call_later(delay, _settle, waiter, False)
        timer = threading.Timer(delay, loop.call_soon_threadsafe, (_settle, waiter, False))  # its own time is virtual
        timer.daemon = True
        timer.start()
        return timer

    async def result(self, future: Future[T]) -> T:
        return await asyncio.wrap_future(future, loop=self._loop)


def _settle(waiter: asyncio.Future[bool], ready: bool) -> None:
    if not waiter.done():
        waiter.set_result(ready)


class Blocking:
    """Waits by blocking the thread."""

    __slots__ = ()

    async def ready(self, reads: Sequence[int], writes: Sequence[int], until: float | None) -> bool:
        poll = select.poll()
        for fd in reads:
            poll.register(fd, select.POLLIN)
        for fd in writes:
            poll.register(fd, select.POLLOUT)
        return bool(poll.poll(None if until is None else max(0.0, (until - time.monotonic()) * 1000)))

    async def result(self, future: Future[T]) -> T:
        return future.result()


def finish(coro: Coroutine[Any, Any, T]) -> T:
    """Run to its end what waits ``Blocking`` only."""
    try:
        coro.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise RuntimeError("a blocking call has suspended")
