"""R17, T19: durations are read, and anything else is rejected with a correction."""

from __future__ import annotations

import copy
import math
import pickle
import re
from datetime import timedelta
from decimal import Decimal

import pytest

from failsoft.core.model.durations import LONGEST, PATTERN, Seconds, seconds, text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("30s", 30.0), ("500ms", 0.5), ("5m", 300.0), ("2h", 7200.0),  # S-layers, Duration Format
        ("1m30s", 90.0), ("1h5m", 3900.0), ("1.5s", 1.5), ("0.5h", 1800.0), ("1h1m1s1ms", 3661.001),
        ("700ms", 0.7), ("1.0001s", 1.0001), ("007s", 7.0), ("30s1m", 90.0),
        (timedelta(minutes=1, milliseconds=5), 60.005),
        (Seconds(2.5), 2.5),
    ],
)  # fmt: skip
def test_durations_are_read_as_seconds(written: object, read: float) -> None:
    assert seconds(written) == read
    assert isinstance(seconds(written), Seconds)


@pytest.mark.parametrize(("milliseconds", "read"), [(500, 0.5), (30000, 30.0), (700, 0.7), (0.5, 0.0005)])
def test_a_bare_number_is_milliseconds_only_where_the_field_says_so(milliseconds: float, read: float) -> None:
    assert seconds(milliseconds, bare_ms=True) == read
    assert seconds("30s", bare_ms=True) == 30.0
    with pytest.raises(ValueError, match="has no unit"):
        seconds(milliseconds)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (30, '30 has no unit: write "30s"'),
        (0.5, '0.5 has no unit: write "0.5s"'),
        (1e-5, '1e-05 has no unit: write "0.00001s"'),
        ("30", "'30' has no unit: write \"30s\""),
        ("1.5", "'1.5' has no unit: write \"1.5s\""),
    ],
)
def test_a_number_without_a_unit_is_rejected_with_a_suggestion(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        seconds(value)


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "s", "ms", "30 s", " 30s", "30s ", "30s\n", "30S", "30sec", "30d", "1m30", "-30s", "+30s", ".5s", "5.s",
        "1e3s", "1:30", "1,5s", "nan", "nans", "infs", "٣٠s", "３０s", "1²s", "9" * 5000,
        True, False, None, -1, -0.5, math.nan, -math.inf, Decimal(3), b"30s", [], {"s": 30},
        timedelta(seconds=-1), Seconds(-1), Seconds(math.nan),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bare_ms", [False, True])
def test_a_text_that_is_not_a_duration_is_rejected_with_an_example(value: object, bare_ms: bool) -> None:
    with pytest.raises(ValueError, match=r'is not a duration: write .* like "30s"') as refusal:
        seconds(value, zero=True, bare_ms=bare_ms)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("value", [0, 1e-9, math.inf, 10**400])
def test_a_bare_number_for_which_no_unit_would_do(value: float) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(value, zero=True)


@pytest.mark.parametrize("value", ["2500001h", "9" * 400 + "s", "9" * 5000 + "ms", Seconds(math.inf), timedelta.max])
def test_durations_that_are_too_long_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match='is too long: write at most "2500000h"$') as refusal:
        seconds(value)
    assert len(str(refusal.value)) < 150


@pytest.mark.parametrize("value", [10**400, math.inf, 9e12 * 1.1])
def test_milliseconds_that_are_too_long_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="is too long"):
        seconds(value, bare_ms=True)


def test_the_longest_is_allowed() -> None:
    assert seconds("2500000h") == LONGEST
    assert seconds(LONGEST * 1000, bare_ms=True) == LONGEST


@pytest.mark.parametrize("value", ["0s", "0ms", "0.0h", "0h0s", timedelta(0), Seconds(0)])
def test_zero_only_where_it_means_something(value: object) -> None:
    assert seconds(value, zero=True) == 0
    with pytest.raises(ValueError, match="is not longer than zero: write"):
        seconds(value)


def test_zero_milliseconds_are_refused_unless_allowed() -> None:
    assert seconds(0, zero=True, bare_ms=True) == 0
    with pytest.raises(ValueError, match="^0 is not longer than zero"):
        seconds(0, bare_ms=True)


@pytest.mark.parametrize("written", ["30s", "5m", "300s", "1m30s", "0.5m", "1000ms", "90s"])
def test_the_text_comes_back_as_it_was_written(written: str) -> None:
    read = seconds(written)
    assert read.text == written
    assert text(read) == written
    assert text(seconds(read)) == written
    assert text(pickle.loads(pickle.dumps(read))) == written
    assert text(copy.deepcopy(read)) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (30, "30s"), (30.0, "30s"), (Seconds(30), "30s"), (90, "1m30s"), (0.2, "200ms"), (300, "5m"), (3600, "1h"),
        (3660, "1h1m"), (3605, "1h5s"), (5400.5, "1h30m0.5s"), (1, "1s"), (1.5, "1.5s"), (59.999999, "59.999999s"),
        (0.7, "700ms"), (0.0005, "0.5ms"), (1e-6, "0.001ms"), (0.999999, "999.999ms"), (60.000001, "1m0.000001s"),
        (10, "10s"), (100, "1m40s"), (0, "0s"), (1e-9, "0s"), (0.9999999, "1s"), (LONGEST, "2500000h"),
        (seconds(30000, bare_ms=True), "30s"), (seconds(timedelta(minutes=5)), "5m"),
    ],
)  # fmt: skip
def test_a_duration_without_a_source_text_is_written_as_short_as_possible(value: float, written: str) -> None:
    assert text(value) == written


def test_a_read_duration_is_a_number_like_any_other() -> None:
    assert seconds("30s") == 30.0
    assert hash(seconds("30s")) == hash(30.0)
    assert repr(seconds("1m")) == "60.0"


def test_the_pattern_is_anchored_by_its_user() -> None:
    assert re.fullmatch(PATTERN, "1m30s")
    assert not re.fullmatch(PATTERN, "1m30s ")
