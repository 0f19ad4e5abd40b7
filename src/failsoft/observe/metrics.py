"""Metrics per tool."""

from __future__ import annotations

from typing import Any

from failsoft.observe import events


class Retries:
    """One tool's retries on the fast path (``runtime.fastpath.retry``), counted there under the runtime's lock."""

    __slots__ = ("made", "recovered", "seconds")

    def __init__(self) -> None:
        self.made = 0  # retries; each followed a transient error
        self.recovered = 0  # calls that succeeded after a retry
        self.seconds = 0.0  # total recovery time of these calls


class Metrics:
    """One tool's counters, written only while the stream is drained, under its lock."""

    __slots__ = ("_counts", "_plain", "_recovered", "_recovery_seconds", "_retried", "retries")

    def __init__(self) -> None:
        self.retries = Retries()
        self._plain = 0
        self._retried = 0  # calls that succeeded after a retry
        self._recovered = 0
        self._recovery_seconds = 0.0
        self._counts: dict[str, int] = {}

    @property
    def successes(self) -> int:
        return self._plain + self.retries.recovered

    def succeed(self, amount: int = 1) -> None:
        self._plain += amount

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
            if fields.get("killed"):
                self.add("kill_count")
        elif event_type == events.CALL_SUCCEEDED:
            self.succeed()
        elif event_type == events.RETRY_SUCCEEDED:
            self._retried += 1
            self.recover(fields["recovery_ms"])
        elif event_type == events.CIRCUIT_CLOSED:
            self.recover(fields["recovery_ms"])

    def count_retries(self, amount: int) -> None:
        """Count transient errors, each of which a retry follows."""
        for name in ("error_count", "transient_error_count", "retry_count"):
            self.add(name, amount)

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
            "retry_success_rate": 100.0 * (self._retried + self.retries.recovered) / retries if retries else None,
            "circuit_breaker_opens": counts.get("circuit_breaker_opens", 0),
            "timeout_count": counts.get("timeout_count", 0),
            "fallback_count": counts.get("fallback_count", 0),
            "recovery_seconds": seconds / recovered if recovered else None,
            "success_count": self.successes,
            **{name: counts.get(name, 0) for name in _MORE},
        }


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
