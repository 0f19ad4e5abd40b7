"""Two ways to wait for a process: on an event loop, or blocking. Algorithms that wait are written once, for both.

Rules
-----
- A ``Waiting`` is awaited. On an event loop it suspends; the blocking kind blocks and never suspends, so that
  ``execution.waiting.run_blocking`` can run a whole algorithm to its end without a loop.
- Deadlines are in real time, even if the event loop's time is virtual: processes run in real time.

Why ``LoopReadiness``: asyncio needs ten microseconds to add and remove a descriptor, a large part of a whole call. One
separate epoll per loop that stays registered needs one microsecond.
"""

from __future__ import annotations

import asyncio
import select
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from failsoft.runtime.execution.waiting import BlockingSignal, LoopSignal, Signal


class Waiting(Protocol):
    """A way to wait: on an event loop, or by blocking."""

    async def readable(self, fd: int, until: float | None) -> bool:
        """Wait until there is something to read; False if ``until`` comes first."""

    async def ready(self, reads: Sequence[int], writes: Sequence[int], until: float | None) -> bool:
        """Wait until one of the descriptors is ready; False if ``until`` comes first."""

    @property
    def signal(self) -> Callable[[], Signal]:
        """Makes a signal that this caller can wait for."""


class OnLoop:
    """Waits without blocking the event loop, and without a thread."""

    __slots__ = ("_loop",)
    signal = LoopSignal

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def readable(self, fd: int, until: float | None) -> bool:
        if not hasattr(select, "epoll"):
            return await self.ready((fd,), (), until)
        readiness = _loop_readiness.get(self._loop) or _add_readiness(self._loop)
        waiter: asyncio.Future[bool] = self._loop.create_future()
        timer = None if until is None else self._set_timer(until, waiter)
        readiness.listen(fd, waiter)
        try:
            return await waiter
        finally:
            readiness.waiters.pop(fd, None)
            if timer is not None:
                timer.cancel()

    async def ready(self, reads: Sequence[int], writes: Sequence[int], until: float | None) -> bool:
        loop = self._loop
        waiter: asyncio.Future[bool] = loop.create_future()
        for fd in reads:
            loop.add_reader(fd, _resolve, waiter, True)
        for fd in writes:
            loop.add_writer(fd, _resolve, waiter, True)
        timer = None if until is None else self._set_timer(until, waiter)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            for fd in reads:
                loop.remove_reader(fd)
            for fd in writes:
                loop.remove_writer(fd)

    def _set_timer(self, until: float, waiter: asyncio.Future[bool]) -> asyncio.TimerHandle | threading.Timer:
        loop, delay = self._loop, max(0.0, until - time.monotonic())
        if not hasattr(loop, "failsoft_outside"):
            return loop.call_later(delay, _resolve, waiter, False)
        timer = threading.Timer(delay, loop.call_soon_threadsafe, (_resolve, waiter, False))  # real time
        timer.daemon = True
        timer.start()
        return timer


def _resolve(waiter: asyncio.Future[bool], ready: bool) -> None:
    if not waiter.done():
        waiter.set_result(ready)


class LoopReadiness:
    """The descriptors that one event loop watches for its calls. Each wakes its call once and must be armed again."""

    __slots__ = ("_epoll", "waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self.waiters: dict[int, asyncio.Future[bool]] = {}
        loop.add_reader(self._epoll.fileno(), self._wake_ready)

    def listen(self, fd: int, waiter: asyncio.Future[bool]) -> None:
        self.waiters[fd] = waiter
        try:
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
        except FileNotFoundError:  # not registered; the kernel drops a descriptor that is closed
            self._epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)

    def _wake_ready(self) -> None:
        for fd, _ in self._epoll.poll(0):
            waiter = self.waiters.get(fd)
            if waiter is not None:
                _resolve(waiter, True)


_loop_readiness: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopReadiness] = weakref.WeakKeyDictionary()


def _add_readiness(loop: asyncio.AbstractEventLoop) -> LoopReadiness:
    for known in list(_loop_readiness):
        if known.is_closed():
            del _loop_readiness[known]
    _loop_readiness[loop] = readiness = LoopReadiness(loop)
    return readiness


class Blocking:
    """Waits by blocking the thread."""

    __slots__ = ()
    signal = BlockingSignal

    async def readable(self, fd: int, until: float | None) -> bool:
        return await self.ready((fd,), (), until)

    async def ready(self, reads: Sequence[int], writes: Sequence[int], until: float | None) -> bool:
        poll = select.poll()
        for fd in reads:
            poll.register(fd, select.POLLIN)
        for fd in writes:
            poll.register(fd, select.POLLOUT)
        return bool(poll.poll(None if until is None else max(0.0, (until - time.monotonic()) * 1000)))
