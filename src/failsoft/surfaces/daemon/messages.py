"""The bodies of requests and answers. The OpenAPI document is made from these classes.

Rules
-----
- Unknown fields are refused, so that a misspelt field does not go unnoticed. Numbers are finite.
- Durations are in seconds.
- No field carries a command, an environment or the path of a module: tools come from the manifest only.
- Ids must not start with ``@``: ids of tenants do (``scoping``).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from failsoft.core.model.decision import Strategy
from failsoft.core.model.fault import Category, Classification, Effect, Source
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.core.resilience.error_handler import ErrorReport

LONGEST = 1_000_000.0  # seconds
_PLAIN = r"[^\x00-\x1f\x7f]"

Id = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=rf"^[^\x00-\x1f\x7f@]{_PLAIN}*$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=rf"^{_PLAIN}+$")]
Text = Annotated[str, StringConstraints(max_length=65_536)]
Line = Annotated[str, StringConstraints(max_length=1_000)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


def refuse_infinite(value: Any) -> Any:
    """Return a value from JSON; raise if it contains a number that an answer cannot contain: NaN or an infinity."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
        elif isinstance(found, float) and not math.isfinite(found):
            raise ValueError("a number is not finite")
    return value


Json = Annotated[Any, AfterValidator(refuse_infinite)]
JsonObject = Annotated[dict[str, Any], AfterValidator(refuse_infinite)]


class Request(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    """The body of an answer."""

    model_config = ConfigDict(extra="allow")


class ErrorDetails(Request):
    """An error as far as the executor can describe it."""

    message: Text = Field(description="The error's own words.")
    type: Line | None = Field(None, description="The name of the exception or error class.")
    status: Annotated[int, Field(ge=100, le=599)] | None = Field(None, description="The HTTP status, if there was one.")
    code: Line | int | None = Field(None, description="A code: gRPC's, a provider's, ECONNRESET, an SQLSTATE …")
    headers: dict[Line, Text] = Field(
        default_factory=dict, description="Headers of the answer; Retry-After is honoured.", max_length=100
    )
    body: Json = Field(None, description="The body of the answer.")
    retry_after: Seconds | None = Field(None, description="Seconds that the service asked to wait.")


class ReportedError(Request):
    """A failed attempt of a tool that runs elsewhere."""

    tool: Id = Field(description="The id of the tool that failed.")
    error: Text | ErrorDetails = Field(description="The error: its text, or its details.")
    call_id: Id | None = Field(None, description="The same for all attempts of a call. It makes /v1/outcomes count.")
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="The number of the failed attempt. Default: one more than this call has reported."
    )
    turn_id: Id | None = Field(None, description="The turn that the call belongs to.")
    thread: Name | None = Field(None, description="The conversation.")
    tenant: Name | None = Field(None, description="The customer. A token that is bound to a tenant implies it.")
    turn_left: Annotated[float, Field(ge=-LONGEST, le=LONGEST)] | None = Field(
        None, description="Seconds until the turn's deadline."
    )
    duration: Seconds = Field(0.0, description="Seconds that the attempt took.")
    since_first_failure: Seconds | None = Field(
        None, description="Seconds since the first failed attempt of this call. Default: as reported."
    )
    entered: bool = Field(True, description="False if the tool was never started, e.g. for bad arguments.")
    still_running: bool = Field(False, description="The attempt was given up, but may still run.")
    read_only: bool | None = Field(None, description="The tool only reads. The manifest's word comes first.")
    idempotent: bool | None = Field(None, description="The tool may be repeated. The manifest's word comes first.")
    alternatives: list[Id] | None = Field(
        None,
        description="Tools that could do the job instead, best first. Default: the manifest's fallbacks.",
        max_length=32,
    )
    tried: tuple[Id, ...] = Field((), description="Tools that have been tried for this call already.", max_length=32)
    has_partial: bool = Field(False, description="An acceptable partial result is available.")
    required: bool | None = Field(None, description="Whether the turn needs the call.")


class FaultBody(Request):
    """A fault (``Fault.to_dict()``); other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    code: Annotated[str, Field(max_length=40)]
    classification: Classification
    category: Category
    effect: Effect
    message: Text
    reason: Text = ""
    rule: Text = ""
    retry_after: Seconds | None = None
    http_status: Annotated[int, Field(ge=100, le=999)] | None = None
    source: Source = "stated"
    hint_source: Source = "stated"


class ReportBody(Request):
    """An error report (``ErrorReport.to_dict()``); other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    fault: FaultBody
    tool_id: Id
    call_id: Id
    attempt: Count
    retry_count: Count
    breaker_state: CircuitState
    retry_delay: Seconds | None
    no_retry: Text
    alternatives: Annotated[list[Id], Field(max_length=100)]
    has_partial: bool = False
    required: bool | None = None
    turn_id: Id | None = None
    turn_left: Annotated[float, Field(ge=-LONGEST, le=LONGEST)] | None = None
    thread: Name | None = None
    tenant: Name | None = None
    absent: Annotated[list[Id], Field(max_length=100)] = []
    admitted: bool | None = None
    policy: Line | None = None
    policy_says: Annotated[dict[Line, Any], AfterValidator(refuse_infinite)] | None = None
    evidence: Annotated[dict[Line, Any], AfterValidator(refuse_infinite)] | None = None

    def to_report(self, tenant: str | None) -> ErrorReport:
        """Return the report, with sanitised texts; raise if its policy or its evidence is invalid."""
        data = self.model_dump()
        for name in ("message", "reason", "rule"):
            data["fault"][name] = sanitise(data["fault"][name])
        return ErrorReport.from_dict({**data, "no_retry": sanitise(self.no_retry), "tenant": tenant})


class ReportedReport(Request):
    """A complete error report of a failsoft runtime."""

    report: ReportBody = Field(description="The report. The decision is one that is possible by this report.")


class ReportedOutcome(Request):
    """The end of a call of a tool elsewhere."""

    tool: Id = Field(description="The id of the tool that was called.")
    status: Literal["succeeded", "failed", "cancelled"] = Field(description="How the call ended.")
    call_id: Id | None = Field(None, description="As in /v1/errors.")
    via: Id | None = Field(None, description="The tool that returned the value, if another one was used.")
    attempts: Annotated[int, Field(ge=0, le=1_000_000)] = Field(1, description="All attempts of the call.")
    turn_id: Id | None = Field(None, description="The turn that the call belongs to.")
    tenant: Name | None = Field(None, description="The customer.")
    duration: Seconds = Field(0.0, description="Seconds from the start of the call to its end.")


class EventBatch(Request):
    """Events of a runtime elsewhere, oldest first."""

    source: Id = Field(description="The name of the runtime: host and process, for example.")
    events: list[JsonObject] = Field(description="Flat records (``Event.to_dict()``).", max_length=5_000)
    dropped: Count = Field(0, description="Events that the runtime could not send since its last batch.")


Wait = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]


class CallRequest(Request):
    """A call of a tool of the manifest."""

    tool: Id = Field(description="The id of the tool.")
    args: JsonObject = Field({}, description="Its arguments.")
    id: Id | None = Field(None, description="The call's id. Default: a random one.")
    thread: Name | None = Field(None, description="The conversation.")
    tenant: Name | None = Field(None, description="The customer.")
    timeout: Annotated[float, Field(gt=0, le=LONGEST)] | None = Field(None, description="Seconds of an attempt.")
    idempotency_key: Name | None = Field(None, description="The key to send.")
    wait: Wait = Field(10.0, description="Seconds to wait for the outcome.")


class TurnRequest(Request):
    """A plan to run as a turn."""

    plan: JsonObject = Field(description="The plan: `calls`, `timeout`, `thread`, as in a plan file.")
    id: Id | None = Field(None, description="The turn's id. Default: a random one.")
    thread: Name | None = Field(None, description="The conversation. Default: the plan's.")
    tenant: Name | None = Field(None, description="The customer.")
    wait: Wait = Field(10.0, description="Seconds to wait for the report.")


class EmptyRequest(Request):
    """Nothing: an empty object."""


class DisableRequest(Request):
    """The reason to disable a tool."""

    reason: Line = Field("", description="The reason, for those who call it.")


class AcknowledgeRequest(Request):
    """A note on an escalation."""

    note: Line = Field("", description="A note for the others.")


class ResolveRequest(Request):
    """The verdict on a write of unknown effect."""

    verdict: Literal["happened", "none"] = Field(description="Whether it happened.")
    value: Json = Field(None, description="The value that it returned, if it happened and the value is known.")


class RetryRequest(Request):
    """An offer that a user takes."""

    tool: Id = Field(description="The tool whose call was offered to be retried.")


class JobAnswer(Answer):
    """A call or a turn."""

    id: str
    state: Literal["running", "finished", "cancelled", "failed", "interrupted", "reported"]


class CircuitAnswer(Answer):
    """A circuit breaker."""

    state: CircuitState
    failure_count: int = Field(description="Consecutive transient failures.")
    retry_after: float | None = Field(description="Seconds until it admits a probe.")


class FaultAnswer(Answer):
    """A classified error."""

    code: str
    classification: Classification
    category: Category
    effect: Effect = Field(description="Whether the tool may have acted.")
    message: str = Field(description="The error's own words, without secrets.")
    reason: str
    rule: str
    retry_after: float | None
    http_status: int | None


class DecisionAnswer(Answer):
    """The decision about an error."""

    strategy: Strategy = Field(description="What to do.")
    reason: str = Field(description="Why.")
    delay: float | None = Field(description="Seconds before the retry, or until the next call makes sense.")
    tool: str | None = Field(description="The tool to use instead.")
    fault: FaultAnswer
    circuit: CircuitAnswer
    attempt: int
    retry_count: int


class OutcomeAnswer(Answer):
    """The tool after an outcome was counted."""

    circuit: CircuitAnswer


class EventsAnswer(Answer):
    """A batch of events was stored."""

    accepted: int
