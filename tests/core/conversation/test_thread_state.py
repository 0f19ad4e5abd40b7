"""The state of a conversation, decided without a clock and without a loop."""

from __future__ import annotations

from typing import Any

import pytest

from failsoft.core.conversation import thread_state as threads
from failsoft.core.conversation.thread_state import (
    Dangling,
    Failure,
    Offer,
    ThreadState,
    call_fingerprint,
    find_reach,
    mark,
)
from failsoft.core.model import builtin_faults
from failsoft.core.model.explanation import Explanation
from failsoft.core.model.fault import Code, Fault

GONE = Fault(Code.NOT_FOUND, "permanent", "tool_unavailable", "none", "no such extension", "r", "phrase: x")
BAD = Fault(Code.INVALID_ARGUMENT, "permanent", "tool_validation", "none", "Invalid city", "r", "phrase: y")
SLOW = builtin_faults.tool_timeout(1.0)
TEXTS = Explanation("user", "model", "operator")


def failure(*times: float, tool: str = "search") -> Failure:
    return Failure(tool, times, BAD, TEXTS, None, True)


def offer(tool: str = "search", expires: float = 100.0, same: str | None = "same") -> Offer:
    return Offer(tool, {"city": "PAR"}, TEXTS, 5.0, expires, same=same)


# --- for whom a tool is missing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "reach"),
    [
        (builtin_faults.unknown_tool("x"), "deployment"),
        (builtin_faults.tool_marked_unavailable("x"), "deployment"),
        (GONE._replace(rule="worker_import"), "deployment"),
        (GONE._replace(rule="command_start"), "deployment"),
        (GONE, "thread"),
        (GONE._replace(rule="nested: worker_import"), None),
        (BAD, None),
        (SLOW, None),
        (BAD._replace(rule="command_start", category="tool_misconfigured"), None),
    ],
)
def test_only_registry_evidence_affects_other_threads(fault: Fault, reach: str | None) -> None:
    assert find_reach(fault) == reach


def test_a_missing_tool_is_turned_away_for_ten_minutes_then_probed_once() -> None:
    state = ThreadState()
    assert state.admit("search", 0.0, lease=35.0) is None
    state.note_attempt("search", GONE, 0.0)
    assert state.has_notes
    assert state.is_unavailable("search", 599.9)
    refused = state.admit("search", 599.0, lease=35.0)
    assert refused is not None
    assert (refused.rule, refused.category, refused.retry_after) == ("tool_marked_unavailable", "tool_unavailable", 1.0)
    assert "no such extension" in refused.message
    assert state.admit("other", 1.0, lease=35.0) is None
    assert state.admit("search", 600.0, lease=35.0) is None  # the probe
    assert state.admit("search", 600.0, lease=35.0) is not None  # and no second one
    assert state.admit("search", 635.0, lease=35.0) is None  # its caller was lost: another


@pytest.mark.parametrize(("met", "absent"), [(None, False), (SLOW, False), (BAD, False), (GONE, True)])
def test_the_result_of_the_probe_decides_whether_a_tool_is_absent(met: Fault | None, absent: bool) -> None:
    state = ThreadState()
    state.note_attempt("search", GONE, 0.0)
    state.admit("search", 600.0, lease=35.0)
    state.note_attempt("search", met, 601.0)
    assert state.is_unavailable("search", 601.0 + 599.0) is absent
    assert state.has_notes is absent


# --- loops -------------------------------------------------------------------------------------------------------------


def test_the_third_identical_call_is_a_loop() -> None:
    state = ThreadState()
    assert state.find_loop("a", 0.0) is None
    state.note_failure("a", failure(1.0))
    assert state.find_loop("a", 2.0) is None
    state.note_failure("a", failure(2.0))
    found = state.find_loop("a", 3.0)
    assert found is not None
    assert found.times == (1.0, 2.0)
    assert state.find_loop("b", 3.0) is None
    assert state.find_loop(None, 3.0) is None


def test_other_failures_in_between_do_not_hide_a_loop_but_a_success_ends_it() -> None:
    state = ThreadState()
    for same, time in [("a", 1.0), ("b", 2.0), ("a", 3.0), ("b", 4.0)]:
        state.note_failure(same, failure(time))
    assert state.find_loop("a", 5.0)
    assert state.find_loop("b", 5.0)
    state.note_success("other", "c")
    assert state.find_loop("a", 5.0) is None
    assert not state.has_notes


def test_failures_older_than_a_minute_make_no_loop() -> None:
    state = ThreadState()
    state.note_failure("a", failure(0.0))
    state.note_failure("a", failure(30.0))
    assert state.find_loop("a", 60.0)
    assert state.find_loop("a", 60.1) is None
    assert state.has_notes
    assert state.find_loop("a", 90.1) is None
    assert not state.has_notes  # nothing of it is left


def test_the_last_failures_count_not_the_first() -> None:
    state = ThreadState()
    for time in (0.0, 50.0, 100.0):
        state.note_failure("a", failure(time))
    found = state.find_loop("a", 105.0)
    assert found is not None
    assert found.times == (50.0, 100.0)


def test_the_number_of_watched_calls_is_bounded() -> None:
    state = ThreadState()
    for number in range(threads.MOST_FAILURES + 10):
        state.note_failure(f"call {number}", failure(1.0))
    assert len(state.failures) == threads.MOST_FAILURES
    assert "call 9" not in state.failures
    assert "call 10" in state.failures


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (((), {"a": 1, "b": 2}), ((), {"b": 2, "a": 1}), True),
        (((), {"a": 1}), ((), {"a": 2}), False),
        (((), {"a": 1}), ((), {"a": 1.0}), False),
        (((), {"a": 1}), ((), {"a": True}), False),
        ((("x",), {}), ((), {}), False),
        (((), {"a": "\ud800"}), ((), {"a": "\ud800"}), True),
    ],
)
def test_identical_calls_have_the_same_fingerprint(one: Any, other: Any, same: bool) -> None:
    assert (call_fingerprint("t", *one) == call_fingerprint("t", *other)) is same
    assert call_fingerprint("t", *one) != call_fingerprint("u", *one)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"amount": 4}, {"amount": 4.0}, True),
        ({"items": [{"count": 2}]}, {"items": [{"count": 2.0}]}, True),
        ({"amount": 4}, {"amount": 4.5}, False),
        ({"amount": 1}, {"amount": True}, False),
        ({"amount": 2**53}, {"amount": 2.0**60}, False),
    ],
)
def test_a_whole_number_is_the_same_argument_however_a_history_writes_it(one: Any, other: Any, same: bool) -> None:
    assert (mark("pay", (), one) == mark("pay", (), other)) is same


def test_arguments_that_contain_themselves_leave_only_the_id() -> None:
    deep: list[Any] = []
    deep.append(deep)
    assert mark("pay", (), {"a": deep}) == ""


def test_arguments_that_json_cannot_represent_have_no_fingerprint() -> None:
    deep: list[Any] = []
    deep.append(deep)
    assert call_fingerprint("t", (), {"a": object()}) is None
    assert call_fingerprint("t", (), {"a": {1: 2, "b": 3}}) is None
    assert call_fingerprint("t", (), {"a": deep}) is None


# --- offers ------------------------------------------------------------------------------------------------------------


def test_an_offer_is_used_once() -> None:
    state = ThreadState()
    state.make_offer(offer())
    assert state.has_notes
    assert [one.tool for one in state.list_offers(0.0)] == ["search"]
    assert not state.take_offer(offer("other"))
    assert not state.take_offer(offer()._replace(when=-1.0)), "a newer one is in its place"
    assert state.take_offer(offer())
    assert not state.take_offer(offer())
    assert not state.has_notes


def test_an_offer_expires() -> None:
    state = ThreadState()
    state.make_offer(offer(expires=10.0))
    assert state.list_offers(9.9)
    assert state.list_offers(10.0) == []
    assert not state.take_offer(offer(expires=10.0))


def test_a_tool_has_one_offer_the_latest() -> None:
    state = ThreadState()
    state.make_offer(offer(same="a"))
    state.make_offer(offer(same="b"))
    state.make_offer(offer("other"))
    assert [(one.tool, one.same) for one in state.list_offers(0.0)] == [("search", "b"), ("other", "same")]


def test_the_same_call_succeeding_settles_its_offer_another_one_does_not() -> None:
    state = ThreadState()
    state.make_offer(offer(same="a"))
    assert not state.note_success("search", "b")
    assert not state.note_success("other", "a")
    assert state.offers
    assert state.note_success("search", "a")
    assert not state.offers


def test_a_hard_failure_clears_the_offer_of_its_tool() -> None:
    state = ThreadState()
    state.make_offer(offer())
    state.make_offer(offer("other"))
    assert state.clear_offer("search")
    assert not state.clear_offer("search")
    assert list(state.offers) == ["other"]


def test_offers_and_dangling_calls_are_plain_data() -> None:
    assert offer().to_dict() == {
        "tool": "search",
        "arguments": {"city": "PAR"},
        "explanation": {"user": "user", "model": "model", "operator": "operator"},
        "when": 5.0,
    }
    assert Dangling("c", "search", "text", "t").to_dict() == {
        "call_id": "c",
        "tool": "search",
        "text": "text",
        "turn_id": "t",
    }


# --- forgetting --------------------------------------------------------------------------------------------------------


def full() -> ThreadState:
    state = ThreadState()
    for tool in ("search", "other"):
        state.note_attempt(tool, GONE, 0.0)
        state.note_failure(f"{tool} call", failure(1.0, tool=tool))
        state.make_offer(offer(tool))
    return state


def test_forgetting_one_tool_leaves_the_others() -> None:
    state = full()
    state.forget("search")
    assert (list(state.absent), list(state.failures), list(state.offers)) == (["other"], ["other call"], ["other"])
    assert state.has_notes
    state.forget("other")
    assert not state.has_notes


def test_forgetting_all_keeps_what_the_model_has_to_be_told() -> None:
    state = full()
    state.add_unanswered(Dangling("c", "search", "text", "t"))
    state.forget()
    assert [state.absent, state.failures, state.offers, state.has_notes] == [{}, {}, {}, False]
    assert state.dangling


def test_registering_a_tool_again_keeps_its_offer() -> None:
    state = full()
    state.note_registered("search")
    assert (list(state.absent), list(state.failures), sorted(state.offers)) == (
        ["other"],
        ["other call"],
        ["other", "search"],
    )


def test_calls_of_two_turns_with_one_id_dangle_both_and_only_so_many() -> None:
    state = ThreadState()
    for turn in ("t1", "t2", "t1"):
        state.add_unanswered(Dangling("search-1", "search", "text", turn))
    assert len(state.dangling) == 2
    for number in range(threads.MOST_DANGLING):
        state.add_unanswered(Dangling(f"c{number}", "search", "text", "t3"))
    assert len(state.dangling) == threads.MOST_DANGLING
    assert ("t1", "search-1") not in state.dangling


@pytest.mark.parametrize(
    ("arguments", "known_by"),
    [({"amount": 4}, call_fingerprint("pay", (), {"amount": 4})), ({"card": object()}, "")],
    ids=["JSON", "no JSON"],
)
def test_calls_with_the_same_id_are_distinguished_by_their_arguments(
    arguments: dict[str, object], known_by: str
) -> None:
    assert mark("pay", (), arguments) == known_by
