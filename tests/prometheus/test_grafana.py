"""The Grafana dashboard and the alert rules ask only for series and labels that exist."""

import json
import re
from importlib.resources import files
from typing import Any

import pytest
import yaml
from tools import grafana_page

from failsoft.observe.metric_definitions import DEFINITIONS, MetricDefinition

GRAFANA = files("failsoft.prometheus") / "grafana"
DASHBOARD = json.loads((GRAFANA / "dashboard.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((GRAFANA / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
SHOWN = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
]
QUERIES = [expr for _, expr, _ in SHOWN] + [rule["expr"] for rule in RULES]

SERIES: dict[str, tuple[MetricDefinition, set[str]]] = {}
for one in DEFINITIONS:
    for suffix in ("_bucket", "_sum", "_count") if one.kind == "histogram" else ("",):
        SERIES[one.prometheus_name + suffix] = (one, {*one.label_names, *(["le"] if suffix == "_bucket" else [])})

FUNCTIONS = {"sum", "min", "max", "rate", "increase", "histogram_quantile", "topk", "vector"}
WORDS = {"by", "or", "unless", "offset", "m", "__range"}
BEGUN = re.compile(r"(failsoft_\w+(?:\{[^}]*\})?) unless \1 offset (\S+)\) or increase\(\1\[\2\]\)")
SELECTOR = re.compile(r"(\bfailsoft_\w+)(?:\{([^}]*)\})?(?:\[([^\]]*)\])?")


def faults(query: str) -> list[str]:
    """Everything that is wrong with a query."""
    found = []
    for name, selector, window in SELECTOR.findall(query):
        if name not in SERIES:
            found.append(f"no series {name}")
            continue
        definition, labels = SERIES[name]
        for matcher in filter(None, selector.split(",")):
            label, _, value = re.fullmatch(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matcher).groups()  # type: ignore[union-attr]
            if label not in labels:
                found.append(f"{name} has no label {label}")
            values = next((known.values for known in definition.labels if known.name == label), None)
            if values is not None and not value.startswith("$"):
                found += [f"{label} is never {each}" for each in value.split("|") if each not in values]
        if window and not re.search(rf"(rate|increase)\({name}", query):
            found.append(f"{name} has a range and no rate")
        if (definition.kind != "gauge" and not definition.own_name) != bool(window) and not BEGUN.search(query):
            found.append(f"{name} is a {definition.kind}")
    have = [SERIES[name][1] for name, _, _ in SELECTOR.findall(query) if name in SERIES]
    for labels in re.findall(r"by \(([^)]*)\)", query):
        found += [f"no label {label}" for label in labels.split(", ") if not all(label in each for each in have)]
    depth = 0
    for sign in query:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        found += ["parentheses"] * (depth < 0)
    found += ["parentheses"] * (depth != 0)
    rest = re.sub(r"by \([^)]*\)", "by", SELECTOR.sub("", query))
    found += [f"unknown word {word}" for word in re.findall(r"[A-Za-z_]\w*", rest) if word not in FUNCTIONS | WORDS]
    found += [f"{{{word}}} is no definition" for word in re.findall(r"\{([A-Z_]+)\}", query)]
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_existing_series_and_labels(query: str) -> None:
    assert "failsoft_" in query or query == "vector(1.1)"
    assert faults(query) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(rate(failsoft_no_such_total[5m]))",
        'sum(rate(failsoft_tool_calls_total{tenant="a"}[5m]))',
        'sum(rate(failsoft_tool_calls_total{outcome="ok"}[5m]))',
        "sum by (thread) (rate(failsoft_tool_calls_total[5m]))",
        "sum(rate(failsoft_tool_calls_total[5m])",
        "sum(failsoft_tool_calls_total)",
        "sum((failsoft_tool_calls_total unless failsoft_orphans offset 5m) or increase(failsoft_tool_calls_total[5m]))",
        "sum(failsoft_orphans[5m])",
        "summ(failsoft_orphans)",
        "sum({CALLS})",
    ],
)  # fmt: skip
def test_the_check_finds_a_wrong_query(wrong: str) -> None:
    assert faults(wrong)


@pytest.mark.parametrize(
    ("title", "query", "legend"), SHOWN, ids=[f"{title}-{at}" for at, (title, _, _) in enumerate(SHOWN)]
)
def test_a_legend_names_labels_that_the_query_keeps(title: str, query: str, legend: str) -> None:
    named = set(re.findall(r"\{\{(\w+)\}\}", legend))
    kept = re.findall(r"by \(([^)]*)\)", query)
    labels = (
        set(kept[0].split(", "))
        if kept
        else set.union(*[SERIES[name][1] for name, _, _ in SELECTOR.findall(query)], set())
    )
    assert named <= labels


def test_the_dashboard_has_the_promised_panels() -> None:
    text = " ".join(title.lower() for title, _, _ in SHOWN)
    for word in ("amplification", "unknown effects", "circuits", "lost", "duration of calls", "errors, top 10"):
        assert word in text
    assert {"p50 {{tool}}", "p95 {{tool}}", "p99 {{tool}}"} <= {legend for _, _, legend in SHOWN}
    assert any(panel["type"] == "state-timeline" for panel in DASHBOARD["panels"])


def test_the_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_there_is_an_alert_for_each_promised_case() -> None:
    found: dict[str, Any] = {rule["alert"]: rule for rule in RULES}
    assert "> 1.2" in found["FailsoftAmplification"]["expr"]
    assert found["FailsoftAmplification"]["for"] == "10m"
    assert "failsoft_effect_unknown_total" in found["FailsoftUnknownEffect"]["expr"]
    assert found["FailsoftUnknownEffect"]["labels"]["severity"] == "page"
    assert found["FailsoftBreakerOpen"]["for"] == "5m"
    assert "failsoft_retry_budget_ratio" in found["FailsoftRetryBudgetExhausted"]["expr"]
    for rule in RULES:
        assert rule["annotations"].keys() == {"summary", "description"}


def test_amplification_is_about_attempts_only_so_that_fallbacks_do_not_look_like_retries() -> None:
    queries = [rule["expr"] for rule in RULES if rule["alert"] == "FailsoftAmplification"]
    queries += [query for title, query, _ in SHOWN if title == "Amplification" and "failsoft" in query]
    assert len(queries) == 2
    for query in queries:
        assert {name for name, _, _ in SELECTOR.findall(query)} == {"failsoft_tool_attempts_total"}
        assert 'kind!="failed_with_retry"' in query.partition(" / ")[2]


def test_an_effect_with_which_a_series_begins_is_seen() -> None:
    queries = [query for query in QUERIES if "failsoft_effect_unknown_total" in query]
    assert len(queries) == 2
    for query in queries:
        assert BEGUN.search(query)


def test_a_circuit_that_is_probed_again_and_again_does_not_reset_the_alert() -> None:
    (query,) = [rule["expr"] for rule in RULES if rule["alert"] == "FailsoftBreakerOpen"]
    assert 'state=~"open|half_open"' in query


def test_the_files_are_what_the_generator_writes() -> None:
    for path, text in grafana_page.pages().items():
        assert path.read_text(encoding="utf-8") == text
