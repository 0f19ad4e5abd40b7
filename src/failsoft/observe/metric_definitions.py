"""The metrics that exporters publish: one definition for Prometheus, OpenTelemetry and Grafana.

Rules
-----
- ``name`` is the OpenTelemetry name. It has no unit and no ``_total``; ``prometheus_name`` adds both.
- The seven metrics of the specification, and the two beside them, keep their own names: ``failsoft_error_count``.
- Every label has a bounded set of values. There is none for tenants, threads, calls or the text of an error.
- ``tool`` is the id of a registered tool. Unregistered names, which a model invented, count as ``UNKNOWN_TOOL``; tools
  beyond ``MOST_TOOLS`` count as ``OTHER_TOOL``.
- A metric with ``source="runtime"`` is read from the runtime's own counters when it is asked for, and is complete. One with
  ``source="events"`` is counted from the event stream on a delivery thread; events that were dropped are missing from it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from failsoft.core.model.fault import Category, Code
from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.observe import events

UNKNOWN_TOOL = "_unknown"
OTHER_TOOL = "_other"
MOST_TOOLS = 200  # tools with series of their own, in the order of their registration
BUCKETS = tuple(0.01 * 2**power for power in range(14))  # seconds: 0.01 … 81.92, as for gen_ai.execute_tool.duration

MetricKind = Literal["counter", "gauge", "histogram"]
MetricSource = Literal["runtime", "events"]
CallEnd = Literal["succeeded", "failed", "refused", "timed_out", "cancelled", "skipped"]
AttemptEnd = Literal["successful_without_retry", "successful_with_retry", "failed_with_retry", "failed_without_retry"]
TurnEnd = Literal["succeeded", "degraded", "timed_out"]
TurnPart = Literal["useful", "failed", "waiting", "model"]


class Label(NamedTuple):
    """A label: its name, the attribute of the same meaning in OpenTelemetry, and its values."""

    name: str
    attribute: str
    values: tuple[str, ...] | None  # None: ids of registered tools, UNKNOWN_TOOL and OTHER_TOOL


class MetricDefinition(NamedTuple):
    """One metric."""

    name: str  # in OpenTelemetry
    kind: MetricKind
    unit: str  # UCUM: "s", "1", "%", "{call}"
    description: str
    labels: tuple[Label, ...]
    source: MetricSource
    follows: str  # the events or the runtime's metric that it is counted from
    own_name: bool = False  # the specification's name: no suffix in Prometheus

    @property
    def prometheus_name(self) -> str:
        """The name of its series; a histogram's series add ``_bucket``, ``_sum`` and ``_count``."""
        name = self.name.replace(".", "_")
        if self.own_name:
            return name
        if self.unit == "s":
            name += "_seconds"
        return f"{name}_total" if self.kind == "counter" else name

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of its labels, in order."""
        return tuple(label.name for label in self.labels)


TOOL = Label("tool", "gen_ai.tool.name", None)
OUTCOME = Label("outcome", "failsoft.outcome", get_args(CallEnd))
CATEGORY = Label("category", "failsoft.error.category", ("none", *get_args(Category)))
CODE = Label("code", "failsoft.error.code", tuple(code.value for code in Code))
KIND = Label("kind", "failsoft.attempt.kind", get_args(AttemptEnd))
STATE = Label("state", "failsoft.breaker.state", get_args(CircuitState))
FROM = Label("from", "failsoft.breaker.from", get_args(CircuitState))
TO_STATE = Label("to", "failsoft.breaker.to", get_args(CircuitState))
TO_TOOL = Label("to", "failsoft.fallback.to", None)
TURN_OUTCOME = Label("outcome", "failsoft.turn.outcome", get_args(TurnEnd))
PART = Label("part", "failsoft.turn.part", get_args(TurnPart))
LOSS = Label("part", "failsoft.lost.part", ("failed", "waiting"))


def _runtime(
    name: str, kind: MetricKind, unit: str, description: str, follows: str, *labels: Label
) -> MetricDefinition:
    return MetricDefinition(name, kind, unit, description, labels or (TOOL,), "runtime", follows)


def _events(name: str, kind: MetricKind, description: str, follows: str, *labels: Label) -> MetricDefinition:
    return MetricDefinition(name, kind, "s", description, labels, "events", follows)


def _own(figure: str, kind: MetricKind, unit: str, description: str) -> MetricDefinition:
    follows = f"`rt.metrics(tool)[{figure!r}]`"
    return MetricDefinition(f"failsoft.{figure}", kind, unit, description, (TOOL,), "runtime", follows, own_name=True)


SPECIFIED = (
    _own("error_count", "counter", "{error}", "Attempts that failed."),
    _own("transient_error_count", "counter", "{error}", "Failed attempts whose error may pass by itself."),
    _own("permanent_error_count", "counter", "{error}", "Failed attempts whose error will not pass by itself."),
    _own("retry_count", "counter", "{retry}", "Failed attempts that were followed by another one."),
    _own("retry_success_rate", "gauge", "%", "Percentage of retries that succeeded; absent without retries."),
    _own("circuit_breaker_opens", "counter", "{opening}", "How often the circuit opened."),
    _own("timeout_count", "counter", "{timeout}", "Attempts that timed out."),
    _own("fallback_count", "counter", "{fallback}", "How often a fallback was used for this tool."),
    _own("recovery_seconds", "gauge", "s", "Mean time to recover since the start; absent without a recovery."),
)

CALLS = _runtime(
    "failsoft.tool.calls", "counter", "{call}",
    "Calls by how they ended. A call that a fallback answered counts for the tool that was asked for.",
    f"`{events.CALL_SUCCEEDED}`, `{events.CALL_FAILED}`, `{events.CALL_REFUSED}` (if it ends the call), "
    f"`{events.LOOP_PREVENTED}`, `{events.CALL_LEFT}`, `{events.CALL_CANCELLED}`, `{events.CALL_SKIPPED}`",
    TOOL, OUTCOME, CATEGORY,
)  # fmt: skip
ATTEMPTS = _runtime(
    "failsoft.tool.attempts", "counter", "{attempt}",
    "Attempts by how each ended: at the first try or as a retry, followed by a retry or not.",
    f"`{events.CALL_SUCCEEDED}`, `{events.RETRY_SUCCEEDED}`, `{events.TOOL_ERROR}`",
    TOOL, KIND,
)  # fmt: skip
REFUSALS = _runtime(
    "failsoft.tool.refusals", "counter", "{refusal}",
    "How often a tool was not run: open circuit, unavailable, bad arguments. A fallback may have followed.",
    f"`{events.CALL_REFUSED}`",
)  # fmt: skip
EFFECT_UNKNOWN = _runtime(
    "failsoft.effect.unknown", "counter", "{call}",
    "Calls that failed or were cancelled and may have acted: a person has to find out.",
    f"`{events.CALL_FAILED}` and `{events.CALL_CANCELLED}` with `effect: unknown`",
)  # fmt: skip
FALLBACKS = _runtime(
    "failsoft.fallback", "counter", "{fallback}",
    "How often each fallback was used.", f"`{events.FALLBACK_USED}`",
    TOOL, TO_TOOL,
)  # fmt: skip
BREAKER_STATE = _runtime(
    "failsoft.breaker.state", "gauge", "1",
    "1 for the state that the circuit is in, 0 for the others.", "`rt.health(tool).state`",
    TOOL, STATE,
)  # fmt: skip
BREAKER_TRANSITIONS = _runtime(
    "failsoft.breaker.transitions", "counter", "{transition}",
    "Changes of the circuit's state. A failed probe is a change from half_open to open.",
    f"`{events.CIRCUIT_OPENED}`, `{events.CIRCUIT_HALF_OPENED}`, `{events.CIRCUIT_CLOSED}`",
    TOOL, FROM, TO_STATE,
)  # fmt: skip
BUDGET = _runtime(
    "failsoft.retry_budget.ratio", "gauge", "1",
    "The level of the retry budget: 1 is full, 0 is exhausted.", "`rt.inspect()`",
)  # fmt: skip
ORPHANS = _runtime(
    "failsoft.orphans", "gauge", "{attempt}",
    "Abandoned attempts that still run.", f"`{events.ATTEMPT_ABANDONED}`, until the attempt ends",
)  # fmt: skip
ABANDONED = _runtime(
    "failsoft.tool.abandoned", "counter", "{attempt}",
    "Attempts that went on after their deadline, or after their caller was cancelled.", f"`{events.ATTEMPT_ABANDONED}`",
)  # fmt: skip
ESCALATIONS = _runtime(
    "failsoft.tool.escalations", "counter", "{call}",
    "Failures that an operator must know about.", f"`{events.ESCALATED}`",
)  # fmt: skip
HELD = _runtime(
    "failsoft.tool.held", "counter", "{call}",
    "Calls that waited because the service had asked for it, or for their rate limit.", f"`{events.CALL_HELD}`",
)  # fmt: skip
LATE = _runtime(
    "failsoft.tool.late_results", "counter", "{result}",
    "Results that came after the turn's deadline.", f"`{events.LATE_RESULT}`",
)  # fmt: skip
LOOPS = _runtime(
    "failsoft.tool.loops_prevented", "counter", "{call}",
    "Calls that kept failing the same way and were answered without running the tool.", f"`{events.LOOP_PREVENTED}`",
)  # fmt: skip
LOOP_BLOCKED = _runtime(
    "failsoft.tool.loop_blocked", "counter", "{attempt}",
    "Async tools that blocked the event loop past their own deadline.", f"`{events.LOOP_BLOCKED}`",
)  # fmt: skip
KILLS = _runtime(
    "failsoft.tool.kills", "counter", "{process}",
    "Attempts whose process was killed.", f"`{events.TOOL_ERROR}` with `killed`",
)  # fmt: skip
RUNNING = _runtime("failsoft.tool.running", "gauge", "{call}", "Calls in flight.", "`rt.running()`")
AVAILABLE = _runtime(
    "failsoft.tool.available", "gauge", "1", "0 for a tool that is disabled or misconfigured, else 1.", "`rt.inspect()`"
)
DROPPED = MetricDefinition(
    "failsoft.events.dropped", "counter", "{event}", "Events that a subscriber or sink was too slow for.", (),
    "runtime", "`rt.inspect().subscribers`",
)  # fmt: skip
STORE_LOST = MetricDefinition(
    "failsoft.store.lost", "counter", "{record}", "Records and events that the store could not keep.", (),
    "runtime", "`rt.inspect().store`",
)  # fmt: skip

ERRORS = MetricDefinition(
    "failsoft.tool.errors", "counter", "{error}", "Failed attempts by error code.", (TOOL, CODE),
    "events", f"`{events.TOOL_ERROR}`",
)  # fmt: skip
CALL_DURATION = _events(
    "failsoft.tool.call.duration", "histogram",
    "Seconds per call that ran, with all its attempts, waits and fallbacks; refused calls did not run. In OpenTelemetry: "
    "gen_ai.execute_tool.duration.",
    f"`total_ms` of `{events.CALL_SUCCEEDED}` and `{events.CALL_FAILED}`, `duration_ms` of `{events.CALL_LEFT}` and, after "
    f"an attempt, of `{events.CALL_CANCELLED}`",
    TOOL,
)  # fmt: skip
RECOVERY_DURATION = _events(
    "failsoft.tool.recovery.duration", "histogram",
    "Seconds from the first failure to success by retry or fallback, and from a circuit's opening to its closing.",
    f"`recovery_ms` of `{events.RETRY_SUCCEEDED}`, `{events.CALL_SUCCEEDED}`, `{events.CIRCUIT_CLOSED}`",
    TOOL,
)  # fmt: skip
LOST_TIME = _events(
    "failsoft.tool.lost_time", "counter",
    "Seconds spent in failed attempts, and waiting to retry.", f"`duration_ms` and `delay_ms` of `{events.TOOL_ERROR}`",
    TOOL, LOSS,
)  # fmt: skip
TURN_DURATION = _events(
    "failsoft.turn.duration", "histogram",
    "Seconds per turn. degraded: a call of the turn returned no value.",
    f"`duration_ms` of `{events.TURN_ENDED}`; `{events.TURN_TIMED_OUT}`",
    TURN_OUTCOME,
)  # fmt: skip
TURN_TIME = _events(
    "failsoft.turn.time", "counter",
    "Where the time of turns went: useful attempts, failed ones, waiting, or outside of all tools (the model).",
    "the turn's waterfall, when the turn ends",
    PART,
)  # fmt: skip

DEFINITIONS: tuple[MetricDefinition, ...] = (
    *SPECIFIED,
    CALLS, ATTEMPTS, REFUSALS, EFFECT_UNKNOWN, FALLBACKS, BREAKER_STATE, BREAKER_TRANSITIONS, BUDGET, ORPHANS,
    ABANDONED, ESCALATIONS, HELD, LATE, LOOPS, LOOP_BLOCKED, KILLS, RUNNING, AVAILABLE, DROPPED, STORE_LOST,
    ERRORS, CALL_DURATION, RECOVERY_DURATION, LOST_TIME, TURN_DURATION, TURN_TIME,
)  # fmt: skip
