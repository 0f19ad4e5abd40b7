"""A breaker with a window: failures that do not come in a row."""

from __future__ import annotations

import pytest

from failsoft.core.model.options import LARGEST_WINDOW, BreakerOptions
from failsoft.core.resilience.breaker_window import failure_rate
from failsoft.core.resilience.circuit_breaker import (
    INITIAL,
    BreakerState,
    Ticket,
    admit,
    record,
)


def after(results: str, options: BreakerOptions, state: BreakerState = INITIAL) -> BreakerState:
    """The state after results in a closed circuit: + success, - failure, 0 neutral."""
    names = {"+": "success", "-": "failure", "0": "neutral"}
    for result in results:
        state, ticket = admit(state, options, now=1.0, lease=1.0)
        assert isinstance(ticket, Ticket)
        state = record(state, options, ticket, names[result], now=1.0)  # type: ignore[arg-type]
    return state


def test_every_second_failure_opens_the_circuit() -> None:
    options = BreakerOptions(window=20, failure_rate=0.5, min_calls=10)
    state = after("-+" * 5, options)
    assert (state.state, state.recent, failure_rate(state.recent)) == ("closed", "-+" * 5, 0.5)
    assert after("-", options, state).state == "open"


def test_without_a_window_it_does_not() -> None:
    state = after("-+" * 50, BreakerOptions())
    assert (state.state, state.recent) == ("closed", "")


@pytest.mark.parametrize(
    ("results", "state"), [("+++++++++-", "closed"), ("----------", "open"), ("+++++-----", "open")]
)
def test_the_window_needs_its_calls_and_its_rate(results: str, state: str) -> None:
    options = BreakerOptions(failure_threshold=100, window=10)
    assert after(results[:9], options).state == "closed"
    assert after(results, options).state == state


def test_old_results_leave_the_window() -> None:
    options = BreakerOptions(failure_threshold=100, window=4, min_calls=4)
    state = after("---+++++", BreakerOptions(failure_threshold=100, window=4, failure_rate=1.0))
    assert state.recent == "++++"
    assert after("-", options, state).state == "closed"


def test_consecutive_failures_open_it_as_before() -> None:
    options = BreakerOptions(failure_threshold=3, window=100, min_calls=100)
    assert after("+++---", options).state == "open"


def test_neutral_results_are_not_in_the_window() -> None:
    assert after("+0-0+", BreakerOptions(window=9)).recent == "+-+"


def test_a_success_never_opens_a_circuit() -> None:
    options = BreakerOptions(failure_threshold=100, window=4, min_calls=4)
    assert after("---+", options).state == "closed"


def test_a_circuit_that_closes_starts_with_an_empty_window() -> None:
    options = BreakerOptions(failure_threshold=2, window=10, min_calls=2, timeout="1s")
    opened = after("+-", options)
    assert (opened.state, opened.recent) == ("open", "+-")
    state, probe = admit(opened, options, now=9.0, lease=1.0)
    assert isinstance(probe, Ticket)
    closed = record(state, options, probe, "success", now=9.0)
    assert (closed.state, closed.recent) == ("closed", "")
    late = record(closed, options, Ticket(0, None), "failure", now=9.0)
    assert late is closed


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"window": 1}, "window: 1 is not a whole number"),
        ({"window": LARGEST_WINDOW + 1}, "window: 1001 is not a whole number"),
        ({"window": 20, "failure_rate": 0}, "failure_rate: 0 would open the circuit at once"),
        ({"window": 20, "failure_rate": 50}, "failure_rate: 50 is not a finite number"),
        ({"window": 20, "failure_rate": "half"}, "failure_rate: 'half' is not a finite number"),
        ({"window": 20, "min_calls": 21}, "min_calls: 21 is not a whole number"),
        ({"failure_rate": 0.3}, 'failure_rate: needs a window: write {"window": 20, "failure_rate": 0.3}'),
        ({"min_calls": 3}, 'min_calls: needs a window: write {"window": 20, "min_calls": 3}'),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text.split(":", maxsplit=1)[0]) as told:
        BreakerOptions(**wrong)  # type: ignore[arg-type]
    assert text in str(told.value)
