"""The breaker against a second one written in another way: same questions, same answers.

``FAILSOFT_SEQUENCES`` says how many seeded sequences are played (100,000 unless told; a failure names its seed).
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties.breaker_model import CLOSED, OPENED, PROBE, RETURNED, Model

from failsoft.core.model.options import BreakerOptions
from failsoft.core.resilience.circuit_breaker import INITIAL, Result, Ticket, admit, is_pristine, observe, record

SEQUENCES = int(os.environ.get("FAILSOFT_SEQUENCES", "100000"))
PARTS = 20  # so that several workers can share them

# Millisecond steps that meet the limits exactly and miss them by one, among others; a clock can also be set back.
TIMEOUTS = (1000, 30_000)
LEASES = (500, 1000, 40_000)
STEPS = (1, 499, 500, 999, 1000, 1000, 29_999, 30_000, 30_000, 30_000, 39_999, 40_000, 3_600_000, -1, -700, -3_600_000)
UNWELL: tuple[Result, ...] = ("failure", "failure", "failure", "neutral")
Choice = tuple[int, int, int] | tuple[int, int, int, int, float, int]
ALL_OPTIONS: dict[Choice, BreakerOptions] = {
    (failures, successes, timeout): BreakerOptions(
        failure_threshold=failures, success_threshold=successes, timeout=f"{timeout}ms"
    )
    for failures in (1, 2, 4)
    for successes in (1, 2, 3)
    for timeout in TIMEOUTS
}
ALL_OPTIONS |= {
    (failures, successes, timeout, window, rate, least): BreakerOptions(
        failure_threshold=failures,
        success_threshold=successes,
        timeout=f"{timeout}ms",
        window=window,
        failure_rate=rate,
        min_calls=least,
    )
    for failures, successes in ((2, 2), (4, 1))
    for timeout in TIMEOUTS
    for window, rate, least in ((2, 0.5, 2), (4, 0.5, 3), (6, 0.34, 2), (5, 1.0, 5))
}
CHOICES = tuple(ALL_OPTIONS)


class Pair:
    """Both breakers, side by side; every answer of the one is held against the other's."""

    def __init__(self, choice: Choice, start: int) -> None:
        self.options = ALL_OPTIONS[choice]
        self.state = INITIAL
        self.model = Model(*choice)
        self.now = start
        self.calls: list[tuple[Ticket, int]] = []  # under way, and some that have reported already

    def ask(self, lease: int) -> None:
        self.state, answer = admit(self.state, self.options, now=self.now / 1000, lease=lease / 1000)
        expected = self.model.ask(self.now, lease)
        if isinstance(expected, int):
            assert isinstance(answer, Ticket)
            assert (answer.probe is not None) == (self.model.story[expected] == PROBE)
            self.calls.append((answer, expected))
        else:
            assert not isinstance(answer, Ticket)
            assert abs(answer.retry_after - expected.wait / 1000) < 1e-6
            assert answer.state == expected.phase

    def report(self, call: int, result: Result) -> None:
        ticket, place = self.calls[call]
        self.state = record(self.state, self.options, ticket, result, now=self.now / 1000)
        self.model.report(place, result, self.now)

    def kill(self, call: int) -> None:
        """The owner is gone, or has reported for the last time: nothing more will be heard of the call."""
        del self.calls[call]

    def compare(self) -> None:
        phase = self.model.phase(self.now)
        assert observe(self.state, self.options, now=self.now / 1000) == phase
        failures = self.model.failures()
        assert self.state.failures == failures
        assert self.state.successes == self.model.successes()
        if phase == "closed":
            assert self.state.recent == self.model.recent()
        assert is_pristine(self.state) == (phase == "closed" and failures == 0)


def play(seed: int) -> Pair:
    random = Random(seed).random

    def choose(count: int) -> int:
        return int(random() * count)

    pair = Pair(CHOICES[choose(len(CHOICES))], start=choose(10**10))
    health, haste = random(), random()  # of the tool: how often it succeeds, how soon it answers
    for _ in range(12 + choose(26)):
        step = random()
        if step < 0.25:
            pair.now += STEPS[choose(len(STEPS))]
        elif step < 0.6 or not pair.calls:
            pair.ask(LEASES[choose(len(LEASES))])
        elif step < 0.96:
            call = len(pair.calls) - 1 if random() < haste else choose(len(pair.calls))
            pair.report(call, "success" if random() < health else UNWELL[choose(len(UNWELL))])
            if random() < 0.1:
                health = 1 - health  # outages begin and end
            if random() < 0.8:  # the rest report again, later
                pair.kill(call)
        else:
            pair.kill(choose(len(pair.calls)))
        pair.compare()
    return pair


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_seeded_sequences(part: int) -> None:
    for seed in range(part, SEQUENCES, PARTS):
        try:
            play(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: play({seed}) shows it") from error


def test_the_sequences_go_everywhere() -> None:
    """Else agreement would mean little: circuits open, close, open again, and owners of probes die."""
    stories = [play(seed).model.story for seed in range(1000)]
    assert sum(OPENED in story for story in stories) > 400
    assert sum(CLOSED in story for story in stories) > 60
    assert sum(story.count(OPENED) > 1 for story in stories) > 150
    assert sum(story.count(PROBE) > story.count(RETURNED) + 1 for story in stories) > 60


class Machine(RuleBasedStateMachine):
    """The same with Hypothesis, which looks for the shortest sequence that shows a difference."""

    @initialize(choice=st.sampled_from(CHOICES), start=st.integers(0, 10**10))
    def begin(self, choice: Choice, start: int) -> None:
        self.pair = Pair(choice, start)

    @rule(lease=st.sampled_from(LEASES))
    def ask(self, lease: int) -> None:
        self.pair.ask(lease)

    @precondition(lambda self: self.pair.calls)
    @rule(pick=st.integers(0, 20), result=st.sampled_from(("failure", "success", "neutral")))
    def report(self, pick: int, result: Result) -> None:
        self.pair.report(pick % len(self.pair.calls), result)

    @precondition(lambda self: self.pair.calls)
    @rule(pick=st.integers(0, 20))
    def kill(self, pick: int) -> None:
        self.pair.kill(pick % len(self.pair.calls))

    @rule(step=st.sampled_from(STEPS) | st.integers(-(10**9), 10**9))
    def step(self, step: int) -> None:
        self.pair.now += step

    @invariant()
    def same(self) -> None:
        self.pair.compare()


Machine.TestCase.settings = settings(
    max_examples=2000, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
TestMachine = pytest.mark.slow(Machine.TestCase)
