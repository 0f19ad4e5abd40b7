from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from unittest.mock import ANY

import pytest

from failsoft.core.model.fault import Code
from failsoft.core.model.options import (
    BreakerOptions,
    Fallback,
    Isolation,
    Override,
    RetryOptions,
    RetryRule,
    ToolOptions,
    TurnOptions,
)


def test_the_defaults_are_the_documents():
    assert ToolOptions(id="flight_search").timeout == 30  # S-spec 4.1
    retry = RetryOptions()  # S-spec 2.1, 2.2
    assert (retry.max_attempts, retry.initial_delay, retry.max_delay) == (5, 0.1, 0.8)
    assert (retry.multiplier, retry.jitter_percent, retry.max_total_time) == (2, 10, 2)
    breaker = BreakerOptions()  # S-spec 3.2, R1, R3
    assert (breaker.failure_threshold, breaker.success_threshold, breaker.timeout) == (5, 1, 30)
    assert breaker.count == "attempts"
    turn = TurnOptions()  # S-spec 4.2, R7
    assert (turn.timeout, turn.on_timeout) == (300, "leave")


def test_durations_are_read_where_they_are_given():
    retry = RetryOptions(initial_delay="50ms", max_delay=timedelta(seconds=2), max_total_time="1m30s")
    assert (retry.initial_delay, retry.max_delay, retry.max_total_time) == (0.05, 2, 90)
    assert BreakerOptions(timeout="10s").timeout == 10
    assert ToolOptions(id="a", timeout=None).timeout is None
    assert TurnOptions(timeout=None).timeout is None


def test_a_change_keeps_the_rest():
    options = ToolOptions(id="a", timeout="3s", retry=RetryOptions(initial_delay="50ms"))
    changed = replace(options, retry=replace(options.retry, max_attempts=2), breaker=replace(options.breaker))
    assert changed == ToolOptions(id="a", timeout="3s", retry=RetryOptions(initial_delay="50ms", max_attempts=2))


def test_options_are_frozen_and_go_to_other_processes():
    options = ToolOptions(id="a", isolation="process", defaults={"flights": []}, fallbacks=["b"])
    with pytest.raises(FrozenInstanceError):
        options.timeout = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del options.timeout
    with pytest.raises(AttributeError):
        options.timeuot = 3  # type: ignore[attr-defined]
    assert options.timeout == 30
    assert copy.deepcopy(options) == options
    assert pickle.loads(pickle.dumps(options)) == options


def test_short_forms_become_whole_values():
    options = ToolOptions(id="flight_search", fallbacks=["backup"], isolation="process", tags=["travel"])
    assert options.label == "flight search"
    assert options.fallbacks == (Fallback(tool="backup"),)
    assert options.isolation == Isolation(kind="process")
    assert options.tags == ("travel",)


def test_codes_in_every_spelling():
    rule = RetryRule(max_attempts=3, handle_errors=("Unavailable", "DEADLINE_EXCEEDED", "ErrorStatusCode.Internal"))
    assert rule.handle_errors == (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.INTERNAL)
    assert Override(http_status=503, to_code="NotFound").to_code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("said", "safe"),
    [
        ({}, None),
        ({"read_only": True}, True),
        ({"idempotent": True}, True),
        ({"idempotent": False}, False),
        ({"idempotent": False, "idempotency_key": "key"}, True),
    ],
)
def test_read_only_or_idempotent_tools_are_safe_to_repeat(said, safe):
    assert ToolOptions(id="a", **said).safe_to_repeat is safe


@pytest.mark.parametrize(
    ("make", "wrong", "said"),
    [
        (RetryOptions, {"max_attempts": 0}, "max_attempts: 0 is not a whole number of at least 1"),
        (RetryOptions, {"max_attempts": True}, "max_attempts: True"),
        (RetryOptions, {"max_attempts": 2.5}, "max_attempts: 2.5"),
        (RetryOptions, {"initial_delay": 30}, 'initial_delay: 30 has no unit: write "30s"'),
        (RetryOptions, {"max_delay": "-1s"}, "max_delay: '-1s' is not a duration"),
        (RetryOptions, {"max_total_time": math.nan}, "max_total_time: nan is not a duration"),
        (RetryOptions, {"multiplier": 0.5}, "multiplier: 0.5 is not a finite number of at least 1"),
        (RetryOptions, {"multiplier": math.inf}, "multiplier: inf is not a finite number"),
        (RetryOptions, {"multiplier": math.nan}, "multiplier: nan is not a finite number"),
        (RetryOptions, {"multiplier": "2"}, "multiplier: '2' is not a finite number"),
        (RetryOptions, {"jitter_percent": 101}, "jitter_percent: 101 is not a finite number between 0 and 100"),
        (RetryOptions, {"rules": [{"max_attempts": 3}]}, "rules: expected RetryRule, got"),
        (RetryOptions, {"rules": "x"}, "rules: 'x' is not a list of RetryRule"),
        (RetryRule, {"max_attempts": 3, "handle_errors": ()}, "handle_errors: the list is empty"),
        (RetryRule, {"max_attempts": 3, "handle_errors": "UNAVAILABLE"}, "handle_errors: .* is not a list"),
        (RetryRule, {"max_attempts": 3, "handle_errors": ["UNAVAILBLE"]}, "did you mean UNAVAILABLE?"),
        (RetryRule, {"max_attempts": 0, "handle_errors": ["UNAVAILABLE"]}, "max_attempts: 0"),
        (BreakerOptions, {"failure_threshold": 0}, "failure_threshold: 0"),
        (BreakerOptions, {"success_threshold": 0}, "success_threshold: 0"),
        (BreakerOptions, {"timeout": "0s"}, "timeout: '0s' is not longer than zero"),
        (BreakerOptions, {"timeout": None}, "timeout: None is not a duration"),
        (
            BreakerOptions,
            {"count": "atempts"},
            "count: 'atempts' is not one of attempts, calls; did you mean attempts?",
        ),
        (Fallback, {"tool": ""}, "tool: ''"),
        (Fallback, {"tool": "a", "handle_errors": ["NOPE"]}, "handle_errors: 'NOPE' is not an error code"),
        (Override, {"as_": "permanent"}, "expected a condition"),
        (Override, {"http_status": 503}, "expected a result"),
        (Override, {"http_status": 99, "as_": "permanent"}, "http_status: 99"),
        (Override, {"http_status": 600, "as_": "permanent"}, "http_status: 600"),
        (Override, {"code": 503, "as_": "permanent"}, "code: 503 is not a text"),
        (Override, {"exception": ValueError, "as_": "permanent"}, "exception: <class 'ValueError'> is not a text"),
        (Override, {"pattern": b"lunch", "as_": "permanent"}, "pattern: b'lunch' is not a text"),
        (Override, {"matches": "lunch", "as_": "permanent"}, "matches: 'lunch' is not a function"),
        (Override, {"http_status": 503, "as_": "permanant"}, "as: .* did you mean permanent?"),
        (Override, {"http_status": 503, "category": "transient"}, "category: .* did you mean tool_transient?"),
        (Override, {"http_status": 503, "effect": "maybe"}, "effect: 'maybe' is not one of none, unknown, happened"),
        (Override, {"http_status": 503, "to_code": "NOPE"}, "to_code: 'NOPE' is not an error code"),
        (Override, {"pattern": "(", "as_": "permanent"}, r"pattern: '\(' is not a regular expression"),
        (Override, {"http_status": 503, "as_": "transient", "category": "tool_validation"}, "category: .* go together"),
        (Override, {"http_status": 503, "as_": "permanent", "category": "tool_transient"}, "category: .* go together"),
        (Isolation, {"kind": "fork"}, "isolation: 'fork' is not one of thread, process"),
        (Isolation, {"max_calls": 3}, "isolation: max_calls, max_memory, context and values belong to"),
        (Isolation, {"values": "json"}, "isolation: max_calls, max_memory, context and values belong to"),
        (Isolation, {"kind": "process", "values": "xml"}, "values: 'xml' is not one of pickle, json"),
        (Isolation, {"kind": "process", "max_calls": 0}, "max_calls: 0"),
        (Isolation, {"kind": "process", "max_memory": 512}, 'max_memory: 512 is too small: .* like "512MB"'),
        (Isolation, {"kind": "process", "context": ["tenant"]}, "context: 'tenant' is not an import path"),
        (ToolOptions, {"id": ""}, "id: ''"),
        (ToolOptions, {"id": "a", "label": 3}, "label: 3"),
        (ToolOptions, {"id": "a", "tags": "travel"}, "tags: 'travel' is not a list of texts"),
        (ToolOptions, {"id": "a", "timeout": 30}, 'timeout: 30 has no unit: write "30s"'),
        (ToolOptions, {"id": "a", "timeout": "0s"}, "timeout: '0s' is not longer than zero"),
        (ToolOptions, {"id": "a", "retry": {"max_attempts": 3}}, "retry: expected RetryOptions or a mapping"),
        (
            ToolOptions,
            {"id": "a", "breaker": None},
            "breaker: expected BreakerOptions or a mapping such as .*, got None",
        ),
        (ToolOptions, {"id": "a", "fallbacks": "backup"}, "fallbacks: 'backup' is not a list"),
        (ToolOptions, {"id": "a", "fallbacks": [3]}, "fallbacks: expected Fallback or a tool's id, got 3"),
        (ToolOptions, {"id": "a", "classification": [{}]}, "classification: {} is neither an Override nor a function"),
        (ToolOptions, {"id": "a", "required": "yes"}, "required: 'yes' is neither true nor false"),
        (ToolOptions, {"id": "a", "idempotent": 1}, "idempotent: 1 is neither true nor false"),
        (ToolOptions, {"id": "a", "read_only": None}, "read_only: None is neither true nor false"),
        (ToolOptions, {"id": "a", "accept_partial": 0}, "accept_partial: 0 is not one of true, false, after_retries"),
        (ToolOptions, {"id": "a", "retry": 3}, r"retry: expected RetryOptions or a mapping such as .*, got 3"),
        (ToolOptions, {"id": "a", "fallbacks": [print]}, "expected Fallback or a tool's id, got"),
        (ToolOptions, {"id": "a", "defaults": []}, r"defaults: \[\] is not a mapping"),
        (ToolOptions, {"id": "a", "defaults": {1: 2}}, "defaults: {1: 2} is not a mapping"),
        (ToolOptions, {"id": "a", "idempotency_key": ""}, "idempotency_key: ''"),
        (ToolOptions, {"id": "a", "isolation": "fork"}, "isolation: 'fork'"),
        (ToolOptions, {"id": "a", "isolation": 3}, 'isolation: expected Isolation or "thread" or "process", got 3'),
        (ToolOptions, {"id": "a", "concurrency": 0}, "concurrency: 0"),
        (ToolOptions, {"id": "a", "queue": -1}, "queue: -1"),
        (ToolOptions, {"id": "a", "read_only": True, "idempotent": False}, "a read-only tool is idempotent"),
        (TurnOptions, {"timeout": 5}, 'timeout: 5 has no unit: write "5s"'),
        (TurnOptions, {"on_timeout": "kill"}, "on_timeout: 'kill' is not one of leave, cancel"),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(make, wrong, said):
    with pytest.raises(ValueError, match=said):
        make(**wrong)


def test_functions_may_classify():
    def classify(error):
        return "permanent"

    override = Override(http_status=503, as_="permanent")
    assert ToolOptions(id="a", classification=[override, classify]).classification == (override, classify)


def test_a_retry_budget_is_on_or_off() -> None:
    assert RetryOptions().budget is True
    with pytest.raises(ValueError, match="budget"):
        RetryOptions(budget=3)  # type: ignore[arg-type]


def test_options_leave_it_to_others_what_equals_them():
    assert RetryOptions() == ANY
    assert RetryOptions() != BreakerOptions()
    assert {RetryOptions(): 1} == {RetryOptions(max_attempts=5): 1}
    assert RetryOptions(max_attempts=2) != RetryOptions()
