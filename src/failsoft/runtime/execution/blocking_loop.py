"""Coroutines for callers that block.

Rules
-----
- Callers that block share one event loop, which runs in a daemon thread of its own: clients that tools keep stay on one
  loop, a framework's short-lived threads leave none behind, and it does not matter whether the caller's thread has one.
- Virtual time has a loop of its own, which ends with it. That one stands still while nobody waits for it.
- Context variables are the caller's. A turn is left: it lives on the event loop of another caller.
- Whatever a coroutine ends with belongs to its caller; a caller that is interrupted takes its coroutine along.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

from failsoft.errors import FailsoftError
from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.scope import SCOPE

T = TypeVar("T")


def is_on_loop() -> bool:
    """Is an event loop running in this thread?"""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def running_loop() -> asyncio.AbstractEventLoop:
    """This thread's event loop; refused where there is none, or one of another kind."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise FailsoftError(
            "no asyncio event loop is running here: failsoft awaits tools on asyncio, not on trio. Start with "
            "asyncio.run(...), or use call_sync"
        ) from None


def run_on_loop_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Block until a coroutine has come to its end."""
    context = copy_context()
    context.run(leave_turn)
    ended: Future[T] = Future()
    tasks: list[asyncio.Task[None]] = []

    async def run() -> None:
        try:
            with host.awaited():
                value = await make()
            ended.set_result(value)
        except BaseException as error:  # not the shared loop's to raise
            ended.set_exception(error)

    host = _LOOP_THREADS.find(clocks.current())
    try:
        host.loop.call_soon_threadsafe(lambda: tasks.append(host.loop.create_task(run(), context=context)))
        return ended.result()
    except BaseException:
        host.loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])  # the caller was interrupted
        raise


def leave_turn() -> None:
    """A call made from here belongs to no turn: not to one that another event loop runs."""
    scope = SCOPE.get()
    if scope is not None and scope.is_turn:
        SCOPE.set(None)


class _LoopThread:
    """A daemon thread with an event loop."""

    def __init__(self, clock: clocks.Clock) -> None:
        self.clock = clock
        self.loop = asyncio.new_event_loop()
        self._waiting = 0
        clocks.outside_started(self.loop)
        self.thread = threading.Thread(target=self._run, name="failsoft loop", daemon=True)
        self.thread.start()

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Somebody waits for what this loop does in the body."""
        self._waiting += 1
        if self._waiting == 1:
            clocks.outside_finished(self.loop)
        try:
            yield
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                clocks.outside_started(self.loop)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()

    def end(self) -> None:
        with suppress(RuntimeError):  # it has come to its end already
            self.loop.call_soon_threadsafe(self.loop.stop)


class _LoopThreads:
    """The shared loop of each clock; another one for those that block it themselves, and in a forked child."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._lock = threading.RLock()
        self._shared: list[_LoopThread] = []

    def find(self, clock: clocks.Clock) -> _LoopThread:
        with self._lock:
            for host in self._shared:
                if host.clock is clock and host.thread is not threading.current_thread():
                    return host
            self._shared.append(_LoopThread(clock))
            return self._shared[-1]

    def end(self, clock: clocks.Clock) -> None:
        """Nobody lives by this clock any more."""
        with self._lock:
            ended = [host for host in self._shared if host.clock is clock]
            self._shared = [host for host in self._shared if host.clock is not clock]
        for host in ended:
            host.end()


_LOOP_THREADS = _LoopThreads()
end_loop_threads = _LOOP_THREADS.end


os.register_at_fork(after_in_child=_LOOP_THREADS.renew)
