"""When a ``verify`` is asked, how its answer is read, and what follows from it (R53)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from failsoft import Verified, classify
from failsoft.core.effects.verification import (
    COMMAND_ENDS,
    NO_TIME,
    STILL_RUNS,
    can_verify,
    fault_after,
    late_verify,
    limit_verify,
    longest_call,
    read_verified,
    why_not_asked,
)
from failsoft.core.model.options import RetryOptions, ToolOptions

FAULT = classify(ConnectionResetError("reset"))._replace(effect="unknown")


def verify(arguments: Any, key: Any, fault: Any) -> Verified:
    raise AssertionError("never asked here")


@pytest.mark.parametrize("safe", [True, False, None])
@pytest.mark.parametrize("effect", ["none", "unknown", "happened"])
@pytest.mark.parametrize("given", [verify, None])
def test_only_an_unknown_effect_of_an_unsafe_tool_with_verify_is_verified(given: Any, effect: Any, safe: Any) -> None:
    wanted = given is verify and effect == "unknown" and safe is False
    assert can_verify(ToolOptions(id="pay", verify=given), FAULT._replace(effect=effect), safe) is wanted


@pytest.mark.parametrize(
    ("running", "left", "abandoned", "why"),
    [
        (True, None, False, STILL_RUNS),
        (False, None, False, None),
        (False, 1.1, False, None),
        (False, 1.0, False, NO_TIME),
        (False, 0.0, False, NO_TIME),
        (False, None, True, NO_TIME),
    ],
)
def test_it_is_not_asked_while_the_attempt_runs_or_without_time(
    running: bool, left: float | None, abandoned: bool, why: str | None
) -> None:
    assert why_not_asked(running=running, turn_left=left, abandoned=abandoned, delay=1.0) == why


def test_a_call_of_a_command_may_take_as_long_as_its_end_is_waited_for() -> None:
    retry = RetryOptions(max_attempts=2, max_total_time="3s", max_hint_wait="4s")
    pay = ToolOptions(id="pay", timeout="5s", retry=retry, verify=verify, verify_delay="0s", verify_timeout="1s")
    assert longest_call(pay, is_command=False) == 2 * (5 + 1) + 3 + 4
    assert longest_call(pay, is_command=True) == 2 * (5 + COMMAND_ENDS + 1) + 3 + 4


def test_the_calls_own_options_and_the_queue_count_for_the_time_that_a_call_may_take() -> None:
    retry = RetryOptions(max_attempts=2, max_total_time="3s", max_hint_wait="4s")
    pay = ToolOptions(id="pay", timeout="5s", retry=retry, verify=verify, verify_delay="0s", verify_timeout="1s")
    own = RetryOptions(max_attempts=3, max_total_time="1s", max_hint_wait="2s")
    assert longest_call(pay, is_command=False, timeout=60.0) == 2 * (60 + 1) + 3 + 4
    assert longest_call(pay, is_command=False, retry=own) == 3 * (5 + 1) + 1 + 2
    assert longest_call(pay, is_command=False, timeout=math.inf) == math.inf
    one_by_one = replace(pay, concurrency=2, queue=10)
    assert longest_call(one_by_one, is_command=False) == 2 * (7 * 5 + 1) + 3 + 4


def test_its_time_is_bounded_by_the_turns() -> None:
    assert limit_verify(10.0, None) == 10.0
    assert limit_verify(10.0, 3.0) == 3.0
    assert limit_verify(10.0, -1.0) == 0.0
    assert late_verify(3.0) == Verified.unknown("verify gave no answer within 3s")


@pytest.mark.parametrize(
    "answer",
    [None, True, "happened", Verified.happened, Verified, ("happened", 1, ""), Verified("maybe")],  # type: ignore[arg-type]
)
def test_anything_but_a_proper_answer_is_unknown_with_the_reason(answer: Any) -> None:
    read = read_verified(answer)
    assert read.answer == "unknown"
    assert read.reason.startswith("verify returned ")


def test_answers_are_read_as_they_are() -> None:
    assert read_verified(Verified.happened(None)).value_known
    assert not read_verified(Verified.happened()).value_known
    assert read_verified(Verified.none()) == Verified("none")
    masked = read_verified(Verified.unknown("token=sk-live-4f9a8b7c6d5e4f3a2b1c failed"))
    assert "4f9a8b7c6d5e4f3a2b1c" not in masked.reason


def test_the_fault_takes_the_effect_that_was_found_out() -> None:
    assert fault_after(FAULT, Verified.unknown()) is FAULT
    done = fault_after(FAULT, Verified.none())
    assert (done.effect, done.source) == ("none", "stated")
    assert fault_after(FAULT, Verified.happened()).effect == "happened"
