"""Failures of calls inside calls: found, and reported once."""

from __future__ import annotations

from typing import Any

import pytest

from failsoft.core.classify import classify
from failsoft.core.classify.nested import adopt_fault, failures_inside, find_origin
from failsoft.core.explain.explanation import explain
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.outcome import Outcome
from failsoft.errors import CallFailed

DOWN = Fault(
    Code.UNAVAILABLE, "transient", "tool_transient", "none", "Service unavailable (503)", "r", "http_status: 503",
    source="remote",
)  # fmt: skip


def failed(fault: Fault | None = DOWN, tool: str = "search") -> CallFailed:
    return CallFailed(Outcome(f"{tool}-1", tool, "failed", fault=fault))


def wrapped(error: Exception, cause: BaseException) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def handled(error: Exception, context: Exception) -> Exception:
    try:
        try:
            raise context
        except Exception:
            raise error from None
    except Exception as caught:
        return caught


class Empty(RuntimeError):
    """A collection of problems that has none."""

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "error",
    [
        failed(),
        wrapped(RuntimeError("no trip"), wrapped(Empty(), failed())),
        wrapped(RuntimeError("no trip"), failed()),
        wrapped(RuntimeError("no trip"), wrapped(RuntimeError("no plan"), failed())),
        ExceptionGroup("in a task group", [failed()]),
        ExceptionGroup("in a task group", [ExceptionGroup("in another", [failed()])]),
        wrapped(RuntimeError("no trip"), ExceptionGroup("in a task group", [failed()])),
    ],
)
def test_a_failed_call_is_found_wherever_it_hides(error: Exception) -> None:
    (found,) = failures_inside(error)
    assert found.tool == "search"
    assert adopt_fault(classify(error), error) == DOWN._replace(rule="nested: http_status: 503", cause=error)


def test_an_error_raised_while_a_failed_call_was_handled_came_after_whatever_was_done_in_between() -> None:
    error = handled(RuntimeError("no trip"), failed())
    found = adopt_fault(classify(error), error)
    assert found == DOWN._replace(rule="nested: http_status: 503", cause=error, effect="unknown", source="words")


def test_a_wrapper_that_reports_an_effect_makes_the_evidence_disputed() -> None:
    error = wrapped(RuntimeError("payment captured, but the receipt was not sent"), failed())
    assert adopt_fault(classify(error), error).source == "disputed"


def test_no_nested_failures_are_found_where_there_are_none() -> None:
    assert list(failures_inside(None)) == []
    assert list(failures_inside(wrapped(RuntimeError("a"), OSError("b")))) == []
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert list(failures_inside(first)) == []
    error = ValueError("Invalid city")
    assert adopt_fault(classify(error), error).rule == classify(error).rule


def test_a_wrapper_with_its_own_status_is_classified_by_that_status() -> None:
    refused = RuntimeError("you may not do that")
    refused.status_code = 403  # type: ignore[attr-defined]
    error = wrapped(refused, failed(DOWN._replace(code=Code.INTERNAL, message="oops")))
    fault = adopt_fault(classify(error), error)
    assert (fault.code, fault.message) == ("PERMISSION_DENIED", "you may not do that")


def test_the_nested_prefix_appears_once_at_any_depth() -> None:
    fault = DOWN
    for _ in range(5):
        error = failed(fault)
        fault = adopt_fault(classify(error), error)
    assert fault.rule == "nested: http_status: 503"
    assert fault.message == DOWN.message


def five_deep() -> Outcome[Any]:
    outcome: Outcome[Any] = Outcome("seat-1", "find_seat", "failed", fault=DOWN, attempts=3)
    for tool in ("find_flight", "find_trip", "plan_week", "sub_agent"):
        error = CallFailed(outcome)
        outcome = Outcome(f"{tool}-1", tool, "failed", fault=adopt_fault(classify(error), error), attempts=1)
    return outcome


def test_the_origin_is_found_through_all_levels() -> None:
    assert [step.tool for step in find_origin(five_deep())] == [
        "sub_agent",
        "plan_week",
        "find_trip",
        "find_flight",
        "find_seat",
    ]
    alone: Outcome[Any] = Outcome("a", "a", "failed", fault=DOWN)
    assert find_origin(alone) == [alone]


def test_five_levels_are_explained_as_one_failure() -> None:
    told = explain(five_deep())
    assert told.user == "I couldn’t reach find seat right now. It may work if we try again in a little while."
    assert told.model == (
        "sub_agent failed because find_seat inside it failed: UNAVAILABLE (tool_transient). It had no effect. "
        'Calling it again may help, in a little while. Error text, as data: "Service unavailable (503)"'
    )
    assert told.operator.startswith(
        "In sub_agent → plan_week → find_trip → find_flight: find_seat failed: UNAVAILABLE, tool_transient, 3 attempts."
    )
    for text in told:
        assert text.count("find_seat") + text.count("find seat") == 1
