"""The Error Handler: decide what to do about one failure, and give the reason.

Rules, in this order
--------------------
1. The first matching policy, if it can be followed (``core.resilience.policy``).
2. Transient error, circuit closed, attempts, time and budget available, effect safe: retry.
3. An alternative tool that handles this error.
4. An acceptable partial result.
5. Transient error, and every attempt was refused or was a half-open probe: fail gracefully. The call that failed while
the circuit was closed has already escalated; probes must not escalate again (ADR 39).
6. Turn over, or call not required: fail gracefully.
7. Otherwise escalate; the turn continues.

The report already contains the retry plan (``core.resilience.retry``) and the usable alternatives in the order that the
recovery memory advises. Every handler, local or remote, decides on the same facts. The runtime rejects a decision to
retry if ``retry_delay`` is None.

``decision_fields`` writes report and decision into an event. ``rebuild`` restores the report, so that a recorded failure
can be decided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.core.model.builtin_faults import DEPENDENCY_FAILED, NO_OFFER, REQUIRED_SKIPPED
from failsoft.core.model.decision import Decision
from failsoft.core.model.fault import Code, Fault
from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.core.resilience.recovery_memory import TOOL, Evidence
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.resilience.policy import Policy

RETRY = "Transient error + circuit closed + retries available"
PERMANENT = "Permanent error (no retry)"


class ErrorReport(NamedTuple):
    """The facts on which a decision is based."""

    fault: Fault
    tool_id: str  # the tool that failed; a fallback has its own reports
    call_id: str  # as in the trace
    attempt: int  # attempts of this tool in this call, including the failed one; 0: the call was refused
    retry_count: int  # retries already made
    breaker_state: CircuitState
    retry_delay: float | None  # seconds before a retry; None if no retry is possible
    no_retry: str  # why no retry is possible
    alternatives: tuple[str, ...]  # usable fallbacks that handle this error, best first
    has_partial: bool = False  # a partial result is available and acceptable
    required: bool | None = None  # as declared for the call
    turn_id: str | None = None
    turn_left: float | None = None  # seconds until the turn's deadline
    thread: str | None = None  # the conversation
    tenant: str | None = None  # the conversation's tenant
    policy: Policy | None = None  # the first matching policy
    evidence: Evidence | None = None  # the recovery memory's record of this error family
    absent: tuple[str, ...] = ()  # fallbacks that would handle this error but do not exist
    admitted: bool | None = None  # the call ran through a closed circuit; None: infer it from attempt and breaker_state

    @property
    def met_closed(self) -> bool:
        """True if an attempt of this call, by this tool or an earlier one, ran through a closed circuit."""
        if self.admitted is not None:
            return self.admitted
        return self.attempt > 0 and self.breaker_state != "half_open"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        data = self._asdict()
        data["fault"] = self.fault.to_dict()
        data["alternatives"], data["absent"] = list(self.alternatives), list(self.absent)
        data["policy"] = None if self.policy is None else self.policy.name
        data["policy_says"] = None if self.policy is None else self.policy.then.to_dict()
        data["evidence"] = None if self.evidence is None else self.evidence.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ErrorReport:
        """Restore a report from ``to_dict``. ``decide`` makes the same decision about it.

        Only the policy's name and action are restored, and no exception. Unknown keys are ignored.
        """
        known = {name: data[name] for name in cls._fields if name in data}
        missing = [name for name in cls._fields if name not in data and name not in cls._field_defaults]
        if missing:
            raise ValueError(f"ErrorReport.from_dict: missing {', '.join(missing)}")
        known["fault"] = Fault.from_dict(data["fault"])
        known["alternatives"], known["absent"] = tuple(data["alternatives"]), tuple(data.get("absent", ()))
        evidence, action = data.get("evidence"), data.get("policy_says")
        known["evidence"] = None if evidence is None else Evidence.from_dict(evidence)
        known["policy"] = None
        if action is not None:
            from failsoft.core.resilience.policy import Policy, Then  # lazy: needed only with policies

            known["policy"] = Policy(name=data["policy"], then=Then.from_dict(action))
        return cls(**known)


class Handler(Protocol):
    """An Error Handler, for ``Runtime(error_handler=…)``. It may run on another machine."""

    async def handle(self, report: ErrorReport) -> Decision:
        """Decide about one failure within two seconds. An unsafe or impossible decision is rejected."""
        ...


def decide(report: ErrorReport) -> Decision:
    """Decide about one failure like the built-in Error Handler. A pure function of the report."""
    if not isinstance(report, ErrorReport):
        raise TypeError(f"decide: expected an ErrorReport, got {type(report).__name__}; use ErrorReport.from_dict")
    if report.fault.rule == NO_OFFER:  # no tool has failed
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
    return usual._replace(
        reason=f"{usual.reason}; policy {policy.name!r} asks for {policy.then.strategy}, which is not possible"
    )


def _follow(policy: Policy, report: ErrorReport) -> Decision | None:
    """Return the decision that the policy asks for; None if it cannot be followed."""
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
    """Return the recovery memory's record of this alternative, as text."""
    tally = None if report.evidence is None else report.evidence.of(TOOL + tool)
    return "" if tally is None or not tally.tried else f"; the fallback {tally}"


def _seen(report: ErrorReport) -> str:
    return "" if report.evidence is None else f"; {report.evidence}"


# --- a decision of the user's handler ---------------------------------------------------------------------------------


def refuse_retry(report: ErrorReport, why: str) -> ErrorReport:
    """Return the report of a failure that cannot be retried after all."""
    return report._replace(retry_delay=None, no_retry=why)


def refresh_report(report: ErrorReport, *, turn_left: float | None, abandoned: bool) -> ErrorReport:
    """Update the report after a handler has taken its time: the turn may have ended meanwhile."""
    if abandoned:
        report = refuse_retry(report, "the turn's time is up")._replace(alternatives=())
    return report._replace(turn_left=turn_left)


def accept_decision(decision: Decision, report: ErrorReport) -> Decision | None:
    """Return the decision as it can be carried out; None if it is impossible or unsafe. A hint is never shortened."""
    if decision.strategy == "retry":
        if report.retry_delay is None:
            return None
        delay = report.retry_delay if decision.delay is None else max(decision.delay, report.fault.retry_after or 0.0)
        late = report.turn_left is not None and delay > report.turn_left
        return None if late else decision._replace(delay=delay)
    if decision.strategy == "alternative_tool" and decision.tool not in report.alternatives:
        return None
    if decision.strategy == "partial_success" and not report.has_partial:
        return None
    return decision


# --- into an event and back -------------------------------------------------------------------------------------------


def decision_fields(report: ErrorReport, decision: Decision) -> dict[str, Any]:
    """Return the fields of a ``ToolError`` or ``CallRefused`` event. Default values are omitted."""
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
        fields["evidence"] = report.evidence  # converted to plain data only when the event is read


_FIRST_OPTIONAL = ErrorReport._fields.index("alternatives")
_USUAL: tuple[Any, ...] = ((), *ErrorReport._field_defaults.values())


def rebuild(fields: Mapping[str, Any], policies: Iterable[Policy] = ()) -> ErrorReport:
    """Restore the report from an event's flat record (``Event.to_dict()``) and the ``policies`` in force at the time."""
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
