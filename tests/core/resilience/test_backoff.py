"""S-spec 2.1-2.3, R5, R6, T19, T20: how long to wait."""

from __future__ import annotations

import math

import pytest

from failsoft.core.model.options import RetryOptions
from failsoft.core.resilience.backoff import LONGEST_HINT, delay

MIDDLE = 0.5  # the random number that moves nothing


def test_the_default_delays_double_up_to_the_cap() -> None:
    delays = [delay(RetryOptions(), retry, jitter=MIDDLE) for retry in (1, 2, 3, 4, 5, 6)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 0.8, 0.8]


def test_a_tools_own_delays() -> None:  # S-tests 2.5
    options = RetryOptions(initial_delay="50ms", max_delay="2s", max_attempts=3)
    assert [delay(options, retry, jitter=MIDDLE) for retry in (1, 2)] == [0.05, 0.1]


def test_a_multiplier_of_its_own() -> None:
    options = RetryOptions(initial_delay="1s", max_delay="1h", multiplier=3)
    assert [delay(options, retry, jitter=MIDDLE) for retry in (1, 2, 3, 4)] == [1, 3, 9, 27]


def test_a_multiplier_of_one_waits_evenly() -> None:
    options = RetryOptions(multiplier=1)
    assert [delay(options, retry, jitter=MIDDLE) for retry in (1, 2, 10**9)] == [0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("jitter", "expected"), [(0.0, 0.09), (0.25, 0.095), (0.5, 0.1), (0.75, 0.105), (1 - 2**-53, 0.11)]
)
def test_jitter_is_uniform_to_either_side(jitter: float, expected: float) -> None:
    assert delay(RetryOptions(), 1, jitter=jitter) == pytest.approx(expected, rel=1e-12)


def test_jitter_comes_after_the_cap() -> None:
    options = RetryOptions(jitter_percent=50)
    assert delay(options, 100, jitter=0.0) == pytest.approx(0.4)
    assert delay(options, 100, jitter=0.75) == pytest.approx(1.0)


def test_no_jitter_and_all_of_it() -> None:
    assert delay(RetryOptions(jitter_percent=0), 1, jitter=0.0) == 0.1
    assert delay(RetryOptions(jitter_percent=100), 1, jitter=0.0) == 0.0


@pytest.mark.parametrize("retry", [1025, 10**6, 10**9, 10**400])
@pytest.mark.parametrize("multiplier", [2.0, 2, 1e308])
def test_any_number_of_retries(retry: int, multiplier: float) -> None:
    assert delay(RetryOptions(multiplier=multiplier), retry, jitter=MIDDLE) == 0.8
    assert delay(RetryOptions(multiplier=multiplier, initial_delay="0s"), retry, jitter=MIDDLE) == 0.0


def test_the_cap_holds_from_the_first_retry() -> None:
    assert delay(RetryOptions(initial_delay="5s"), 1, jitter=MIDDLE) == 0.8


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_jitter_does_not_shorten_a_hint(jitter: float) -> None:
    assert delay(RetryOptions(), 1, jitter=jitter, hint=7.0) == 7.0


def test_a_hint_does_not_shorten_the_backoff() -> None:
    assert delay(RetryOptions(), 4, jitter=MIDDLE, hint=0.1) == 0.8
    assert delay(RetryOptions(), 4, jitter=MIDDLE, hint=0.0) == 0.8


@pytest.mark.parametrize("hint", [math.nan, -1.0, -math.inf])
def test_an_invalid_hint_is_ignored(hint: float) -> None:
    assert delay(RetryOptions(), 1, jitter=MIDDLE, hint=hint) == 0.1


@pytest.mark.parametrize("hint", [3601.0, 1e300, math.inf])
def test_a_hint_is_capped_at_an_hour(hint: float) -> None:
    assert delay(RetryOptions(), 1, jitter=MIDDLE, hint=hint) == LONGEST_HINT == 3600


def test_the_end_of_hints_does_not_shorten_the_tools_own_delay() -> None:
    patient = RetryOptions(initial_delay="2h", max_delay="2h")
    assert delay(patient, 1, jitter=MIDDLE, hint=3 * 3600.0) == 7200
