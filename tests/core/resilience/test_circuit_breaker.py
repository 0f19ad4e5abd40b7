"""S-spec 3, S-tests 3, R1-R3, R16, R26, T1-T4, T13: when a tool is cut off, and how it comes back."""

from __future__ import annotations

import random

import pytest

from failsoft.core.model.options import BreakerOptions
from failsoft.core.resilience.circuit_breaker import (
    INITIAL,
    BreakerState,
    CircuitState,
    Refusal,
    Result,
    Ticket,
    admit,
    count_failure,
    count_success,
    is_later,
    is_pristine,
    is_same,
    observe,
    record,
)

OPTIONS = BreakerOptions()  # 5 failures, 1 success, 30 s
LEASE = 10.0


class Breaker:
    """The state and the pure functions, held together for the tests."""

    def __init__(self, options: BreakerOptions = OPTIONS, state: BreakerState = INITIAL) -> None:
        self.options = options
        self.state = state

    def admit(self, now: float, *, lease: float = LEASE) -> Ticket | Refusal:
        self.state, answer = admit(self.state, self.options, now=now, lease=lease)
        return answer

    def ticket(self, now: float) -> Ticket:
        answer = self.admit(now)
        assert isinstance(answer, Ticket)
        return answer

    def record(self, ticket: Ticket, result: Result, now: float) -> None:
        self.state = record(self.state, self.options, ticket, result, now=now)

    def call(self, result: Result, now: float) -> None:
        self.record(self.ticket(now), result, now)

    def at(self, now: float) -> CircuitState:
        return observe(self.state, self.options, now=now)


def opened(at: float = 0.0, **options: int) -> Breaker:
    breaker = Breaker(BreakerOptions(failure_threshold=2, **options))
    breaker.call("failure", at)
    breaker.call("failure", at)
    assert breaker.at(at) == "open"
    return breaker


# --- closed -----------------------------------------------------------------------------------------------------------


def test_opens_after_five_consecutive_failures() -> None:  # S-tests 3.1, 3.5
    breaker = Breaker()
    for count in (1, 2, 3, 4):
        breaker.call("failure", 0.0)
        assert (breaker.at(0.0), breaker.state.failures) == ("closed", count)
    breaker.call("failure", 0.0)
    assert (breaker.at(0.0), breaker.state.failures) == ("open", 5)
    assert isinstance(breaker.admit(0.0), Refusal)


def test_a_threshold_of_one() -> None:
    breaker = Breaker(BreakerOptions(failure_threshold=1))
    breaker.call("failure", 0.0)
    assert breaker.at(0.0) == "open"


def test_neutral_results_do_not_count() -> None:  # S-tests 3.4; T3: cancellations
    breaker = Breaker()
    for _ in range(10_000):
        breaker.call("neutral", 0.0)
    assert breaker.state is INITIAL


def test_a_success_resets_the_count_and_a_neutral_result_does_not() -> None:  # S-tests 7.2, R2
    breaker = Breaker()
    results: tuple[Result, ...] = ("failure", "success", "neutral", "failure", "neutral")
    counts = []
    for result in results:
        breaker.call(result, 0.0)
        counts.append(breaker.state.failures)
    assert counts == [1, 0, 0, 1, 1]


def test_one_success_resets_the_count_however_many_would_close() -> None:
    breaker = Breaker(BreakerOptions(success_threshold=3))
    breaker.call("failure", 0.0)
    breaker.call("success", 0.0)
    assert breaker.state == INITIAL


def test_failures_with_a_success_between_never_open() -> None:
    breaker = Breaker(BreakerOptions(failure_threshold=2))
    for _ in range(100):
        breaker.call("failure", 0.0)
        breaker.call("success", 0.0)
    assert breaker.at(0.0) == "closed"


def test_a_success_changes_nothing_where_there_is_nothing_to_change() -> None:
    assert record(INITIAL, OPTIONS, Ticket(0, None), "success", now=9.0) is INITIAL


def test_a_closed_circuit_admits_every_call_with_the_same_ticket() -> None:
    breaker = Breaker()
    assert [breaker.admit(0.0) for _ in range(100)] == [Ticket(0, None)] * 100
    assert breaker.state is INITIAL


def test_a_circuit_is_pristine_without_failures_and_after_closing() -> None:
    breaker = Breaker(BreakerOptions(failure_threshold=2))
    assert is_pristine(breaker.state)
    breaker.call("failure", 0.0)
    assert not is_pristine(breaker.state)
    breaker.call("failure", 0.0)
    assert not is_pristine(breaker.state)
    probe = breaker.ticket(30.0)
    assert not is_pristine(breaker.state)
    breaker.record(probe, "success", 30.0)
    assert is_pristine(breaker.state)
    assert not is_pristine(BreakerState("half_open"))  # after a first success of several


# --- open -------------------------------------------------------------------------------------------------------------


def test_the_open_time_passes_by_itself() -> None:  # S-tests 3.2
    breaker = opened(at=100.0)
    seen = [breaker.at(now) for now in (100.0, 115.0, 129.99, 130.0, 1e9)]
    assert seen == ["open", "open", "open", "half_open", "half_open"]


def test_an_open_time_of_its_own() -> None:
    breaker = Breaker(BreakerOptions(failure_threshold=1, timeout="500ms"))
    breaker.call("failure", 7.0)
    assert (breaker.at(7.49), breaker.at(7.5)) == ("open", "half_open")


def test_a_refusal_says_how_long_it_will_last() -> None:
    breaker = opened(at=100.0)
    assert breaker.admit(100.0) == Refusal(30.0, "open")
    assert breaker.admit(129.0) == Refusal(1.0, "open")
    assert breaker.state.since == 100.0


def test_the_end_of_the_open_time_is_met_within_a_microsecond() -> None:
    opened_at = 0.1 + 0.2
    assert opened_at + 10.1 + 19.9 < opened_at + 30  # as two sleeps add up
    breaker = opened(at=opened_at)
    assert breaker.at(opened_at + 10.1 + 19.9) == "half_open"
    assert isinstance(breaker.admit(opened_at + 10.1 + 19.9), Ticket)


def test_late_results_of_calls_admitted_before_it_opened_are_ignored() -> None:  # T4
    breaker = Breaker(BreakerOptions(failure_threshold=2))
    late = [breaker.ticket(0.0) for _ in range(3)]
    breaker.call("failure", 1.0)
    breaker.call("failure", 1.0)
    before = breaker.state
    for ticket, result in zip(late, ("success", "failure", "neutral"), strict=True):
        breaker.record(ticket, result, 20.0)
        assert breaker.state is before
        breaker.record(ticket, result, 40.0)  # half-open by then
        assert breaker.state is before
    assert (breaker.at(30.9), breaker.at(31.0)) == ("open", "half_open")


def test_a_late_result_does_not_touch_a_circuit_that_has_closed_again() -> None:
    breaker = Breaker(BreakerOptions(failure_threshold=2))
    late = breaker.ticket(0.0)
    breaker.call("failure", 0.0)
    breaker.call("failure", 0.0)
    breaker.call("success", 30.0)
    breaker.call("failure", 31.0)
    before = breaker.state
    assert (before.state, before.failures) == ("closed", 1)
    for result in ("failure", "success"):
        breaker.record(late, result, 32.0)
        assert breaker.state is before


# --- half-open --------------------------------------------------------------------------------------------------------


def test_exactly_one_of_a_thousand_is_admitted() -> None:  # T1
    breaker = opened()
    answers = [breaker.admit(30.0) for _ in range(1000)]
    assert answers[0] == Ticket(1, 1)
    assert set(answers[1:]) == {Refusal(LEASE, "half_open")}
    assert breaker.at(30.0) == "half_open"


def test_a_refusal_beside_a_probe_names_the_rest_of_its_lease() -> None:
    breaker = opened()
    breaker.ticket(30.0)
    assert breaker.admit(34.0) == Refusal(6.0, "half_open")


def test_a_successful_probe_closes() -> None:  # S-tests 3.3
    breaker = opened()
    breaker.call("success", 30.0)
    assert breaker.state == BreakerState("closed", generation=1)
    assert breaker.ticket(30.0) == Ticket(1, None)


def test_a_failed_probe_opens_anew_for_the_whole_time() -> None:  # S-tests 3.2
    breaker = opened()
    probe = breaker.ticket(35.0)
    breaker.record(probe, "failure", 36.0)
    assert breaker.state == BreakerState("open", failures=3, generation=2, since=36.0)
    assert (breaker.at(65.9), breaker.at(66.0)) == ("open", "half_open")
    assert breaker.admit(40.0) == Refusal(26.0, "open")


def test_a_neutral_probe_returns_its_slot_at_once() -> None:  # T2, R26
    breaker = opened()
    for expected in range(1, 200):
        probe = breaker.ticket(30.0)
        assert probe == Ticket(1, expected)
        breaker.record(probe, "neutral", 30.0)
        assert breaker.at(30.0) == "half_open"
        assert breaker.state.failures == 2
    breaker.call("success", 30.0)
    assert breaker.at(30.0) == "closed"


def test_a_dead_probes_slot_is_free_after_its_lease() -> None:  # T2
    breaker = opened()
    dead = breaker.ticket(30.0)
    assert isinstance(breaker.admit(39.9), Refusal)
    assert breaker.at(40.0) == "half_open"
    next_probe = breaker.ticket(40.0)
    assert next_probe == Ticket(1, 2) != dead


@pytest.mark.parametrize("result", ["success", "failure", "neutral"])
def test_only_its_owner_returns_the_slot(result: Result) -> None:
    breaker = opened()
    expired = breaker.ticket(30.0)
    probe = breaker.ticket(40.0)
    before = breaker.state
    breaker.record(expired, result, 41.0)
    assert breaker.state is before
    assert isinstance(breaker.admit(41.0), Refusal)
    breaker.record(probe, "success", 41.0)
    assert breaker.at(41.0) == "closed"


@pytest.mark.parametrize("result", ["success", "failure", "neutral"])
def test_a_probe_that_outlived_its_lease_is_ignored(result: Result) -> None:
    breaker = opened()
    probe = breaker.ticket(30.0)
    before = breaker.state
    breaker.record(probe, result, 40.0)
    assert breaker.state is before


def test_a_result_just_within_the_lease_counts() -> None:
    breaker = opened()
    probe = breaker.ticket(30.0)
    breaker.record(probe, "success", 39.9)
    assert breaker.at(39.9) == "closed"


@pytest.mark.parametrize("first", ["success", "neutral"])
@pytest.mark.parametrize("again", ["success", "failure", "neutral"])
def test_a_probe_reports_once(first: Result, again: Result) -> None:
    breaker = opened(success_threshold=2)
    probe = breaker.ticket(30.0)
    breaker.record(probe, first, 30.0)
    before = breaker.state
    breaker.record(probe, again, 30.0)
    assert breaker.state is before
    breaker.ticket(30.0)
    before = breaker.state
    breaker.record(probe, again, 30.0)
    assert breaker.state is before


@pytest.mark.parametrize("result", ["success", "failure", "neutral"])
def test_a_late_probe_does_not_touch_a_circuit_that_another_has_closed(result: Result) -> None:
    breaker = opened()
    late = breaker.ticket(30.0)
    breaker.call("success", 40.0)
    breaker.call("failure", 41.0)
    before = breaker.state
    breaker.record(late, result, 42.0)
    assert breaker.state is before


def test_a_probe_of_an_earlier_opening_is_fenced() -> None:
    breaker = opened()
    late = breaker.ticket(30.0)
    breaker.call("failure", 40.0)
    probe = breaker.ticket(70.0)
    assert (late, probe) == (Ticket(1, 1), Ticket(2, 1))
    breaker.record(late, "success", 71.0)
    assert breaker.at(71.0) == "half_open"


def test_several_successes_one_at_a_time() -> None:  # R1
    breaker = opened(success_threshold=3)
    for count in (1, 2):
        breaker.call("success", 30.0)
        assert (breaker.at(30.0), breaker.state.successes, breaker.state.failures) == ("half_open", count, 0)
    probe = breaker.ticket(30.0)
    assert isinstance(breaker.admit(30.0), Refusal)
    breaker.record(probe, "success", 30.0)
    assert breaker.state == BreakerState("closed", generation=1)


def test_successes_must_be_consecutive() -> None:  # R1
    breaker = opened(success_threshold=2)
    breaker.call("success", 30.0)
    breaker.call("failure", 31.0)
    assert breaker.state == BreakerState("open", failures=1, generation=2, since=31.0)
    breaker.call("success", 61.0)
    assert breaker.at(61.0) == "half_open"
    breaker.call("neutral", 61.0)
    breaker.call("success", 61.0)
    assert breaker.at(61.0) == "closed"


def test_one_failure_reopens_whatever_the_threshold() -> None:
    breaker = Breaker(BreakerOptions(failure_threshold=5, success_threshold=2))
    for _ in range(5):
        breaker.call("failure", 0.0)
    breaker.call("success", 30.0)
    breaker.call("failure", 30.0)
    assert breaker.at(30.0) == "open"


def test_the_count_starts_anew_once_it_has_closed() -> None:
    breaker = opened()
    breaker.call("success", 30.0)
    breaker.call("failure", 30.0)
    assert breaker.at(30.0) == "closed"
    breaker.call("failure", 30.0)
    assert breaker.state == BreakerState("open", failures=2, generation=2, since=30.0)


# --- a clock that is set back -----------------------------------------------------------------------------------------


def test_a_clock_set_back_lengthens_the_open_time_by_one_window_at_most() -> None:  # T13
    breaker = opened(at=3600.0)
    assert breaker.at(0.0) == "open"
    assert breaker.admit(0.0) == Refusal(30.0, "open")
    assert breaker.admit(20.0) == Refusal(10.0, "open")
    assert breaker.at(30.0) == "half_open"


def test_a_clock_set_back_lengthens_a_lease_by_one_at_most() -> None:
    breaker = opened(at=3600.0)
    breaker.ticket(3630.0)
    assert breaker.at(0.0) == "half_open"
    assert breaker.admit(0.0) == Refusal(LEASE, "half_open")
    assert isinstance(breaker.admit(LEASE), Ticket)


def test_a_probes_result_counts_though_the_clock_was_set_back() -> None:
    breaker = opened(at=3600.0)
    probe = breaker.ticket(3630.0)
    breaker.record(probe, "success", 0.0)
    assert breaker.at(0.0) == "closed"


def test_a_returned_slot_stays_returned_though_the_clock_was_set_back() -> None:
    breaker = opened(at=3600.0)
    probe = breaker.ticket(3630.0)
    breaker.record(probe, "neutral", 3630.0)
    before = breaker.state
    breaker.record(probe, "success", 0.0)
    assert breaker.state is before
    assert isinstance(breaker.admit(0.0), Ticket)


# --- results that do nothing but count --------------------------------------------------------------------------------

CLOSED = [BreakerState("closed", failures, 0, 3) for failures in range(5)]
NOT_CLOSED = [BreakerState("open", 5, 0, 3), BreakerState("half_open", 0, 0, 3, probe=1, lease=9.0)]
OTHERS = [*NOT_CLOSED, BreakerState("closed", 0, 0, 4)]  # the last: an old ticket


@pytest.mark.parametrize("state", CLOSED)
def test_the_shortcut_for_counting_a_failure_records_the_same_state(state: BreakerState) -> None:
    options = BreakerOptions(failure_threshold=5)
    after = record(state, options, Ticket(3, None), "failure", now=1.0)
    assert count_failure(state, 5, Ticket(3, None)) == (after if after.state == "closed" else None)


@pytest.mark.parametrize("state", CLOSED)
def test_a_success_while_closed_is_recorded_alike(state: BreakerState) -> None:
    after = record(state, BreakerOptions(), Ticket(3, None), "success", now=1.0)
    assert count_success(state, Ticket(3, None)) == after == BreakerState(generation=3)


@pytest.mark.parametrize("state", OTHERS)
def test_the_shortcut_for_counting_does_not_apply_to_other_states(state: BreakerState) -> None:
    assert count_failure(state, 5, Ticket(3, None)) is None
    assert count_success(state, Ticket(3, None)) is None


# --- shared circuits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_every_state_of_a_circuit_is_later_than_those_before(seed: int) -> None:
    source, now = random.Random(seed), 0.0
    breaker = Breaker(BreakerOptions(failure_threshold=2, success_threshold=2))
    states = [breaker.state]
    for _ in range(60):
        now += source.choice((0.1, 31))
        answer = breaker.admit(now)
        states.append(breaker.state)
        if isinstance(answer, Ticket):
            breaker.record(answer, source.choice(("success", "failure", "failure", "neutral")), now)
            states.append(breaker.state)
    for number, state in enumerate(states):
        for before in states[:number]:
            assert not is_later(before, state)
            assert is_later(state, before) or is_same(state, before)
    assert len({state.generation for state in states}) > 3


def test_counted_failures_and_times_make_no_state_later() -> None:
    assert is_same(BreakerState("closed", 3, generation=2), BreakerState("closed", 0, generation=2))
    assert is_same(BreakerState("open", generation=2, since=1.0), BreakerState("open", generation=2, since=9.0))


def test_a_probe_that_has_returned_its_slot_is_later_than_the_probe_itself() -> None:
    out = BreakerState("half_open", generation=1, probe=1, lease=10.0)
    assert is_later(out._replace(lease=None), out)
    assert is_later(out._replace(probe=2), out._replace(lease=None))
