"""Make ``AttemptResult``: of attempts that did not run, timed out, were answered by a process or returned a value."""

from __future__ import annotations

import asyncio
from types import AsyncGeneratorType, CoroutineType
from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.core.model.durations import text
from failsoft.core.model.fault import Effect, Fault
from failsoft.observe import events
from failsoft.runtime.call.model import AttemptResult, Call
from failsoft.runtime.execution.deadline import Expired

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices, CallEvents
    from failsoft.runtime.execution.processes.reply import Reply
    from failsoft.runtime.progress import Activity
    from failsoft.runtime.tools.tool import Tool

LATE = 0.25  # seconds after which a deadline that fires late means that the loop was blocked
UNAWAITED = (CoroutineType, AsyncGeneratorType, asyncio.Future)


def not_run(rt: AttemptServices, fault: Fault) -> AttemptResult:
    """The result of an attempt that never ran: there was no slot or no OS thread."""
    now = rt.time.now()
    return AttemptResult(now, now, fault=fault, entered=False)


def timeout_result(
    rt: AttemptServices, call: Call, tool: Tool, started: float, timeout: float, expired: Expired
) -> AttemptResult:
    """The result of an attempt whose deadline has passed. A tool that cannot be cancelled is reported."""
    if expired.abandoned is not None:
        emit_abandoned(rt.log, call, tool)
    ended = rt.time.now()
    effect: Effect = "happened" if expired.late else "unknown"
    activity = call.activity
    if activity is not None and activity.expired:
        overdue = ended - activity.last - activity.idle
        fault = idle_fault(activity, effect)
    else:
        overdue = ended - started - timeout
        fault = builtin_faults.tool_timeout(timeout, effect=effect)
    if overdue > LATE and tool.kind in ("async", "async stream"):  # a deadline fires at once on a loop that turns
        fault = fault._replace(reason=_blocked_reason(tool.id, overdue))
    return AttemptResult(started, ended, fault=fault, still_running=expired.abandoned is not None)


def idle_fault(activity: Activity, effect: Effect) -> Fault:
    """The fault of an attempt that made no progress for too long."""
    return builtin_faults.idle_timeout(activity.idle, last=activity.shown(), effect=effect)


def emit_abandoned(log: CallEvents, call: Call, tool: Tool) -> None:
    """Record that an attempt was abandoned and still runs."""
    log.emit(events.ATTEMPT_ABANDONED, tool, call, {"message": f"{tool.id} did not let itself be cancelled"})


def blocked_loop_result(
    rt: AttemptServices, call: Call, tool: Tool, started: float, ended: float, timeout: float
) -> AttemptResult:
    """The result of an attempt that returned a value after its deadline, unnoticed because the event loop was blocked."""
    rt.log.emit(
        events.LOOP_BLOCKED, tool, call,
        {
            "message": f"The event loop was blocked while {tool.id} ran: use def instead of async def for tools that block",
            "blocked_ms": round((ended - started) * 1000, 3),
        },
    )  # fmt: skip
    reason = _blocked_reason(tool.id, ended - started)
    fault = late_fault(call, timeout)
    return AttemptResult(started, ended, fault=fault._replace(reason=reason))


def late_fault(call: Call, timeout: float) -> Fault:
    """The fault of an attempt that returned a value too late."""
    activity = call.activity
    if activity is not None and activity.late:
        return idle_fault(activity, "happened")
    return builtin_faults.tool_timeout(timeout, effect="happened")


def _blocked_reason(tool: str, seconds: float) -> str:
    """The reason for a timeout that was noticed too late: the event loop was blocked for so many seconds."""
    return (
        f"The event loop was blocked for {text(round(seconds, 3))} while {tool} ran: write a tool that blocks as def, not "
        "async def, or await asyncio.to_thread(…) in it"
    )


def process_result(rt: AttemptServices, call: Call, reply: Reply, timeout: float, isolation: str) -> AttemptResult:
    """Convert the reply of a process into an attempt result."""
    ended = rt.time.now()
    fault = None
    if reply.kind == "timeout" and call.activity is not None and call.activity.expired:
        fault = idle_fault(call.activity, "unknown")
    elif reply.kind in ("timeout", "late"):
        fault = builtin_faults.tool_timeout(timeout, effect="happened" if reply.kind == "late" else "unknown")
    elif reply.kind == "cancelled":
        fault = builtin_faults.cancelled(started=reply.started is not None)
    notes = {"isolation": isolation, "pid": reply.pid, "killed": reply.killed}
    ran = reply.started is not None
    return AttemptResult(ended - reply.duration, ended, reply.value, reply.error, fault, ran, notes)


def refuse_awaitable(tool: Tool, ended: AttemptResult) -> AttemptResult:
    """The result of a plain function; a fault if the value still has to be awaited."""
    return ended._replace(fault=unawaited(tool, ended.value)) if isinstance(ended.value, UNAWAITED) else ended


def unawaited(tool: Tool, value: Any) -> Fault | None:
    """The fault of a value that still has to be awaited: awaiting it later would be unprotected.

    An async tool may return a task that it has started for its caller.
    """
    if isinstance(value, CoroutineType):
        value.close()
    elif tool.kind == "async" or not isinstance(value, UNAWAITED):
        return None
    return builtin_faults.unprotected(
        tool.id, "write await before it" if tool.kind == "async" else "write it as async def"
    )
