"""The runtime's daemon threads as a ``concurrent.futures.Executor``, for frameworks that run blocking tools themselves.

The interpreter joins a framework's own worker threads when it exits: a tool that hangs would keep the program from
ending. These threads are not joined. A future that is cancelled while its function runs is abandoned.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from failsoft.core.model.effect import NothingDone

if TYPE_CHECKING:
    from failsoft.runtime.execution.thread_pool import Job, ThreadPool

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
        """Set the result of a job that has ended."""
        if self.done():
            return
        if job.error is None:
            self.set_result(job.value)
        elif job.refused:
            self.set_exception(_no_thread())
        elif isinstance(job.error, StopIteration):  # a future refuses StopIteration, and its caller would hang
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
    return NothingDone("no worker thread is free: too many are busy with abandoned calls", "RESOURCE_EXHAUSTED")
