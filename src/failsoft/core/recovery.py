"""The Error Handler's decision: what to do about one failure, always with its reason.

Rules, in this order (S-spec 6, R23)
-----
1. The policy book's first matching rule.
2. Transient, circuit closed, attempts, time and budget left, effect safe: retry.
3. An alternative tool, if one takes this error.
4. An acceptable partial result.
5. Circuit open, turn over or call not required: fail gracefully.
6. Otherwise escalate; the turn goes on.

Whether a retry is possible at all has been worked out before (``core.retry``), and which alternatives take the error
too (``core.fallback``): the report carries both, so that every handler, also one on another machine, decides on facts
that are the same for all. A decision to retry where ``retry_delay`` is None is turned down by the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from failsoft.core.breaker import State
from failsoft.core.fault import Fault
from failsoft.core.outcome import Decision

if TYPE_CHECKING:
    from failsoft.core.policy import Policy

RETRY = "Transient error + circuit closed + retries available"  # S-tests 6.2
PERMANENT = "Permanent error (no retry)"  # S-tests 6.5


class ErrorReport(NamedTuple):
    """Everything that a decision rests on (S-spec 6.1, 6.2)."""

    fault: Fault
    tool_id: str
    call_id: str
    attempt: int  # attempts of this tool in this call, the failed one included
    retry_count: int  # retries already made
    breaker_state: State
    retry_delay: float | None  # seconds to wait before a retry, None where there can be none
    no_retry: str  # why there can be none
    alternatives: tuple[str, ...]  # tools that take this error and are not cut off, best first
    has_partial: bool = False
    required: bool | None = None
    turn_id: str | None = None
    turn_left: float | None = None  # seconds
    thread: str | None = None
    tenant: str | None = None
    policy: Policy | None = None  # the policy book's first match
    evidence: str = ""  # what the recovery memory knows of this family of errors

    def to_dict(self) -> dict[str, Any]:
        data = self._asdict()
        data["fault"] = self.fault.to_dict()
        data["policy"] = None if self.policy is None else self.policy.name
        return data


class Handler(Protocol):
    """An Error Handler. The built-in one is ``decide``; another may sit on another machine."""

    async def handle(self, report: ErrorReport) -> Decision: ...


def decide(report: ErrorReport) -> Decision:
    """The built-in Error Handler."""
    fault = report.fault
    if report.retry_delay is not None:
        return Decision("retry", RETRY, report.retry_delay)
    if report.alternatives:
        return Decision("alternative_tool", f"{_why(report)}; alternative available", None, report.alternatives[0])
    if report.has_partial:
        return Decision("partial_success", f"{_why(report)}; a partial result is acceptable")
    if fault.retryable and (report.breaker_state == "open" or report.attempt == 0):
        return Decision("fail_gracefully", f"{_why(report)}; no alternative", fault.retry_after)
    if report.turn_left is not None and report.turn_left <= 0:
        return Decision("fail_gracefully", "The turn's time is up")
    if report.required is False:
        return Decision("fail_gracefully", f"{_why(report)}; the call is optional")
    return Decision("escalate", _why(report))


def _why(report: ErrorReport) -> str:
    fault = report.fault
    if fault.classification == "permanent":
        return PERMANENT
    return f"Transient error ({report.no_retry})"
