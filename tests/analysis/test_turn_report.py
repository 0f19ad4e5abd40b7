"""The report of a turn."""

from __future__ import annotations

import json
import pickle
from typing import Any

from failsoft.analysis.turn_report import Escalation, TurnReport
from failsoft.core.model.explanation import Explanation
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.outcome import Outcome

DOWN = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "503", "reason", "status")
OUTCOMES: dict[str, Outcome[Any]] = {
    "z": Outcome("z", "flight_search", "succeeded", ["AF1"], 1),
    "b": Outcome("b", "hotel_search", "failed", None, 3, fault=DOWN, escalated=True),
    "a": Outcome("a", "compare_prices", "skipped", root="b", escalated=True),
    "c": Outcome("c", "car_search", "timed_out"),
    "d": Outcome("d", "weather", "cancelled"),
    "e": Outcome("e", "map", "succeeded", None, 1),
}


class Event:
    def to_dict(self) -> dict[str, Any]:
        return {"event_type": "TurnEnded"}


def report(**facts: Any) -> TurnReport:
    return TurnReport("turn-1", OUTCOMES, thread="chat-42", duration=1.5, **facts)


def test_every_call_is_in_exactly_one_place_in_the_order_of_submission() -> None:
    made = report()
    assert made.results == {"z": ["AF1"], "e": None}
    assert list(made.failures) == ["b", "c", "d"]
    assert list(made.skipped) == ["a"]
    assert made.failures["b"] is OUTCOMES["b"]
    assert sorted([*made.results, *made.failures, *made.skipped]) == sorted(OUTCOMES)


def test_escalations_carry_call_fault_and_explanation() -> None:
    first, second = report().escalations
    assert first == Escalation("b", DOWN, OUTCOMES["b"].explanation)
    assert second == Escalation("a", None, OUTCOMES["a"].explanation)
    assert first.to_dict()["fault"]["code"] == "UNAVAILABLE"
    assert second.to_dict()["fault"] is None
    assert first.to_dict()["explanation"]["user"] == OUTCOMES["b"].explanation.user


def test_the_message_is_composed_given_or_phrased() -> None:
    assert report().message.startswith("Completed flight search and map, but car search timed out")
    assert report(message="given").message == "given"
    asked: list[TurnReport] = []

    def phrase(told: TurnReport) -> str:
        asked.append(told)
        return "phrased"

    made = report(message=phrase)
    assert not asked
    assert (made.message, made.message, len(asked)) == ("phrased", "phrased", 1)


def test_the_trace_is_read_when_asked_for() -> None:
    event = Event()
    read: list[int] = []

    def trace() -> tuple[Event, ...]:
        read.append(1)
        return (event,)

    made = report(trace=trace)
    assert not read
    assert made.trace == made.trace == (event,)
    assert len(read) == 1
    assert report(trace=(event,)).trace == (event,)
    assert report().trace == ()


def test_plain_data_survives_json() -> None:
    made = report(timed_out=True, trace=(Event(),))
    data = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert data == made.to_dict()
    assert (data["turn_id"], data["thread"], data["duration"], data["timed_out"]) == ("turn-1", "chat-42", 1.5, True)
    assert list(data["outcomes"]) == list(OUTCOMES)
    assert data["results"] == {id: data["outcomes"][id]["value"] for id in made.results}
    assert (data["failures"], data["skipped"]) == (list(made.failures), list(made.skipped))
    assert len(data["results"]) + len(data["failures"]) + len(data["skipped"]) == len(OUTCOMES)
    assert data["message"] == made.message
    assert [escalation["call_id"] for escalation in data["escalations"]] == ["b", "a"]
    assert data["trace"] == [{"event_type": "TurnEnded"}]


def test_a_pickle_says_the_same() -> None:
    made = report(timed_out=True, message=lambda _: "phrased", trace=lambda: ())
    copy = pickle.loads(pickle.dumps(made))
    assert copy.to_dict() == made.to_dict()
    assert copy.outcomes == OUTCOMES
    assert repr(copy) == repr(made)


def test_repr_counts() -> None:
    assert repr(report()) == "<TurnReport 'turn-1', 2 succeeded, 3 failed, 1 skipped>"
    assert repr(report(timed_out=True)) == "<TurnReport 'turn-1', 2 succeeded, 3 failed, 1 skipped, timed out>"


def test_an_explanation_is_plain_data_too() -> None:
    assert Explanation("u", "m", "o").to_dict() == {"user": "u", "model": "m", "operator": "o"}
