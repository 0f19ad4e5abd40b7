"""Durations, backoff, retries and the budget stay within their bounds, whatever legal thing is asked of them."""

from __future__ import annotations

import math
import re
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from failsoft.core.model.durations import LONGEST, PATTERN, Seconds, seconds, text
from failsoft.core.model.fault import Category, Code, Effect, Fault
from failsoft.core.model.options import RetryOptions, RetryRule
from failsoft.core.resilience.backoff import LONGEST_HINT, delay
from failsoft.core.resilience.retry import Attempts, NoRetry, add_failure, plan_retry
from failsoft.core.resilience.retry_budget import FULL, Budget, spend

durations = st.floats(0, LONGEST).map(Seconds)
jitters = st.floats(0, 1, exclude_max=True)
rules = st.builds(RetryRule, max_attempts=st.integers(1, 5), handle_errors=st.lists(st.sampled_from(Code), min_size=1))
options = st.builds(
    RetryOptions,
    max_attempts=st.integers(1, 20),
    initial_delay=durations,
    max_delay=durations,
    multiplier=st.floats(1, allow_infinity=False),
    jitter_percent=st.floats(0, 100),
    max_total_time=durations,
    rules=st.lists(rules, max_size=3),
)
faults = st.builds(
    lambda code, category, effect, hint: Fault(
        code, "transient" if category == "tool_transient" else "permanent", category, effect, "m", "r", "r", hint
    ),
    st.sampled_from(Code),
    st.sampled_from(get_args(Category)),
    st.sampled_from(get_args(Effect)),
    st.none() | st.floats(allow_nan=True, allow_infinity=True),
)

unhurried = settings(deadline=None)  # machines can be busy


# --- durations --------------------------------------------------------------------------------------------------------


@unhurried
@given(st.text() | st.from_regex(PATTERN) | st.floats() | st.integers() | st.booleans(), st.booleans(), st.booleans())
def test_a_duration_is_read_or_refused(value: object, zero: bool, bare_ms: bool) -> None:
    try:
        read = seconds(value, zero=zero, bare_ms=bare_ms)
    except ValueError:
        return
    assert 0 <= read <= LONGEST
    assert read or zero
    assert seconds(read, zero=zero) == read
    assert re.fullmatch(PATTERN, text(read))


@unhurried
@given(st.floats(0, 1e9))
def test_the_text_of_a_duration_means_the_same(value: float) -> None:
    written = text(value)
    assert abs(seconds(written, zero=True) - value) <= 0.5e-6 + value * 1e-15
    assert text(float(seconds(written, zero=True))) == written


# --- backoff ----------------------------------------------------------------------------------------------------------


@unhurried
@given(options, st.integers(1, 10**9), jitters, st.none() | st.floats())
def test_a_delay_within_its_bounds(options: RetryOptions, retry: int, jitter: float, hint: float | None) -> None:
    wait = delay(options, retry, jitter=jitter)
    spread = options.jitter_percent / 100
    most = options.max_delay * (1 + spread)
    least = min(options.initial_delay, options.max_delay) * (1 - spread)
    assert math.isfinite(wait)
    assert least * (1 - 1e-12) <= wait <= most * (1 + 1e-12)
    hinted = delay(options, retry, jitter=jitter, hint=hint)
    assert hinted >= wait
    assert hinted <= max(wait, LONGEST_HINT)
    if hint is not None and hint <= LONGEST_HINT:
        assert hinted >= hint


@unhurried
@given(options, st.integers(1, 10**6))
def test_delays_never_shrink(options: RetryOptions, retry: int) -> None:
    assert delay(options, retry, jitter=0.5) <= delay(options, retry + 1, jitter=0.5)


# --- retry ------------------------------------------------------------------------------------------------------------


@unhurried
@given(
    options,
    st.lists(st.tuples(faults, st.floats(0, 1e6), jitters), min_size=1, max_size=25),
    st.sampled_from([True, False, None]),
)
def test_retries_keep_every_limit(
    options: RetryOptions, failures: list[tuple[Fault, float, float]], safe: bool | None
) -> None:
    attempts, now, starts = Attempts(), 0.0, []
    for fault, duration, jitter in failures:
        now += duration
        attempts = add_failure(attempts, options, fault, duration=duration, now=now)
        planned = plan_retry(options, fault, attempts, safe=safe, jitter=jitter, now=now)
        if isinstance(planned, NoRetry):
            assert planned.why
            break
        assert fault.code is not Code.CANCELLED
        assert fault.category != "internal_contract_bug"
        assert fault.effect == "none" or safe or (fault.effect == "unknown" and safe is None)
        assert fault.retryable or options.rules
        if fault.retry_after is not None and not math.isnan(fault.retry_after):
            assert planned.delay >= fault.retry_after
        now += planned.delay
        starts.append(now - attempts.first_failed_at)
    limits = [rule.max_attempts for rule in options.rules] or [options.max_attempts]
    assert len(starts) <= sum(limit - 1 for limit in limits)
    assert all(start <= options.max_total_time * (1 + 1e-9) + 1e-5 for start in starts)


# --- budget -----------------------------------------------------------------------------------------------------------


@unhurried
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 1000)), max_size=200))
def test_a_budget_pays_for_what_it_was_given(steps: list[tuple[float, int]]) -> None:
    budget, now, earned, spent = Budget(), 0.0, 0.0, 0
    for step, successes in steps:
        now += step
        budget, enough = spend(budget, now=now, successes=successes)
        earned += successes * 0.1 + max(0.0, step) * 0.1
        spent += enough
        assert -1e-9 <= budget.tokens <= FULL
        assert enough or budget.tokens < 1
    assert spent <= FULL + earned + 1e-3
