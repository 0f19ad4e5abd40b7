"""Run coroutines for callers that block.

Rules
-----
- There are two places to run a coroutine, and one way to start, end and cancel it (``_Run``).
- ``run_here`` runs it on the caller's own OS thread, on an event loop that the thread keeps: clients that tools hold stay
  on one loop. The loop is closed when the thread, its virtual time or the program ends.
- ``run_on_loop_thread`` runs it on a loop thread that all callers share. It serves callers whose thread already
  runs a loop, and frameworks that call each time from another thread, where clients would meet many loops.
- Each virtual time has its own loops, which end with it. A shared virtual loop is paused while no caller waits.
- The coroutine sees the caller's context variables. On the loop thread it is outside the caller's turn, which belongs to
  another loop.
- The result and every exception of the coroutine, even ``SystemExit``, go to its caller and leave the loop intact.
- An interrupted caller cancels its coroutine. ``run_here`` waits for its end for up to ``PATIENCE`` before it raises
  the interrupt: otherwise the next call would run the rest of the coroutine.
- A forked child starts without loops. It does not close its parent's: both share one epoll, and the parent's loop would
  no longer be woken.

Why not ``asyncio.Runner``: an interrupt inside ``run_until_complete`` leaves a stop callback in the loop's queue, which
ends the next call early. ``interrupted_loop`` lists what else an interrupt breaks.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from types import FrameType
from typing import Any, Generic, TypeVar

from failsoft.errors import FailsoftError
from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.execution.interrupted_loop import end_run, end_stuck_tasks, mend_timers, sort_timers
from failsoft.runtime.scope import SCOPE

T = TypeVar("T")

PATIENCE = 1.0  # seconds for tasks to end after they were cancelled
_ROUNDS = (0.0, 0.0, 0.05, 0.2, PATIENCE - 0.25)  # seconds between looks at an interrupted call
_LOCAL = threading.local()


def is_on_loop() -> bool:
    """True if an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def running_loop() -> asyncio.AbstractEventLoop:
    """Return this thread's event loop; refuse where there is none, or one of another library."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise FailsoftError(
            "no asyncio event loop is running here: failsoft awaits tools on asyncio, not on trio. Start with "
            "asyncio.run(...), or use call_sync"
        ) from None


def run_here(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this thread's own event loop; no other may be running."""
    return _loop_of_thread().run(main)


def run_on_loop_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine, which is made there, on the shared loop thread."""
    context = copy_context()
    context.run(detach_from_turn)
    return _LOOP_THREADS.find(clocks.current()).run(make, context)


def run_anywhere(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on this thread's own loop, or on the loop thread if this thread already runs a loop."""
    return run_on_loop_thread(make) if is_on_loop() else run_here(make())


def detach_from_turn() -> None:
    """Make calls from here belong to no turn."""
    scope = SCOPE.get()
    if not (scope is None or isinstance(scope, list)) and scope.is_turn:
        SCOPE.set(None)


class _Run(Generic[T]):
    """One coroutine and its blocking caller."""

    def __init__(self, main: Coroutine[Any, Any, T], over: Callable[[_Run[Any]], None]) -> None:
        self._main = main
        self._over = over  # called on the loop once the coroutine has ended
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._begun = self._cancelled = False
        self.task: asyncio.Task[Any] | None = None
        self.ended = False
        self.interrupted = False  # by Ctrl-C, which has cancelled the task

    async def run(self) -> None:
        """Await the coroutine. No exception goes to the loop: a ``SystemExit`` would end it."""
        self._begun = True
        self.task = asyncio.current_task()
        try:
            if not self._cancelled:
                self._value.append(await self._main)
        except BaseException as error:
            self._error = error
        self.ended = True
        # The loop goes on for one round, as in asyncio.run: closed transports are released in it
        asyncio.get_running_loop().call_soon(self._over, self)

    def cancel(self) -> None:
        """Cancel the coroutine on its loop, also if it has not begun."""
        self._cancelled = True
        if not self._begun:
            self._main.close()
        if self.task is not None:
            self.task.cancel()

    def is_over(self) -> bool:
        """True if nothing of the coroutine will run any more."""
        return self.ended or (self._cancelled if self.task is None else self.task.done())

    def was_broken_off(self) -> bool:
        """True if the coroutine ended with an exception such as ``KeyboardInterrupt``, perhaps raised inside asyncio."""
        return not (self._error is None or isinstance(self._error, Exception | asyncio.CancelledError))

    def result(self) -> T:
        """Return or raise what the coroutine ended with."""
        error = self._error
        if error is None:
            return self._value[0]
        try:
            if (
                self.interrupted
                and isinstance(error, asyncio.CancelledError)
                and self.task
                and not self.task.uncancel()
            ):
                raise KeyboardInterrupt
            raise error
        finally:
            del error, self._error  # their tracebacks hold this frame


class _ThreadLoop:
    """The event loop of one blocking thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_report)
        self._owner = os.getpid()
        self._running: _Run[Any] | None = None

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end in this thread."""
        if self._running is not None:  # it was interrupted, and a second interrupt prevented its end
            self._end(self._running)
        loop = self.loop
        running = _Run(main, self._stop)
        self._running = running
        try:
            _handle_sigint(running)
            running.task = loop.create_task(running.run(), context=copy_context())
            while not running.ended:  # a tool may stop the loop
                loop.run_forever()
        except BaseException:
            self._end(running)
            raise
        finally:
            _restore_sigint()
        if running.was_broken_off():
            mend_timers(loop)
        self._running = None
        return running.result()

    def _stop(self, run: _Run[Any]) -> None:
        if run is self._running:  # the stop callback of an interrupted run may fire in the next
            self.loop.stop()

    def _end(self, run: _Run[Any]) -> None:
        """End a call whose caller was interrupted."""
        if not run.is_over():
            run.cancel()
        loop = self.loop
        end_run(loop)
        sort_timers(loop)  # the timers below must fire
        stuck: set[asyncio.Task[Any]] = set()
        for delay in _ROUNDS:
            if run.is_over():
                break
            timer = loop.call_later(delay, loop.stop)
            loop.run_forever()
            timer.cancel()
            stuck = end_stuck_tasks(stuck, loop)
        mend_timers(loop)
        self._running = None

    def __del__(self) -> None:
        loop = getattr(self, "loop", None)
        if loop is None or not hasattr(self, "_owner"):  # interrupted while it was made
            return
        if self._owner != os.getpid() or sys.is_finalizing():
            loop.is_closed = lambda: True  # otherwise the loop's finaliser closes it
            return
        if asyncio._get_running_loop() is None:
            _close(loop)
        elif asyncio.all_tasks(loop):  # a thread runs one loop at a time
            closing = threading.Thread(target=_close, args=(loop,))
            closing.start()
            closing.join()
        else:
            loop.close()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report a failure as asyncio does, except of our own tasks: their callers have been interrupted, and know it."""
    task = context.get("task", context.get("future"))
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
    if getattr(coroutine, "cr_code", None) is not _Run.run.__code__:
        loop.default_exception_handler(context)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that tools have left on a loop, and close it.

    Waits for ``PATIENCE`` at most, and for no threads.
    """
    # Ask before the loop runs: from Python 3.14 on, a running loop lists only the tasks of its own OS thread.
    tasks = asyncio.all_tasks(loop)

    async def end() -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        await loop.shutdown_asyncgens()

    try:
        loop.run_until_complete(end())
    finally:
        loop.close()


def _loop_of_thread() -> _ThreadLoop:
    """The loop of this thread by the current clock."""
    loops: dict[clocks.Clock, _ThreadLoop] = _LOCAL.__dict__.setdefault("loops", {})
    clock = clocks.current()
    if clock not in loops:
        for ended in loops.keys() - {clocks.SYSTEM}:
            del loops[ended]
        loops[clock] = _ThreadLoop()
    return loops[clock]


def forget_loops() -> None:
    """Drop this thread's loops, in a forked child or at the end of the program."""
    _LOCAL.__dict__.clear()


# -- Ctrl-C: cancels the coroutine instead of raising inside the loop, as in asyncio.run -----------------------------------


def _handle_sigint(run: _Run[Any]) -> None:
    """Let the first Ctrl-C cancel a coroutine in the main thread, unless the program handles Ctrl-C itself."""
    if threading.current_thread() is threading.main_thread():
        _LOCAL.run = run
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _on_sigint)


def _restore_sigint() -> None:
    _LOCAL.__dict__.pop("run", None)
    if signal.getsignal(signal.SIGINT) is _on_sigint and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _on_sigint(_number: int, _frame: FrameType | None) -> None:
    run: _Run[Any] | None = _LOCAL.__dict__.get("run")
    if run is None or run.task is None or run.ended or run.interrupted:
        raise KeyboardInterrupt
    run.interrupted = True
    run.task.cancel()
    run.task.get_loop().call_soon_threadsafe(int)  # wakes the loop


# -- loop threads -------------------------------------------------------------------------------------------------------------


class _LoopThread:
    """A daemon thread with an event loop."""

    def __init__(self, clock: clocks.Clock) -> None:
        self.clock = clock
        self.loop = asyncio.new_event_loop()
        self._waiting = 0
        clocks.outside_started(self.loop)
        self.thread = threading.Thread(target=self._run_loop, name="failsoft loop", daemon=True)
        self.thread.start()

    def run(self, make: Callable[[], Coroutine[Any, Any, T]], context: Context) -> T:
        """Block until a coroutine has ended on this loop."""
        ended = threading.Lock()
        ended.acquire()
        running = _Run(self._await(make), lambda _: ended.release())
        loop = self.loop
        try:
            loop.call_soon_threadsafe(lambda: loop.create_task(running.run(), context=context))
            ended.acquire()
        except BaseException:  # the caller was interrupted
            loop.call_soon_threadsafe(running.cancel)
            raise
        return running.result()

    async def _await(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._awaited():
            return await make()

    @contextmanager
    def _awaited(self) -> Iterator[None]:
        """Let virtual time pass on this loop in the body."""
        self._waiting += 1
        if self._waiting == 1:
            clocks.outside_finished(self.loop)
        try:
            yield
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                clocks.outside_started(self.loop)

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()

    def end(self) -> None:
        with suppress(RuntimeError):  # it has ended already
            self.loop.call_soon_threadsafe(self.loop.stop)


class _LoopThreads:
    """The shared loop of each clock; another one for a coroutine that blocks the shared loop, and in a forked child."""

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
        """End the loops of a virtual time."""
        with self._lock:
            ended = [host for host in self._shared if host.clock is clock]
            self._shared = [host for host in self._shared if host.clock is not clock]
        for host in ended:
            host.end()


_LOOP_THREADS = _LoopThreads()
end_loop_threads = _LOOP_THREADS.end


def _after_fork() -> None:
    forget_loops()
    _LOOP_THREADS.renew()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(forget_loops)
