"""Repetition: when a thread makes no progress, and that fingerprints are bounded whatever a value does."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from failsoft.core.conversation.repetition import (
    MOST_CHARACTERS,
    NO_PROGRESS_AFTER,
    NO_PROGRESS_WINDOW,
    Repeats,
    count_repeats,
    fingerprint,
    is_refused,
    note_result,
)


def note_all(times: list[float], results: list[int | None] | None = None, most: int = 5) -> Repeats | None:
    repeats = None
    for time_, result in zip(times, results or [1] * len(times), strict=True):
        repeats = note_result(repeats, result, time_, most)
    return repeats


def test_the_numbers_are_those_of_the_specification() -> None:
    assert (NO_PROGRESS_AFTER, NO_PROGRESS_WINDOW) == (5, 60.0)


@pytest.mark.parametrize(
    ("times", "results", "count"),
    [
        ([0, 1, 2, 3, 4], None, 5),
        ([0, 15, 30, 45, 60], None, 5),
        ([0, 15, 30, 45, 61], None, 4),
        ([0, 1, 2, 3, 4], [1, 1, 1, 1, 2], 1),
        ([0, 1, 2, 3, 4], [1, 2, 1, 2, 1], 1),
        ([0, 1, 2, 3, 4], [1, 1, None, 1, 1], 2),
        ([0, 1, 2, 3, 4, 5, 6], None, 5),
    ],
)
def test_unchanged_results_are_counted_in_a_window(times: Any, results: Any, count: int) -> None:
    repeats = note_all(times, results)
    assert repeats is not None
    assert len(repeats.times) == count


def test_a_result_that_cannot_be_compared_is_forgotten() -> None:
    assert note_all([0, 1], [1, None]) is None


def test_max_repeats_refuses_until_the_window_has_passed() -> None:
    repeats = note_all([0, 1, 2], most=3)
    assert [is_refused(repeats, most, 3) for most in (None, 2, 3, 4)] == [False, True, True, False]
    assert is_refused(repeats, 3, 60.5) is False
    assert count_repeats(repeats, 100) == 0
    assert is_refused(None, 1, 0) is False


def test_more_times_are_kept_if_max_repeats_needs_them() -> None:
    assert len(getattr(note_all([*range(20)], most=12), "times", ())) == 12


# --- fingerprints -----------------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Room:
    name: str
    price: float


class Model(BaseModel):
    rooms: list[int]


class Slotted:
    __slots__ = ("x",)


class _Hostile:
    """No method of it may be called."""

    def __init__(self) -> None:
        self.x = 1

    def _hang(self, *_: Any) -> Any:
        time.sleep(60)

    __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = __getattr__ = _hang  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: "text", "texts"),
        (lambda: 1, True),
        (lambda: 1, 1.0),
        (lambda: None, False),
        (lambda: [1, 2], [2, 1]),
        (lambda: [1, 2], (1, 2)),
        (lambda: {"a": 1, "b": [2]}, {"a": 1, "b": [3]}),
        (lambda: {"a": 1}, {"a": 1, "b": None}),
        (lambda: {1, 2}, {1, 3}),
        (lambda: b"x", "x"),
        (lambda: Point(1, 2), (1, 2)),
        (lambda: Room("12", 3.0), Room("12", 4.0)),
        (lambda: Model(rooms=[1]), Model(rooms=[2])),
        (lambda: Colour.RED, Colour.BLUE),
        (lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
        (lambda: Decimal("1.0"), Decimal("1.1")),
        (lambda: float("inf"), float("-inf")),
        (lambda: [Room, 1], [Model, 1]),
    ],
)
def test_equal_values_share_a_fingerprint_and_others_do_not(make: Any, other: Any) -> None:
    assert fingerprint(make()) == fingerprint(make()) is not None
    assert fingerprint(make()) != fingerprint(other)


def test_the_order_of_keys_does_not_matter() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_ids_of_a_message_do_not_count() -> None:
    one, two = (ToolMessage("same", tool_call_id=id, id=id) for id in "12")
    assert fingerprint(one) == fingerprint(two) is not None
    assert fingerprint(one) != fingerprint(ToolMessage("other", tool_call_id="1"))


def test_large_deep_cyclic_and_foreign_values_have_none() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    values: list[Any] = [
        cycle, deep, [0] * 1_000_000, "x" * (MOST_CHARACTERS + 1), ["x" * 100_000] * 20, object(), Slotted(),
        (n for n in ()), [[0] * 1000] * 1000, {n: n for n in range(10_000)},
    ]  # fmt: skip
    began = time.perf_counter()
    assert [fingerprint(value) for value in values] == [None] * len(values)
    assert time.perf_counter() - began < 5


def test_methods_of_a_value_are_never_called() -> None:
    began = time.perf_counter()
    for value in (_Hostile(), [_Hostile()], {"a": _Hostile()}):
        assert fingerprint(value) == fingerprint(value)
    assert time.perf_counter() - began < 5
