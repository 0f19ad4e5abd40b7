"""A turn's message to its user."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from failsoft.analysis.turn_report import TurnReport
from failsoft.core.explain.catalogue import ENGLISH
from failsoft.core.explain.turn_message import compose
from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.outcome import Outcome, Status

INVALID = Fault(
    Code.INVALID_ARGUMENT, "permanent", "tool_validation", "none", "Invalid airport code: XYZ", "reason", "text"
)
DOWN = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "503", "reason", "status", 12.0)
DENIED = Fault(Code.UNAUTHENTICATED, "permanent", "tool_misconfigured", "none", "401", "reason", "status")
LOST = Fault(Code.DEADLINE_EXCEEDED, "transient", "tool_transient", "unknown", "slow", "reason", "status")
BUG = Fault(Code.INTERNAL, "permanent", "internal_contract_bug", "none", "KeyError", "reason", "type")


def call(tool: str, status: Status = "succeeded", **facts: Any) -> Outcome[Any]:
    return Outcome(tool, tool, status, **facts)


def failed(tool: str, fault: Fault) -> Outcome[Any]:
    return call(tool, "failed", fault=fault, escalated=True)


def message(*outcomes: Outcome[Any]) -> str:
    return TurnReport("turn-1", {outcome.id: outcome for outcome in outcomes}).message


# --- the documents' words ------------------------------------------------------------------------------------------------


def test_s_tests_4_2() -> None:
    assert message(call("flight_search"), call("hotel_search", "timed_out")) == (
        "Completed flight search, but hotel search timed out"
    )


def test_s_tests_4_2_with_both() -> None:
    assert message(call("flight_search"), call("hotel_search", "timed_out"), call("activity_search", "timed_out")) == (
        "Completed flight search, but hotel search timed out, and so did activity search"
    )


def test_labels_are_used_where_given() -> None:
    assert message(call("a", label="search for flights"), call("b", "timed_out", label="Hotel Finder")) == (
        "Completed search for flights, but Hotel Finder timed out"
    )


# --- what was completed ---------------------------------------------------------------------------------------------------


def test_completed_calls_are_listed() -> None:
    assert message(call("flight_search")) == snapshot("Completed flight search")
    assert message(call("flight_search"), call("hotel_search")) == snapshot("Completed flight search and hotel search")
    assert message(call("flight_search"), call("hotel_search"), call("car_search")) == snapshot(
        "Completed flight search, hotel search and car search"
    )


def test_names_after_the_third_are_counted() -> None:
    tools = ("flight_search", "hotel_search", "car_search", "activity_search", "weather", "taxi", "map")
    assert message(*map(call, tools[:4])) == snapshot("Completed flight search, hotel search, car search and 1 other")
    assert message(*map(call, tools)) == snapshot("Completed flight search, hotel search, car search and 4 others")


def test_mixed_results_of_one_tool_are_counted() -> None:
    def told(*outcomes: Outcome[Any]) -> str:
        return TurnReport("t", {f"s-{number}": outcome for number, outcome in enumerate(outcomes)}).message

    good, bad = call("search"), call("search", "failed", fault=DOWN)
    assert told(good, bad) == "Completed search (1 of 2), but search (1 of 2) failed"
    assert told(good, good, bad) == "Completed search (2 of 3), but search (1 of 3) failed"
    assert told(good, call("book", "failed", fault=DOWN), call("book", "failed", fault=DOWN)) == (
        "Completed search, but book (2 times) failed"
    )
    skipped = call("search", "skipped", root="s-1")
    assert told(good, bad, skipped) == (
        "Completed search (1 of 3), but search (1 of 3) failed, so search (1 of 3) was skipped"
    )


def test_the_same_tool_is_named_once() -> None:
    thrice = {f"s-{number}": call("flight_search") for number in range(3)}
    assert TurnReport("t", {**thrice, "h": call("hotel_search")}).message == snapshot(
        "Completed flight search (3 times) and hotel search"
    )


def test_a_partial_result_is_marked_as_partial() -> None:
    assert message(call("flight_search", missing=["page 2"]), call("hotel_search")) == snapshot(
        "Completed flight search (in part) and hotel search"
    )


def test_a_turn_without_calls_says_so() -> None:
    assert message() == snapshot("There was nothing to do")


# --- what was not ----------------------------------------------------------------------------------------------------------


def test_a_turn_that_completed_nothing_says_what_went_wrong() -> None:
    assert message(call("flight_search", "timed_out")) == snapshot("Flight search timed out")
    assert message(call("flight_search", "failed", fault=DOWN)) == snapshot("Flight search failed")
    assert message(call("flight_search", "cancelled")) == snapshot("Flight search was stopped")
    assert message(call("flight_search", "skipped")) == snapshot("There was no time for flight search")


def test_every_way_to_fail_has_its_clause() -> None:
    assert message(
        call("a"),
        call("b", "timed_out"),
        call("c", "timed_out"),
        call("d", "timed_out"),
        call("e", "failed", fault=DOWN),
        call("f", "failed", fault=DOWN),
        call("g", "cancelled"),
        call("h", "cancelled"),
        call("i", "skipped"),
    ) == snapshot(
        "Completed a, but b timed out, and so did c and d, and e and f failed, and g and h were stopped, and there was no time for i"
    )


def test_calls_that_timed_out_after_the_third_are_counted() -> None:
    assert message(*(call(tool, "timed_out") for tool in "abcdefg")) == snapshot(
        "A timed out, and so did b, c, d and 3 others"
    )


# --- what was skipped for it -------------------------------------------------------------------------------------------------


def test_skips_follow_their_only_cause() -> None:
    down = call("flight_search", "failed", fault=DOWN)
    prices = call("compare_prices", "skipped", root="flight_search")
    trip = call("create_itinerary", "skipped", root="flight_search")
    assert message(down, prices) == snapshot("Flight search failed, so compare prices was skipped")
    assert message(call("hotel_search"), down, prices, trip) == snapshot(
        "Completed hotel search, but flight search failed, so compare prices and create itinerary were skipped"
    )


def test_skips_with_two_causes_are_listed_by_cause() -> None:
    assert message(
        call("hotel_search"),
        call("flight_search", "failed", fault=DOWN),
        call("car_search", "timed_out"),
        call("compare_prices", "skipped", root="flight_search"),
        call("create_itinerary", "skipped", root="flight_search"),
        call("book_car", "skipped", root="car_search"),
    ) == snapshot(
        "Completed hotel search, but car search timed out, and flight search failed. Compare prices and create itinerary were skipped because flight search didn’t work, and book car was skipped because car search didn’t work."
    )


def test_skips_with_many_causes_are_only_listed() -> None:
    assert message(
        call("a", "failed", fault=DOWN),
        call("b", "timed_out"),
        call("c", "cancelled"),
        *(call(f"after_{root}", "skipped", root=root) for root in "abc"),
    ) == snapshot("B timed out, and a failed, and c was stopped. After a, after b and after c were skipped.")


def test_a_root_that_is_not_in_the_report_is_called_by_its_id() -> None:
    assert message(call("a", "skipped", root="elsewhere")) == snapshot("A was skipped because elsewhere didn’t work")


# --- what is asked -----------------------------------------------------------------------------------------------------------


def test_the_user_is_asked_for_the_input_that_is_missing() -> None:
    assert message(failed("flight_search", INVALID)) == snapshot(
        "Flight search failed. For flight search I need a valid airport code."
    )
    assert message(call("hotel_search"), failed("flight_search", INVALID)) == snapshot(
        "Completed hotel search, but flight search failed. For flight search I need a valid airport code."
    )


def test_one_thing_is_asked_once_for_all() -> None:
    assert message(failed("flight_search", DOWN), failed("hotel_search", DOWN)) == snapshot(
        "Flight search and hotel search failed. Trying flight search and hotel search again in about 12 seconds may help."
    )
    assert message(failed("flight_search", BUG), failed("hotel_search", BUG)) == snapshot(
        "Flight search and hotel search failed. Something broke internally, I’ve logged it."
    )


def test_no_category_is_left_out() -> None:
    assert message(
        failed("a", INVALID), failed("b", DENIED), failed("c", BUG), failed("d", builtin_faults.unknown_tool("d"))
    ) == snapshot(
        "A, b, c and 1 other failed. For a I need a valid airport code. The operator needs to fix the setup of b. \
Something broke internally, I’ve logged it. This capability isn’t available in this deployment yet."
    )


def test_at_most_two_things_of_one_category_are_asked() -> None:
    wanted = [INVALID._replace(message=f"Invalid {name}: XYZ") for name in ("city", "date", "guests")]
    assert message(*(failed(f"t{n}", fault) for n, fault in enumerate(wanted))) == snapshot(
        "T0, t1 and t2 failed. For t0 I need a valid city. For t1 I need a valid date."
    )


def test_only_escalated_failures_ask() -> None:
    assert message(call("flight_search", "failed", fault=INVALID)) == "Flight search failed"
    skipped = call("b", "skipped", fault=builtin_faults.dependency_failed("a", "a"), root="a", escalated=True)
    assert message(call("a", "failed", fault=INVALID), skipped) == "A failed, so b was skipped"
    assert message(call("a", "failed", escalated=True)) == "A failed"


def test_the_words_can_be_replaced() -> None:
    texts = {**ENGLISH, "turn.completed": "Fertig: {labels}", "list.and": " und "}
    report = TurnReport("t", {"a": call("a"), "b": call("b")})
    assert compose(report.outcomes, texts) == "Fertig: a und b"


def test_users_are_not_told_to_retry_a_write_that_may_have_taken_effect():
    fault = Fault(Code.DEADLINE_EXCEEDED, "transient", "tool_transient", "unknown", "slow", "said", "status")
    outcome = Outcome("pay-1", "pay", "failed", fault=fault, escalated=True)
    report = TurnReport("t", {"pay-1": outcome})
    assert compose(report.outcomes) == "Pay failed. Trying pay again in a little while may help."
    assert (
        compose(report.outcomes, writes={"pay"})
        == "Pay failed. Please check whether pay went through before trying again."
    )


@pytest.mark.parametrize(
    ("status", "fault", "says"),
    [
        (
            "timed_out",
            LOST,
            "Completed look, but pay timed out. Please check whether pay went through before trying again.",
        ),
        (
            "cancelled",
            LOST,
            "Completed look, but pay was stopped. Please check whether pay went through before trying again.",
        ),
        ("failed", LOST, "Completed look, but pay failed. Please check whether pay went through before trying again."),
        (
            "failed",
            BUG._replace(effect="unknown"),
            "Completed look, but pay failed. Something broke internally, I’ve logged it. "
            "Please check whether pay went through before trying again.",
        ),
        ("failed", DOWN, "Completed look, but pay failed. Trying pay again in about 12 seconds may help."),
    ],
)
def test_a_write_that_may_have_gone_through_is_named_after_the_documents_sentences(
    status: Status, fault: Fault, says: str
) -> None:
    report = TurnReport("t", {"look": call("look"), "pay": call("pay", status, fault=fault, escalated=True)})
    assert compose(report.outcomes, writes={"pay"}) == says
    assert "went through" not in compose(report.outcomes)


def test_a_warning_is_included_however_long_the_message_is() -> None:
    calls = [failed("a", INVALID), failed("b", DENIED), failed("c", BUG), failed("pay", LOST), failed("send", LOST)]
    report = TurnReport("t", {outcome.id: outcome for outcome in calls})
    told = compose(report.outcomes, writes={"pay", "send"})
    assert told.endswith("Please check whether pay and send went through before trying again.")


def test_a_policys_text_is_shown_without_a_warning() -> None:
    report = TurnReport("t", {"pay": call("pay", "failed", fault=LOST, escalated=True, told="We are on it.")})
    assert compose(report.outcomes, writes={"pay"}) == "Pay failed. We are on it."
