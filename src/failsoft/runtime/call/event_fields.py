"""The fields of the pipeline's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.outcome import CallFailed
from failsoft.core.resilience.error_handler import ErrorReport, decision_fields

if TYPE_CHECKING:
    from failsoft.core.model.decision import Decision
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.outcome import Outcome
    from failsoft.core.model.verified import Verified
    from failsoft.runtime.call.model import AttemptResult


VERIFIED = {
    "happened": "Verified: it happened",
    "none": "Verified: nothing was done",
    "unknown": "Not verified: the effect stays unknown",
}


def milliseconds(seconds: float) -> float:
    """Seconds as an event states them."""
    return round(seconds * 1000, 3)


def failure_fields(
    report: ErrorReport, decision: Decision, result: AttemptResult, *, handled: bool, decided: float | None
) -> dict[str, Any]:
    """The fields of ``ToolError``. ``decided``: seconds until the user's Error Handler had decided."""
    fields = decision_fields(report, decision)
    if handled:
        fields["handled"] = True  # by the user's Error Handler
    if decided is not None:
        fields["decided_ms"] = milliseconds(decided)
    if result.notes:
        fields |= result.notes
    if isinstance(result.error, CallFailed):
        fields["inner_call_id"] = result.error.outcome.id
    fields["duration_ms"] = milliseconds(result.ended - result.started)
    if decision.strategy == "retry":
        fields["delay_ms"] = milliseconds(decision.delay or 0.0)
    return fields


def refusal_fields(report: ErrorReport, decision: Decision, *, handled: bool) -> dict[str, Any]:
    """The fields of ``CallRefused`` and ``CallHeld``."""
    fields = decision_fields(report, decision)
    if handled:
        fields["handled"] = True
    if decision.strategy == "retry":
        fields["delay_ms"] = milliseconds(decision.delay or 0.0)
    return fields


def refused_decision_fields(decision: Decision, report: ErrorReport) -> dict[str, Any]:
    """The fields of ``HandlerFailed`` for a decision that is not possible or not safe."""
    return handler_failed_fields(refusal_reason(decision, report.no_retry if decision.strategy == "retry" else ""))


def refusal_reason(decision: Decision, why: str = "") -> str:
    """Return the reason why a valid decision is not followed."""
    return f"it asked for {decision.strategy}, which is not possible here" + (f": {why}" if why else "")


def handler_failed_fields(why: str) -> dict[str, Any]:
    """The fields of ``HandlerFailed``."""
    return {"message": "The Error Handler failed; the built-in one decided", "error": why}


def recovery_fields(attempt: int, seconds: float) -> dict[str, Any]:
    """The fields of ``RetrySucceeded``."""
    return {
        "message": f"Tool succeeded on retry {attempt}",
        "attempt": attempt,
        "recovery_ms": milliseconds(seconds),
    }


def verified_fields(verified: Verified, attempt: int, delay: float, seconds: float) -> dict[str, Any]:
    """The fields of ``EffectVerified``: ``delay`` before ``verify`` was asked, ``seconds`` until its answer."""
    fields: dict[str, Any] = {
        "message": VERIFIED[verified.answer],
        "answer": verified.answer,
        "attempt": attempt,
        "delay_ms": milliseconds(delay),
        "duration_ms": milliseconds(seconds),
    }
    if verified.answer == "happened":
        fields["value_known"] = verified.value_known
    if verified.reason:
        fields["reason"] = verified.reason
    return fields


def cancelled_fields(attempts: int, duration: float, *, unknown: bool) -> dict[str, Any]:
    """The fields of a ``CallCancelled``; ``unknown``: the call is a write that may have acted."""
    fields: dict[str, Any] = {"attempts": attempts, "duration_ms": round(duration * 1000, 3)}
    return fields | {"effect": "unknown"} if unknown else fields


def failed_fields(outcome: Outcome[Any], fault: Fault, safe_to_repeat: bool | None) -> dict[str, Any]:
    """The fields of ``CallFailed``."""
    return {
        "code": fault.code.value,
        "category": fault.category,
        "effect": fault.effect,
        "attempts": outcome.attempts,
        "total_ms": milliseconds(outcome.duration),
        "safe_to_repeat": safe_to_repeat,
        "error": fault.message,
        "escalated": outcome.escalated,
    }


def loop_fields(tool: str, fault: Fault, thread: str | None) -> dict[str, Any]:
    """The fields of ``LoopPrevented``."""
    return {
        "message": f"Loop prevented for {tool}",
        "error": fault.message,
        "code": fault.code.value,
        "category": fault.category,
        "reason": fault.reason,
        "thread": thread,
    }
