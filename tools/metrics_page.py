"""Write docs/reference/metrics.md from the metrics: ``python -m tools.metrics_page``."""

from __future__ import annotations

from pathlib import Path

from tools.pages import DOCS, table, write

from failsoft.observe import metric_definitions, metrics
from failsoft.observe.metric_definitions import MetricDefinition

PAGE = DOCS / "reference" / "metrics.md"

INTRO = """# Metrics

<!-- Written by tools/metrics_page.py from src/failsoft/observe/metrics.py and metric_definitions.py. Change those. -->

`rt.metrics("flight_search")` gives one tool's metrics since the runtime was made, as a plain dict. They are counted from
the [event stream](events.md): the last column names the event, so you can count the same things your own way with
`rt.subscribe(fn)`.

A fallback's attempts are the fallback's own: `error_count` of the primary does not contain them. Calls that were refused
are no errors: nothing was tried.
"""

EXAMPLE = """## Reading them

```python
import asyncio

from failsoft import Runtime
from failsoft.testing import FaultPlan, virtual_time


async def search(city: str) -> str:
    return f"hotels in {city}"


async def main() -> None:
    rt = Runtime()
    plan = FaultPlan("503, 503, ok, auth")
    rt.add(plan.wrap(search), read_only=True)
    for _ in range(2):
        await rt.call("search", {"city": "PAR"})
    for name, value in rt.metrics("search").items():
        if value:
            print(name, value)


with virtual_time() as clock:
    clock.run(main())
```

```text
error_count 3
transient_error_count 2
permanent_error_count 1
retry_count 2
retry_success_rate 50.0
recovery_seconds …
success_count 1
failed_count 1
escalation_count 1
```

Two calls, four attempts: the first call failed twice and then worked, the second met a bad key. Of two retries one
worked, so the rate is 50 %.
"""

MEANINGS = {
    "error_count": "Attempts that failed.",
    "transient_error_count": "Those that may pass by themselves.",
    "permanent_error_count": "Those that will not.",
    "retry_count": "Failed attempts that were followed by another one.",
    "retry_success_rate": "Retries that worked, in percent; `None` without retries.",
    "circuit_breaker_opens": "How often the circuit opened.",
    "timeout_count": "Attempts that ran into the tool's timeout, or into a timeout of the tool's own client.",
    "fallback_count": "How often another tool stood in for this one.",
    "recovery_seconds": "Mean time to recover: from a call's first failure to its success by retry or by a fallback, and from a circuit's opening to its closing; `None` without one.",
    "success_count": "Calls that returned a value.",
    "failed_count": "Calls that ran and returned none.",
    "refused_count": "Calls that were not run: circuit open, tool missing.",
    "held_count": "Calls that waited because the service had asked to be left alone.",
    "cancelled_count": "Calls whose caller was cancelled, or whose turn ended.",
    "skipped_count": "Calls that were not run because a dependency failed, or the turn's time was up.",
    "orphaned_count": "Attempts that still ran after their deadline, or their caller's cancellation.",
    "loop_blocked_count": "How often an async tool kept the event loop past its own deadline.",
    "late_result_count": "Results that came after the turn had gone on without them.",
    "escalation_count": "Failures that an operator must know about.",
    "loops_prevented": "Calls of a model that went in circles, answered without running the tool.",
    "kill_count": "Attempts whose process was killed.",
}

MORE = {  # metrics that are more than the count of one event type
    "transient_error_count": "`ToolError` with `classification: transient`",
    "permanent_error_count": "`ToolError` with `classification: permanent`",
    "retry_count": "`ToolError` with `decision: retry`",
    "retry_success_rate": "`RetrySucceeded` to `retry_count`",
    "recovery_seconds": "`recovery_ms` of `RetrySucceeded`, `CallSucceeded`, `CircuitClosed`",
    "success_count": "`CallSucceeded`",
    "kill_count": "`ToolError` with `killed`",
}


SERIES = f"""## Series

Exporters publish these: `failsoft.prometheus` under the name in the first column, in which the names of
OpenTelemetry (`failsoft.tool.calls`) get underscores, the unit and `_total`. `rt.samples()` has those that come from the
runtime.

- *runtime*: read from the runtime's counters when it is asked. *events*: counted from the event stream, from the moment that the
  exporter was made.
- `tool` is the id of a registered tool. Names that a model invented count as `{metric_definitions.UNKNOWN_TOOL}`. The first
  {metric_definitions.MOST_TOOLS} registered tools have series of their own; the others count as `{metric_definitions.OTHER_TOOL}`.
- No series has a tenant, a thread, an id or the text of an error.
- The metrics of the specification keep their names, so their type is *unknown* in Prometheus, where counters end in `_total`.
- `failsoft_tool_attempts_total`: with `failed_with_retry` a retry followed the attempt; `successful_with_retry` was one. Attempts
  divided by those without `failed_with_retry` is the amplification: 1 without retries.
- A call that still runs at its turn's deadline counts as `timed_out`, and once more when it ends by itself. Its duration is counted
  once, until the deadline.
- Calls count for the tool that was asked for; a refused call counts for the last tool that refused it. Attempts count for the
  tool that ran.
"""


def _series(definition: MetricDefinition) -> tuple[str, str, str, str, str]:
    labels = ", ".join(f"`{name}`" for name in definition.label_names)
    kind = "unknown" if definition.own_name and definition.kind == "counter" else definition.kind
    return (
        f"`{definition.prometheus_name}`",
        kind,
        labels,
        definition.description,
        f"{definition.source}: {definition.follows}",
    )


LABELS = "The values of the other labels:"


def _label_rows() -> list[tuple[str, str]]:
    """Every label with a fixed set of values, and where its values differ, the series that have it."""
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for definition in metric_definitions.DEFINITIONS:
        for label in definition.labels:
            if label.values is not None:
                rows.setdefault((label.name, label.values), []).append(f"`{definition.prometheus_name}`")
    return [
        (f"`{name}` of {', '.join(series)}", ", ".join(f"`{value}`" for value in values))
        for (name, values), series in rows.items()
    ]


def pages() -> dict[Path, str]:
    """Return the generated page."""
    found = metrics.Metrics().as_dict()
    if found.keys() != MEANINGS.keys():
        raise SystemExit(
            f"metrics without a meaning, or the reverse: {', '.join(sorted(found.keys() ^ MEANINGS.keys()))}"
        )
    events = {name: f"`{event}`" for event, name in metrics._COUNTED.items()}
    rows = [(f"`{name}`", MEANINGS[name], MORE.get(name) or events[name]) for name in found]
    return {
        PAGE: "\n\n".join(
            [INTRO.strip(), table(("metric", "meaning", "from"), rows), EXAMPLE.strip(), *_series_parts()]
        )
        + "\n"
    }


def _series_parts() -> list[str]:
    rows = [_series(definition) for definition in metric_definitions.DEFINITIONS]
    series = table(("series", "kind", "labels", "meaning", "from"), rows)
    return [SERIES.strip(), series, LABELS, table(("label", "values"), _label_rows())]


if __name__ == "__main__":
    write(pages())
