"""Turns with limits: which calls count, and what a refused call looks like."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, records, virtual

from failsoft import CallFailed, ManifestError, Outcome, Runtime
from failsoft.integration import open_turn


def rules(outcomes: Any) -> list[str | None]:
    return [None if one.fault is None else one.fault.rule for one in outcomes]


@virtual
async def test_a_turn_makes_no_more_calls_than_it_may() -> None:
    rt, search = Runtime(), Scripted("found")
    rt.add(search, id="search")
    async with rt.turn(max_calls=2) as turn:
        outcomes = [await turn.call("search") for _ in range(4)]
    assert search.attempts == 2
    assert rules(outcomes) == [None, None, "turn_call_limit", "turn_call_limit"]
    refused = outcomes[2]
    assert refused.fault is not None
    assert (refused.status, refused.fault.effect, refused.attempts) == ("failed", "none", 0)
    assert not refused.escalated
    assert "Make no more calls in this turn" in refused.explanation.model
    assert "It had no effect" in refused.explanation.model
    assert "limit of calls" in refused.explanation.user
    assert "max_calls" in refused.explanation.operator


@virtual
async def test_a_limit_per_tool_leaves_other_tools_alone() -> None:
    rt = Runtime()
    rt.add(Scripted("found"), id="search")
    rt.add(Scripted("read"), id="read")
    async with rt.turn(max_calls_per_tool=1) as turn:
        outcomes = [await turn.call(tool) for tool in ("search", "search", "read")]
    assert rules(outcomes) == [None, "tool_call_limit", None]
    assert "Do not call it again in this turn" in outcomes[1].explanation.model


@virtual
async def test_calls_at_the_same_time_share_the_limit() -> None:
    rt, search = Runtime(), Scripted("found")
    rt.add(search, id="search")
    async with rt.turn(max_calls=3) as turn:
        for _ in range(10):
            turn.call("search")
    assert search.attempts == 3
    assert len(turn.report.results) == 3


@virtual
async def test_retries_and_fallbacks_belong_to_one_call() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, DOWN, "back"), id="flaky", read_only=True)
    rt.add(Scripted(DOWN), id="main", fallbacks=["spare"], retry=ONCE, read_only=True)
    rt.add(Scripted("spare"), id="spare", read_only=True)
    async with rt.turn(max_calls=2, max_calls_per_tool=1) as turn:
        flaky, main = await turn.call("flaky"), await turn.call("main")
        third = await turn.call("spare")
    assert (flaky.value, flaky.attempts, main.value) == ("back", 3, "spare")
    assert rules([third]) == ["turn_call_limit"]


@virtual
async def test_a_refused_call_is_not_replaced_by_a_fallback_and_is_no_failure_of_its_tool() -> None:
    rt, spare = Runtime(), Scripted("spare")
    rt.add(Scripted("main"), id="main", fallbacks=["spare"], breaker={"failure_threshold": 1})
    rt.add(spare, id="spare")
    async with rt.turn(max_calls_per_tool=1) as turn:
        outcomes = [await turn.call("main") for _ in range(3)]
    assert rules(outcomes) == [None, "tool_call_limit", "tool_call_limit"]
    assert spare.attempts == 0
    assert rt.health("main").state == "closed"
    assert [record["rule"] for record in records(turn.report, "CallRefused")] == ["tool_call_limit"] * 2


@virtual
async def test_calls_inside_tools_count() -> None:
    rt, inner = Runtime(), Scripted("inner")
    rt.add(inner, id="inner", read_only=True)
    seen: list[Outcome[Any]] = []

    @rt.tool(read_only=True)
    async def outer() -> str:
        for _ in range(3):
            seen.append(await rt.call("inner"))
        return "done"

    async with rt.turn(max_calls=3) as turn:
        assert (await turn.call("outer")).value == "done"
    assert rules(seen) == [None, None, "turn_call_limit"]
    assert inner.attempts == 2


@virtual
async def test_a_refused_inner_call_does_not_open_the_circuit_of_the_tool_around_it() -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def inner() -> str:
        return "inner"

    @rt.tool(read_only=True, breaker={"failure_threshold": 1})
    async def outer() -> str:
        return await inner()

    async with rt.turn(max_calls=1) as turn:
        outcome = await turn.call("outer")
    assert rules([outcome]) == ["nested: turn_call_limit"]
    assert rt.health("outer").state == "closed"
    assert outcome.attempts == 1


@virtual
async def test_the_calls_of_a_turn_inside_a_turn_count_in_both() -> None:
    rt, search = Runtime(), Scripted("found")
    rt.add(search, id="search")
    async with rt.turn(max_calls=3):
        async with rt.turn(max_calls=2) as small:
            outcomes = [await small.call("search") for _ in range(3)]
        async with rt.turn(max_calls=9) as large:
            outcomes += [await large.call("search") for _ in range(2)]
    assert rules(outcomes) == [None, None, "turn_call_limit", None, "turn_call_limit"]
    assert search.attempts == 3


@virtual
async def test_guarded_functions_called_in_the_body_count() -> None:
    rt = Runtime()

    @rt.tool
    async def search() -> str:
        return "found"

    @rt.tool(timeout=None)
    def look() -> str:
        return "seen"

    async with rt.turn(max_calls=2):
        assert (await search(), look()) == ("found", "seen")
        with pytest.raises(CallFailed, match="2 calls"):
            await search()
        with pytest.raises(CallFailed, match="2 calls"):
            look()


@virtual
async def test_a_skipped_call_does_not_count() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="bad")
    rt.add(Scripted("fine"), id="good")
    async with rt.turn(max_calls=2) as turn:
        bad = turn.call("bad")
        skipped = turn.call("good", depends_on=[bad])
        await bad
        last = await turn.call("good")
    assert ((await skipped).status, last.status) == ("skipped", "succeeded")


@virtual
async def test_calls_with_wrong_arguments_and_of_unknown_tools_count() -> None:
    rt = Runtime()

    @rt.tool
    async def search(query: str) -> str:
        return query

    async with rt.turn(max_calls=2) as turn:
        outcomes = [
            await turn.call("search", {"wrong": 1}),
            await turn.call("invented"),
            await turn.call("search", {"query": "x"}),
            await turn.call("invented"),
        ]
    assert rules(outcomes) == ["bad_arguments", "unknown_tool", "turn_call_limit", "turn_call_limit"]


@virtual
async def test_a_plan_has_limits_of_its_own() -> None:
    rt, search = Runtime({"turn": {"max_calls": 9}}), Scripted("found")
    rt.add(search, id="search")
    report = await rt.run_plan({"max_calls": 2, "calls": [{"tool": "search"}] * 4})
    assert search.attempts == len(report.results) == 2
    per_tool = await rt.run_plan({"max_calls_per_tool": 1, "calls": [{"tool": "search"}] * 4})
    assert len(per_tool.results) == 1


@virtual
async def test_the_manifests_limits_hold_for_turns_and_agent_runs() -> None:
    rt, search = Runtime({"turn": {"max_calls": 2}}), Scripted("found")
    rt.add(search, id="search")
    async with rt.turn() as turn:
        outcomes = [await turn.call("search") for _ in range(3)]
    assert rules(outcomes) == [None, None, "turn_call_limit"]
    async with rt.turn(max_calls=1) as turn:
        outcomes = [await turn.call("search") for _ in range(2)]
    assert rules(outcomes) == [None, "turn_call_limit"]

    class Key:
        pass

    async def find(_: Any) -> str:
        return "found"

    key = Key()
    outcomes = [await rt.run("find", {}, {"find": find}, turn=rt.agent_run(key)) for _ in range(3)]
    assert rules(outcomes) == [None, None, "turn_call_limit"]
    rt.end_agent_run(key)
    assert (await rt.run("find", {}, {"find": find}, turn=rt.agent_run(Key()))).status == "succeeded"


def test_calls_from_many_os_threads_share_the_limit() -> None:
    rt = Runtime()
    ran: list[int] = []

    @rt.tool(read_only=True, timeout=None)
    def inner() -> int:
        ran.append(1)
        return 1

    @rt.tool(read_only=True)
    def outer() -> str:
        return str(rt.call_sync("inner").status)

    async def main() -> list[Any]:
        async with rt.turn(max_calls=30) as turn:
            handles = [turn.call("outer") for _ in range(20)]
            return [(await handle).value for handle in handles]

    values = asyncio.run(main())
    started = len(values) - values.count(None)
    assert values.count("succeeded") == len(ran)
    assert started + len(ran) == 30


@pytest.mark.parametrize("option", ["max_calls", "max_calls_per_tool"])
@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", True])
def test_a_wrong_limit_is_refused_where_it_is_written(option: str, wrong: object) -> None:
    rt, said = Runtime(), {option: wrong}
    with pytest.raises(ManifestError, match=option):
        rt.turn(**said)  # type: ignore[arg-type]
    with pytest.raises(ManifestError, match=option):
        Runtime({"turn": said})
    with pytest.raises(ManifestError, match=option):
        asyncio.run(rt.run_plan({**said, "calls": []}))
    with pytest.raises(ManifestError, match=option):
        open_turn(rt, timeout=None, thread=None, **said)  # type: ignore[arg-type]
