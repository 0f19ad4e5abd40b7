"""A tool's own word on its errors: the first override that matches decides (R13)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.classify.made import error_type, http_error, make

from failsoft.core.classify import classify
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.options import Override

SeatError = error_type("acme.limits.SeatError")
SmallSeatError = type("SmallSeatError", (SeatError,), {"__module__": "acme.limits"})


@pytest.mark.parametrize(
    "row",
    [
        {"http_status": 503, "as": "permanent"},
        {"httpStatus": 503, "as": "permanent", "toCode": "Unavailable"},
        {"code": "UNAVAILABLE", "as": "permanent"},
        {"code": "Unavailable", "as": "permanent"},
        {"pattern": "gone to lunch", "as": "permanent"},
        {"exception": "ApiError", "as": "permanent"},
        {"exception": "acme.ApiError", "as": "permanent"},
        {"http_status": 503, "pattern": "lunch", "as": "permanent"},
        Override(matches=lambda error: "lunch" in str(error), as_="permanent"),
        lambda error: "permanent" if "lunch" in str(error) else None,
    ],
)
def test_each_condition(row: Any) -> None:
    error = http_error(503, text="gone to lunch")
    fault = classify(error, overrides=[row])
    assert (fault.classification, fault.retryable) == ("permanent", False)
    assert fault.reason == "Tool manifest override respected"
    assert fault.rule.startswith("override: ")
    assert fault.category == "tool_misconfigured"  # the operator's move: nobody else can mend a service
    assert fault.cause is error
    assert classify(error).classification == "transient"


@pytest.mark.parametrize(
    "row",
    [
        {"http_status": 500, "as": "permanent"},
        {"code": "INTERNAL", "as": "permanent"},
        {"pattern": "dinner", "as": "permanent"},
        {"exception": "QuotaError", "as": "permanent"},
        {"http_status": 503, "pattern": "dinner", "as": "permanent"},
        lambda _: None,
    ],
)
def test_an_override_that_does_not_match_changes_nothing(row: Any) -> None:
    error = http_error(503, text="gone to lunch")
    assert classify(error, overrides=[row]) == classify(error)


def test_the_first_match_decides() -> None:
    rows = [
        {"http_status": 500, "as": "permanent"},
        {"http_status": 503, "category": "tool_validation"},
        {"http_status": 503, "as": "transient"},
    ]
    assert classify(http_error(503), overrides=rows).category == "tool_validation"


def test_exceptions_match_over_the_mro() -> None:
    row = {"exception": "acme.limits.SeatError", "as": "permanent", "category": "tool_misconfigured"}
    fault = classify(SmallSeatError("xyzzy"), overrides=[row])
    assert (fault.classification, fault.category) == ("permanent", "tool_misconfigured")
    assert classify("acme.limits.SeatError: xyzzy", overrides=[row]).classification == "permanent"
    assert classify("notacme.limits.SeatErrors: xyzzy", overrides=[row]).classification == "transient"


def test_a_providers_own_code() -> None:
    row = {"code": "no_seats_left", "as": "permanent"}
    assert classify(make("acme.Error", "x", code="NO_SEATS_LEFT"), overrides=[row]).classification == "permanent"
    assert classify('{"error": {"code": "no_seats_left"}}', overrides=[row]).classification == "permanent"
    assert classify(make("acme.Error", "x", code="seats_left"), overrides=[row]).classification == "transient"


def test_a_status_parsed_from_text_counts() -> None:
    assert classify("Service unavailable (503)", overrides=[{"http_status": 503, "as": "permanent"}]).retryable is False


@pytest.mark.parametrize(
    ("row", "want"),
    [
        ({"category": "tool_unavailable"}, ("permanent", "tool_unavailable", "UNAVAILABLE", "none")),
        ({"category": "tool_transient"}, ("transient", "tool_transient", "UNAVAILABLE", "none")),
        ({"effect": "unknown"}, ("transient", "tool_transient", "UNAVAILABLE", "unknown")),
        ({"to_code": Code.NOT_FOUND}, ("transient", "tool_transient", "NOT_FOUND", "none")),
        ({"to_code": "NotFound", "as": "permanent"}, ("permanent", "tool_validation", "NOT_FOUND", "none")),
    ],
)
def test_an_override_may_set_category_code_and_effect(row: dict[str, Any], want: tuple[str, ...]) -> None:
    fault = classify(http_error(503), overrides=[{"http_status": 503, **row}])
    assert (fault.classification, fault.category, fault.code, fault.effect) == want


def test_permanent_keeps_the_category_of_a_permanent_error() -> None:
    assert (
        classify(http_error(401), overrides=[{"http_status": 401, "as": "permanent"}]).category == "tool_misconfigured"
    )


@pytest.mark.parametrize(
    ("said", "want"),
    [
        ("permanent", ("permanent", "UNAVAILABLE")),
        ("tool_validation", ("permanent", "UNAVAILABLE")),
        ("ABORTED", ("transient", "ABORTED")),
        ("nonsense", ("transient", "UNAVAILABLE")),
        (7, ("transient", "UNAVAILABLE")),
    ],
)
def test_an_override_function_may_return_a_classification(said: Any, want: tuple[str, str]) -> None:
    fault = classify(http_error(503), overrides=[lambda _: said])
    assert (fault.classification, fault.code) == want


def test_a_callable_may_answer_with_a_fault() -> None:
    fault = Fault(Code.ABORTED, "permanent", "tool_validation", "happened", "m", "r", "mine")
    assert classify("x", overrides=[lambda _: fault]) == fault


def test_a_callable_that_raises_is_passed_over() -> None:
    def broken(_: object) -> str:
        raise KeyError("x")

    assert classify(http_error(503), overrides=[broken, {"http_status": 503, "as": "permanent"}]).retryable is False


@pytest.mark.parametrize("row", [{"as": "permanent"}, {"http_status": 503}, {"status": 503, "as": "permanent"}])
def test_a_senseless_row_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        classify("x", overrides=[row])
