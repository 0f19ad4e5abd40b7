"""Translate failsoft's events and outcomes to span events and attributes. Their texts are sanitised already."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failsoft.observe import events
from failsoft.otel import names
from failsoft.otel.values import without_none

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.observe.instrument import CallInfo

_TOLD_BY_SPANS = frozenset(
    (events.TOOL_ERROR, events.CALL_SUCCEEDED, events.CALL_FAILED, events.CALL_CANCELLED, events.INTERNAL_ERROR)
)
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FIELDS = {
    "message": "failsoft.message",
    "reason": names.REASON,
    "code": names.ERROR_CODE,
    "category": names.ERROR_CATEGORY,
    "classification": names.ERROR_CLASS,
    "effect": names.EFFECT,
    "decision": names.DECISION,
    "circuit_breaker_state": names.BREAKER_STATE,
    "alternative": "failsoft.fallback.to",
    "retry_after": "failsoft.retry_after",
    "timeout_ms": "failsoft.timeout_ms",
    "recovery_ms": "failsoft.recovery_ms",
    "blocked_ms": "failsoft.blocked_ms",
    "answer": "failsoft.verify.answer",
}
_SCALARS = (str, bool, int, float)


def event_name(event_type: str) -> str:
    """The name of an event in a span: ``CircuitOpened`` is ``failsoft.circuit_opened``."""
    return names.EVENT_PREFIX + _WORDS.sub("_", event_type).lower()


def span_event(call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The name and the attributes of a span event; None if the spans show it already."""
    if event_type in _TOLD_BY_SPANS:
        return None
    attributes = {name: fields[key] for key, name in _FIELDS.items() if isinstance(fields.get(key), _SCALARS)}
    return event_name(event_type), without_none({names.TOOL: call.candidate, **attributes})


def decision_attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an attempt that failed, from its ``ToolError``."""
    delay = fields.get("delay_ms")
    return without_none(
        {
            names.ERROR_TYPE: fields.get("code"),
            names.ERROR_CODE: fields.get("code"),
            names.ERROR_CLASS: fields.get("classification"),
            names.ERROR_CATEGORY: fields.get("category"),
            names.EFFECT: fields.get("effect"),
            names.BREAKER_STATE: fields.get("circuit_breaker_state"),
            names.DECISION: fields.get("decision"),
            names.REASON: fields.get("reason"),
            names.RETRY_DELAY: None if delay is None else delay / 1000,
        }
    )


def outcome_attributes(outcome: Outcome[Any]) -> dict[str, Any]:
    """The attributes of a call that has ended."""
    fault, decision = outcome.fault, outcome.decision
    return without_none(
        {
            names.OUTCOME: outcome.status,
            names.ATTEMPTS: outcome.attempts,
            names.VIA: outcome.via if outcome.via != outcome.tool else None,
            names.PARTIAL: True if outcome.missing is not None else None,
            names.ESCALATED: True if outcome.escalated else None,
            names.DECISION: None if decision is None else decision.strategy,
            names.REASON: None if decision is None else decision.reason,
            names.ERROR_TYPE: None if fault is None else fault.code.value,
            names.ERROR_CODE: None if fault is None else fault.code.value,
            names.ERROR_CLASS: None if fault is None else fault.classification,
            names.ERROR_CATEGORY: None if fault is None else fault.category,
            names.EFFECT: None if fault is None else fault.effect,
        }
    )
