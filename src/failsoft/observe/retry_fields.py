"""The fields of a ``ToolError`` event after which the attempt is repeated, made when the event is read.

Most failures are transient, and their retry depends on attempts and time alone. Few of these events are ever read, and
making the report, the decision and the fields of an event costs more than counting the failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.fault import Fault
from failsoft.core.resilience.error_handler import ErrorReport, decide, decision_fields

if TYPE_CHECKING:
    from failsoft.core.resilience.recovery_memory import Evidence


def retry_fields(raw: tuple[Any, ...]) -> dict[str, Any]:
    """The fields of a record that the pipeline has made. Its fault has no cause, which would keep an exception alive."""
    _, _, tool, _, _, _, fault, seconds, attempt, delay, evidence = raw
    return describe_retry(tool, Fault(*fault), seconds, attempt, delay, evidence)


def describe_retry(
    tool: Any, fault: Fault, seconds: float, attempt: int, delay: float, evidence: Evidence | None
) -> dict[str, Any]:
    """The fields for attempt number ``attempt``, which took ``seconds`` and is repeated after ``delay`` seconds."""
    report = ErrorReport(
        fault, tool.id, "", attempt, attempt - 1, "closed", delay, "", (),
        required=tool.options.required, evidence=evidence,
    )  # fmt: skip
    fields = decision_fields(report, decide(report))
    fields["duration_ms"] = round(seconds * 1000, 3)
    fields["delay_ms"] = round(delay * 1000, 3)
    return fields
