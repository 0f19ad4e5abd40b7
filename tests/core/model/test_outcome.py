"""Outcome: the one value for every way a call can end."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import traceback
from typing import Any

import pytest

from failsoft import errors
from failsoft.core.explain.explanation import explain
from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.explanation import Explanation
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.outcome import Outcome, succeed

CAUSE = ValueError("Invalid airport code: XYZ")
INVALID = Fault(
    Code.INVALID_ARGUMENT,
    "permanent",
    "tool_validation",
    "none",
    "Invalid airport code: XYZ",
    "Invalid input won't change on retry",
    "text",
    cause=CAUSE,
)
DONE: Outcome[list[str]] = Outcome("flights", "flight_search", "succeeded", ["AF1"], 1, "flight_search", 0.5)


def failed(fault: Fault | None, **facts: Any) -> Outcome[Any]:
    return Outcome("flights", "flight_search", "failed", attempts=1, fault=fault, **facts)


def test_a_value_is_unwrapped() -> None:
    assert DONE.unwrap() == ["AF1"]
    assert Outcome("a", "a", "succeeded").unwrap() is None


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (INVALID, errors.CallFailed),
        (None, errors.CallFailed),
        (builtin_faults.circuit_open("flight_search", 12.0), errors.CircuitOpen),
        (builtin_faults.tool_timeout(30.0), errors.ToolTimeout),
        (builtin_faults.unknown_tool("flight_search"), errors.ToolUnavailable),
        (INVALID._replace(category="tool_unavailable"), errors.ToolUnavailable),
        (builtin_faults.turn_timed_out(30.0, started=True), errors.CallFailed),
    ],
)
def test_a_failure_is_raised_as_its_kind(fault: Fault | None, kind: type[errors.CallFailed]) -> None:
    outcome = failed(fault)
    with pytest.raises(errors.CallFailed) as raised:
        outcome.unwrap()
    assert type(raised.value) is kind
    assert raised.value.outcome is outcome


@pytest.mark.parametrize("status", ["failed", "skipped", "timed_out", "cancelled"])
def test_only_success_has_a_value_to_unwrap(status: Any) -> None:
    with pytest.raises(errors.CallFailed):
        Outcome("a", "a", status, value="left over").unwrap()


def test_the_tools_own_exception_is_the_cause() -> None:
    with pytest.raises(errors.CallFailed) as raised:
        failed(INVALID).unwrap()
    assert raised.value.__cause__ is CAUSE


def test_unwrapping_often_does_not_grow_the_cause() -> None:
    outcome = failed(INVALID)
    for _ in range(100):
        with pytest.raises(errors.CallFailed):
            outcome.unwrap()
    assert len(list(traceback.walk_tb(CAUSE.__traceback__))) == 0


def test_an_outcome_builds_its_id_from_tool_and_number() -> None:
    outcome: Outcome[Any] = Outcome(7, "flight_search", "succeeded")
    assert outcome.id == "flight_search-7"
    assert pickle.loads(pickle.dumps(outcome)).id == "flight_search-7"


@pytest.mark.parametrize("label", ["", "Web search"])
def test_the_short_way_to_a_success_leads_to_the_same_outcome(label: str) -> None:
    short = succeed(7, "web_search", "found", 3, 0.5, label)
    long = Outcome(7, "web_search", "succeeded", "found", 3, "web_search", 0.5, label=label)
    for name in {*vars(short), *vars(long)}:
        assert getattr(short, name) == getattr(long, name), name
    assert short.to_dict() == long.to_dict()


def test_the_label_is_the_id_with_spaces_until_one_is_given() -> None:
    assert DONE.label == "flight search"
    assert failed(INVALID, label="Flight finder").label == "Flight finder"


def test_plain_data_survives_json() -> None:
    outcome = failed(INVALID, decision=Decision("escalate", "Permanent error (no retry)"), escalated=True)
    data = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert data == outcome.to_dict()
    assert data["status"] == "failed"
    assert data["fault"]["code"] == "INVALID_ARGUMENT"
    assert data["fault"]["cause"] == "ValueError"
    assert data["decision"]["strategy"] == "escalate"
    assert data["explanation"]["user"] == outcome.explanation.user
    assert DONE.to_dict()["value"] == ["AF1"]
    assert {name: value for name, value in DONE.to_dict().items() if name != "explanation"} == {
        "id": "flights",
        "tool": "flight_search",
        "label": "flight search",
        "status": "succeeded",
        "value": ["AF1"],
        "missing": None,
        "partial": None,
        "fault": None,
        "attempts": 1,
        "via": "flight_search",
        "decision": None,
        "duration": 0.5,
        "root": None,
        "escalated": False,
    }
    assert set(data) == set(DONE.to_dict())


def test_values_that_json_does_not_know_are_shown() -> None:
    assert Outcome("a", "a", "succeeded", {1, 2}).to_dict()["value"] == "{1, 2}"
    assert Outcome("a", "a", "succeeded", [], missing=object).to_dict()["missing"] == "<class 'object'>"


@pytest.mark.parametrize(
    "outcome",
    [
        DONE,
        failed(INVALID, decision=Decision("escalate", "Permanent error (no retry)"), label="Finder", escalated=True),
        Outcome("b", "compare_prices", "skipped", fault=builtin_faults.dependency_failed("a", "A"), root="a"),
        Outcome("c", "c", "succeeded", [1], 2, "backup", 1.5, missing=["page 2"]),
    ],
)
def test_a_pickle_is_the_same_outcome_without_live_exceptions(outcome: Outcome[Any]) -> None:
    copy = pickle.loads(pickle.dumps(outcome))
    assert copy == outcome
    assert copy.explanation == outcome.explanation
    assert copy.fault is None or copy.fault.cause is None
    assert repr(copy) == repr(outcome)


def test_every_fact_counts_for_equality() -> None:
    base: dict[str, Any] = {"id": "a", "tool": "t", "status": "failed"}
    other: dict[str, Any] = {
        "id": "b",
        "tool": "u",
        "status": "skipped",
        "value": 1,
        "attempts": 1,
        "via": "v",
        "duration": 1.0,
        "fault": INVALID,
        "decision": Decision("escalate", "r"),
        "missing": 1,
        "label": "L",
        "root": "r",
        "escalated": True,
    }
    assert Outcome(**base) == Outcome(**base)
    for name, value in other.items():
        assert Outcome(**base) != Outcome(**{**base, name: value}), name
    assert Outcome(**base) != "a"
    assert failed(INVALID) == failed(INVALID._replace(cause=None))


def test_an_explanation_is_made_once_when_asked_for() -> None:
    asked: list[Outcome[Any]] = []

    def phrase(outcome: Outcome[Any]) -> Explanation:
        asked.append(outcome)
        return Explanation("u", "m", "o")

    outcome = failed(INVALID, explanation=phrase)
    assert asked == []
    assert outcome.explanation == outcome.explanation == Explanation("u", "m", "o")
    assert len(asked) == 1
    assert pickle.loads(pickle.dumps(failed(INVALID, explanation=phrase))).explanation.user == "u"


def test_an_outcome_made_without_words_explains_itself_wherever_it_is_read() -> None:
    bare = failed(INVALID)
    read = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).explanation.model)"
    shown = subprocess.run([sys.executable, "-c", read], input=pickle.dumps(bare), capture_output=True, check=True)
    assert shown.stdout.decode().strip() == bare.explanation.model == explain(bare).model


def test_an_explanation_that_is_given_stands() -> None:
    assert failed(INVALID, explanation=Explanation("u", "m", "o")).explanation.user == "u"


def test_repr_says_what_happened() -> None:
    assert repr(DONE) == "<Outcome 'flights', succeeded, value=['AF1'], attempts=1>"
    assert repr(failed(INVALID)) == (
        "<Outcome 'flights', failed, INVALID_ARGUMENT: 'Invalid airport code: XYZ', attempts=1>"
    )
    assert repr(Outcome("b", "t", "succeeded", 1, 2, "backup", missing="x")) == (
        "<Outcome 'b', succeeded, value=1, missing='x', via='backup', attempts=2>"
    )
    assert repr(Outcome("b", "t", "skipped", root="a")) == "<Outcome 'b', skipped, root='a', attempts=0>"
