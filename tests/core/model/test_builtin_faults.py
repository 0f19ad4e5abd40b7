"""The faults that failsoft finds itself: their words, codes and effects."""

from __future__ import annotations

import inspect

import pytest

from failsoft.core.model import builtin_faults
from failsoft.core.model.durations import seconds
from failsoft.core.model.fault import Code, Fault

ROOT = Fault(
    Code.INVALID_ARGUMENT,
    "permanent",
    "tool_validation",
    "none",
    "Invalid airport code: XYZ",
    "Invalid input won't change on retry",
    "text",
    cause=ValueError("Invalid airport code: XYZ"),
)
SLOW = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "secret detail", "r", "text", retry_after=7.0)

EVERY = {
    "tool_timeout": builtin_faults.tool_timeout(30.0),
    "idle_timeout": builtin_faults.idle_timeout(5.0, last="page 3"),
    "circuit_open": builtin_faults.circuit_open("flight_search", 12.0, SLOW),
    "unknown_tool": builtin_faults.unknown_tool("flight_serch", ["flight_search", "hotel_search"]),
    "tool_marked_unavailable": builtin_faults.tool_marked_unavailable("flight_search", "No module named 'travel'"),
    "bad_arguments": builtin_faults.bad_arguments(missing=["destination"]),
    "queue_full": builtin_faults.queue_full("flight_search", 100),
    "thread_limit": builtin_faults.thread_limit("flight_search", 64),
    "rate_hold": builtin_faults.rate_hold("flight_search", 20.0),
    "rate_limit": builtin_faults.rate_limit("flight_search", "100/1m", 20.0),
    "dependency_failed": builtin_faults.dependency_failed("flights", "flight search", ROOT),
    "turn_timed_out": builtin_faults.turn_timed_out(300.0, started=True),
    "turn_call_limit": builtin_faults.turn_call_limit(50),
    "tool_call_limit": builtin_faults.tool_call_limit("flight_search", 10),
    "cancelled": builtin_faults.cancelled(started=True),
    "passed_on": builtin_faults.passed_on(),
    "output_mismatch": builtin_faults.output_mismatch("flight_search", "price: not a number"),
    "broken_failed_if": builtin_faults.broken_failed_if("flight_search", "raised KeyError: ok"),
    "unprotected": builtin_faults.unprotected("flight_search"),
    "partial_result": builtin_faults.partial_result(["page 2"]),
    "loop_prevented": builtin_faults.loop_prevented(ROOT, 3),
    "no_progress": builtin_faults.no_progress("flight_search", 5),
    "no_offer": builtin_faults.no_offer("flight_search"),
    "begun_before": builtin_faults.begun_before(),
    "not_recorded": builtin_faults.not_recorded("flight_search"),
    "tool_disabled": builtin_faults.tool_disabled("flight_search", "maintenance"),
    "still_misconfigured": builtin_faults.still_misconfigured(ROOT),
}

# rule -> code, classification, category, effect
TABLE = {
    "idle_timeout": ("DEADLINE_EXCEEDED", "transient", "tool_transient", "unknown"),
    "tool_timeout": ("DEADLINE_EXCEEDED", "transient", "tool_transient", "unknown"),
    "circuit_open": ("UNAVAILABLE", "transient", "tool_transient", "none"),
    "unknown_tool": ("NOT_FOUND", "permanent", "tool_unavailable", "none"),
    "tool_marked_unavailable": ("NOT_FOUND", "permanent", "tool_unavailable", "none"),
    "bad_arguments": ("INVALID_ARGUMENT", "permanent", "tool_validation", "none"),
    "queue_full": ("RESOURCE_EXHAUSTED", "transient", "tool_transient", "none"),
    "thread_limit": ("RESOURCE_EXHAUSTED", "transient", "tool_transient", "none"),
    "rate_hold": ("RESOURCE_EXHAUSTED", "transient", "tool_transient", "none"),
    "rate_limit": ("RESOURCE_EXHAUSTED", "transient", "tool_transient", "none"),
    "dependency_failed": ("FAILED_PRECONDITION", "permanent", "tool_validation", "none"),
    "turn_timed_out": ("DEADLINE_EXCEEDED", "transient", "tool_transient", "unknown"),
    "turn_call_limit": ("RESOURCE_EXHAUSTED", "transient", "tool_transient", "none"),
    "tool_call_limit": ("RESOURCE_EXHAUSTED", "transient", "tool_transient", "none"),
    "cancelled": ("CANCELLED", "transient", "tool_transient", "unknown"),
    "passed_on": ("CANCELLED", "transient", "tool_transient", "unknown"),
    "output_mismatch": ("INTERNAL", "permanent", "internal_contract_bug", "happened"),
    "broken_failed_if": ("INTERNAL", "permanent", "internal_contract_bug", "unknown"),
    "unprotected": ("INTERNAL", "permanent", "internal_contract_bug", "unknown"),
    "partial_result": ("DATA_LOSS", "transient", "tool_transient", "unknown"),
    "loop_prevented": ("INVALID_ARGUMENT", "permanent", "tool_validation", "none"),
    "no_progress": ("FAILED_PRECONDITION", "permanent", "tool_validation", "none"),
    "no_offer": ("FAILED_PRECONDITION", "permanent", "tool_validation", "none"),
    "begun_before": ("CANCELLED", "transient", "tool_transient", "unknown"),
    "not_recorded": ("UNAVAILABLE", "transient", "tool_transient", "none"),
    "tool_disabled": ("NOT_FOUND", "permanent", "tool_unavailable", "none"),
    "still_misconfigured": ("INVALID_ARGUMENT", "permanent", "tool_validation", "none"),
}


def test_every_fault_is_in_the_table_and_every_rule_names_its_function() -> None:
    made = {
        name
        for name, function in inspect.getmembers(builtin_faults, inspect.isfunction)
        if inspect.signature(function).return_annotation == "Fault" and not name.startswith("_")
    }
    named = [value for name, value in vars(builtin_faults).items() if name.isupper() and not name.startswith("_")]
    constants = {value for value in named if isinstance(value, str) and value.isidentifier()}  # no prefixes
    assert made == constants == set(EVERY) == set(TABLE)


@pytest.mark.parametrize("rule", TABLE)
def test_each_has_its_code_and_consequences(rule: str) -> None:
    fault = EVERY[rule]
    assert (fault.code.value, fault.classification, fault.category, fault.effect) == TABLE[rule]
    assert fault.rule == rule
    assert fault.message
    assert fault.reason
    assert (fault.classification == "transient") == (fault.category == "tool_transient")


def test_a_tool_timeout_has_the_documents_words() -> None:
    fault = builtin_faults.tool_timeout(30.0)
    assert fault.message == "Tool timeout after 30s"
    assert fault.reason == "Timeout is temporary"
    assert fault.retryable


def test_a_missing_thread_is_put_down_to_attempts_only_if_there_are_any() -> None:
    assert "64 are still busy" in builtin_faults.thread_limit("flight_search", 64).message
    assert builtin_faults.thread_limit("flight_search", 0).message == (
        "No worker thread is free for flight_search: the system cannot start another"
    )


def test_a_tool_timeout_names_the_duration_as_configured() -> None:
    assert builtin_faults.tool_timeout(seconds("90s")).message == "Tool timeout after 90s"
    assert builtin_faults.tool_timeout(0.25).message == "Tool timeout after 250ms"


def test_a_value_that_came_too_late_has_happened() -> None:
    cause = TimeoutError()
    fault = builtin_faults.tool_timeout(1.0, effect="happened", cause=cause)
    assert fault.effect == "happened"
    assert fault.cause is cause


def test_an_open_circuit_names_the_code_that_opened_it_and_never_its_text() -> None:
    fault = builtin_faults.circuit_open("flight_search", 12.0, SLOW)
    assert fault.message == "Circuit breaker open for flight_search after UNAVAILABLE"
    assert fault.retry_after == 12.0
    assert builtin_faults.circuit_open("flight_search").message == "Circuit breaker open for flight_search"


def test_an_unknown_tool_is_named_with_its_nearest_neighbours() -> None:
    fault = builtin_faults.unknown_tool("flight_serch", ["flight_search", "hotel_search", "pay"])
    assert fault.message == "There is no tool named 'flight_serch' here; did you mean flight_search?"
    fault = builtin_faults.unknown_tool("search", ["flight_search", "pay", "hotel_search"])
    assert fault.message == "There is no tool named 'search' here; did you mean flight_search or hotel_search?"
    assert builtin_faults.unknown_tool("zzz", ["pay"]).message == "There is no tool named 'zzz' here"


def test_an_unknown_tool_name_is_sanitised_and_truncated() -> None:
    message = builtin_faults.unknown_tool("x\n\x1b[31m" + "y" * 500).message
    assert "\x1b" not in message
    assert "\n" not in message
    assert len(message) < 150
    assert builtin_faults.unknown_tool(None).rule == "unknown_tool"


def test_bad_arguments_can_be_asked_for_by_name() -> None:
    fault = builtin_faults.bad_arguments(
        missing=["destination", "date"], invalid=["seats"], unexpected=["colour"], detail="seats: not a whole number"
    )
    assert fault.message == (
        "The arguments do not fit. Missing: destination, date. Invalid: seats. Not known: colour. "
        "seats: not a whole number"
    )
    assert builtin_faults.asked_for(fault) == ("destination", "date", "seats")
    assert builtin_faults.asked_for(builtin_faults.bad_arguments(unexpected=["colour"])) == ()
    assert builtin_faults.asked_for(ROOT) == ()
    assert builtin_faults.asked_for(ROOT._replace(message="Missing: x.")) == ()
    assert builtin_faults.asked_for(builtin_faults.loop_prevented(fault, 3)) == ("destination", "date", "seats")


def test_hostile_argument_names_stay_one_name() -> None:
    fault = builtin_faults.bad_arguments(missing=["a, b. Missing: c"], invalid=["d.e"])
    assert builtin_faults.asked_for(fault) == ("a  b  Missing: c", "d e")


def test_a_detail_is_not_read_for_names() -> None:
    assert builtin_faults.asked_for(builtin_faults.bad_arguments(detail="it says Missing: x.")) == ()


def test_a_detail_alone_is_enough() -> None:
    cause = TypeError("x")
    fault = builtin_faults.bad_arguments(detail="not an object", cause=cause)
    assert fault.message == "The arguments do not fit. not an object"
    assert fault.cause is cause


@pytest.mark.parametrize(
    ("root", "classification", "category", "retry_after"),
    [
        (ROOT, "permanent", "tool_validation", None),
        (ROOT._replace(category="tool_unavailable"), "permanent", "tool_validation", None),
        (SLOW, "transient", "tool_transient", 7.0),
    ],
)
def test_a_skipped_call_shares_its_roots_prospects(
    root: Fault, classification: str, category: str, retry_after: float | None
) -> None:
    fault = builtin_faults.dependency_failed("flights", "flight search", root)
    assert (fault.classification, fault.category, fault.retry_after) == (classification, category, retry_after)
    assert fault.message == "Dependency failed: flight search (flights)"


def test_the_roots_label_can_be_read_back() -> None:
    fault = builtin_faults.dependency_failed("flights", "flight search (fast)", ROOT)
    assert builtin_faults.failed_dependency(fault, "flights") == "flight search (fast)"
    assert builtin_faults.failed_dependency(ROOT, "flights") == "flights"


def test_a_skipped_call_whose_root_has_no_fault_may_be_tried_again() -> None:
    assert builtin_faults.dependency_failed("flights", "flight search").retryable


@pytest.mark.parametrize(("started", "effect"), [(True, "unknown"), (False, "none")])
def test_a_call_that_never_started_had_no_effect(started: bool, effect: str) -> None:
    assert builtin_faults.turn_timed_out(300.0, started=started).effect == effect
    assert builtin_faults.cancelled(started=started).effect == effect


def test_the_turns_deadline_says_how_long_and_whether_it_started() -> None:
    assert builtin_faults.turn_timed_out(seconds("5m"), started=True).message == "Turn timeout after 5m"
    assert builtin_faults.turn_timed_out(None, started=False).message == "Turn timeout: not started"


def test_a_cancelled_call_is_not_retryable() -> None:
    assert not builtin_faults.cancelled(started=True).retryable


def test_a_rate_hold_says_when() -> None:
    fault = builtin_faults.rate_hold("flight_search", 20.0)
    assert fault.message == "flight_search is held back for 20s: the service asked for it"
    assert fault.retry_after == 20.0


def test_a_prevented_loop_says_the_same_again() -> None:
    fault = builtin_faults.loop_prevented(ROOT, 3)
    assert fault.message == ROOT.message
    assert fault.reason == "The same call has failed 3 times in a row"
    assert fault.cause is None


def test_a_partial_result_says_what_is_missing() -> None:
    assert builtin_faults.partial_result(["page 2"]).message == "Partial result: missing page 2"
    assert builtin_faults.partial_result().message == "Partial result"


def test_the_documents_words_for_a_required_call_that_was_skipped() -> None:
    assert builtin_faults.REQUIRED_SKIPPED == "Required tool skipped due to dependency failure"
