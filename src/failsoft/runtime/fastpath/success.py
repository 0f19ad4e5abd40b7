"""The success epilogue: the record of a call that succeeded at its first attempt, for all attempts of the fast path.

A call outside of other calls and without a wait is *plain*. Three attempts (two guarded functions, a call by name) keep
a copy of the plain record in place, and say what it saves. The copy also marks its record, so that a batch of such records
of one tool is counted at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.observe.events import CALL_SUCCEEDED
from failsoft.runtime.call.first_attempt import value_result
from failsoft.runtime.call.model import UNNOTICED
from failsoft.runtime.scope import call_of, name_of, report_inner_write

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from failsoft.core.model.outcome import Outcome
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.observe.recorder import Recorder
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.fastpath.ports import FastServices
    from failsoft.runtime.scope import LightAttempt
    from failsoft.runtime.tools.tool import Tool


def record_success(
    trace: Recorder, tool: Tool, id: str | int, turn_id: str | None, began: float, started: float, ended: float,
    parent_id: str | None,
) -> bool:  # fmt: skip
    """Record a success. The call ``began``, and waited until its attempt ``started``. True if that drained the stream."""
    if parent_id is None and started - began < UNNOTICED:
        trace.record((CALL_SUCCEEDED, ended, tool.id, id, turn_id, started))
    else:
        trace.record((CALL_SUCCEEDED, ended, tool.id, id, turn_id, started, began, parent_id))
    if len(trace.pending) > trace.limit:
        trace.drain()
        return True
    return False


def check_value(
    rt: FastServices, light: LightAttempt, ticket: Ticket, ended: float
) -> Coroutine[Any, Any, Outcome[Any]]:
    """Let the pipeline continue after a fast attempt whose value came too late or must be checked."""
    call = call_of(light)
    return rt.runner.drive(call, value_result(rt, call, light[2], ended, light[0]), ticket)


def end_inner_attempt(trace: Recorder, tool: Tool, box: LightAttempt, ended: float) -> None:
    """Record the success of a fast attempt inside another, whose call then knows of a write inside this one."""
    id, started, outer = box[1], box[2], box[6]
    record_success(trace, tool, id, None, started, started, ended, name_of(outer))
    report_inner_write(box, tool)


def end_call(trace: Recorder, call: Call, started: float, ended: float) -> None:
    """Record the success of a whole call, which the call around it then knows of."""
    tool, parent, turn = call.tool, call.parent, call.turn
    call.report_effect(tool, "happened")
    id, parent_id = (call.raw_id, None) if parent is None else (call.id, parent.id)
    record_success(trace, tool, id, None if turn is None else turn.id, call.started, started, ended, parent_id)
