from __future__ import annotations

import pytest

from failsoft.config.layering import assemble, finish
from failsoft.core.model.options import BreakerOptions, RetryOptions, ToolOptions


def test_one_layer_gives_the_given_options():
    assert assemble({"id": "search"}) == ToolOptions(id="search")
    assert assemble({"id": "search", "timeout": "3s"}) == ToolOptions(id="search", timeout="3s")


def test_later_layers_override_earlier_ones():
    options = assemble({"timeout": "1s", "tags": ["a"]}, {"id": "search", "timeout": "2s"}, {"timeout": "3s"})
    assert options.timeout == 3
    assert options.tags == ("a",)


def test_retry_and_breaker_are_merged_field_by_field():
    options = assemble(
        {"retry": {"max_attempts": 2, "multiplier": 3.0}, "breaker": {"failure_threshold": 7}},
        {"id": "search", "retry": {"max_attempts": 4}, "breaker": {"timeout": "1s"}},
    )
    assert options.retry == RetryOptions(max_attempts=4, multiplier=3.0)
    assert options.breaker == BreakerOptions(failure_threshold=7, timeout="1s")


def test_a_finished_value_replaces_all_and_is_changed_by_what_comes_later():
    finished = RetryOptions(max_attempts=9)
    assert assemble({"id": "a", "retry": {"multiplier": 3.0}}, {"retry": finished}).retry == finished
    later = assemble({"id": "a", "retry": finished}, {"retry": {"multiplier": 3.0}}).retry
    assert later == RetryOptions(max_attempts=9, multiplier=3.0)


def test_declared_effects_replace_those_of_lower_layers():
    cautious = {"idempotent": False}
    assert assemble(cautious, {"id": "a"}).safe_to_repeat is False
    assert assemble(cautious, {"id": "a", "read_only": True}).safe_to_repeat is True
    assert assemble({"id": "a", "read_only": True}, cautious).safe_to_repeat is False
    assert assemble({"id": "a", "idempotency_key": "key"}, {"idempotent": True}).idempotency_key == "key"


def test_a_wrong_field_is_reported_when_the_layers_are_merged():
    with pytest.raises(ValueError, match="max_attempts: 0 is not a whole number of at least 1"):
        assemble({"id": "a", "retry": {"max_attempts": 0}})


def test_a_finished_layer_holds_finished_values():
    assert finish({"retry": {"max_attempts": 2}, "timeout": "3s"}) == {
        "retry": RetryOptions(max_attempts=2),
        "timeout": "3s",
    }
