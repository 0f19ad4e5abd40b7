"""Lanes: no call delays another, and no call is lost with its lane."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any, Self

import pytest
from tests.fakes import DOWN, Scripted, Takes, records, virtual

from failsoft import Runtime

SLOWLY = {"max_attempts": 2, "initial_delay": "4s", "max_delay": "4s", "max_total_time": "1m", "jitter_percent": 0}


@virtual
async def test_a_call_waiting_for_its_retry_does_not_delay_others() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "up again"), id="flaky", retry=SLOWLY)
    rt.add(Scripted("quick"), id="quick")
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn() as turn:
        flaky, quick = turn.call("flaky"), turn.call("quick")
        await quick
        assert loop.time() == began
        assert (await flaky).value == "up again"
    assert loop.time() - began == pytest.approx(4)
    assert list(turn.report.results) == ["flaky-1", "quick-1"]


@virtual
async def test_a_slow_error_handler_for_an_unknown_tool_does_not_delay_others() -> None:
    class Slow:
        async def handle(self, report: Any) -> Any:
            await asyncio.sleep(1)

    rt = Runtime(error_handler=Slow())
    rt.add(Scripted("quick"), id="quick")
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn() as turn:
        turn.call("nowhere")
        await turn.call("quick")
        assert loop.time() == began
    assert loop.time() - began == pytest.approx(1)


@virtual
async def test_a_tool_that_cancels_itself_ends_alone() -> None:
    rt = Runtime()

    @rt.tool
    async def gives_up() -> None:
        raise asyncio.CancelledError

    rt.add(Scripted("fine"), id="next")
    async with rt.turn() as turn:
        turn.call("gives_up")
        turn.call("next")
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["cancelled", "succeeded"]
    assert [record["call_id"] for record in records(turn.report, "CallCancelled")] == ["gives_up-1"]


@virtual
async def test_a_tool_that_cancels_its_own_task_does_not_affect_other_calls() -> None:
    rt = Runtime()

    @rt.tool
    async def cancels() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "back"

    @rt.tool
    async def follow(text: str) -> str:
        await asyncio.sleep(1)
        return text

    async with rt.turn() as turn:
        first = turn.call(cancels)
        side, behind = turn.call(follow, {"text": "side"}), turn.call(follow, {"text": first})
    assert [(await call).value for call in (first, side, behind)] == ["back", "side", "back"]


class Picky(tuple[Any, ...]):
    """Cannot be made anew from its items."""

    __slots__ = ()

    def __new__(cls, first: Any, *, key: str) -> Self:
        return super().__new__(cls, (first,))


@pytest.mark.parametrize("limit", [None, "5s"], ids=["plain", "with a timeout of its own"])
@virtual
async def test_arguments_that_cannot_be_filled_in_fail_their_call_and_no_other(limit: str | None) -> None:
    rt = Runtime()

    @rt.tool
    async def give(value: Any) -> Any:
        return value

    async with rt.turn() as turn:
        one = turn.call("give", {"value": 1}, id="one")
        turn.call("give", {"value": Picky(one, key="x")}, id="bad", timeout=limit)
        turn.call("give", {"value": one}, id="two")
    assert {id: outcome.status for id, outcome in turn.report.outcomes.items()} == {
        "one": "succeeded",
        "bad": "failed",
        "two": "succeeded",
    }


@virtual
async def test_a_thousand_calls_that_do_not_wait_need_one_task() -> None:
    rt = Runtime()
    seen: set[Any] = set()

    @rt.tool
    async def who() -> None:
        seen.add(asyncio.current_task())

    async with rt.turn() as turn:
        for _ in range(1000):
            turn.call(who)
    assert len(seen) == 1


@virtual
async def test_inner_calls_started_in_a_task_record_their_parent() -> None:
    rt = Runtime()
    inner = rt.add(Scripted(Takes(1, "inner")), id="inner")
    started: list[asyncio.Task[Any]] = []

    @rt.tool
    async def outer() -> None:
        started.append(asyncio.create_task(inner()))

    async with rt.turn() as turn:
        for number in range(3):
            turn.call(outer, id=f"outer {number}")
        await asyncio.sleep(2)
    await asyncio.gather(*started)
    parents = [record["parent_id"] for record in records(rt, "CallSucceeded") if record["tool_id"] == "inner"]
    assert sorted(parents) == ["outer 0", "outer 1", "outer 2"]


# --- outcomes are built on first access ----------------------------------------------------------------------------------


@virtual
async def test_handle_and_report_give_the_same_outcome() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(2, "value")), id="slow", label="The slow one")
    async with rt.turn() as turn:
        handle = turn.call("slow")
        assert not handle.done()
        assert handle.outcome is None
    outcome = await handle
    assert outcome is handle.outcome is turn.report.outcomes["slow-1"]
    assert (outcome.value, outcome.attempts, outcome.via, outcome.label) == ("value", 1, "slow", "The slow one")
    assert outcome.duration == pytest.approx(2)
    assert repr(turn.report.outcomes) == repr({"slow-1": outcome})
    assert len(turn.report.outcomes) == 1


@virtual
async def test_results_can_be_changed_without_harm() -> None:
    rt = Runtime()
    rt.add(Scripted("value"), id="a")
    async with rt.turn() as turn:
        turn.call("a")
    turn.report.results.clear()
    assert turn.report.results == {"a-1": "value"}


@virtual
async def test_an_abandoned_attempts_value_does_not_replace_the_retrys_value() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5), "later"), id="slow")
    attempts = iter(("orphan", "retry"))

    @rt.tool(timeout="1s", read_only=True, retry={"max_attempts": 2, "initial_delay": "1ms"})
    async def fetch() -> str:
        which = next(attempts)
        if which == "orphan":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(2)
        return which

    @rt.tool
    async def show(text: str, after: Any) -> str:
        return text

    async with rt.turn() as turn:
        fetched = turn.call(fetch)
        shown = turn.call(show, {"text": fetched, "after": turn.call("slow")})
    assert (await fetched).value == "retry"
    assert (await shown).value == "retry"
    assert turn.report.results["fetch-1"] == "retry"


@virtual
async def test_a_late_result_is_not_stored_in_its_handle() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5, "late")), id="slow")
    async with rt.turn(timeout="1s") as turn:
        slow = turn.call("slow")
    await asyncio.sleep(10)
    assert "LateResult" in [record["event_type"] for record in records(rt)]
    assert (slow.result, turn.report.results) == (None, {})


@virtual
async def test_an_abandoned_attempt_cannot_cancel_the_next_call() -> None:
    rt = Runtime()

    @rt.tool(timeout="1s", retry={"max_attempts": 1})
    async def stubborn() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(5, task.cancel)  # like a cancel scope that keeps the task that entered it
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)

    @rt.tool
    async def follow(text: str) -> str:
        await asyncio.sleep(10)
        return text

    async with rt.turn() as turn:
        followed = turn.call(follow, {"text": turn.call(stubborn)}, defaults={"text": "instead"})
    assert (await followed).value == "instead"


def test_a_lane_freed_after_its_loop_was_closed_starts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    async def break_off() -> None:
        rt = Runtime()

        @rt.tool
        async def wait(until: Any = None) -> None:
            await asyncio.sleep(60)

        turn = await rt.turn().__aenter__()
        turn.call(wait, {"until": turn.call(wait)}, defaults={"until": "now"})
        await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(break_off())
    loop.close()
    del loop
    gc.collect()
    assert complaints == []
