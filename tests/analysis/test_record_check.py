"""Records from outside are checked for everything that readers rely on."""

from __future__ import annotations

from typing import Any

import pytest

from failsoft.analysis.record_check import find_mistake, parse_line

GOOD = {"event_type": "TurnStarted", "timestamp": "2026-01-01T00:00:00.000Z"}


@pytest.mark.parametrize("more", [{}, {"seq": 1, "needs": {"b": ["a"]}, "labels": {"x": "X"}}, {"something_new": [1]}])
def test_an_event_has_no_mistake(more: dict[str, Any]) -> None:
    assert find_mistake({**GOOD, **more}) == ""


@pytest.mark.parametrize(
    ("event", "mistake"),
    [
        ([], "it is not an object"),
        ({}, "it has no event_type"),
        ({**GOOD, "seq": True}, "seq is out of range"),
        ({**GOOD, "delay_ms": 1e15}, "delay_ms is out of range"),
        ({**GOOD, "timestamp": "noon"}, "'noon' is not an ISO time"),
        ({**GOOD, "needs": {"b": [1]}}, "needs of 'b' is not a list of ids"),
        ({**GOOD, "labels": {"b": 1}}, "a label is not text"),
    ],
)
def test_a_mistake_is_named(event: Any, mistake: str) -> None:
    assert find_mistake(event) == mistake


@pytest.mark.parametrize("line", ["NaN", '{"a": 1e999}', "{", "[" * 100_000])
def test_a_line_that_is_not_json_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="."):
        parse_line(line)
