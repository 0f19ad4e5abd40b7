from __future__ import annotations

import pytest

from failsoft.core.resilience import rate_hold as h
from failsoft.core.resilience.rate_hold import hold, plan_wait, release, remaining
from failsoft.core.resilience.retry import NoRetry, Retry


def test_a_hold_is_for_one_tenant_and_ends():
    holds = hold({}, "acme", 2.0, now=10.0)
    assert remaining(holds, "acme", now=10.5) == 1.5
    assert remaining(holds, "acme", now=12.0) == 0
    assert remaining(holds, None, now=10.5) == remaining(holds, "other", now=10.5) == 0


def test_a_later_end_replaces_an_earlier_one_only():
    holds = hold(hold({}, None, 5.0, now=0.0), None, 1.0, now=0.0)
    assert remaining(holds, None, now=0.0) == 5.0
    assert remaining(hold(holds, None, 9.0, now=0.0), None, now=0.0) == 9.0


def test_expired_holds_are_dropped():
    holds = hold({}, "a", 1.0, now=0.0)
    assert set(hold(holds, "b", 1.0, now=2.0)) == {("b", None)}
    assert release(holds, now=0.5) == holds
    assert release(holds, now=1.0) == {}


def test_holds_are_bounded_in_time_and_number():
    assert remaining(hold({}, None, 1e9, now=0.0), None, now=0.0) == h.LONGEST
    holds = {}
    for number in range(h.MOST + 50):
        holds = hold(holds, str(number), 10.0 + number / 1000, now=0.0)
    assert len(holds) == h.MOST
    assert ("0", None) not in holds  # the first to end
    assert (str(h.MOST + 49), None) in holds


def test_a_thread_is_held_alone() -> None:
    holds = hold({}, "acme", 2.0, now=0.0, thread="chat")
    assert remaining(holds, "acme", now=0.0, thread="chat") == 2.0
    assert remaining(holds, "acme", now=0.0, thread="other") == remaining(holds, "acme", now=0.0) == 0
    assert remaining(holds, None, now=0.0, thread="chat") == 0
    assert remaining(hold(holds, "acme", 3.0, now=0.0), "acme", now=0.0, thread="chat") == 3.0


def test_holds_of_many_threads_do_not_evict_other_holds() -> None:
    holds = hold({}, "acme", 1.0, now=0.0)
    for number in range(h.MOST + 50):
        holds = hold(holds, "evil", 100.0, now=0.0, thread=str(number))
    assert remaining(holds, "acme", now=0.0) == 1.0


def plan(seconds: float, **facts: object) -> Retry | NoRetry:
    usual = {"waited": 0.0, "patience": 2.0, "turn_left": None, "jitter": 0.0, "jitter_percent": 10.0}
    return plan_wait(seconds, **{**usual, **facts})


@pytest.mark.parametrize(
    ("seconds", "facts", "waits"),
    [
        (1.0, {}, True),
        (2.0, {}, True),
        (2.1, {}, False),
        (1.0, {"waited": 1.5}, False),
        (1.0, {"turn_left": 1.0}, False),
        (1.0, {"turn_left": 1.01}, True),
        (1.0, {"turn_left": 1.05, "jitter": 0.9}, False),
        (30.0, {"patience": 60.0}, True),
    ],
)
def test_a_call_waits_for_a_short_hold_and_fails_at_once_on_a_long_one(seconds, facts, waits):
    assert isinstance(plan(seconds, **facts), Retry) is waits


def test_jitter_only_lengthens_the_wait():
    assert plan(1.0).delay == 1.0
    assert plan(1.0, jitter=0.5).delay == pytest.approx(1.05)


def test_the_reason_names_the_time():
    assert plan(30.0) == NoRetry("held back for 30s")
