"""Frames, and values that cannot be sent in one."""

from __future__ import annotations

import os
import pickle
import threading

import pytest

from failsoft.runtime.execution.processes import encoding, wire


def test_the_argument_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(wire.Unsendable, match=r"argument where \(lock\) cannot be pickled"):
        wire.pack_call(("m", "f"), ("PAR", threading.Lock()), {}, ("what", "where"))
    with pytest.raises(wire.Unsendable, match=r"argument number 2 \(lock\)"):
        wire.pack_call(("m", "f"), ("PAR", threading.Lock()), {}, ())
    with pytest.raises(wire.Unsendable, match=r"argument how \(function\) cannot be pickled"):
        wire.pack_call(("m", "f"), (1,), {"how": lambda: None}, ())


def test_the_argument_that_is_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LIMIT", 3_000_000)
    with pytest.raises(wire.Unsendable, match="argument b has 4 MB, more than the 3 MB that can be sent"):
        wire.pack_call(("m", "f"), (b"x",), {"b": bytes(4_000_000)}, ("a",))


def test_a_result_that_cannot_be_sent_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(wire.Unsendable, match=r"the result \(lock\) cannot be pickled"):
        encoding.pack_answer("pickle", wire.VALUE, 1, 0.0, False, threading.Lock(), "value")
    monkeypatch.setattr(wire, "LIMIT", 3_000_000)
    with pytest.raises(wire.Unsendable, match="the result has 4 MB, more than the 3 MB"):
        encoding.pack_answer("pickle", wire.VALUE, 1, 0.0, False, bytes(4_000_000), "value")


def test_a_call_is_one_frame() -> None:
    packed = wire.pack_call(("m", "f"), (1,), {"b": 2}, (), 7)
    length, kind, number, pid = wire.HEADER.unpack_from(packed)
    assert (length, kind) == (len(packed) - wire.HEADER.size, wire.CALL)
    assert (number, pid) == (7, os.getpid())
    assert pickle.loads(packed[wire.HEADER.size :]) == ("m", "f", (1,), {"b": 2})


@pytest.mark.parametrize("status", [0, 3, 255, -9, -11])
def test_the_last_frame_tells_how_it_died(status: int) -> None:
    half = wire.pack(wire.VALUE, "x" * 100)[:40]
    assert wire.death_of(wire.death(status)) == status
    assert wire.death_of(half + wire.death(status)) == status


@pytest.mark.parametrize("rest", [b"", b"abc", wire.pack(wire.VALUE, "x" * 100)[:40]], ids=["empty", "odd", "half"])
def test_without_a_complete_last_frame_the_cause_of_death_is_unknown(rest: bytes) -> None:
    assert wire.death_of(rest) is None
