"""Write the Grafana dashboard and the alert rules from the metric definitions: ``python -m tools.grafana_page``.

A query names a metric by its definition, so a metric that is renamed or removed changes or breaks the page here, not in
front of an operator. ``{name}`` in a query is the series of the definition of that name in ``metric_definitions``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tools.pages import write

from failsoft.observe import metric_definitions as defined
from failsoft.observe.metric_definitions import DEFINITIONS, MetricDefinition

FOLDER = Path(__file__).parent.parent / "src" / "failsoft" / "prometheus" / "grafana"
DASHBOARD = FOLDER / "dashboard.json"
ALERTS = FOLDER / "alerts.yaml"

SERIES = {name: value.prometheus_name for name, value in vars(defined).items() if isinstance(value, MetricDefinition)}
SERIES |= {one.name.removeprefix("failsoft.").upper(): one.prometheus_name for one in defined.SPECIFIED}
WHERE = '{tool=~"$tool"}'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    """One query of a panel."""

    text: str  # with the names of definitions in braces
    legend: str


class Panel(NamedTuple):
    """One panel: a third, a half or the whole of a row."""

    title: str
    description: str
    kind: str
    unit: str
    width: int  # of 24 columns
    queries: tuple[Query, ...]
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed


def rate(series: str, by: str, where: str = WHERE) -> str:
    """The rate of a counter, added up by labels."""
    return f"sum by ({by}) (rate({{{series}}}{where}[$__rate_interval]))"


def quantile(share: float) -> str:
    """A quantile of the duration of calls, by tool."""
    return f"histogram_quantile({share}, sum by (le, tool) (rate({{CALL_DURATION}}_bucket{WHERE}[$__rate_interval])))"


def amplification(window: str, where: str = "") -> str:
    """Attempts per call, by tool. Of all attempts for one call, only the last is not followed by a retry.

    Calls are not counted: a fallback makes attempts for the calls of another tool.
    """
    last = where.replace("}", ',kind!="failed_with_retry"}') or '{kind!="failed_with_retry"}'
    return f"sum by (tool) (rate({{ATTEMPTS}}{where}[{window}])) / sum by (tool) (rate({{ATTEMPTS}}{last}[{window}]))"


def recent(series: str, window: str, where: str = "") -> str:
    """How much each series of a counter has grown. ``increase`` does not see the value with which a series begins."""
    return (
        f"({{{series}}}{where} unless {{{series}}}{where} offset {window}) or increase({{{series}}}{where}[{window}])"
    )


STATES = {"0": "closed", "1": "half-open", "2": "open"}
PANELS = (
    Panel(
        "Unknown effects", "Writes that may have happened: a person has to find out.", "stat", "short", 6,
        (Query(f"sum({recent('EFFECT_UNKNOWN', '$__range', WHERE)})", "calls"),),
        {"thresholds": [("green", None), ("red", 0.5)], "decimals": 0},
    ),
    Panel(
        "Open circuits", "Tools whose circuit is open now.", "stat", "short", 6,
        (Query('sum(max by (tool) ({BREAKER_STATE}{tool=~"$tool",state="open"}))', "circuits"),),
        {"thresholds": [("green", None), ("red", 1)]},
    ),
    Panel(
        "Lowest retry budget", "0 is exhausted: failures are not retried.", "stat", "percentunit", 6,
        (Query(f"min({{BUDGET}}{WHERE})", "budget"),),
        {"thresholds": [("red", None), ("green", 0.2)]},
    ),
    Panel(
        "Abandoned attempts that still run", "They hold OS threads and connections.", "stat", "short", 6,
        (Query(f"sum({{ORPHANS}}{WHERE})", "attempts"),),
        {"thresholds": [("green", None), ("orange", 1)]},
    ),
    Panel(
        "Amplification", "Attempts per call. Above 1.1 the retries themselves become load.", "timeseries", "short", 12,
        (Query(amplification("$__rate_interval", WHERE), "{{tool}}"), Query("vector(1.1)", "1.1")),
    ),
    Panel(
        "Calls by outcome", "Refused calls were not run.", "timeseries", "reqps", 12,
        (Query(rate("CALLS", "outcome"), "{{outcome}}"),), {"stack": True},
    ),
    Panel(
        "Circuits", "The state of each circuit over time.", "state-timeline", "short", 12,
        (Query('max by (tool) ({BREAKER_STATE}{tool=~"$tool",state="open"} * 2 or '
               '{BREAKER_STATE}{tool=~"$tool",state="half_open"})', "{{tool}}"),),
        {"mappings": STATES},
    ),
    Panel(
        "Circuit transitions", "How often circuits change.", "timeseries", "short", 12,
        (Query(f"sum by (tool, from, to) (increase({{BREAKER_TRANSITIONS}}{WHERE}[$__rate_interval]))", "{{tool}}: {{from}} to {{to}}"),),
    ),
    Panel(
        "Duration of calls", "With all attempts, waits and fallbacks.", "timeseries", "s", 12,
        tuple(Query(quantile(share), f"p{share * 100:.0f} {{{{tool}}}}") for share in (0.5, 0.95, 0.99)),
    ),
    Panel(
        "Seconds lost per second", "Failed attempts, and waits before retries.", "timeseries", "s", 12,
        (Query(rate("LOST_TIME", "tool, part"), "{{tool}} {{part}}"),), {"stack": True},
    ),
    Panel(
        "Errors, top 10", "By tool and error code.", "timeseries", "reqps", 12,
        (Query(f"topk(10, {rate('ERRORS', 'tool, code')})", "{{tool}} {{code}}"),),
    ),
    Panel(
        "Retry success rate", "Percentage of retries that worked, since the start.", "timeseries", "percent", 12,
        (Query(f"{{RETRY_SUCCESS_RATE}}{WHERE}", "{{tool}}"),),
    ),
    Panel(
        "Fallbacks", "How often another tool was used.", "timeseries", "reqps", 12,
        (Query(rate("FALLBACKS", "tool, to"), "{{tool}} to {{to}}"),),
    ),
    Panel(
        "Recovery time", "Mean seconds from the first failure to success.", "timeseries", "s", 12,
        (Query(f"{rate('RECOVERY_DURATION_SUM', 'tool')} / {rate('RECOVERY_DURATION_COUNT', 'tool')}", "{{tool}}"),),
    ),
    Panel(
        "Where the time of turns goes", "Seconds per second.", "timeseries", "s", 12,
        (Query(rate("TURN_TIME", "part", ""), "{{part}}"),), {"stack": True},
    ),
    Panel(
        "Duration of turns", "By outcome.", "timeseries", "s", 12,
        (Query("histogram_quantile(0.95, sum by (le, outcome) (rate({TURN_DURATION}_bucket[$__rate_interval])))", "p95 {{outcome}}"),),
    ),
)  # fmt: skip


class Alert(NamedTuple):
    """One alert rule."""

    name: str
    query: str
    wait: str
    severity: str
    summary: str
    description: str


RULES = (
    Alert(
        "FailsoftAmplification", f"{amplification('10m')} > 1.2", "10m", "warning",
        "{{ $labels.tool }} makes {{ $value | humanize }} attempts per call",
        "Retries add more than a fifth to the load of the service behind it. Look for its most frequent error code.",
    ),
    Alert(
        "FailsoftUnknownEffect", f"sum by (tool) ({recent('EFFECT_UNKNOWN', '15m')}) > 0", "0m", "page",
        "A call of {{ $labels.tool }} failed or was cancelled, and may have acted",
        "Find out whether it did, before anyone repeats it. `failsoft trace` has the calls with effect: unknown.",
    ),
    Alert(
        "FailsoftBreakerOpen", 'max by (tool) ({BREAKER_STATE}{state=~"open|half_open"}) == 1', "5m", "warning",
        "The circuit of {{ $labels.tool }} has not been closed for 5 minutes",
        "Calls are refused, or go to fallbacks. Probes fail, or there are no calls that could be probes.",
    ),
    Alert(
        "FailsoftRetryBudgetExhausted", "min by (tool) ({BUDGET}) < 0.05", "5m", "warning",
        "The retry budget of {{ $labels.tool }} is exhausted",
        "Too many calls fail: further failures are not retried until more calls succeed.",
    ),
    Alert(
        "FailsoftToolUnavailable", "min by (tool) ({AVAILABLE}) == 0", "5m", "warning",
        "{{ $labels.tool }} is disabled or misconfigured",
        "All its calls are refused. `rt.inspect()` has the reason.",
    ),
    Alert(
        "FailsoftOrphans", "sum by (tool) ({ORPHANS}) > 8", "5m", "warning",
        "{{ $value }} abandoned attempts of {{ $labels.tool }} still run",
        "Each holds an OS thread or a task. Give the tool's client a timeout, or run it with isolation: process.",
    ),
)  # fmt: skip


def expand(query: str) -> str:
    """Put the names of series into a query."""
    for name in sorted(SERIES, key=len, reverse=True):
        query = query.replace(f"{{{name}}}", SERIES[name])
        for suffix in ("SUM", "COUNT"):
            query = query.replace(f"{{{name}_{suffix}}}", f"{SERIES[name]}_{suffix.lower()}")
    return query


def _panel(panel: Panel, id: int, x: int, y: int) -> dict[str, Any]:
    steps = [{"color": color, "value": value} for color, value in panel.more.get("thresholds", [("green", None)])]
    defaults: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if "decimals" in panel.more:
        defaults["decimals"] = panel.more["decimals"]
    if panel.more.get("stack"):
        defaults["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 30}
    if "mappings" in panel.more:
        options = {value: {"text": text, "index": int(value)} for value, text in panel.more["mappings"].items()}
        defaults["mappings"] = [{"type": "value", "options": options}]
    return {
        "id": id,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": {"h": 4 if panel.kind == "stat" else 8, "w": panel.width, "x": x, "y": y},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": expand(query.text),
                "legendFormat": query.legend,
            }
            for at, query in enumerate(panel.queries)
        ],
    }


def _panels() -> list[dict[str, Any]]:
    made, x, y, height = [], 0, 0, 0
    for id, panel in enumerate(PANELS, 1):
        if x + panel.width > 24:
            x, y = 0, y + height
        made.append(_panel(panel, id, x, y))
        x, height = x + panel.width, made[-1]["gridPos"]["h"]
    return made


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    tools = f"label_values({expand('{CALLS}')}, tool)"
    return {
        "title": "failsoft",
        "uid": "failsoft",
        "description": "Tool calls of agents: failures, retries, circuits, fallbacks, time.",
        "tags": ["failsoft"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                {
                    "name": "tool", "type": "query", "label": "Tool", "datasource": SOURCE, "query": tools,
                    "definition": tools, "refresh": 2, "includeAll": True, "multi": True, "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": _panels(),
    }  # fmt: skip


def alerts() -> str:
    """The alert rules as Prometheus loads them."""
    lines = [
        "# Written by tools/grafana_page.py. For `rule_files` of Prometheus.",
        "groups:",
        "- name: failsoft",
        "  rules:",
    ]
    for rule in RULES:
        lines += [
            f"  - alert: {rule.name}",
            f"    expr: {json.dumps(expand(rule.query))}",
            f"    for: {rule.wait}",
            f"    labels: {{severity: {rule.severity}}}",
            "    annotations:",
            f"      summary: {json.dumps(rule.summary)}",
            f"      description: {json.dumps(rule.description)}",
        ]
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Return the dashboard and the rules."""
    assert DEFINITIONS
    return {DASHBOARD: json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n", ALERTS: alerts()}


if __name__ == "__main__":
    write(pages())
