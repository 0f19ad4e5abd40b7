"""Metrics per tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.observe import events

ANSWERED_FOR_ANOTHER = "answered for another tool"  # successes as a fallback
ANSWERED_BY_FALLBACK = "answered by a fallback"


class Retries:
    """One tool's retries that depended on attempts and time only, counted under the runtime's lock as they happen."""

    __slots__ = ("made", "recovered", "seconds")

    def __init__(self) -> None:
        self.made = 0  # retries; each followed a transient error
        self.recovered = 0  # calls that succeeded after a retry
        self.seconds = 0.0  # total recovery time of these calls


class Metrics:
    """One tool's counters, written only while the stream is drained, under its lock."""

    __slots__ = (
        "_circuits", "_counts", "_plain", "_recovered", "_recovery_seconds", "_retried",
        "ended", "fallbacks", "rescued", "retries", "transitions", "unknown_effects",
    )  # fmt: skip

    def __init__(self) -> None:
        self.retries = Retries()
        self.ended: dict[tuple[str, str], int] = {}  # calls that did not succeed, by outcome and category
        self.fallbacks: dict[str, int] = {}  # by the tool that was used
        self.transitions: dict[tuple[CircuitState, CircuitState], int] = {}
        self.unknown_effects = 0  # failed calls that may have acted
        self.rescued = 0  # calls that succeeded although their last attempt failed: partial result, or verified
        self._circuits: dict[str | None, CircuitState] = {}  # the latest states; as a fallback: by the tool asked for
        self._plain = 0
        self._retried = 0  # calls that succeeded after a retry
        self._recovered = 0
        self._recovery_seconds = 0.0
        self._counts: dict[str, int] = {}

    @property
    def successes(self) -> int:
        return self._plain + self.retries.recovered

    @property
    def retried(self) -> int:
        """The number of calls that succeeded after a retry."""
        return self._retried + self.retries.recovered

    def succeed(self, amount: int = 1) -> None:
        self._plain += amount

    def end(self, outcome: str, category: str = "none", amount: int = 1) -> None:
        """Count the end of a call. Successes are not counted here, except those by a fallback."""
        key = (outcome, category)
        self.ended[key] = self.ended.get(key, 0) + amount

    def refuse(self, amount: int) -> None:
        """Count calls that an open circuit refused at once."""
        self.add("refused_count", amount)
        self.end("refused", "tool_transient", amount)

    def add(self, name: str, amount: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + amount

    def count(self, event_type: str, fields: dict[str, Any]) -> None:
        """Count an event that is not a plain success."""
        name = _COUNTED.get(event_type)
        if name is not None:
            self.add(name)
        if event_type == events.TOOL_ERROR:
            self.add(f"{fields['classification']}_error_count")
            if fields["decision"] == "retry":
                self.add("retry_count")
            elif fields["decision"] == "verified":
                self.rescued += 1
            if fields.get("killed"):
                self.add("kill_count")
        elif event_type == events.CALL_SUCCEEDED:
            self.succeed()
        elif event_type == events.RETRY_SUCCEEDED:
            self._retried += 1
            self.recover(fields["recovery_ms"])
        elif event_type in _CIRCUITS:
            self._change(event_type, fields)
        elif event_type == events.FALLBACK_USED:
            used = fields["alternative"]
            self.fallbacks[used] = self.fallbacks.get(used, 0) + 1
        elif event_type == events.PARTIAL_USED:
            self.rescued += 1
        else:
            self._count_end(event_type, fields)

    def _count_end(self, event_type: str, fields: dict[str, Any]) -> None:
        outcome = _ENDS.get(event_type)
        if outcome is None or (event_type == events.CALL_REFUSED and not ends_call(fields)):
            return
        self.end(outcome, fields.get("category", "none"))
        told = event_type in (events.CALL_FAILED, events.CALL_CANCELLED)
        if told and fields.get("effect") == "unknown" and not fields.get("safe_to_repeat"):
            self.unknown_effects += 1

    def _change(self, event_type: str, fields: dict[str, Any]) -> None:
        """Count a change of the circuit, or of the one that the tool has as a fallback."""
        before, after = _CIRCUITS[event_type]
        circuit = fields.get("primary")
        known = self._circuits.get(circuit, before)
        if known == after:  # a failed probe
            known = "half_open"
        self._circuits[circuit] = after
        self.transitions[known, after] = self.transitions.get((known, after), 0) + 1
        if event_type == events.CIRCUIT_CLOSED:
            self.recover(fields["recovery_ms"])

    def recover(self, milliseconds: float) -> None:
        """Count a recovery: by a retry, by a fallback, or by a circuit that closed again."""
        self._recovered += 1
        self._recovery_seconds += milliseconds / 1000

    def as_dict(self) -> dict[str, Any]:
        counts = self._counts
        known = self.retries.made
        retries = counts.get("retry_count", 0) + known
        recovered = self._recovered + self.retries.recovered
        seconds = self._recovery_seconds + self.retries.seconds
        return {
            "error_count": counts.get("error_count", 0) + known,
            "transient_error_count": counts.get("transient_error_count", 0) + known,
            "permanent_error_count": counts.get("permanent_error_count", 0),
            "retry_count": retries,
            "retry_success_rate": 100.0 * self.retried / retries if retries else None,
            "circuit_breaker_opens": counts.get("circuit_breaker_opens", 0),
            "timeout_count": counts.get("timeout_count", 0),
            "fallback_count": counts.get("fallback_count", 0),
            "recovery_seconds": seconds / recovered if recovered else None,
            "success_count": self.successes,
            **{name: counts.get(name, 0) for name in _MORE},
        }


def count_event(
    metrics_of: Callable[[str], Metrics],
    unknown: Metrics,
    event_type: str,
    tool: Any,
    call_id: str | int | None,
    fields: dict[str, Any],
) -> None:
    """Count an event for its tool, for the tool whose fallback it is, or for ``unknown`` if the name is not registered."""
    if tool is None or type(tool) is str:
        if call_id is not None:
            unknown.count(event_type, fields)
        return
    metrics_of(tool.id).count(event_type, fields)
    if event_type == events.CALL_SUCCEEDED and (primary := fields["primary"]) != tool.id:  # a fallback succeeded
        metrics_of(tool.id).end(ANSWERED_FOR_ANOTHER)
        metrics_of(primary).end(ANSWERED_BY_FALLBACK)
        if "recovery_ms" in fields:
            metrics_of(primary).recover(fields["recovery_ms"])


def count_each(tools: list[str]) -> Mapping[str, int]:
    """Count each tool. Usually there is only one, and checking that is much faster than counting."""
    if not tools:
        return {}
    if tools.count(tools[0]) == len(tools):
        return {tools[0]: len(tools)}
    return Counter(tools)


def ends_call(fields: dict[str, Any]) -> bool:
    """True if a refusal ends its call: no attempt was made before, and no fallback follows."""
    return fields.get("decision") in ("fail_gracefully", "escalate") and not fields.get("attempt")


_COUNTED = {
    events.TOOL_ERROR: "error_count",
    events.TOOL_TIMEOUT: "timeout_count",
    events.CIRCUIT_OPENED: "circuit_breaker_opens",
    events.FALLBACK_USED: "fallback_count",
    events.CALL_FAILED: "failed_count",
    events.CALL_REFUSED: "refused_count",
    events.CALL_HELD: "held_count",
    events.CALL_CANCELLED: "cancelled_count",
    events.CALL_SKIPPED: "skipped_count",
    events.ATTEMPT_ABANDONED: "orphaned_count",
    events.LOOP_BLOCKED: "loop_blocked_count",
    events.LATE_RESULT: "late_result_count",
    events.ESCALATED: "escalation_count",
    events.LOOP_PREVENTED: "loops_prevented",
}
_ENDS = {
    events.CALL_FAILED: "failed",
    events.CALL_REFUSED: "refused",
    events.LOOP_PREVENTED: "refused",
    events.CALL_LEFT: "timed_out",
    events.CALL_CANCELLED: "cancelled",
    events.CALL_SKIPPED: "skipped",
}
_CIRCUITS: dict[str, tuple[CircuitState, CircuitState]] = {  # the usual change
    events.CIRCUIT_OPENED: ("closed", "open"),
    events.CIRCUIT_HALF_OPENED: ("open", "half_open"),
    events.CIRCUIT_CLOSED: ("half_open", "closed"),
}
_MORE = (
    "failed_count",
    "refused_count",
    "held_count",
    "cancelled_count",
    "skipped_count",
    "orphaned_count",
    "loop_blocked_count",
    "late_result_count",
    "escalation_count",
    "loops_prevented",
    "kill_count",
)
