"""S-tests 2, R4, R11, R16, R18: whether a failed attempt is repeated."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.core.model.fault import Category, Code, Fault
from failsoft.core.model.options import RetryOptions, RetryRule
from failsoft.core.resilience.retry import Attempts, NoRetry, Retry, Wish, add_failure, plan_known, plan_retry

MIDDLE = 0.5
HIGHEST = 1 - 2**-53


def fault(code: Code = Code.UNAVAILABLE, *, category: Category = "tool_transient", **more: Any) -> Fault:
    classification = "transient" if category == "tool_transient" else "permanent"
    return Fault(code, classification, category, more.pop("effect", "none"), "down", "reason", "rule", **more)


def plan(
    options: RetryOptions | None = None,
    failed: Fault | None = None,
    attempts: Attempts | None = None,
    *,
    safe: bool | None = None,
    jitter: float = MIDDLE,
    now: float = 100.0,
    wish: Wish | None = None,
    waited: float = 0.0,
) -> Retry | NoRetry:
    """Plan after a first failure that took 0 s and ended at 100 s, unless the arguments say otherwise."""
    options, failed = options or RetryOptions(), failed or fault()
    if attempts is None:
        attempts = add_failure(Attempts(), options, failed, duration=0.0, now=100.0)
    return plan_retry(options, failed, attempts, safe=safe, jitter=jitter, now=now, wish=wish, waited=waited)


def run(
    options: RetryOptions, *, takes: float, jitter: float = MIDDLE, faults: list[Fault] | None = None
) -> tuple[int, float, NoRetry]:
    """Fail until no retry is planned: the number of attempts, the running time of the retries, and why it ended."""
    attempts, now = Attempts(), 50.0
    while True:
        failed = faults[attempts.made] if faults else fault()
        now += takes
        attempts = add_failure(attempts, options, failed, duration=takes, now=now)
        planned = plan_retry(options, failed, attempts, safe=None, jitter=jitter, now=now)
        if isinstance(planned, NoRetry):
            return attempts.made, attempts.retry_time, planned
        now += planned.delay


# --- counting ---------------------------------------------------------------------------------------------------------


def test_the_first_failure_starts_the_clock() -> None:
    assert add_failure(Attempts(), RetryOptions(), fault(), duration=30.0, now=130.0) == Attempts(
        1, 130.0, 0.0, 30.0, ()
    )


def test_later_failures_add_to_the_retries_running_time() -> None:
    attempts = add_failure(Attempts(), RetryOptions(), fault(), duration=30.0, now=130.0)
    attempts = add_failure(attempts, RetryOptions(), fault(), duration=2.0, now=140.0)
    attempts = add_failure(attempts, RetryOptions(), fault(), duration=3.0, now=150.0)
    assert attempts == Attempts(3, 130.0, 5.0, 3.0, ())


def test_each_failure_counts_for_the_first_rule_that_lists_it() -> None:
    options = RetryOptions(rules=(
        RetryRule(max_attempts=2, handle_errors=(Code.UNAVAILABLE,)),
        RetryRule(max_attempts=3, handle_errors=(Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)),
    ))  # fmt: skip
    attempts = Attempts()
    for code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.NOT_FOUND, Code.DEADLINE_EXCEEDED):
        attempts = add_failure(attempts, options, fault(code), duration=0.0, now=0.0)
    assert attempts.matched == (1, 2)


# --- how often --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitter", [0.0, MIDDLE, HIGHEST])
def test_five_attempts_by_default(jitter: float) -> None:  # S-tests 2.1, 2.3
    assert run(RetryOptions(), takes=0.0, jitter=jitter) == (5, 0.0, NoRetry("max attempts reached (5)"))


def test_the_delay_is_the_backoff_of_the_coming_retry() -> None:
    attempts, delays = Attempts(), []
    for _ in range(4):
        attempts = add_failure(attempts, RetryOptions(), fault(), duration=0.0, now=100.0)
        delays.append(plan(attempts=attempts))
    assert delays == [Retry(0.1), Retry(0.2), Retry(0.4), Retry(0.8)]


def test_max_attempts_of_its_own() -> None:
    assert run(RetryOptions(max_attempts=3), takes=0.0) == (3, 0.0, NoRetry("max attempts reached (3)"))
    assert plan(RetryOptions(max_attempts=1)) == NoRetry("max attempts reached (1)")


def cut_off(limit: str, made: int, most: int = 5) -> NoRetry:
    return NoRetry(f"max total retry time of {limit} reached after {made} of {most} attempts", cut_off=True)


# --- how long ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitter", [0.0, MIDDLE, HIGHEST])
@pytest.mark.parametrize("initial_delay", ["0s", "1ms", "100ms"])
def test_four_attempts_of_600_ms(jitter: float, initial_delay: str) -> None:  # S-tests 2.4
    made, retry_time, end = run(RetryOptions(initial_delay=initial_delay), takes=0.6, jitter=jitter)
    assert (made, retry_time) == (4, pytest.approx(1.8))
    assert end == cut_off("2s", 4)


def test_the_first_retry_after_a_long_timeout() -> None:  # S-tests 4.1, 7.3
    attempts = add_failure(Attempts(), RetryOptions(), fault(), duration=30.0, now=130.0)
    assert plan(attempts=attempts, now=130.0) == Retry(0.1)
    attempts = add_failure(attempts, RetryOptions(), fault(), duration=30.0, now=160.1)
    assert plan(attempts=attempts, now=160.1) == cut_off("2s", 2)


def test_a_retry_starts_within_the_total_time_of_the_first_failure() -> None:
    attempts = Attempts(2, first_failed_at=100.0, retry_time=0.0, last_duration=0.0)
    assert plan(attempts=attempts, now=101.8) == Retry(0.2)
    assert plan(attempts=attempts, now=101.80001) == cut_off("2s", 2)


def test_the_retries_and_one_more_fit_into_the_total_time() -> None:
    assert plan(attempts=Attempts(3, 100.0, retry_time=1.0, last_duration=1.0)) == Retry(0.4)
    assert plan(attempts=Attempts(3, 100.0, retry_time=1.0, last_duration=1.00001)) == cut_off("2s", 3)
    assert plan(attempts=Attempts(2, 100.0, retry_time=1.2, last_duration=1.2)) == cut_off("2s", 2)


def test_a_limit_met_exactly_is_not_passed() -> None:
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert run(RetryOptions(initial_delay="0s", max_total_time="300ms"), takes=0.1)[:2] == (4, pytest.approx(0.3))


def test_the_limit_is_named_as_it_was_written() -> None:
    assert plan(RetryOptions(max_total_time="0.05s")) == cut_off("0.05s", 1)


def test_the_limit_of_a_rule_is_named_with_its_own_attempts() -> None:
    rules = (RetryRule(max_attempts=7, handle_errors=("UNAVAILABLE",)),)
    options = RetryOptions(rules=rules, max_total_time="50ms")
    attempts = add_failure(Attempts(), options, fault(), duration=0.0, now=100.0)
    assert plan(options, attempts=attempts) == cut_off("50ms", 1, 7)


def test_a_clock_set_back_counts_as_no_time() -> None:
    assert plan(now=40.0) == Retry(0.1)
    assert plan(RetryOptions(max_total_time="50ms"), now=40.0) == cut_off("50ms", 1)


# --- what the server says ---------------------------------------------------------------------------------------------


def test_a_hint_is_waited_for() -> None:
    assert plan(failed=fault(retry_after=1.5)) == Retry(1.5, hinted=True)
    assert plan(failed=fault(retry_after=0.05)) == Retry(0.1)  # the backoff is longer


@pytest.mark.parametrize("hint", [math.nan, -1.0, -math.inf])
def test_an_invalid_hint_is_ignored(hint: float) -> None:
    assert plan(failed=fault(retry_after=hint)) == Retry(0.1)


def test_a_hint_is_bounded_by_max_hint_wait_alone() -> None:
    assert plan(failed=fault(retry_after=20.0)) == Retry(20.0, hinted=True)
    too_long = NoRetry("the service asks for a wait of 20.5s, max_hint_wait is 20s")
    assert plan(failed=fault(retry_after=20.5)) == too_long
    assert plan(RetryOptions(max_hint_wait="1m"), fault(retry_after=20.5)) == Retry(20.5, hinted=True)
    assert isinstance(plan(RetryOptions(max_hint_wait="0s"), fault(retry_after=0.5)), NoRetry)


def test_hinted_waits_are_added_up_over_the_call() -> None:
    assert plan(failed=fault(retry_after=5.0), waited=15.0) == Retry(5.0, hinted=True)
    assert isinstance(plan(failed=fault(retry_after=5.0), waited=15.1), NoRetry)


def test_hinted_waits_do_not_count_towards_the_total_time() -> None:
    seen = Attempts(2, 0.0, 0.1, 0.1, hinted=9.0)
    assert plan(attempts=seen, now=10.0) == Retry(0.2)  # one second has passed beside them
    assert isinstance(plan(attempts=seen, now=12.0), NoRetry)


def test_a_policys_delay_is_no_hint() -> None:
    assert plan(failed=fault(retry_after=5.0), wish=Wish(30.0)) == Retry(30.0)
    assert plan(failed=fault(retry_after=5.0), wish=Wish(1.0)) == Retry(5.0, hinted=True)
    assert isinstance(plan(failed=fault(retry_after=50.0), wish=Wish(1.0)), NoRetry)


@pytest.mark.parametrize("hint", [3600.5, float("inf")])
def test_an_endless_hint_is_not_shortened_but_refused(hint: float) -> None:
    patient = RetryOptions(max_hint_wait="24h")
    assert plan(patient, fault(retry_after=hint)) == NoRetry("the service asks for a wait of more than 1h")
    assert plan(patient, fault(retry_after=3600.0)) == Retry(3600.0, hinted=True)


# --- what must not be repeated ----------------------------------------------------------------------------------------

ANY = RetryOptions(rules=(RetryRule(max_attempts=9, handle_errors=tuple(Code)),))


@pytest.mark.parametrize("category", ["tool_validation", "tool_misconfigured", "tool_unavailable"])
def test_permanent_errors_are_repeated_only_if_a_rule_lists_them(category: Category) -> None:
    failed = fault(Code.INVALID_ARGUMENT, category=category)
    assert plan(failed=failed, safe=True) == NoRetry("permanent error")
    assert plan(ANY, failed) == Retry(0.1)  # an explicit list beats the classification


def test_a_cancelled_call_is_never_repeated() -> None:
    for options in (RetryOptions(), ANY):
        assert plan(options, fault(Code.CANCELLED), safe=True) == NoRetry("the caller has left")


def test_a_bug_is_never_repeated() -> None:
    for options in (RetryOptions(), ANY):
        failed = fault(Code.INTERNAL, category="internal_contract_bug")
        assert plan(options, failed, safe=True) == NoRetry("a bug is not cured by repeating")


UNKNOWN = NoRetry("the effect is unknown and the tool is not idempotent")
HAPPENED = NoRetry("the effect has happened and the tool is not declared idempotent")


@pytest.mark.parametrize("options", [RetryOptions(), ANY])
@pytest.mark.parametrize(
    ("effect", "safe", "expected"),
    [
        ("none", True, Retry(0.1)), ("none", None, Retry(0.1)), ("none", False, Retry(0.1)),
        ("unknown", True, Retry(0.1)), ("unknown", None, Retry(0.1)), ("unknown", False, UNKNOWN),
        ("happened", True, Retry(0.1)), ("happened", None, HAPPENED), ("happened", False, HAPPENED),
    ],
)  # fmt: skip
def test_the_effect_and_the_tool_decide_together_whether_a_retry_is_safe(
    options: RetryOptions, effect: str, safe: bool | None, expected: Retry | NoRetry
) -> None:
    assert plan(options, fault(effect=effect), safe=safe) == expected


def test_the_effect_is_named_before_the_attempts() -> None:
    assert plan(RetryOptions(max_attempts=1), fault(effect="unknown"), safe=False) == UNKNOWN


# --- S-layers' rules --------------------------------------------------------------------------------------------------

LAYERS = RetryOptions(rules=(
    RetryRule(max_attempts=2, handle_errors=(Code.UNAVAILABLE,)),
    RetryRule(max_attempts=3, handle_errors=(Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE)),
))  # fmt: skip


@pytest.mark.parametrize(("code", "attempts"), [(Code.UNAVAILABLE, 2), (Code.DEADLINE_EXCEEDED, 3)])
def test_each_rule_limits_the_total_number_of_attempts(code: Code, attempts: int) -> None:
    end = NoRetry(f"max attempts reached ({attempts} for {code})")
    assert run(LAYERS, takes=0.0, faults=[fault(code)] * 9) == (attempts, 0.0, end)


def test_rules_count_their_own_failures() -> None:
    deadline, unavailable = fault(Code.DEADLINE_EXCEEDED), fault(Code.UNAVAILABLE)
    made, _, end = run(LAYERS, takes=0.0, faults=[deadline, unavailable, deadline, unavailable])
    assert (made, end) == (4, NoRetry("max attempts reached (2 for UNAVAILABLE)"))


def test_no_rule_no_retry() -> None:
    assert plan(LAYERS, fault(Code.INTERNAL)) == NoRetry("no retry rule lists INTERNAL")


def test_a_rule_can_ask_for_more_than_the_default() -> None:
    options = RetryOptions(max_total_time="1h", rules=(RetryRule(max_attempts=8, handle_errors=(Code.UNAVAILABLE,)),))
    assert run(options, takes=0.0)[0] == 8


def test_rules_keep_to_the_total_time() -> None:
    assert run(ANY, takes=0.6)[0] == 4


# --- attempts that still run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("safe", [True, False, None])
def test_an_attempt_that_still_runs_is_repeated_only_where_that_is_safe(safe: bool | None) -> None:  # R8
    attempts = add_failure(Attempts(), RetryOptions(), fault(), duration=0.0, now=100.0)
    timed_out = fault(Code.DEADLINE_EXCEEDED, effect="none")
    planned = plan_retry(RetryOptions(), timed_out, attempts, safe=safe, jitter=MIDDLE, now=100.0, running=True)
    if safe:
        assert isinstance(planned, Retry)
    else:
        assert planned == NoRetry("the attempt still runs and the tool is not declared idempotent")


# --- what is known to be repeatable -----------------------------------------------------------------------------------

lengths = st.integers(0, 5_000).map("{}ms".format) | st.sampled_from(["0s", "1s", "2s"])
seconds = st.integers(0, 5_000).map(lambda ms: ms / 1000) | st.sampled_from([0.0, 1.0, 2.0])


@given(
    made=st.integers(1, 6), since=st.floats(90, 101), spent=seconds, took=seconds, jitter=st.floats(0, HIGHEST),
    options=st.builds(
        RetryOptions,
        max_attempts=st.integers(1, 6), initial_delay=lengths, max_delay=lengths, max_total_time=lengths,
        multiplier=st.floats(1, 3), jitter_percent=st.floats(0, 100),
    ),
)  # fmt: skip
def test_the_shortcut_for_known_errors_plans_the_same_retry(
    options: RetryOptions, made: int, since: float, spent: float, took: float, jitter: float
) -> None:
    usual = plan(options, attempts=Attempts(made, since, spent, took), jitter=jitter)
    known = plan_known(options, made, since, spent, took, 100.0, jitter)
    assert known == (usual.delay if isinstance(usual, Retry) else None)
