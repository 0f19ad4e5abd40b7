"""One attempt for a caller that blocks: how to wait for a slot, a process or a function in this OS thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic as real_time
from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.runtime.call.attempt_result import refuse_awaitable
from failsoft.runtime.call.model import AttemptResult, Call, Invoke
from failsoft.runtime.call.running import LONG, report_blocking
from failsoft.runtime.call.thread_attempt import ThreadAttempt
from failsoft.runtime.call.tool_body import run_inline
from failsoft.runtime.execution.waiting import BlockingSignal

if TYPE_CHECKING:
    from failsoft.core.model.entrypoint import Command
    from failsoft.core.model.options import Isolation
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.processes.reply import Reply
    from failsoft.runtime.execution.processes.target import Target
    from failsoft.runtime.tools.tool import Tool


class Blocking:
    """Waits by blocking the OS thread. Its coroutines never suspend."""

    __slots__ = ()

    signal = BlockingSignal

    async def run_process(
        self, workers: Workers, target: Target, args: tuple[Any, ...], arguments: Mapping[str, Any],
        limit: float | None, options: Isolation, begun: Callable[[], None],
    ) -> Reply:  # fmt: skip
        return workers.run_blocking(target, args, arguments, timeout=limit, options=options, begun=begun)

    async def run_command(
        self, workers: Workers, command: Command, arguments: Mapping[str, Any], limit: float | None,
        begun: Callable[[], None],
    ) -> Reply:  # fmt: skip
        return workers.run_command_blocking(command, arguments, timeout=limit, begun=begun)

    async def run_function(self, rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
        return run_function(rt, call, *invoke)


def run_function(rt: AttemptServices, call: Call, tool: Tool, timeout: float) -> AttemptResult:
    """Run a function in another OS thread, or here if it has no deadline."""
    if math.isinf(timeout):
        return refuse_awaitable(tool, run_inline(rt, call, tool))
    ended = threading.Lock()
    ended.acquire()
    begun: list[float] = []  # when the tool began, by the real clock: locks wait by that
    thread = ThreadAttempt(rt, call, tool, lambda: begun.append(real_time()), ended.release)
    job = None
    try:
        job = thread.submit()
        finished = job is None or _wait(ended, begun, timeout, partial(report_blocking, rt.places, call))
    except BaseException:
        thread.abandon(job)
        raise
    finally:
        thread.close()
    if job is None or job.refused:
        return thread.refused()
    if not finished and thread.abandon(job):  # else it has ended just now
        fault = builtin_faults.tool_timeout(timeout)
        return AttemptResult(thread.began, rt.time.now(), fault=fault, still_running=True)
    if isinstance(job.error, Exception):
        return AttemptResult(thread.began, thread.ended, error=job.error)
    if job.error is not None:
        try:
            raise job.error
        finally:
            del job, thread  # the traceback holds this frame
    if thread.ended - thread.began > timeout:  # by our clock, whatever the lock waited by
        fault = builtin_faults.tool_timeout(timeout, effect="happened")
        return AttemptResult(thread.began, thread.ended, fault=fault)
    return refuse_awaitable(tool, AttemptResult(thread.began, thread.ended, job.value))


def _wait(ended: threading.Lock, begun: list[float], timeout: float, report: Callable[[], None]) -> bool:
    """Wait until the tool has ended. False if its time is up, which counts from when a worker thread began to run it."""
    left = timeout
    if timeout > LONG:
        if ended.acquire(timeout=LONG):
            return True
        report()
        left = timeout - LONG
    while not ended.acquire(timeout=left):
        left = begun[0] + timeout - real_time() if begun else timeout
        if left <= 0:
            return False
    return True


BLOCKING = Blocking()
