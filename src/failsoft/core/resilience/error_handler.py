"""The Error Handler's decision: what to do about one failure, always with its reason.

Rules, in this order (S-spec 6, R23)
-----
1. The policy book's first matching rule, if it can be followed (``core.resilience.policy``).
2. Transient, circuit closed, attempts, time and budget left, effect safe: retry.
3. An alternative tool, if one takes this error.
4. An acceptable partial result.
5. Transient, and every attempt was refused or was a half-open probe: fail gracefully. The call that met the outage while
   the circuit was closed has escalated already, and a probe every 30 s must not escalate again (ADR 39).
6. Turn over or call not required: fail gracefully.
7. Otherwise escalate; the turn goes on.

Whether a retry is possible at all has been worked out before (``core.resilience.retry``), and which alternatives take the error
too (``core.resilience.fallback``), in the order that the recovery memory advises: the report carries it, so that every handler,
also one on another machine, decides on facts that are the same for all. A decision to retry where ``retry_delay`` is
None is turned down by the runtime.

``decision_fields`` writes report and decision into an event, ``rebuild`` reads the report back: what was decided can be
decided again, by this handler or by another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from failsoft.core.model.builtin_faults import DEPENDENCY_FAILED, NO_OFFER, REQUIRED_SKIPPED
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.outcome import Decision
from failsoft.core.resilience.circuit_breaker import State
from failsoft.core.resilience.recovery_memory import TOOL, Evidence

if TYPE_CHECKING:
    from failsoft.core.resilience.policy import Policy

RETRY = "Transient error + circuit closed + retries available"  # S-tests 6.2
PERMANENT = "Permanent error (no retry)"  # S-tests 6.5


class ErrorReport(NamedTuple):
    """Everything that a decision rests on (S-spec 6.1, 6.2)."""

    fault: Fault  # what went wrong
    tool_id: str  # the tool that failed; a fallback has its own reports
    call_id: str  # as in the trace
    attempt: int  # attempts of this tool in this call, the failed one included; 0: it was refused
    retry_count: int  # retries already made
    breaker_state: State  # closed, open or half_open
    retry_delay: float | None  # seconds to wait before a retry, None where there can be none
    no_retry: str  # why there can be none
    alternatives: tuple[str, ...]  # tools that take this error and are not cut off, best first
    has_partial: bool = False  # there is a partial result that may be taken
    required: bool | None = None  # what the call's author said
    turn_id: str | None = None  # the turn that it belongs to
    turn_left: float | None = None  # seconds until the turn's deadline
    thread: str | None = None  # the conversation
    tenant: str | None = None  # whose conversation
    policy: Policy | None = None  # the policy book's first match
    evidence: Evidence | None = None  # what the recovery memory knows of this family of errors
    absent: tuple[str, ...] = ()  # fallbacks that would take this error, but do not exist
    admitted: bool | None = None  # whether the call ran through a closed circuit; None: as attempt and state suggest

    @property
    def met_closed(self) -> bool:
        """Whether an attempt of this call was made through a closed circuit, by this tool or an earlier one."""
        if self.admitted is not None:
            return self.admitted
        return self.attempt > 0 and self.breaker_state != "half_open"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, to be sent somewhere else."""
        data = self._asdict()
        data["fault"] = self.fault.to_dict()
        data["alternatives"], data["absent"] = list(self.alternatives), list(self.absent)
        data["policy"] = None if self.policy is None else self.policy.name
        data["policy_says"] = None if self.policy is None else self.policy.then.to_dict()
        data["evidence"] = None if self.evidence is None else self.evidence.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ErrorReport:
        """The report that ``to_dict`` described: ``decide`` comes to the same decision.

        Of the policy only its name and what it says are known; of the exception nothing. Unknown keys are ignored.
        """
        known = {name: data[name] for name in cls._fields if name in data}
        missing = [name for name in cls._fields if name not in data and name not in cls._field_defaults]
        if missing:
            raise ValueError(f"no ErrorReport: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        known["fault"] = Fault.from_dict(data["fault"])
        known["alternatives"], known["absent"] = tuple(data["alternatives"]), tuple(data.get("absent", ()))
        evidence, says = data.get("evidence"), data.get("policy_says")
        known["evidence"] = None if evidence is None else Evidence.from_dict(evidence)
        known["policy"] = None
        if says is not None:
            from failsoft.core.resilience.policy import Policy, Then  # only who has policies pays for it

            known["policy"] = Policy(name=data["policy"], then=Then.from_dict(says))
        return cls(**known)


class Handler(Protocol):
    """An Error Handler, for ``Runtime(error_handler=…)``. The built-in one may be replaced by one on another machine."""

    async def handle(self, report: ErrorReport) -> Decision:
        """Decide about one failure. It has two seconds; a decision that is unsafe or impossible is turned down."""
        ...


def decide(report: ErrorReport) -> Decision:
    """Decide about one failure as the built-in Error Handler does: a pure function of the report."""
    if not isinstance(report, ErrorReport):
        raise TypeError(f"decide: give an ErrorReport, not {type(report).__name__}; ErrorReport.from_dict makes one")
    if report.fault.rule == NO_OFFER:  # nothing has failed
        return Decision("fail_gracefully", report.fault.reason)
    made = _decide_by_policy(report)
    if report.absent and made.strategy != "retry":
        none = " and ".join(f"the fallback {tool}" for tool in report.absent)
        made = made._replace(reason=f"{made.reason}; {none} {'does' if len(report.absent) == 1 else 'do'} not exist")
    return made


def _decide_by_policy(report: ErrorReport) -> Decision:
    policy = report.policy
    if policy is None or policy.then.strategy is None:
        return _decide(report)
    followed = _follow(policy, report)
    if followed is not None:
        return followed
    usual = _decide(report)
    return usual._replace(reason=f"{usual.reason}; policy {policy.name!r} asks for {policy.then.strategy} in vain")


def _follow(policy: Policy, report: ErrorReport) -> Decision | None:
    """What a policy wants, unless that cannot be."""
    then = policy.then
    reason = f"Policy {policy.name!r}: {_why(report)}"
    if then.strategy == "retry":
        return None if report.retry_delay is None else Decision("retry", reason, report.retry_delay)
    if then.strategy == "alternative_tool":
        wanted = report.alternatives[:1] if then.tool is None else (then.tool,)
        return Decision("alternative_tool", reason, None, *wanted) if {*wanted} & {*report.alternatives} else None
    if then.strategy == "partial_success" and not report.has_partial:
        return None
    assert then.strategy is not None
    return Decision(then.strategy, reason, report.fault.retry_after if then.strategy == "fail_gracefully" else None)


def _decide(report: ErrorReport) -> Decision:
    fault = report.fault
    if report.retry_delay is not None:
        return Decision("retry", _why_retry(report), report.retry_delay)
    if report.alternatives:
        tool = report.alternatives[0]
        return Decision("alternative_tool", f"{_why(report)}; alternative available{_quote(report, tool)}", None, tool)
    if report.has_partial:
        return Decision("partial_success", f"{_why(report)}; a partial result is acceptable")
    if report.required and fault.rule == DEPENDENCY_FAILED:
        return Decision("escalate", REQUIRED_SKIPPED)
    if fault.retryable and not report.met_closed:
        return Decision("fail_gracefully", f"{_why(report)}; no alternative", fault.retry_after)
    if report.turn_left is not None and report.turn_left <= 0:
        return Decision("fail_gracefully", "The turn's time is up")
    if report.required is False:
        return Decision("fail_gracefully", f"{_why(report)}; the call is optional")
    return Decision("escalate", f"{_why(report)}{_seen(report)}")


def _why_retry(report: ErrorReport) -> str:
    if report.fault.classification == "transient" and report.breaker_state == "closed":
        return RETRY
    what = "Transient error" if report.fault.classification == "transient" else "Permanent error listed for retries"
    return f"{what} + circuit {report.breaker_state.replace('_', '-')} + retries available"


def _why(report: ErrorReport) -> str:
    if report.retry_delay is not None:
        return "retries available"
    if report.fault.classification == "permanent":
        return PERMANENT
    return f"Transient error ({report.no_retry})"


def _quote(report: ErrorReport, tool: str) -> str:
    """What the memory knows of this alternative."""
    tally = None if report.evidence is None else report.evidence.of(TOOL + tool)
    return "" if tally is None or not tally.tried else f"; the fallback {tally}"


def _seen(report: ErrorReport) -> str:
    return "" if report.evidence is None else f"; {report.evidence}"


# --- into an event and back -------------------------------------------------------------------------------------------


def decision_fields(report: ErrorReport, decision: Decision) -> dict[str, Any]:
    """The fields of a ``ToolError`` or ``CallRefused`` event: S-spec 8.2's first; what is as usual is left out."""
    fault = report.fault
    fields: dict[str, Any] = {
        "error": fault.message,
        "classification": fault.classification,
        "circuit_breaker_state": report.breaker_state,
        "retry_count": report.retry_count,
        "decision": decision.strategy,
        "reason": decision.reason,
        "code": fault.code.value,
        "category": fault.category,
        "effect": fault.effect,
        "source": fault.source,
        "rule": fault.rule,
        "attempt": report.attempt,
        "fault_reason": fault.reason,
    }
    if report.retry_delay is None:
        fields["no_retry"] = report.no_retry
    else:
        fields["retry_delay"] = report.retry_delay
    if fault.retry_after is not None:
        fields["retry_after"] = fault.retry_after
    if fault.hint_source != "stated":
        fields["hint_source"] = fault.hint_source
    if fault.http_status is not None:
        fields["http_status"] = fault.http_status
    if decision.tool is not None:
        fields["alternative"] = decision.tool
    if report[_FIRST_OPTIONAL:] != _USUAL:
        _describe_rest(report, fields)
    return fields


def _describe_rest(report: ErrorReport, fields: dict[str, Any]) -> None:
    if report.alternatives:
        fields["alternatives"] = list(report.alternatives)
    if report.has_partial:
        fields["has_partial"] = True
    if report.absent:
        fields["absent"] = list(report.absent)
    for name in ("required", "turn_left", "thread", "tenant", "admitted"):
        value = getattr(report, name)
        if value is not None:
            fields[name] = value
    if report.policy is not None:
        fields["policy"] = report.policy.name
    if report.evidence is not None:
        fields["evidence"] = report.evidence  # made plain when the event is read: few are


_FIRST_OPTIONAL = ErrorReport._fields.index("alternatives")
_USUAL: tuple[Any, ...] = ((), *ErrorReport._field_defaults.values())


def rebuild(fields: Mapping[str, Any], policies: Iterable[Policy] = ()) -> ErrorReport:
    """The report behind an event's flat record (``Event.to_dict()``); ``policies`` is the book that held then."""
    fault = Fault(
        Code(fields["code"]),
        fields["classification"],
        fields["category"],
        fields["effect"],
        fields["error"],
        fields.get("fault_reason", ""),
        fields["rule"],
        fields.get("retry_after"),
        fields.get("http_status"),
        fields.get("source", "stated"),
        fields.get("hint_source", "stated"),
    )
    evidence = fields.get("evidence")
    named = fields.get("policy")
    return ErrorReport(
        fault,
        fields.get("tool_id") or "",
        fields.get("call_id") or "",
        fields["attempt"],
        fields["retry_count"],
        fields["circuit_breaker_state"],
        fields.get("retry_delay"),
        fields.get("no_retry", ""),
        tuple(fields.get("alternatives", ())),
        fields.get("has_partial", False),
        fields.get("required"),
        fields.get("turn_id"),
        fields.get("turn_left"),
        fields.get("thread"),
        fields.get("tenant"),
        next((policy for policy in policies if policy.name == named), None),
        Evidence.from_dict(evidence) if isinstance(evidence, Mapping) else evidence,
        tuple(fields.get("absent", ())),
        fields.get("admitted"),
    )
