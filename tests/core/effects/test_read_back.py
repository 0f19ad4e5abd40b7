"""Read back what became of a write: arguments, patterns, and the answer that follows (R53)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from failsoft import Code, NothingDone, Verified, classify
from failsoft.core.effects.read_back import MOST_NODES, MissingArgumentError, fill_in_arguments, judge
from failsoft.core.model.verify_tool import read_verify

ARGUMENTS = {"order_id": 7, "customer": {"name": "Ada", "ids": [4, 5]}, "price": "$5"}
NOT_FOUND = classify("Order not found (404)")._replace(code=Code.NOT_FOUND)
DOWN = classify("Service unavailable (503)")


@dataclass
class Order:
    id: int
    status: str


def answer(value: Any = None, /, fault: Any = None, **spec: Any) -> Verified:
    values = () if fault is not None else (value,)
    return judge(read_verify({"tool": "get_order", **spec}), ARGUMENTS, values, fault)


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ({"status": "paid"}, {"status": "paid", "id": 7}, True),
        ({"status": "paid"}, {"status": "open"}, False),
        ({"status": "paid"}, {}, False),
        ({"status": "paid"}, None, False),
        ({"status": "paid"}, "paid", False),
        ({"status": "paid"}, '{"status": "paid"}', True),
        ({"status": "paid"}, Order(7, "paid"), True),
        ({"status": ["paid", "shipped"]}, {"status": "shipped"}, True),
        ({"status": ["paid", "shipped"]}, {"status": "open"}, False),
        ({"order": {"status": "paid"}}, {"order": {"status": "paid"}}, True),
        ({"id": "$order_id"}, {"id": 7}, True),
        ({"id": "$order_id"}, {"id": "7"}, False),
        ({"id": "$order_id"}, [{"id": 3}, {"id": 7}], True),
        ({"id": "$order_id"}, [{"id": 3}], False),
        ({"id": "$order_id"}, [], False),
        ({"by": "$customer.name"}, {"by": "Ada"}, True),
        ({"by": "$customer.ids.1"}, {"by": 5}, True),
        ({"price": "$price"}, {"price": "$5"}, True),
        ({"price": "$$5"}, {"price": "$5"}, True),
        ({}, {}, True),
        ({}, {"a": 1}, True),
        ({}, None, False),
        ([], [], True),
        ([], [1], False),
        ([], None, False),
        ("*", {"id": 1}, True),
        ("*", 0, True),
        ("*", False, True),
        ("*", None, False),
        ("*", [], False),
        ("*", "", False),
        (None, None, True),
        (None, "x", False),
        (True, True, True),
        (True, 1, False),
        (1, 1.0, True),
        (1, True, False),
        ("paid", "paid", True),
        ({"$failed": "NOT_FOUND"}, {"$failed": "NOT_FOUND"}, False),
    ],
)
def test_patterns(pattern: Any, value: Any, matches: bool) -> None:
    assert answer(value, happened_if=pattern).answer == ("happened" if matches else "unknown")
    assert answer(value, none_if=pattern).answer == ("none" if matches else "unknown")


@pytest.mark.parametrize(
    ("argument", "value", "matches"),
    [
        ("*", "anything", False),
        ("*", "*", True),
        ("$order_id", "$order_id", True),
        (["Ada", "Bob"], "Bob", False),
        (["Ada", "Bob"], ["Ada", "Bob"], True),
        (("Ada", "Bob"), ["Ada", "Bob"], True),
        (["Ada", "*"], ["Ada", "Bob"], False),
        ([], [], True),
        ({}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, [{"a": 1}], False),
        ({"$failed": "NOT_FOUND"}, {"$failed": "NOT_FOUND"}, True),
    ],
)
def test_an_argument_in_a_pattern_is_compared_as_it_is_and_never_a_pattern_itself(
    argument: Any, value: Any, matches: bool
) -> None:
    for pattern, read in (({"to": "$to"}, {"to": value}), ("$to", value), (["$to"], value)):
        happened = judge(read_verify({"tool": "get", "happened_if": pattern}), {"to": argument}, [read])
        nothing = judge(read_verify({"tool": "get", "none_if": pattern}), {"to": argument}, [read])
        assert (happened.answer, nothing.answer) == (("happened", "none") if matches else ("unknown", "unknown"))


def test_an_argument_that_looks_like_a_failure_matches_no_failure() -> None:
    spec = read_verify({"tool": "get", "none_if": "$to"})
    assert judge(spec, {"to": {"$failed": "NOT_FOUND"}}, fault=NOT_FOUND).answer == "unknown"


@pytest.mark.parametrize("pattern", [{"$failed": "NOT_FOUND"}, {"$failed": ["NotFound", "OUT_OF_RANGE"]}])
def test_a_failure_of_the_reading_tool_can_be_an_answer(pattern: Any) -> None:
    assert answer(fault=NOT_FOUND, none_if=pattern) == Verified.none()
    assert answer(fault=NOT_FOUND, none_if=[None, pattern]) == Verified.none()
    down = answer(fault=DOWN, none_if=pattern, happened_if="*")
    assert (down.answer, down.reason.startswith("get_order failed: UNAVAILABLE")) == ("unknown", True)


class OrderNotFoundError(Exception):
    """Named like an answer of the other side, but made here."""


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file or directory", "orders.db"),
        ModuleNotFoundError("No module named 'orders'"),
        ProcessLookupError(3, "No such process"),
        OrderNotFoundError("7"),
        RuntimeError("template not found"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_local_failure_of_the_reading_tool_shows_nothing(error: Exception) -> None:
    fault = classify(error)
    codes = {"$failed": [*Code]}
    for pattern in ({"none_if": codes}, {"happened_if": codes}, {"none_if": [[], codes]}):
        found = answer(fault=fault, **pattern)
        assert found.answer == "unknown"
        assert "a local error, not an answer of the other side" in found.reason


@pytest.mark.parametrize(
    "error", [NothingDone("no such order", code="NOT_FOUND"), RuntimeError("404 Not Found"), "HTTP 404"], ids=str
)
def test_a_stated_failure_of_the_reading_tool_is_an_answer(error: Any) -> None:
    assert answer(fault=classify(error), none_if={"$failed": "NOT_FOUND"}) == Verified.none()


def test_nothing_but_the_code_matches_a_failure() -> None:
    for pattern in ("*", None, {}, [], {"status": "paid"}):
        assert answer(fault=NOT_FOUND, none_if=pattern).answer == "unknown"
        assert answer(fault=NOT_FOUND, happened_if=pattern).answer == "unknown"


def test_two_patterns_that_both_match_say_nothing() -> None:
    assert "both match" in answer({"a": 1}, happened_if={"a": 1}, none_if="*").reason


@pytest.mark.parametrize(
    ("path", "found"),
    [("$match", {"id": 7, "lines": [1, 2]}), ("$match.id", 7), ("$match.lines.1", 2), (None, None), ("$match.x", None)],
)
def test_the_value_is_what_matched_or_a_part_of_it(path: str | None, found: Any) -> None:
    got = answer([{"id": 3}, {"id": 7, "lines": [1, 2]}], happened_if={"id": "$order_id"}, value=path)
    assert got.answer == "happened"
    assert (got.value if got.value_known else None) == found
    assert got.value_known is (found is not None)
    order = Order(7, "paid")
    assert answer(order, happened_if={"id": 7}, value="$match").value is order


def test_arguments_are_filled_in() -> None:
    spec = read_verify({"tool": "t", "arguments": {"a": "$order_id", "b": ["$customer.name", "$$x", 3]}, "none_if": []})
    assert fill_in_arguments(spec, ARGUMENTS) == {"a": 7, "b": ["Ada", "$x", 3]}
    assert sorted(spec.names()) == ["customer", "order_id"]
    for wrong in ("$nothing", "$customer.age"):
        with pytest.raises(MissingArgumentError):
            fill_in_arguments(spec._replace(arguments={"a": wrong}), ARGUMENTS)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({}, "tool: None is not the id"),
        ({"tool": 3, "none_if": None}, "tool: 3 is not the id"),
        ({"tool": "t"}, "happened_if, none_if or both"),
        ({"tool": "t", "none_if": None, "arguments": []}, "arguments: [] is not a mapping"),
        ({"tool": "t", "none_if": None, "happend_if": 1}, "'happend_if' is not one of tool"),
        ({"tool": "t", "none_if": {"$failed": "NOPE"}}, "none_if: $failed: "),
        ({"tool": "t", "none_if": {"$failed": []}}, "none_if: $failed: the list is empty"),
        ({"tool": "t", "happened_if": 1, "value": "id"}, "value: 'id' is not"),
        ({"tool": "t", "none_if": 1, "value": "$match"}, "value: without happened_if"),
        ("get_order", "'get_order' is not a function"),
        (lambda arguments: None, "is not a function verify(arguments, key, fault)"),
    ],
)
def test_what_makes_no_sense_is_refused(written: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_verify(written)


@pytest.mark.parametrize("nested", [False, True])
def test_an_answer_that_is_too_large_to_read_is_unknown(nested: bool) -> None:
    large: Any = [{"status": "paid"}, *range(MOST_NODES)]
    if nested:
        large = {"orders": [large]}
    spec = read_verify({"tool": "find", "happened_if": {"status": "paid"}, "none_if": "*"})
    verified = judge(spec, {}, [large])
    assert (verified.answer, "more than 100000 values" in verified.reason) == ("unknown", True)
