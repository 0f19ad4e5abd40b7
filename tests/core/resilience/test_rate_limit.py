"""The token bucket, against one that counts tokens."""

from __future__ import annotations

from random import Random

import pytest

from failsoft.core.model.rates import read_rate
from failsoft.core.resilience.rate_limit import FULL, LONGEST_WAIT, give_back, plan_turn, take
from failsoft.core.resilience.retry import NoRetry, Retry


class Counting:
    """A bucket that counts tokens, below zero for reservations, and adds them as time passes."""

    def __init__(self, calls: int, seconds: float) -> None:
        self.calls, self.per_second = calls, calls / seconds
        self.tokens, self.at = float(calls), 0.0

    def take(self, now: float) -> float:
        self.tokens = min(self.calls, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        self.tokens -= 1
        return max(0.0, -self.tokens / self.per_second)

    def give_back(self) -> None:
        self.tokens += 1


@pytest.mark.parametrize("seed", range(300))
def test_it_agrees_with_a_bucket_that_counts(seed: int) -> None:
    random = Random(seed)
    rate = read_rate(random.choice(["1/1s", "3/1s", "5/2s", "100/1m"]))
    bucket, model, now = FULL, Counting(rate.calls, rate.seconds), 0.0
    for _ in range(60):
        now += random.choice([0.0, 0.0, 0.01, 0.3, 1.0, 7.0])
        bucket, wait = take(bucket, rate, now=now)
        assert wait == pytest.approx(model.take(now), abs=1e-5)
        if wait and random.random() < 0.4:
            bucket = give_back(bucket, rate, at=now + wait)
            model.give_back()


@pytest.mark.parametrize("seed", range(300))
def test_places_given_back_out_of_order_never_let_more_attempts_run_than_the_rate_allows(seed: int) -> None:
    random = Random(seed)
    rate = read_rate(random.choice(["1/1s", "3/1s", "5/2s", "100/1m"]))
    bucket, now = FULL, 0.0
    waiting: list[float] = []
    ran: list[float] = []
    for _ in range(80):
        now += random.choice([0.0, 0.0, 0.01, 0.3, 1.0])
        ran += [at for at in waiting if at <= now]
        waiting = [at for at in waiting if at > now]
        if waiting and random.random() < 0.5:
            bucket = give_back(bucket, rate, at=waiting.pop(random.randrange(len(waiting))))
        else:
            bucket, wait = take(bucket, rate, now=now)
            (waiting if wait else ran).append(now + wait)
    ran = sorted([*ran, *waiting])
    for first, start in enumerate(ran):
        for last in range(first, len(ran)):
            allowed = rate.calls + (ran[last] - start) * rate.calls / rate.seconds
            assert last - first + 1 <= allowed + 1e-3


def test_a_place_given_back_is_free_for_the_next_attempt_that_asks_before_its_time() -> None:
    rate, bucket = read_rate("1/1s"), FULL
    for _ in range(4):  # one runs at once, others wait for 101, 102 and 103
        bucket, _ = take(bucket, rate, now=100.0)
    bucket = give_back(bucket, rate, at=102.0)
    bucket, wait = take(bucket, rate, now=100.5)
    assert wait == pytest.approx(1.5)
    bucket, wait = take(bucket, rate, now=100.5)
    assert wait == pytest.approx(3.5)


def test_when_all_places_are_given_back_the_bucket_is_as_if_nobody_had_waited() -> None:
    rate, bucket = read_rate("2/1s"), FULL
    for _ in range(2):
        bucket, _ = take(bucket, rate, now=100.0)
    before, times = bucket, []
    for _ in range(5):
        bucket, wait = take(bucket, rate, now=100.0)
        times.append(100.0 + wait)
    for at in (times[2], times[0], times[4], times[1], times[3]):
        bucket = give_back(bucket, rate, at=at)
    assert (bucket.full_at, bucket.given_back) == (pytest.approx(before.full_at), ())


def test_tokens_come_one_by_one_and_in_order() -> None:
    rate, bucket, waits = read_rate("2/1s"), FULL, []
    for _ in range(5):
        bucket, wait = take(bucket, rate, now=100.0)
        waits.append(wait)
    assert waits == [0.0, 0.0, 0.5, 1.0, 1.5]


def test_no_burst_is_larger_than_the_bucket() -> None:
    rate = read_rate("3/1s")
    bucket = take(FULL, rate, now=0.0)[0]
    waits = []
    for _ in range(4):
        bucket, wait = take(bucket, rate, now=1e6)
        waits.append(wait)
    assert [bool(wait) for wait in waits] == [False, False, False, True]


def test_an_attempt_waits_as_long_as_its_turn_allows() -> None:
    assert plan_turn(5.0, turn_left=6.0) == Retry(5.0)
    assert isinstance(plan_turn(5.0, turn_left=5.0), NoRetry)
    assert plan_turn(LONGEST_WAIT, turn_left=None) == Retry(LONGEST_WAIT)
    assert isinstance(plan_turn(LONGEST_WAIT + 1, turn_left=None), NoRetry)
