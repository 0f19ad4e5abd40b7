"""R25, T18: how many retries a tool may spend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.core.resilience.retry_budget import FULL, Budget, is_ample, level, spend


def drain(budget: Budget, *, now: float) -> tuple[Budget, int]:
    spent = 0
    while True:
        budget, enough = spend(budget, now=now)
        if not enough:
            return budget, spent
        spent += 1


def test_ninety_retries_at_the_start() -> None:
    budget, spent = drain(Budget(), now=0.0)
    assert (budget, spent) == (Budget(0.0, 0.0), 90)


def test_s_tests_2_1_can_run_twenty_times() -> None:
    assert drain(Budget(), now=0.0)[1] >= 20 * 4


def test_a_thousand_calls_in_a_full_outage() -> None:
    budget, attempts = Budget(), 0
    for _ in range(1000):
        attempts += 1
        for _ in range(4):
            budget, enough = spend(budget, now=0.0)
            if not enough:
                break
            attempts += 1
    assert attempts <= 1100


def test_nothing_is_taken_when_there_is_not_enough() -> None:
    assert spend(Budget(0.75, 5.0), now=5.0) == (Budget(0.75, 5.0), False)


def test_one_whole_token_is_enough() -> None:
    assert spend(Budget(1.0, 5.0), now=5.0) == (Budget(0.0, 5.0), True)


def test_ten_successes_bring_a_token() -> None:
    empty = Budget(0.0, 5.0)
    assert spend(empty, now=5.0, successes=9) == (Budget(pytest.approx(0.9), 5.0), False)
    assert spend(empty, now=5.0, successes=10) == (Budget(0.0, 5.0), True)
    assert spend(empty, now=5.0, successes=25) == (Budget(1.5, 5.0), True)


def test_successes_add_up_over_refusals() -> None:
    budget, granted = Budget(0.0, 5.0), []
    for _ in range(10):
        budget, enough = spend(budget, now=5.0, successes=1)
        granted.append(enough)
    assert granted == [False] * 9 + [True]


def test_ten_seconds_bring_a_token() -> None:
    empty = Budget(0.0, 100.0)
    assert spend(empty, now=109.0) == (Budget(pytest.approx(0.9), 109.0), False)
    assert spend(empty, now=110.0) == (Budget(0.0, 110.0), True)
    assert spend(empty, now=130.0) == (Budget(2.0, 130.0), True)


def test_time_adds_up_over_refusals() -> None:
    budget, granted = Budget(0.0, 0.0), []
    for now in range(1, 11):
        budget, enough = spend(budget, now=float(now))
        granted.append(enough)
    assert granted == [False] * 9 + [True]


def test_a_budget_never_exceeds_its_maximum() -> None:
    assert spend(Budget(), now=1e9, successes=10**9) == (Budget(FULL - 1, 1e9), True)
    assert FULL == 90


def test_a_clock_set_back_brings_nothing_and_goes_on_from_there() -> None:
    back, enough = spend(Budget(0.5, 3600.0), now=0.0)
    assert (back, enough) == (Budget(0.5, 0.0), False)
    assert spend(back, now=5.0) == (Budget(0.0, 5.0), True)


# --- successes that have not been counted yet -------------------------------------------------------------------------


def test_a_full_budget_is_not_ample_while_successes_are_uncounted() -> None:
    assert is_ample(Budget(FULL, 5.0), now=5.0, successes=0, more=0)
    assert not is_ample(Budget(FULL, 5.0), now=5.0, successes=0, more=1)
    assert is_ample(Budget(FULL - 1, 5.0), now=5.0, successes=0, more=10)
    assert not is_ample(Budget(FULL - 1, 5.0), now=5.0, successes=0, more=11)
    assert not is_ample(Budget(FULL - 1, 5.0), now=5.0, successes=9, more=2)
    assert not is_ample(Budget(FULL - 1, 5.0), now=15.0, successes=0, more=1)


def test_an_empty_budget_is_not_ample() -> None:
    assert is_ample(Budget(1.0, 5.0), now=5.0, successes=0, more=0)
    assert not is_ample(Budget(0.5, 5.0), now=5.0, successes=0, more=100)
    assert is_ample(Budget(0.5, 5.0), now=10.0, successes=0, more=100)
    assert is_ample(Budget(0.5, 5.0), now=5.0, successes=5, more=100)


@given(tokens=st.floats(0, FULL), waited=st.floats(0, 1000), successes=st.integers(0, 500), more=st.integers(0, 1000))
def test_an_ample_budget_may_count_successes_after_spending(
    tokens: float, waited: float, successes: int, more: int
) -> None:
    budget, now = Budget(tokens, 0.0), waited
    if not is_ample(budget, now=now, successes=successes, more=more):
        return
    before, paid = spend(budget, now=now, successes=successes + more)
    after, paid_first = spend(budget, now=now, successes=successes)
    after, _ = spend(Budget(after.tokens + 1, after.at), now=now, successes=more)
    assert paid
    assert paid_first
    assert after.tokens == pytest.approx(before.tokens)


def test_the_level_is_the_share_of_tokens_that_could_be_spent_now() -> None:
    assert level(Budget(), now=0.0) == 1.0
    assert level(Budget(0.0, at=10.0), now=10.0) == 0.0
    assert level(Budget(0.0, at=10.0), now=10.0, successes=90) == 9 / FULL
    assert level(Budget(0.0, at=10.0), now=1e9) == 1.0
    assert level(Budget(45.0, at=10.0), now=0.0) == 0.5
