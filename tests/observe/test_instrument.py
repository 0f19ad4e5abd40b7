"""Instruments are entered in order, left in reverse order, and cannot do harm."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from failsoft.observe.instrument import CARRIED, CallInfo, CallSpan, Instrument, Instruments, TurnInfo, carried

CALL = CallInfo("search", "c-1", turn_id=None, parent_id=None, thread=None, tenant=None, arguments={})


class Noting(Instrument):
    """Records the calls of its hooks."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    @contextmanager
    def around(self, what: str) -> Iterator[None]:
        self.notes.append(f"{self.name} enters {what}")
        try:
            yield
        except BaseException as error:
            self.notes.append(f"{self.name} sees {type(error).__name__}")
            raise
        finally:
            self.notes.append(f"{self.name} leaves {what}")

    def turn(self, turn: TurnInfo) -> AbstractContextManager[None]:
        return self.around(turn.id)

    def call(self, call: CallInfo) -> AbstractContextManager[None]:
        return self.around(call.id)

    def attempt(self, call: CallInfo, number: int) -> AbstractContextManager[None]:
        return self.around(f"{call.candidate} {number}")

    def carrier(self, call: CallInfo, number: int) -> Mapping[str, str]:
        return {"BY": self.name, self.name: str(number)}


class Broken(Instrument):
    """Fails at the chosen hook."""

    def __init__(self, at: str) -> None:
        self.at = at

    def attempt(self, call: CallInfo, number: int) -> Any:
        self.fail("hook")
        return self

    def __enter__(self) -> None:
        self.fail("enter")

    def __exit__(self, *_: object) -> bool:
        self.fail("exit")
        return True  # it would swallow the error

    def abandoned(self, call: CallInfo, number: int) -> None:
        self.fail("abandoned")

    def carrier(self, call: CallInfo, number: int) -> Any:
        self.fail("carrier")
        return {"number": number}

    def fail(self, at: str) -> None:
        if at == self.at:
            raise RuntimeError(f"broken at {at}")


def test_an_instrument_does_nothing_by_default() -> None:
    bare = Instrument()
    turn = TurnInfo("t", None, None, None)
    assert (bare.turn(turn), bare.call(CALL), bare.attempt(CALL, 1), bare.abandoned(CALL, 1)) == (None,) * 4  # type: ignore[func-returns-value]
    assert bare.carrier(CALL, 1) == {}
    Instruments((bare,)).attempt(CALL, 1).exit()


def test_hooks_are_entered_in_order_and_left_in_reverse_order() -> None:
    notes: list[str] = []
    instruments = Instruments((Noting("a", notes), Noting("b", notes)))
    entered = instruments.attempt(CALL, 2)
    entered.exit(ValueError("no"))
    entered.exit()  # a second time is without effect
    assert notes == [
        "a enters search 2", "b enters search 2", "b sees ValueError", "b leaves search 2", "a sees ValueError",
        "a leaves search 2",
    ]  # fmt: skip


@pytest.mark.parametrize("at", ["hook", "enter", "exit", "abandoned", "carrier"])
def test_an_instrument_that_fails_is_logged_once_and_does_not_affect_others(
    at: str, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[str] = []
    instruments = Instruments((Noting("a", notes), Broken(at), Noting("b", notes)))
    with caplog.at_level(logging.ERROR, "failsoft"):
        for number in (1, 2):
            entered = instruments.attempt(CALL, number)
            assert instruments.carrier(CALL, number)["b"] == str(number)
            instruments.abandoned(CALL, number)
            entered.exit()
    assert [note for note in notes if note.startswith("b leaves")] == ["b leaves search 1", "b leaves search 2"]
    assert [note for note in notes if note.startswith("a leaves")] == ["a leaves search 1", "a leaves search 2"]
    (record,) = caplog.records
    assert "instrument Broken failed; calls go on without it" in record.getMessage()
    assert f"broken at {at}" in record.getMessage()


def test_carrier_values_are_text_and_later_instruments_win() -> None:
    instruments = Instruments((Noting("a", []), Broken(""), Noting("b", [])))
    assert instruments.carrier(CALL, 3) == {"BY": "b", "a": "3", "b": "3"}


def test_an_attempt_sees_its_candidate_and_a_call_at_its_end_the_outcome() -> None:
    notes: list[str] = []
    info = CallInfo("search", "c-1", turn_id=None, parent_id=None, thread=None, tenant=None, arguments={})
    span = CallSpan(Instruments((Noting("a", notes),)), info)
    entered = span.enter_call()
    span.enter_attempt("cache", 2).exit()
    span.end_call(entered, "the outcome", None)
    assert (info.tool, info.candidate, info.outcome) == ("search", "search", "the outcome")
    assert notes[1] == "a enters cache 2"


def test_outside_of_an_attempt_nothing_is_carried() -> None:
    assert carried() == {}
    token = CARRIED.set({"TRACEPARENT": "00-1"})
    assert carried() == {"TRACEPARENT": "00-1"}
    CARRIED.reset(token)
