"""The definitions of the metrics that exporters publish."""

import re

import pytest

from failsoft.observe import events, metric_definitions
from failsoft.observe.metric_definitions import BUCKETS, DEFINITIONS, SPECIFIED, MetricDefinition
from failsoft.observe.metrics import Metrics

NAMES = [definition.prometheus_name for definition in DEFINITIONS]
PROMISED = """
failsoft_tool_calls_total failsoft_tool_attempts_total failsoft_tool_call_duration_seconds failsoft_breaker_state
failsoft_breaker_transitions_total failsoft_retry_budget_ratio failsoft_effect_unknown_total failsoft_fallback_total
failsoft_turn_duration_seconds failsoft_turn_time_seconds_total failsoft_orphans
""".split()
SEVEN = """
error_count transient_error_count permanent_error_count retry_count retry_success_rate circuit_breaker_opens timeout_count
""".split()


@pytest.mark.parametrize("name", PROMISED)
def test_the_promised_series_are_defined(name: str) -> None:
    assert name in NAMES


@pytest.mark.parametrize("figure", [*SEVEN, "fallback_count", "recovery_seconds"])
def test_the_metrics_of_the_specification_keep_their_own_names(figure: str) -> None:
    assert f"failsoft_{figure}" in NAMES
    assert figure in Metrics().as_dict()


def test_there_is_no_name_twice() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len({definition.name for definition in DEFINITIONS}) == len(DEFINITIONS)


def test_every_definition_of_the_module_is_in_the_list() -> None:
    made = [value for value in vars(metric_definitions).values() if isinstance(value, MetricDefinition)]
    assert {*made, *SPECIFIED} == {*DEFINITIONS}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_names_follow_the_conventions(definition: MetricDefinition) -> None:
    assert re.fullmatch(r"failsoft(\.[a-z_]+)+", definition.name)
    assert re.fullmatch(r"[a-z_]+", definition.prometheus_name)
    assert definition.prometheus_name.endswith("_total") == (definition.kind == "counter" and not definition.own_name)
    assert definition.description.endswith(".")
    assert len(set(definition.label_names)) == len(definition.labels)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_labels_are_bounded(definition: MetricDefinition) -> None:
    for label in definition.labels:
        assert label.values is None or 0 < len(label.values) < 20
        assert (label.values is None) == (label.attribute in ("gen_ai.tool.name", "failsoft.fallback.to"))
        assert label.name not in ("tenant", "thread", "error", "call_id", "turn_id", "message")


def test_definitions_name_existing_events() -> None:
    known = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
    named = {word for definition in DEFINITIONS for word in re.findall(r"`([A-Z]\w+)`", definition.follows)}
    assert named
    assert named <= known


def test_the_buckets_are_those_of_the_convention() -> None:
    assert BUCKETS[0] == 0.01
    assert BUCKETS[-1] == pytest.approx(81.92)
    assert len(BUCKETS) == 14
