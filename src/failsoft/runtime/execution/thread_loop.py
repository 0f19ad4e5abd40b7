"""An event loop for each OS thread whose callers block: ``call_sync`` of async tools."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from failsoft.runtime.execution import clock as clocks

T = TypeVar("T")

_LOCAL = threading.local()
PATIENCE = 1.0  # seconds for what tools have left behind on a loop


class _Loop:
    """A thread's event loop, which is closed when the thread ends, or its virtual time, or the program.

    In a forked child it is left as it is: both listen by the same epoll, and closing it would make the parent's deaf.
    So it is in an interpreter that is being taken down, where nothing can be waited for.

    An interrupted call is cancelled before the interrupt goes on: the next call would run the rest of it. asyncio leaves
    its order to stop in the queue then, which would stop the next call, too.
    """

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self._owner = os.getpid()
        self._running: _Main[Any] | None = None

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, with the caller's context variables."""
        if self._running is not None:
            self._end_interrupted(self._running)
        running = _Main(main)
        self._running = running
        try:
            self.runner.run(running.run(), context=copy_context())
        except BaseException as error:
            if not isinstance(error, Exception):
                self._end_interrupted(running)
            self._running = None
            raise
        self._running = None
        return running.result()

    def _end_interrupted(self, running: _Main[Any]) -> None:
        loop = self.runner.get_loop()
        running.cancel()
        loop.call_soon(loop.stop)
        loop.run_forever()  # with what asyncio has left in the queue
        with suppress(RuntimeError):  # an order to stop that it has left on the task comes when that ends
            loop.run_until_complete(running.wait())

    def __del__(self) -> None:
        loop = self.runner.get_loop()
        if self._owner != os.getpid() or sys.is_finalizing():
            loop.is_closed = lambda: True  # type: ignore[method-assign]  # else it closes itself
            return
        # Not by the runner, which would ask for the thread: it has ended
        if asyncio._get_running_loop() is None:
            with suppress(RuntimeError):  # an order to stop that an interrupt has left; the loop is closed all the same
                loop.run_until_complete(_end(loop))
        elif asyncio.all_tasks(loop):  # a thread runs one loop at a time
            ending = threading.Thread(target=lambda: loop.run_until_complete(_end(loop)))
            ending.start()
            ending.join()
        loop.close()


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    """End what tools have left behind; what does not let itself be cancelled is not waited for, nor are threads."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=PATIENCE)
    await loop.shutdown_asyncgens()


class _Main(Generic[T]):
    """The main task of a thread's event loop. Neither its end nor an interrupt inside it disturbs the loop."""

    def __init__(self, main: Coroutine[Any, Any, T]) -> None:
        self._main = main
        self._task: asyncio.Task[Any] | None = None
        self._ended: list[T] = []
        self._error: BaseException | None = None
        self._cancelled = False

    async def run(self) -> None:
        if self._cancelled:
            return
        self._task = asyncio.current_task()
        try:
            self._ended.append(await self._main)
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # from a task it would end the loop with this call unfinished
            self._error = error

    def result(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None
        return self._ended[0]

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()
        else:
            self._main.close()

    async def wait(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task], timeout=PATIENCE)


def run_here(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this thread's event loop."""
    return _loop_of_thread().run(main)


def _loop_of_thread() -> _Loop:
    """One event loop per blocking thread, so that clients which a tool keeps stay on one loop; virtual time has its own."""
    loops: dict[clocks.Clock, _Loop] = _LOCAL.__dict__.setdefault("loops", {})
    clock = clocks.current()
    if clock not in loops:
        for ended in loops.keys() - {clocks.SYSTEM}:
            del loops[ended]
        loops[clock] = _Loop()
    return loops[clock]


def forget_loops() -> None:
    """A forked child has none of its parent's, and at its end a program none."""
    _LOCAL.__dict__.clear()


atexit.register(forget_loops)
