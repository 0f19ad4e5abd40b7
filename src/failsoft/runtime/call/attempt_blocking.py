"""One attempt for a caller that blocks: how to wait for a slot, a process or a function in this OS thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic as real_time
from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.runtime.call.attempt_result import idle_fault, late_fault, refuse_awaitable
from failsoft.runtime.call.model import AttemptResult, Call, Invoke
from failsoft.runtime.call.running import LONG, report_blocking
from failsoft.runtime.call.thread_attempt import ThreadAttempt
from failsoft.runtime.call.tool_body import run_inline
from failsoft.runtime.execution.waiting import BlockingSignal

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.processes.reply import Reply
    from failsoft.runtime.progress import Activity
    from failsoft.runtime.tools.tool import Tool

LONGEST = 3600.0  # seconds of one wait for a lock: a lock cannot wait forever


class Blocking:
    """Waits by blocking the OS thread. Its coroutines never suspend."""

    __slots__ = ()

    signal = BlockingSignal

    async def run_process(self, workers: Workers, call: Call, invoke: Invoke, arguments: Mapping[str, Any]) -> Reply:
        target, options = invoke.tool.target, invoke.tool.options.isolation
        assert target is not None
        return workers.run_blocking(
            target,
            call.args,
            arguments,
            timeout=invoke.limit,
            options=options,
            begun=call.begin,
            activity=call.activity,
        )

    async def run_command(self, workers: Workers, call: Call, invoke: Invoke, arguments: Mapping[str, Any]) -> Reply:
        command = invoke.tool.command
        assert command is not None
        return workers.run_command_blocking(
            command, arguments, timeout=invoke.limit, begun=call.begin, activity=call.activity
        )

    async def run_function(self, rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
        return run_function(rt, call, *invoke)


def run_function(rt: AttemptServices, call: Call, tool: Tool, timeout: float) -> AttemptResult:
    """Run a function in another OS thread, or here if it has no deadline."""
    activity = call.activity
    if math.isinf(timeout) and activity is None:
        return refuse_awaitable(tool, run_inline(rt, call, tool))
    ended = threading.Lock()
    ended.acquire()
    begun: list[float] = []  # when the tool began, by the real clock, which locks use
    thread = ThreadAttempt(rt, call, tool, lambda: begun.append(real_time()), ended.release)
    job = None
    try:
        job = thread.submit()
        report = partial(report_blocking, rt.places, call)
        finished = job is None or (
            _wait(ended, begun, timeout, report)
            if activity is None
            else _wait_watched(ended, begun, timeout, report, activity)
        )
    except BaseException:
        thread.abandon(job)
        raise
    finally:
        thread.close()
    if job is None or job.refused:
        return thread.refused()
    if not finished and thread.abandon(job):  # False: it has ended just now
        idle = activity if activity is not None and activity.expired else None
        fault = builtin_faults.tool_timeout(timeout) if idle is None else idle_fault(idle, "unknown")
        return AttemptResult(thread.began, rt.time.now(), fault=fault, still_running=True)
    if isinstance(job.error, Exception):
        return AttemptResult(thread.began, thread.ended, error=job.error)
    if job.error is not None:
        try:
            raise job.error
        finally:
            del job, thread  # the traceback holds this frame
    late = activity is not None and activity.late
    if late or thread.ended - thread.began > timeout:  # by the runtime's clock: the lock waited by the real one
        return AttemptResult(thread.began, thread.ended, fault=late_fault(call, timeout))
    return refuse_awaitable(tool, AttemptResult(thread.began, thread.ended, job.value))


def _wait(ended: threading.Lock, begun: list[float], timeout: float, report: Callable[[], None]) -> bool:
    """Wait until the tool has ended.

    False if its time is up; the time counts from the moment a worker thread began to run it.
    """
    remaining = timeout
    if timeout > LONG:
        if ended.acquire(timeout=LONG):
            return True
        report()
        remaining = timeout - LONG
    while not ended.acquire(timeout=remaining):
        remaining = begun[0] + timeout - real_time() if begun else timeout
        if remaining <= 0:
            return False
    return True


def _wait_watched(
    ended: threading.Lock, begun: list[float], timeout: float, report: Callable[[], None], activity: Activity
) -> bool:
    """Wait like ``_wait``. False also if the tool has made no progress for too long."""
    report_at = real_time() + LONG
    while True:
        now, remaining = real_time(), min(timeout, activity.idle, LONG)  # until a thread begins
        if begun:
            remaining = min(begun[0] + timeout, activity.last_real + activity.idle) - now
            if remaining <= 0 and not activity.over:
                if begun[0] + timeout > now:
                    activity.expire()
                return False
        if now >= report_at:
            report()
            report_at = math.inf
        if ended.acquire(timeout=max(0.001, min(remaining, report_at - now, LONGEST))):
            return True


BLOCKING = Blocking()
