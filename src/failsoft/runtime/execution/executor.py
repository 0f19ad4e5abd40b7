"""The runtime's daemon threads as a ``concurrent.futures.Executor``, for frameworks that run blocking tools themselves.

The interpreter joins a framework's own worker threads when it exits: a tool that hangs would keep the program from
ending. These threads are not joined. A future that is cancelled while its function runs is abandoned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakSet

from failsoft.core.model.effect import NothingDone
from failsoft.integration.framework_tool import RUNNING

if TYPE_CHECKING:
    from failsoft.runtime.execution.thread_pool import Job, ThreadPool
    from failsoft.runtime.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(Executor):
    """Runs functions in the daemon threads of a runtime."""

    def __init__(self, offload: ThreadPool) -> None:
        self._offload = offload

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run the function as soon as a thread is free. Raises ``NothingDone`` when abandoned calls hold all threads."""
        future: _Future[T] = _Future(self._offload)

        def run() -> T:
            if not future.set_running_or_notify_cancel():
                raise CancelledError
            return fn(*args, **kwargs)

        job = self._offload.submit(run, future.finish)
        if job is None:
            raise _no_thread()
        future.job = job
        return future


class _Future(Future[T]):
    """The future of one job."""

    def __init__(self, offload: ThreadPool) -> None:
        super().__init__()
        self._offload = offload
        self.job: Job | None = None

    def finish(self, job: Job) -> None:
        """The job has ended."""
        if self.done():
            return
        if job.error is None:
            self.set_result(job.value)
        elif job.refused:
            self.set_exception(_no_thread())
        elif isinstance(job.error, StopIteration):  # asyncio takes none into a future: who awaits it would hang
            error = RuntimeError(f"the function raised StopIteration({job.error.value!r:.80})")
            error.__cause__ = job.error
            self.set_exception(error)
        else:
            self.set_exception(job.error)
        self.job = None

    def cancel(self) -> bool:
        """Cancel the job before it runs; abandon it if it is running, and let it go on."""
        job = self.job
        if job is None or self.done():
            return super().cancel()
        self._offload.abandon(job)
        return super().cancel()


def _no_thread() -> NothingDone:
    return NothingDone("no thread is left: too many are busy with calls that were abandoned", "RESOURCE_EXHAUSTED")


def executor_of(runtime: Runtime) -> DaemonExecutor:
    """An executor on the threads of a runtime."""
    return DaemonExecutor(runtime._engine.thread_pool)


# --- event loops -----------------------------------------------------------------------------------------------------------

_LOOPS: WeakSet[asyncio.AbstractEventLoop] = WeakSet()  # whose default executor is a _Router, or the user's own
_ASYNCIO = "asyncio"  # the name of the threads in the executor that asyncio makes by itself


def use_daemon_threads(runtime: Runtime) -> None:
    """Have blocking tools of a framework run in daemon threads, where the framework hands them to the running loop.

    Frameworks use the loop's default executor (``asyncio.to_thread``), whose threads are joined when the loop is closed
    and when the program ends. From now on it takes the work of framework tools to daemon threads, and all other work
    to where it went before. An executor that the user has set is left alone.
    """
    loop = asyncio.get_running_loop()
    if loop in _LOOPS:
        return
    _LOOPS.add(loop)
    before = getattr(loop, "_default_executor", None)
    if before is None or getattr(before, "_thread_name_prefix", None) == _ASYNCIO:
        loop.set_default_executor(_Router(executor_of(runtime), before))


class _Router(ThreadPoolExecutor):
    """An event loop's executor that tells the work of framework tools from other work."""

    def __init__(self, daemon: DaemonExecutor, before: ThreadPoolExecutor | None) -> None:
        super().__init__(thread_name_prefix=_ASYNCIO)
        self._daemon = daemon
        self._before = before

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if RUNNING.get() is not None:
            return self._daemon.submit(fn, *args, **kwargs)
        if self._before is not None:
            return self._before.submit(fn, *args, **kwargs)
        return super().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._before is not None:
            self._before.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)
