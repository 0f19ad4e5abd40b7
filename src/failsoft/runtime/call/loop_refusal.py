"""Refuse calls that are in a loop: they failed twice the same way, or keep returning the same result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.outcome import Outcome
from failsoft.observe import events
from failsoft.runtime.call.event_fields import loop_fields
from failsoft.runtime.call.steps import Emit

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Failure
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.call.steps import CallSteps, LoopFound, PipelineOptions


def refuse_looping(options: PipelineOptions, call: Call, found: LoopFound) -> CallSteps:
    """End a call that is in a loop, without running it."""
    if found.failure is None:
        fault = builtin_faults.no_progress(call.tool.id, found.repeats)
        outcome: Outcome[Any] = Outcome(
            call.id,
            call.tool.id,
            "failed",
            duration=found.now - call.started,
            fault=fault,
            decision=Decision("fail_gracefully", fault.reason),
            label=call.tool.label,
            explanation=options.explain,
        )
    else:
        outcome = _repeat_failure(options, call, found.failure, found.now)
        assert outcome.fault is not None
        fault = outcome.fault
    yield Emit(events.LOOP_PREVENTED, call.tool, loop_fields(call.tool.id, fault, call.thread))
    return outcome


def _repeat_failure(options: PipelineOptions, call: Call, failure: Failure, now: float) -> Outcome[Any]:
    """The outcome of a call that has just failed the same way twice."""
    fault = builtin_faults.loop_prevented(failure.fault, len(failure.times))
    return Outcome(
        call.id,
        call.tool.id,
        "failed",
        duration=now - call.started,
        fault=fault,
        decision=failure.decision and failure.decision._replace(reason=fault.reason),
        label=call.tool.label,
        escalated=failure.escalated,
        explanation=lambda made: options.explain(made)._replace(
            user=failure.explanation.user, operator=failure.explanation.operator
        ),
        told=failure.told,
    )
