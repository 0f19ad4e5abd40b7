"""The policy book in a running program: its effects, its limits, and the places where it may be written."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, NOT_FOUND, OFTEN, ONCE, RESET, Scripted, Takes, records, virtual

from failsoft import ManifestError, Runtime, partial
from failsoft.core.resilience.policy import Policy, Then, When
from failsoft.testing import FaultPlan


def book(**policy: Any) -> list[dict[str, Any]]:
    return [{"name": "house rule", **policy}]


@virtual
async def test_payments_are_never_repeated() -> None:
    pay = Scripted(DOWN)
    policies = book(when={"tool": "pay_*", "classification": "transient"}, then="escalate")
    rt = Runtime({"policies": policies})
    rt.add(pay, id="pay_card", idempotent=True)
    search = Scripted(DOWN, "x")
    rt.add(search, id="search")
    outcome = await rt.call("pay_card")
    assert (outcome.attempts, outcome.escalated) == (1, True)
    assert outcome.decision is not None
    assert outcome.decision.reason == "Policy 'house rule': retries available"
    assert records(rt, "ToolError")[0]["policy"] == "house rule"
    assert (await rt.call("search")).attempts == 2


@pytest.mark.parametrize(
    ("when", "held"),
    [
        ({"tool": "sea*"}, True),
        ({"tool": "other"}, False),
        ({"tags": "travel"}, True),
        ({"tags": "money"}, False),
        ({"category": "tool_transient"}, True),
        ({"category": "tool_validation"}, False),
        ({"code": "Unavailable"}, True),
        ({"code": "Internal"}, False),
        ({"classification": "transient"}, True),
        ({"classification": "permanent"}, False),
        ({"attempt": 1}, True),
        ({"attempt": 6}, False),
        ({"breaker": "closed"}, True),
        ({"breaker": "open"}, False),
        ({"turn_left": "11s"}, True),
        ({"turn_left": "5s"}, False),
        ({"effect": "none"}, True),
        ({"effect": "unknown"}, False),
    ],
)
@virtual
async def test_every_condition_is_asked(when: dict[str, Any], held: bool) -> None:
    search = Scripted(DOWN, "flights")
    rt = Runtime(policies=book(when=when, then="fail_gracefully"))
    rt.add(search, id="search", tags=["travel"])
    async with rt.turn(timeout="10s") as turn:
        handle = turn.call("search")
    assert (await handle).status == ("failed" if held else "succeeded")


@virtual
async def test_the_first_match_wins_and_the_manifests_come_first() -> None:
    rt = Runtime(
        {"policies": [{"name": "from the file", "when": {"tool": "search"}, "then": "fail_gracefully"}]},
        policies=[{"name": "from code", "then": "escalate"}],
    )
    rt.add(Scripted(INVALID), id="search")
    rt.add(Scripted(INVALID), id="other")
    assert [policy.name for policy in rt.policies] == ["from the file", "from code"]
    first, other = await rt.call("search"), await rt.call("other")
    assert first.decision is not None
    assert other.decision is not None
    assert (first.decision.strategy, other.decision.strategy) == ("fail_gracefully", "escalate")


@virtual
async def test_policies_apply_to_refusals_by_an_open_circuit() -> None:
    rt = Runtime(policies=book(when={"breaker": "open", "attempt": 1}, then="escalate"))
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("search")
    refused = await rt.call("search")
    assert (refused.attempts, refused.escalated) == (0, True)


@virtual
async def test_a_policys_message_does_not_apply_to_a_later_error() -> None:
    search = Scripted(DOWN, INVALID)
    rt = Runtime(policies=book(when={"code": "Unavailable"}, then={"message": "Wait.", "delay": "1s"}))
    rt.add(search, id="search")
    outcome = await rt.call("search")
    assert search.delays == [1]
    assert outcome.explanation.user != "Wait."


# --- retries ----------------------------------------------------------------------------------------------------------


@virtual
async def test_a_policy_can_retry_what_would_not_be() -> None:
    page = Scripted(NOT_FOUND, NOT_FOUND, "there now")
    rt = Runtime(policies=book(when={"code": "NotFound"}, then={"delay": "5s"}))
    rt.add(page, id="page", read_only=True)
    outcome = await rt.call("page")
    assert (outcome.value, page.delays) == ("there now", [5, 5])  # beyond max_total_time: whoever wrote it meant it


@virtual
async def test_a_policys_retries_end_with_the_attempts_and_with_the_turn() -> None:
    page = Scripted(NOT_FOUND)
    rt = Runtime(policies=book(then={"delay": "5s"}))
    rt.add(page, id="page", read_only=True, retry={"max_attempts": 3})
    outcome = await rt.call("page")
    assert page.attempts == 3
    assert outcome.decision is not None
    assert "policy 'house rule' asks for retry, which is not possible" in outcome.decision.reason
    async with rt.turn(timeout="7s") as turn:
        turn.call("page")
    assert page.attempts == 5
    assert not turn.report.timed_out


@virtual
async def test_a_policys_delay_never_shortens_the_services_hint() -> None:
    plan = FaultPlan("429(retry_after=2), ok")
    rt = Runtime(policies=book(then={"delay": "1s"}))
    rt.add(plan.wrap(Scripted("x")), id="search")
    await rt.call("search")
    assert [taken.at for taken in plan.log] == [0, 2]


@pytest.mark.parametrize(
    ("declared", "said", "attempts"),
    [
        ({"idempotent": False}, {}, 1),
        ({"idempotent": False}, {"even_if_effect_unknown": True}, 2),
        ({"idempotent": True}, {}, 2),
    ],
)
@virtual
async def test_a_policy_needs_explicit_consent_for_an_unsafe_retry(declared: Any, said: Any, attempts: int) -> None:
    pay = Scripted(Takes(5, "late"), "paid")
    rt = Runtime(policies=book(then="retry", **said))
    rt.add(pay, id="pay", timeout="1s", **declared)
    outcome = await rt.call("pay")
    assert pay.attempts == attempts
    assert outcome.status == ("succeeded" if attempts == 2 else "failed")
    if attempts == 1:
        assert outcome.decision is not None
        assert "asks for retry, which is not possible" in outcome.decision.reason
        assert "not idempotent" in records(rt, "ToolError")[0]["no_retry"]


@virtual
async def test_a_policy_repeats_an_undeclared_tool_only_on_transient_errors() -> None:
    rt = Runtime(policies=book(then="retry"))
    tool = Scripted(RESET, "x")  # transient: it would be
    rt.add(tool, id="tool")
    assert (await rt.call("tool")).attempts == 2
    odd = Scripted(RESET, "x")
    rt.add(odd, id="odd", classification=[{"exception": "ConnectionResetError", "as": "permanent"}])
    assert (await rt.call("odd")).attempts == 1


@virtual
async def test_a_policy_does_not_repeat_bugs() -> None:
    tool = Scripted(KeyError("price"))
    rt = Runtime(policies=book(then="retry", even_if_effect_unknown=True))
    rt.add(tool, id="tool")
    await rt.call("tool")
    assert tool.attempts == 1


@virtual
async def test_a_policys_retries_spend_the_budget() -> None:
    tool = Scripted(NOT_FOUND)
    rt = Runtime(policies=book(then={"delay": "0s"}))
    rt.add(tool, id="tool", read_only=True, retry={"max_attempts": 1000}, breaker=OFTEN)
    await rt.call("tool")
    assert tool.attempts == 91


# --- alternatives, messages -------------------------------------------------------------------------------------------


@virtual
async def test_a_policy_can_name_an_alternative_that_is_no_fallback() -> None:
    search, cache = Scripted(DOWN), Scripted("cached")
    rt = Runtime(policies=book(when={"tool": "search"}, then={"tool": "cache"}))
    rt.add(search, id="search")
    rt.add(cache, id="cache")
    outcome = await rt.call("search")
    assert (outcome.via, search.attempts) == ("cache", 1)


@virtual
async def test_an_alternative_that_is_not_there_is_not_waited_for() -> None:
    search = Scripted(DOWN, "flights")
    rt = Runtime(policies=book(then={"tool": "nowhere"}))
    rt.add(search, id="search")
    assert (await rt.call("search")).value == "flights"


@virtual
async def test_a_policys_alternative_is_not_tried_twice_nor_done_by_other_means() -> None:
    cache = Scripted(INVALID)
    rt = Runtime(policies=book(then={"tool": "cache"}))
    rt.add(Scripted(INVALID), id="search")
    rt.add(cache, id="cache")
    assert (await rt.call("search")).status == "failed"
    assert cache.attempts == 1
    rt.add(Scripted(Takes(5, "late")), id="pay", timeout="1s", idempotent=False)
    assert (await rt.call("pay")).status == "failed"
    assert cache.attempts == 1


@virtual
async def test_a_policys_message_replaces_the_users_text() -> None:
    rt = Runtime(policies=book(when={"code": "InvalidArgument"}, then={"message": "Please call us."}))
    rt.add(Scripted(INVALID), id="search")
    rt.add(Scripted(NOT_FOUND), id="page")
    outcome = await rt.call("search")
    assert outcome.explanation.user == "Please call us."
    assert "INVALID_ARGUMENT" in outcome.explanation.operator
    assert outcome.decision is not None
    assert outcome.decision.strategy == "escalate"
    assert (await rt.call("page")).explanation.user != "Please call us."


@virtual
async def test_a_policys_message_is_part_of_the_turns_message() -> None:
    rt = Runtime(
        policies=[
            *book(when={"tool": "search"}, then={"message": "Please call us."}),
            *book(when={"tool": "hotels"}, then={"strategy": "fail_gracefully", "message": "Hotels are closed."}),
        ]
    )
    rt.add(Scripted(INVALID), id="search")
    rt.add(Scripted(INVALID), id="hotels")

    async def trip() -> object:
        return (await rt.call("search")).unwrap()

    rt.add(trip)
    async with rt.turn() as turn:
        turn.call("search")
        turn.call("search")
        turn.call("hotels")
    assert turn.report.message == "Search (2 times) and hotels failed. Please call us. Hotels are closed."
    assert pickle.loads(pickle.dumps(turn.report)).outcomes["search-1"].told == "Please call us."
    async with rt.turn() as turn:
        turn.call("trip")
    assert turn.report.message == "Trip failed. Please call us."


@virtual
async def test_a_policys_message_is_shown_again_for_a_prevented_loop() -> None:
    rt = Runtime(policies=book(when={"tool": "search"}, then={"message": "Please call us."}))
    search = rt.add(Scripted(INVALID), id="search")
    for _ in range(2):
        await rt.call("search", {"q": 1}, thread="chat")
    async with rt.turn(thread="chat") as turn:
        again = turn.call(search, {"q": 1})
    assert again.outcome.attempts == 0
    assert again.outcome.explanation.user == "Please call us."
    assert turn.report.message == "Search failed. Please call us."


@virtual
async def test_a_partial_result_can_be_asked_for() -> None:
    search = Scripted(partial([1], missing=["page 2"]))
    rt = Runtime(policies=book(then="partial_success"))
    rt.add(search, id="search")
    outcome = await rt.call("search")
    assert (outcome.value, outcome.missing, search.attempts) == ([1], ["page 2"], 1)
    assert outcome.decision is not None
    assert "house rule" in outcome.decision.reason


# --- writing it -------------------------------------------------------------------------------------------------------


def test_a_book_in_yaml_and_in_python_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "failsoft.yaml"
    file.write_text(
        'policies:\n  - {name: house rule, when: {tool: "pay_*", turnLeft: 10s}, then: {strategy: escalate}}\n'
    )
    made = Policy(name="house rule", when=When(tool="pay_*", turn_left="10s"), then=Then(strategy="escalate"))
    written = {"name": "house rule", "when": {"tool": "pay_*", "turn_left": "10s"}, "then": "escalate"}
    books = [Runtime(file).policies, Runtime(policies=[made]).policies, Runtime(policies=[written, made]).policies[:1]]
    assert [[(one.name, one.when, one.then) for one in each] for each in books] == [
        [(made.name, made.when, made.then)]
    ] * 3
    assert books[0][0].place.startswith(str(file))


def test_a_wrong_book_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"Runtime: policies\[0\].then.strategy: .* is not one of"):
        Runtime(policies=[{"name": "x", "then": "pray"}])
