"""The runtime's own counters as samples of the exported metrics: ``rt.samples()``.

Rules
-----
- Everything is read on demand. Calls count nothing only for this.
- Every lock is held for one tool at a time. Nothing is read from the store.
- The number of samples is bounded: by the tools that have series of their own (``MOST_TOOLS``) and by the values of each
  label. The other tools are added up as ``OTHER_TOOL``, unregistered names as ``UNKNOWN_TOOL``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, get_args

from failsoft.core.redact.printable import visible
from failsoft.core.resilience.circuit_breaker import CircuitState
from failsoft.observe import metric_definitions as defined
from failsoft.observe.metric_definitions import DEFINITIONS, MOST_TOOLS, OTHER_TOOL, UNKNOWN_TOOL, MetricDefinition
from failsoft.observe.metrics import ANSWERED_BY_FALLBACK, ANSWERED_FOR_ANOTHER, Metrics
from failsoft.runtime.call.running import list_running

if TYPE_CHECKING:
    from failsoft.runtime.services import Services

LONGEST_NAME = 200  # characters of a tool's id in a label
MOST_FALLBACKS = 20  # fallbacks of one tool with series of their own
_STATES: tuple[CircuitState, ...] = get_args(CircuitState)
_TRANSITIONS: tuple[tuple[CircuitState, CircuitState], ...] = (
    ("closed", "open"),
    ("open", "half_open"),
    ("half_open", "closed"),
    ("half_open", "open"),
)
_SEVERITY: tuple[CircuitState, ...] = ("closed", "half_open", "open")
_COUNTED = {  # metrics that equal one of the runtime's counters
    defined.REFUSALS: "refused_count",
    defined.ABANDONED: "orphaned_count",
    defined.ESCALATIONS: "escalation_count",
    defined.HELD: "held_count",
    defined.LATE: "late_result_count",
    defined.LOOPS: "loops_prevented",
    defined.LOOP_BLOCKED: "loop_blocked_count",
    defined.KILLS: "kill_count",
}
_OF_ONE_TOOL = tuple(one.name for one in defined.SPECIFIED if one.kind == "gauge")  # means and rates cannot be added up
_LOWEST = (defined.BUDGET.name, defined.AVAILABLE.name)  # the lowest value of all tools counts


class Sample(NamedTuple):
    """One value of a metric."""

    name: str  # as in OpenTelemetry: "failsoft.tool.calls"
    labels: dict[str, str]
    value: float


def label_of(tool_id: str) -> str:
    """A tool's id as the value of a label: printable, and not too long."""
    return visible(tool_id)[:LONGEST_NAME]


class ToolLabels:
    """The tools with series of their own: the first ``MOST_TOOLS`` that were registered."""

    def __init__(self, tools: Callable[[], Iterable[str]]) -> None:
        self._tools = tools
        self._labels: dict[str, str] = {}

    def __call__(self, tool_id: str | None) -> str:
        """Return the value of the label ``tool``."""
        known = self._labels.get(tool_id) if tool_id is not None else UNKNOWN_TOOL
        if known is not None:
            return known
        registered = [*self._tools()]
        for each in registered[:MOST_TOOLS]:
            self._labels.setdefault(each, label_of(each))
        if tool_id in self._labels:
            return self._labels[tool_id]
        return OTHER_TOOL if tool_id in registered else UNKNOWN_TOOL


class _Values:
    """The values of all metrics by their labels, while they are collected."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {one.name: {} for one in DEFINITIONS}

    def add(self, metric: MetricDefinition, value: float | None, *labels: str) -> None:
        if value is None or (metric.name in _OF_ONE_TOOL and labels[0] in (OTHER_TOOL, UNKNOWN_TOOL)):
            return
        values = self._values[metric.name]
        before = values.get(labels)
        if before is None:
            values[labels] = value
        else:
            values[labels] = min(before, value) if metric.name in _LOWEST else before + value

    def samples(self) -> list[Sample]:
        return [
            Sample(metric.name, dict(zip(metric.label_names, labels, strict=True)), value)
            for metric in DEFINITIONS
            for labels, value in self._values[metric.name].items()
        ]


class SampleReader:
    """Reads the samples of one runtime."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.label = ToolLabels(lambda: list(services.toolbox.tools))
        self._dropped = self._dropped_before = 0

    def read(self) -> list[Sample]:
        """Read every metric that the runtime counts itself."""
        services, values = self._services, _Values()
        running = Counter(call.tool for call in list_running(services.places))
        abandoned = services.places.abandoned_tools()
        for tool_id in list(services.toolbox.tools):
            label = self.label(tool_id)
            self._count(values, label, services.log.trace.metrics(tool_id))
            self._observe(values, label, tool_id)
            values.add(defined.RUNNING, running[tool_id], label)
            values.add(defined.ORPHANS, abandoned[tool_id], label)
        self._count(values, UNKNOWN_TOOL, services.log.trace.unknown)
        store = services.books.store
        values.add(defined.DROPPED, self._count_dropped())
        values.add(defined.STORE_LOST, 0 if store is None else store.lost)
        return values.samples()

    def _count(self, values: _Values, label: str, metrics: Metrics) -> None:
        """Add one tool's counters."""
        counted = metrics.as_dict()
        for metric in defined.SPECIFIED:
            values.add(metric, counted[metric.name.removeprefix("failsoft.")], label)
        for metric, name in _COUNTED.items():
            values.add(metric, counted[name], label)
        self._count_calls(values, label, metrics)
        repeated, failed = counted["retry_count"], counted["error_count"]
        attempts = {
            "successful_without_retry": metrics.successes - metrics.rescued - metrics.retried,
            "successful_with_retry": metrics.retried,
            "failed_with_retry": repeated,
            "failed_without_retry": failed - repeated,
        }
        for kind, amount in attempts.items():
            values.add(defined.ATTEMPTS, max(0, amount), label, kind)
        values.add(defined.EFFECT_UNKNOWN, metrics.unknown_effects, label)
        for at, (used, amount) in enumerate([*metrics.fallbacks.items()]):
            values.add(defined.FALLBACKS, amount, label, self.label(used) if at < MOST_FALLBACKS else OTHER_TOOL)
        usual = {} if label == UNKNOWN_TOOL else dict.fromkeys(_TRANSITIONS, 0)
        for (before, after), amount in (usual | metrics.transitions).items():
            values.add(defined.BREAKER_TRANSITIONS, amount, label, before, after)

    @staticmethod
    def _count_calls(values: _Values, label: str, metrics: Metrics) -> None:
        ended = dict(metrics.ended)
        succeeded = metrics.successes + ended.pop((ANSWERED_BY_FALLBACK, "none"), 0)
        succeeded -= ended.pop((ANSWERED_FOR_ANOTHER, "none"), 0)
        values.add(defined.CALLS, max(0, succeeded), label, "succeeded", "none")
        for (outcome, category), amount in ended.items():
            values.add(defined.CALLS, amount, label, outcome, category)

    def _observe(self, values: _Values, label: str, tool_id: str) -> None:
        """Add the state that one tool is in."""
        services, now = self._services, self._services.time.now()
        tool = services.toolbox.tools[tool_id]
        with services.toolbox.lock:
            own = [health for (_, used), health in services.toolbox.fallback_health().items() if used == tool_id]
            states = [health.observe(now) for health in (tool.health, *own)]
            level = tool.health.budget_level(now, services.log.trace.successes(tool_id))
        worst = max(states, key=_SEVERITY.index)
        for state in _STATES:
            values.add(defined.BREAKER_STATE, state == worst, label, state)
        values.add(defined.BUDGET, level, label)
        values.add(defined.AVAILABLE, tool.unavailable_fault is None, label)

    def _count_dropped(self) -> int:
        """The events dropped so far, also those of consumers that have been removed since."""
        now = sum(delivery.dropped for delivery in self._services.log.trace.deliveries())
        self._dropped += max(0, now - self._dropped_before)
        self._dropped_before = now
        return self._dropped
