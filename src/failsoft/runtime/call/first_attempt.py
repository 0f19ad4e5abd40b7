"""Results of first attempts that the pipeline continues from: arguments that do not fit, and ends on the fast path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.runtime.call.attempt_result import blocked_loop_result, timeout_result, unawaited
from failsoft.runtime.call.model import AttemptResult, Call
from failsoft.runtime.call.tracebacks import was_entered
from failsoft.runtime.execution.deadline import Expired

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices, MisfitServices


def misfit_result(rt: MisfitServices, call: Call) -> AttemptResult | None:
    """The result of a call whose arguments do not fit; None if they do, or if its thread refuses the call anyway."""
    tool, conversations = call.tool, rt.books.conversations
    if call.thread is not None and (
        tool.unavailable_fault is not None or conversations.is_unavailable(call, tool) or conversations.find_loop(call)
    ):
        return None
    fault = tool.misfit(call.args, call.sent_arguments(rt.time, tool), typed=call.typed)
    return None if fault is None else AttemptResult(call.started, call.started, fault=fault, entered=False)


def error_result(rt: AttemptServices, call: Call, started: float, error: Exception, *, entered: bool) -> AttemptResult:
    """The result of a first attempt that failed on the fast path.

    Unless the tool is known to have been entered, its arguments may not have fitted; the traceback shows that.
    """
    misfit = None if entered or was_entered(error) else call.tool.misfit(call.args, call.kwargs)
    if misfit is not None:
        return AttemptResult(started, started, fault=misfit, entered=False)
    if isinstance(error, Expired):
        return timeout_result(rt, call, call.tool, started, call.tool.configured_timeout, error)
    return AttemptResult(started, rt.time.now(), error=error)


def value_result(rt: AttemptServices, call: Call, started: float, ended: float, value: Any) -> AttemptResult:
    """The result of a first attempt on the fast path with a value that came too late or must be checked."""
    if ended - started > call.tool.timeout:
        return blocked_loop_result(rt, call, call.tool, started, ended, call.tool.configured_timeout)
    return AttemptResult(started, ended, value, fault=unawaited(call.tool, value))
