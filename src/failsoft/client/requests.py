"""The daemon's requests as data, shared by the blocking and the async client.

Ids are percent-encoded: a slash or a question mark in one cannot reach another path. Parameters that are None are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, cast
from urllib.parse import quote

from failsoft.client.connection import DaemonError, Request
from failsoft.core.model.decision import Decision
from failsoft.core.model.fault import Category, Classification, Effect
from failsoft.core.model.json_values import plain
from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.core.resilience.error_handler import ErrorReport

Status = Literal["succeeded", "failed", "cancelled"]
Verdict = Literal["happened", "none"]
EscalationState = Literal["open", "acknowledged", "all"]


class Circuit(TypedDict):
    """A circuit breaker, as the daemon sees it."""

    state: CircuitState
    failure_count: int
    retry_after: float | None


class ReportedFault(TypedDict):
    """A classified error."""

    code: str
    classification: Classification
    category: Category
    effect: Effect
    message: str
    reason: str
    rule: str
    retry_after: float | None
    http_status: int | None


class Advice(NamedTuple):
    """The daemon's decision about an error, and the state of the tool."""

    decision: Decision
    fault: ReportedFault
    circuit: Circuit
    attempt: int
    retry_count: int


def path_of(*parts: str) -> str:
    """Return the path of a resource; its first part is a word, the others are ids and words."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def get(*parts: str, **query: object) -> Request:
    """Ask for a resource."""
    return Request("GET", path_of(*parts), None, _given(query))


def post(*parts: str, **body: object) -> Request:
    """Send a JSON body. Fields that are None are left out."""
    return Request("POST", path_of(*parts), plain(_given(body)))


def delete(*parts: str, **query: object) -> Request:
    """Delete or cancel a resource."""
    return Request("DELETE", path_of(*parts), None, _given(query))


def for_tenant(asked: Request, tenant: str | None) -> Request:
    """Limit a request to what belongs to a tenant."""
    return asked._replace(query=_given({"tenant": tenant}))


def _given(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def report_of(report: ErrorReport) -> Request:
    """Ask for a decision about a complete report."""
    if not isinstance(report, ErrorReport):
        raise TypeError(f"expected an ErrorReport, got {type(report).__name__}: report_error(tool, error) takes less")
    return Request("POST", "/v1/errors", {"report": plain(report.to_dict())})


def events_of(source: str, events: Sequence[Mapping[str, Any]], dropped: int) -> Request:
    """Send a batch of events."""
    return Request("POST", "/v1/events", {"source": source, "events": plain(list(events)), "dropped": dropped})


def error_details(error: str | BaseException | Mapping[str, Any]) -> object:
    """Describe an error: its text, its details as a mapping, or an exception."""
    if not isinstance(error, BaseException):
        return dict(error) if isinstance(error, Mapping) else error
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    headers = getattr(response, "headers", None)
    details: dict[str, Any] = {"message": str(error), "type": type(error).__name__}
    if isinstance(status, int) and 100 <= status <= 599:
        details["status"] = status
    if isinstance(headers, Mapping) and "retry-after" in headers:
        details["headers"] = {"retry-after": str(headers["retry-after"])}
    return details


def read_decision(answer: object) -> Decision:
    """Read a decision; raise ``DaemonError`` if there is none."""
    try:
        return Decision.from_dict(cast("Mapping[str, Any]", answer))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DaemonError(f"the answer is not a decision: {type(error).__name__}: {error}") from None


def read_advice(answer: Mapping[str, Any]) -> Advice:
    """Read the answer to a reported error."""
    decision = read_decision(answer)
    try:
        return Advice(decision, answer["fault"], answer["circuit"], answer["attempt"], answer["retry_count"])
    except KeyError as error:
        raise DaemonError(f"the answer has no {error}") from None
