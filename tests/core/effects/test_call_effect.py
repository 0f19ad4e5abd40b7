"""Whether a call may claim that nothing happened."""

from __future__ import annotations

import pickle
from typing import Any, get_args

import pytest

from failsoft import Code, NothingDone, classify
from failsoft.core.effects.call_effect import effect_of_call
from failsoft.core.model.fault import Effect, Fault, Source

FAULT = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "no", "why", "rule")
SOURCES: tuple[Source, ...] = get_args(Source)
EFFECTS: tuple[Effect, ...] = get_args(Effect)


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_happened_stands_if_the_other_side_or_the_author_says_so(source: Source) -> None:
    believed = effect_of_call(FAULT._replace(source=source), entered=True) == "none"
    assert believed is (source in ("remote", "stated"))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_tool_that_was_never_entered_did_nothing(effect: Effect, source: Source) -> None:
    fault = FAULT._replace(effect=effect, source=source)
    assert effect_of_call(fault, entered=False, acted_inside=True, many=True) == "none"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("effect", ["unknown", "happened"])
@pytest.mark.parametrize("many", [False, True])
def test_a_worse_effect_is_never_made_better(effect: Effect, source: Source, many: bool) -> None:
    assert effect_of_call(FAULT._replace(effect=effect, source=source), entered=True, many=many) == effect


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("known", [{"many": True}, {"acted_inside": True}])
def test_several_requests_or_inner_effects_make_every_effect_unknown(source: Source, known: dict[str, bool]) -> None:
    assert effect_of_call(FAULT._replace(source=source), entered=True, **known) == "unknown"


@pytest.mark.parametrize(
    ("error", "source"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "remote"),
        ("HTTP 429 Too Many Requests", "remote"),
        ("Rate limit exceeded", "remote"),
        ("Invalid receipt", "words"),
        ("xyzzy", "words"),
        (ValueError("xyzzy"), "local"),
        (MemoryError(), "local"),
        (PermissionError(13, "Permission denied"), "local"),
        (RuntimeError("500 Internal Server Error: database is locked"), "disputed"),
        (NothingDone("no seats"), "stated"),
    ],
)
def test_a_fault_says_where_its_evidence_comes_from(error: Any, source: Source) -> None:
    fault = classify(error)
    assert fault.source == source
    assert Fault.from_dict(fault.to_dict()).source == source
    assert pickle.loads(pickle.dumps(fault)).source == source


def test_an_old_record_without_a_source_can_be_read() -> None:
    data = FAULT.to_dict()
    del data["source"]
    assert Fault.from_dict(data) == FAULT


@pytest.mark.parametrize("code", [None, *Code])
def test_nothing_done_is_believed_whatever_the_message_and_the_causes_say(code: Code | None) -> None:
    error = NothingDone("500 Internal Server Error: payment captured, but", code=code)
    error.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    fault = classify(error)
    assert (fault.effect, fault.source) == ("none", "stated")
    assert code is None or fault.code is code
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code) == (str(error), code)


def test_nothing_done_does_not_apply_to_other_errors_of_a_group() -> None:
    group = ExceptionGroup("both", [NothingDone("no seats"), ConnectionResetError(104, "Connection reset by peer")])
    assert classify(group).effect == "unknown"
    assert NothingDone("no seats", "Unavailable").code is Code.UNAVAILABLE
