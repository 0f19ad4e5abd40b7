"""Refuse calls that cannot be made at all: no tool has their name, or an argument refers to a value that is not there.

Rules
-----
- A policy and the Error Handler are asked, but may only choose between escalating and failing gracefully.
- Such a call does not enter the pipeline, and is counted in no metrics: a model may invent any number of names (ADR 58).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.decision import Decision
from failsoft.core.model.outcome import Outcome
from failsoft.core.resilience.error_handler import ErrorReport, decide, decision_fields
from failsoft.observe import events
from failsoft.runtime.call.error_handler import consult
from failsoft.runtime.call.event_fields import handler_failed_fields, refusal_reason
from failsoft.runtime.call.instrumented import impossible_span
from failsoft.runtime.call.user_text import phrase

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.runtime.call.model import HandleTurn
    from failsoft.runtime.call.ports import ImpossibleCallServices, Judgement


async def refuse_call(
    rt: ImpossibleCallServices, call_id: str | int, name: str, fault: Fault, turn: HandleTurn | None = None
) -> Outcome[Any]:
    """Decide about the call, record it, and return its outcome. Outside of a turn, its events name no tool."""
    outcome: Outcome[Any] = Outcome(
        call_id, name, "failed", fault=fault, decision=Decision("escalate", "Permanent error (no retry)"),
        escalated=True, explanation=rt.texts.explain,
    )  # fmt: skip
    tool, turn_id = (None, None) if turn is None else (name, turn.id)
    span = None if rt.log.instruments is None else impossible_span(rt.log.instruments, outcome, turn)
    entered = None if span is None else span.enter_call()
    try:
        for event_type, fields in await _decide(rt.judgement, outcome, turn):
            rt.log.record_event(event_type, tool, outcome.id, turn_id, fields)
            if span is not None:
                span.event(name, event_type, fields)
    finally:
        if span is not None and entered is not None:
            span.end_call(entered, outcome, None)
    rt.log.drain_if_due()
    if rt.texts.phraser is not None:
        await phrase(rt, turn, outcome)
    if outcome.escalated:
        rt.log.notify_escalation(outcome)
    return outcome


async def _decide(rt: Judgement, outcome: Outcome[Any], turn: HandleTurn | None) -> list[tuple[str, dict[str, Any]]]:
    """Decide about the call, and return the events that report the decision."""
    fault = outcome.fault
    assert fault is not None
    remaining = None if turn is None else turn.left()
    policy = None
    if rt.policies:
        from failsoft.core.resilience.policy import match

        policy = match(
            rt.policies, tool=outcome.tool, tags=(), fault=fault, attempt=0, breaker="closed", turn_left=remaining
        )
    report = ErrorReport(
        fault,
        outcome.tool,
        outcome.id,
        0,
        0,
        "closed",
        None,
        "permanent error",
        (),
        turn_id=None if turn is None else turn.id,
        turn_left=remaining,
        thread=None if turn is None else turn.thread,
        tenant=None if turn is None else turn.tenant,
        policy=policy,
    )
    answer = None if rt.handler is None else await consult(rt, report)
    recorded = [(events.HANDLER_FAILED, handler_failed_fields(answer))] if isinstance(answer, str) else []
    usual = decide(report)
    decision = answer if isinstance(answer, Decision) else usual
    if decision.strategy not in ("escalate", "fail_gracefully"):
        recorded.append(
            (events.HANDLER_FAILED, handler_failed_fields(refusal_reason(decision, "there is no such tool")))
        )
        decision = usual
    outcome.decision, outcome.escalated = decision, decision.strategy == "escalate"
    return [*recorded, (events.CALL_REFUSED, decision_fields(report, decision))]
