"""Every check can fail: each is given a day without the protection that it checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.soak.day import Lived, live
from tests.soak.invariants import CHECKS, find_violations

from failsoft.analysis.turn_report import TurnReport
from failsoft.core.resilience import circuit_breaker, retry_budget
from failsoft.core.resilience.circuit_breaker import BreakerState
from failsoft.core.resilience.retry_budget import Budget
from failsoft.observe.recorder import Recorder
from failsoft.runtime.persistence import event_writer
from failsoft.runtime.persistence.event_writer import StoreWriter

SEED = 3
Patch = pytest.MonkeyPatch


def short(**options: Any) -> Lived:
    """A day with less to do."""
    return live(SEED, agents=10, spells=2, **options)


def found_by(lived: Lived) -> set[str]:
    return {name for name, found in find_violations(lived).items() if found}


def test_a_short_day_is_without_fault() -> None:
    assert found_by(short()) == set()


def test_every_check_has_a_test_in_which_it_fails() -> None:
    shown = {name for name in globals() if name.startswith("test_")}
    assert {f"test_{check.__name__}" for check in CHECKS} <= {name.partition("__")[0] for name in shown}


# -- the library, with a protection taken out --------------------------------------------------------------------------


def test_lost_calls__an_end_is_not_recorded(monkeypatch: Patch) -> None:
    drain = Recorder._drain

    def forgetful(self: Recorder) -> bool:
        self.pending[:] = [raw for raw in self.pending if raw[0] != "CallFailed" or raw[2].id != "book"]
        return drain(self)

    monkeypatch.setattr(Recorder, "_drain", forgetful)
    assert "lost_calls" in found_by(short())


def test_lost_calls__an_end_is_recorded_twice(monkeypatch: Patch) -> None:
    drain = Recorder._drain

    def eager(self: Recorder) -> bool:
        self.pending[:] = [raw for raw in self.pending for _ in range(2 if raw[0] == "CallSkipped" else 1)]
        return drain(self)

    monkeypatch.setattr(Recorder, "_drain", eager)
    assert "lost_calls" in found_by(short())


def test_double_effects__a_write_is_said_to_be_idempotent() -> None:
    lived = short(declared={"book": {"idempotent": True}})
    assert found_by(lived) == {"double_effects"}


def test_stuck_circuits__a_cancelled_probe_keeps_its_slot(monkeypatch: Patch) -> None:
    record = circuit_breaker.record

    def forgetful(state: BreakerState, options: Any, ticket: Any, result: Any, *, now: float) -> BreakerState:
        return state if result == "neutral" else record(state, options, ticket, result, now=now)

    monkeypatch.setattr(circuit_breaker, "record", forgetful)
    assert "stuck_circuits" in found_by(live(SEED, agents=10, spells=4))


def test_stuck_circuits__one_that_never_closes(monkeypatch: Patch) -> None:
    admit = circuit_breaker.admit

    def never(state: BreakerState, options: Any, *, now: float, lease: float) -> Any:
        if state.state != "closed":
            state = state._replace(state="open", since=now)
        return admit(state, options, now=now, lease=lease)

    monkeypatch.setattr(circuit_breaker, "admit", never)
    assert "stuck_circuits" in found_by(short())


def test_overspent_budgets__retries_cost_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setattr(retry_budget, "spend", lambda retry_budget, *, now, successes=0: (Budget(90.0, now), True))
    assert "overspent_budgets" in found_by(short())


def test_disordered_turns__a_report_is_sorted(monkeypatch: Patch) -> None:
    make = TurnReport.__init__

    def sort(self: TurnReport, turn_id: str, outcomes: Any, **more: Any) -> None:
        make(self, turn_id, dict(sorted(outcomes.items())), **more)

    monkeypatch.setattr(TurnReport, "__init__", sort)
    assert "disordered_turns" in found_by(short())


def test_unkept_turns__lost_events_are_acknowledged(monkeypatch: Patch) -> None:
    has = StoreWriter._has
    monkeypatch.setattr(StoreWriter, "_has", lambda self, batches: has(self, batches) or True)
    monkeypatch.setattr(event_writer, "PAUSE", 0.0)  # each turn hands over what it has, also to a store in trouble
    monkeypatch.setattr(event_writer, "PATIENCE", 0.01)
    assert "unkept_turns" in found_by(short())


# -- a good day, with one entry changed afterwards ---------------------------------------------------------------------


def _forget_an_outcome(lived: Lived) -> None:
    next(iter(lived.ledger.asked.values())).told.clear()


def _tell_it_twice(lived: Lived) -> None:
    told = next(iter(lived.ledger.asked.values())).told
    told.append(told[0])


def _drop_an_event(lived: Lived) -> None:
    at = next(at for at, event in enumerate(lived.events) if event["event_type"] == "CallSucceeded")
    del lived.events[at], lived.times[at]


def _mix_up_two_values(lived: Lived) -> None:
    asked = [one for one in lived.ledger.asked.values() if isinstance(one.told[0], dict)]
    asked[0].told, asked[1].told = asked[1].told, asked[0].told


def _forget_an_attempt(lived: Lived) -> None:
    del lived.ledger.attempts[0]


def _drop_a_call_of_a_turn(lived: Lived) -> None:
    turn = next(turn for turn in lived.ledger.turns if turn.reported)
    assert turn.reported is not None
    del turn.statuses[turn.reported.pop()]


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("lost_calls", _forget_an_outcome),
        ("lost_calls", _tell_it_twice),
        ("lost_calls", _drop_an_event),
        ("wrong_values", _mix_up_two_values),
        ("wrong_values", _forget_an_attempt),
        ("disordered_turns", _drop_a_call_of_a_turn),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_wrong_values__the_books_were_changed(check: str, change: Callable[[Lived], None]) -> None:
    lived = short()
    change(lived)
    assert check in found_by(lived)
