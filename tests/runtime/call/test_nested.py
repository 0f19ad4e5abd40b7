"""Guarded tools that call guarded tools: one retry owner, one slot, the outermost deadline (R24, R27)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, records, virtual

from failsoft import CallFailed, Runtime


def house(inner: Scripted, outer: Any = None, inner_options: Any = None) -> tuple[Runtime, list[int]]:
    """A runtime with an outer tool that does its work with an inner one."""
    rt = Runtime()
    runs: list[int] = []
    guarded = rt.add(inner, id="inner", **(inner_options or {}))

    async def work() -> Any:
        runs.append(1)
        return await guarded()

    rt.add(work, id="outer", **(outer or {}))
    return rt, runs


@virtual
async def test_only_the_innermost_retries() -> None:
    inner = Scripted(DOWN)
    rt, runs = house(inner, inner_options={"retry": {"max_attempts": 3}})
    outcome = await rt.call("outer")
    assert (inner.attempts, len(runs), outcome.attempts) == (3, 1, 1)
    assert outcome.fault is not None
    assert outcome.fault.code == "UNAVAILABLE"
    last = records(rt, "ToolError")[-1]
    assert (last["tool_id"], last["reason"]) == ("outer", "Transient error (the call inside has had its retries)")


@virtual
async def test_a_wrapped_failure_of_the_inner_one_counts_too() -> None:
    rt = Runtime()
    inner = Scripted(DOWN)
    guarded = rt.add(inner, id="inner", retry={"max_attempts": 2})
    runs: list[int] = []

    async def outer() -> None:
        runs.append(1)
        try:
            await guarded()
        except CallFailed as failed:
            raise ConnectionError("the inner one is down") from failed

    rt.add(outer)
    await rt.call("outer")
    assert (inner.attempts, len(runs)) == (2, 1)


@virtual
async def test_the_inner_call_is_a_child_in_the_trace_and_no_outcome_of_the_turn() -> None:
    rt, _ = house(Scripted(DOWN, "fine"))
    async with rt.turn() as turn:
        turn.call("outer", id="O")
    assert list(turn.report.outcomes) == ["O"]
    assert turn.report.results == {"O": "fine"}
    children = [record for record in records(turn.report) if record["tool_id"] == "inner"]
    assert {record["parent_id"] for record in children} == {"O"}
    assert {record["turn_id"] for record in children} == {turn.id}


@virtual
async def test_a_recursive_call_does_not_take_a_second_slot() -> None:
    rt = Runtime()

    @rt.tool(concurrency=1, timeout="60s")
    async def factorial(n: int) -> int:
        return 1 if n < 2 else n * await factorial(n - 1)

    async with asyncio.timeout(10):
        assert await factorial(5) == 120
        assert await asyncio.gather(*(factorial(n) for n in range(1, 5))) == [1, 2, 6, 24]


@virtual
async def test_a_call_inside_another_never_outlives_it() -> None:
    inner = Scripted(Takes(100))
    rt, _ = house(inner, {"timeout": "2s", "retry": ONCE}, {"timeout": "50s"})
    outcome = await rt.call("outer")
    assert outcome.duration == pytest.approx(2)
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 2s"
    assert len(inner.ended) == 1
    assert rt.health("inner").failure_count == 0
    assert rt.metrics("inner")["timeout_count"] == 0


@virtual
async def test_the_inner_deadline_is_kept_inside_a_longer_one() -> None:
    inner = Scripted(Takes(100), "fine")
    rt, _ = house(inner, {"timeout": "50s"}, {"timeout": "2s"})
    outcome = await rt.call("outer")
    assert (outcome.value, inner.attempts) == ("fine", 2)
    assert rt.metrics("inner")["timeout_count"] == 1
    assert rt.metrics("outer")["timeout_count"] == 0


@virtual
async def test_both_deadlines_in_the_same_moment_are_the_outer_ones() -> None:
    inner = Scripted(Takes(100))
    rt, runs = house(inner, {"timeout": "2s", "retry": ONCE}, {"timeout": "2s", "retry": ONCE})
    outcome = await rt.call("outer")
    assert outcome.duration == pytest.approx(2)
    assert outcome.fault is not None
    assert outcome.fault.code == "DEADLINE_EXCEEDED"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert len(runs) == 1


@virtual
async def test_three_deep_still_multiplies_nothing() -> None:
    rt = Runtime()
    bottom = Scripted(DOWN)
    lowest = rt.add(bottom, id="lowest", retry={"max_attempts": 3})

    @rt.tool
    async def middle() -> Any:
        return await lowest()

    @rt.tool
    async def top() -> Any:
        return await middle()

    outcome = await rt.call(top)
    assert (outcome.status, bottom.attempts) == ("failed", 3)


def test_blocking_tools_inside_blocking_tools() -> None:
    rt = Runtime()
    attempts: list[int] = []

    @rt.tool(retry={"max_attempts": 3, "initial_delay": "1ms"})
    def inner() -> None:
        attempts.append(1)
        raise ConnectionResetError("gone")

    @rt.tool(concurrency=1)
    def outer(deep: int = 0) -> None:
        if deep:
            return outer(deep - 1)
        return inner()

    outcome = rt.call_sync(outer, {"deep": 2})
    assert (outcome.status, len(attempts)) == ("failed", 3)


@pytest.mark.parametrize("options", [{}, {"output": object}], ids=["fast path", "full path"])
@virtual
async def test_an_inner_failure_is_escalated_once_and_named_by_the_outer_error(options: Any) -> None:
    told = []
    rt = Runtime(on_escalation=told.append)
    inner = rt.add(Scripted(INVALID), id="inner", **options)

    @rt.tool(**options)
    async def outer():
        return await inner()

    await rt.call("outer")
    assert [outcome.tool for outcome in told] == ["outer"]
    [error] = [event for event in records(rt, "ToolError") if event["tool_id"] == "outer"]
    assert error["inner_call_id"].startswith("inner-")


@pytest.mark.parametrize("tool", ["leaves it", "wraps it", "asks a turn"])
@pytest.mark.parametrize("in_turn", [False, True])
@virtual
async def test_an_inner_bug_is_escalated_once_with_one_internal_error_record(tool: str, in_turn: bool) -> None:
    told: list[str] = []
    rt = Runtime(on_escalation=lambda outcome: told.append(outcome.explanation.user))
    inner = rt.add(Scripted(TypeError("a bug")), id="inner")

    async def leave_it() -> Any:
        return await inner()

    async def wrap_it() -> Any:
        try:
            return await inner()
        except CallFailed as failed:
            raise RuntimeError("it did not work") from failed

    async def ask_a_turn() -> Any:
        async with rt.turn() as turn:
            handle = turn.call("inner")
        return await handle.value()

    rt.add(leave_it, id="leaves it")
    rt.add(wrap_it, id="wraps it")
    rt.add(ask_a_turn, id="asks a turn")
    if in_turn:
        async with rt.turn() as turn:
            handle = turn.call(tool)
        outcome = await handle
    else:
        outcome = await rt.call(tool)
    await rt.close()
    assert outcome.fault is not None
    assert (outcome.fault.message, outcome.fault.rule) == ("a bug", "nested: type: builtins.TypeError")
    assert told == ["Something broke internally, I’ve logged it."]
    (record,) = records(rt, "InternalError")
    assert record["tool_id"] == "inner"
    with pytest.raises(CallFailed) as caught:
        outcome.unwrap()
    assert type(caught.value.__cause__) is (RuntimeError if tool == "wraps it" else CallFailed)


class Stubborn:
    """Does not let itself be cancelled, and has a value a second after it was asked to end."""

    async def __call__(self) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "late"


@pytest.mark.parametrize("inside", ["call", "turn"])
@pytest.mark.parametrize("named", [False, True], ids=["plain", "named"])
@virtual
async def test_an_abandoned_attempt_still_receives_its_inner_results(named: bool, inside: str) -> None:
    rt = Runtime()
    heard: list[Any] = []
    stubborn = rt.add(Stubborn(), id="inner", timeout="30s", concurrency=5)  # a limit: it goes the long way
    rt.add(Scripted(Takes(6, "late")), id="slow")

    async def call() -> None:
        heard.append(await stubborn())

    async def take_turn() -> None:
        async with rt.turn() as turn:
            handle = turn.call("slow")
            while not handle.done():
                with suppress(asyncio.CancelledError):
                    await handle
        heard.append(turn.report.outcomes["slow-1"].value)

    rt.add(call if inside == "call" else take_turn, id="outer", timeout="5s", retry=ONCE)
    outcome = await (rt.call("outer", id="outer-a") if named else rt.call("outer"))
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 5s"
    await asyncio.sleep(2)
    assert heard == ["late"]


@pytest.mark.parametrize("how", ["call", "named", "function", "turn"])
@virtual
async def test_a_caller_that_abandons_an_inner_call_keeps_its_own_position(how: str) -> None:
    rt = Runtime()
    stubborn = rt.add(Stubborn(), id="inner", timeout="30s", concurrency=5)  # a limit: it goes the long way
    broken = rt.add(Scripted(INVALID), id="broken")
    runs = 0

    async def work() -> str:
        nonlocal runs
        runs += 1
        return await (stubborn() if runs == 1 else broken())

    outer = rt.add(work, id="outer", timeout="5s", read_only=True, retry={"max_attempts": 2, "max_total_time": "60s"})
    if how == "call":
        await rt.call("outer")
    elif how == "named":
        await rt.call("outer", id="outer-a")
    elif how == "turn":
        async with rt.turn() as turn:
            turn.call("outer")
    else:
        with pytest.raises(CallFailed):
            await outer()
    assert runs == 2
    parents = [record["parent_id"] for record in records(rt, "ToolError") if record["tool_id"] == "broken"]
    assert parents[0].startswith("outer")  # and not the call inside that is still under way
    await rt.call("broken")
    assert "parent_id" not in records(rt, "ToolError")[-1]


@virtual
async def test_a_call_inside_a_turns_call_never_has_the_id_of_one_of_the_turns() -> None:
    rt = Runtime()
    prices = rt.add(Scripted(1), id="prices")

    @rt.tool
    async def outer() -> Any:
        return [await prices() for _ in range(3)]

    async with rt.turn() as turn:
        turn.call("outer", id="outer")
        for _ in range(9):
            turn.call("prices")
    ids = [record["call_id"] for record in records(turn.report, "CallSucceeded")]
    assert len(ids) == len({*ids}) == 13
    assert sorted(id for id in ids if "/" in id) == [f"outer/prices-{number}" for number in (1, 2, 3)]
