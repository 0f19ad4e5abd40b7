"""One attempt, for a caller that blocks."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic as real_time
from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.observe import events
from failsoft.runtime.call.attempt import has_slot, process_result, refuse_awaitable, run_body, run_inline
from failsoft.runtime.call.model import AttemptResult, Call, Invoke
from failsoft.runtime.call.running import LONG, report_blocking

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.tools.tool import Tool


def attempt_blocking(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    """Run the tool once."""
    tool = invoke.tool
    slots = tool.slots
    if slots is None or has_slot(call, tool):
        return _run(rt, call, invoke)
    ready = threading.Lock()
    ready.acquire()
    wake = ready.release
    try:
        answer = slots.acquire(wake)
        if answer == "full":
            now = rt.time.now()
            return AttemptResult(now, now, fault=builtin_faults.queue_full(tool.id, slots.waiting), entered=False)
        if answer == "queued":
            ready.acquire()
        return _run(rt, call, invoke)
    finally:
        try:
            slots.release(wake)
        except BaseException:  # an interrupt, perhaps before anything was done
            slots.release(wake)
            raise


def _run(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    tool, timeout = invoke
    limit = None if math.isinf(timeout) else timeout
    if tool.target is not None:
        arguments = call.arguments(rt.time, tool)
        options = tool.options.isolation
        reply = rt.places.workers.run_blocking(tool.target, call.args, arguments, timeout=limit, options=options)
        return process_result(rt, reply, timeout, "process")
    if tool.command is not None:
        reply = rt.places.workers.run_command_blocking(tool.command, call.arguments(rt.time, tool), timeout=limit)
        return process_result(rt, reply, timeout, "command")
    return run_function(rt, call, tool, timeout)


def run_function(rt: AttemptServices, call: Call, tool: Tool, timeout: float) -> AttemptResult:
    """Run a tool once that is a function in this process."""
    if math.isinf(timeout):
        return refuse_awaitable(tool, run_inline(rt, call, tool))
    ended = threading.Lock()
    ended.acquire()
    times: list[
        float
    ] = []  # when it began, by our clock and by the real one, which is what a lock waits by; when it ended

    def run() -> Any:
        times.extend((rt.time.now(), real_time()))
        try:
            return run_body(rt, tool, call)
        finally:
            times.append(rt.time.now())  # how soon the caller is woken is not the tool's doing

    job = rt.places.thread_pool.submit(run, lambda _: ended.release())
    try:
        finished = job is None or _wait(ended, times, timeout, partial(report_blocking, rt.places, call))
        if job is None or job.refused:
            now = rt.time.now()
            return AttemptResult(
                now, now, fault=builtin_faults.thread_limit(tool.id, rt.places.thread_pool.abandoned), entered=False
            )
    except BaseException:
        if job is not None:
            rt.places.thread_pool.abandon(job)
        raise
    started = times[0]
    if not finished and rt.places.thread_pool.abandon(job):  # else it has ended just now
        rt.log.emit(events.TOOL_ORPHANED, tool, call, {"message": f"{tool.id} goes on in its thread"})
        return AttemptResult(started, rt.time.now(), fault=builtin_faults.tool_timeout(timeout), still_running=True)
    now = times[2]
    if isinstance(job.error, Exception):
        return AttemptResult(started, now, error=job.error)
    if job.error is not None:
        try:
            raise job.error
        finally:
            del job  # the traceback holds this frame
    if now - started > timeout:  # by our clock, whatever the lock waited by
        return AttemptResult(started, now, fault=builtin_faults.tool_timeout(timeout, effect="happened"))
    return refuse_awaitable(tool, AttemptResult(started, now, job.value))


def _wait(ended: threading.Lock, times: list[float], timeout: float, report: Callable[[], None]) -> bool:
    """Wait until the tool has ended. False if its time is up, which counts from when a worker thread began to run it."""
    left = timeout
    if timeout > LONG:
        if ended.acquire(timeout=LONG):
            return True
        report()
        left = timeout - LONG
    while not ended.acquire(timeout=left):
        left = times[1] + timeout - real_time() if times else timeout
        if left <= 0:
            return False
    return True
