"""Context variables in a turn: a call runs in a copy of its submitter's context, as a task of its own would."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from tests.fakes import virtual

from failsoft import Runtime

WHO: ContextVar[Any] = ContextVar("who", default="nobody")


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    token = WHO.set("nobody")
    yield
    WHO.reset(token)


def seen_by(rt: Runtime, **options: Any) -> list[str]:
    """Tools of every way through a lane, each of which notes whom it sees and says that it is there itself."""
    seen: list[str] = []

    def look(who: str) -> str:
        if WHO.get() != who:  # which the attempt before has set
            seen.append(f"{who} sees {WHO.get()}")
        WHO.set(who)
        return who

    async def plain() -> str:
        return look("plain")

    async def waiting() -> str:
        look("waiting")
        await asyncio.sleep(1)
        assert WHO.get() == "waiting"
        return "waiting"

    def blocking() -> str:
        return look("blocking")

    async def failing() -> str:
        look("failing")
        raise ConnectionError("down")

    for tool in (plain, waiting, blocking, failing):
        rt.add(tool, read_only=True, retry={"max_attempts": 2, "initial_delay": "1ms"}, **options)
    return seen


TOOLS = ("plain", "waiting", "blocking", "failing")


@virtual
@pytest.mark.parametrize("first", TOOLS)
@pytest.mark.parametrize("second", TOOLS)
async def test_context_variables_set_by_a_tool_are_invisible_to_other_calls(first: str, second: str) -> None:
    rt = Runtime()
    seen = seen_by(rt)
    async with rt.turn() as turn:
        before = turn.call(first)
        turn.call(second, depends_on=[before] if first != "failing" else [])
        await before
        turn.call(second)
    assert {line.partition(" sees ")[2] for line in seen} == {"nobody"}, seen
    assert len(seen) >= 3
    assert WHO.get() == "nobody"


@virtual
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_call_sees_what_its_submitter_had_set_by_then(tool: str) -> None:
    rt = Runtime()
    seen = seen_by(rt)
    async with rt.turn() as turn:
        WHO.set("Ada")
        turn.call(tool)
        WHO.set("Bob")
        turn.call(tool)
        WHO.set("Eve")
    assert sorted({line.partition(" sees ")[2] for line in seen}) == ["Ada", "Bob"]


@virtual
async def test_a_call_that_waits_for_another_sees_its_submitter_not_that_other() -> None:
    rt = Runtime()
    seen = seen_by(rt)
    async with rt.turn() as turn:
        WHO.set("Ada")
        first = turn.call("waiting")
        WHO.set("Bob")
        turn.call("plain", depends_on=[first])
    assert seen == ["waiting sees Ada", "plain sees Bob"]


@virtual
async def test_a_plan_runs_in_its_submitters_context() -> None:
    rt = Runtime()
    seen = seen_by(rt)
    WHO.set("Ada")
    await rt.run_plan({"calls": [{"tool": "plain"}, {"tool": "plain"}, {"tool": "blocking"}]})
    assert {line.partition(" sees ")[2] for line in seen} == {"Ada"}


@virtual
async def test_a_token_is_reset_where_it_was_made() -> None:
    rt = Runtime()

    @rt.tool()
    async def scoped() -> Any:
        token = WHO.set("scoped")
        try:
            await asyncio.sleep(1)
        finally:
            WHO.reset(token)
        return WHO.get()

    async with rt.turn() as turn:
        WHO.set("Ada")
        handles = [turn.call("scoped") for _ in range(3)]
        assert [await handle.value() for handle in handles] == ["Ada"] * 3


@virtual
async def test_an_abandoned_attempt_continues_in_its_own_context() -> None:
    rt = Runtime()
    seen: list[Any] = []

    @rt.tool(timeout="1s", retry={"max_attempts": 1})
    async def stubborn() -> None:
        WHO.set("stubborn")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
            seen.append(WHO.get())

    async with rt.turn() as turn:
        assert (await turn.call("stubborn")).fault is not None
        WHO.set("Ada")
    await asyncio.sleep(10)
    assert seen == ["stubborn"]


@virtual
async def test_a_timeout_inside_an_abandoned_attempt_does_not_cancel_the_lane() -> None:
    rt = Runtime()
    seen: list[str] = []

    @rt.tool(timeout="1s", retry={"max_attempts": 1})
    async def stubborn() -> None:
        try:
            async with asyncio.timeout(10):
                try:
                    await asyncio.sleep(5)
                except asyncio.CancelledError:
                    await asyncio.sleep(60)
        except TimeoutError:
            seen.append("its own timeout")

    @rt.tool(timeout="60s")
    async def next_in_lane() -> str:
        await asyncio.sleep(30)
        return "done"

    async with rt.turn() as turn:
        first = turn.call("stubborn")
        await first
        assert await turn.call("next_in_lane").value() == "done"
    assert seen == ["its own timeout"]


class Value:
    """Something that can be referred to weakly."""


@virtual
async def test_a_report_keeps_no_contexts() -> None:
    rt = Runtime()
    seen_by(rt)
    value = Value()
    kept = weakref.ref(value)
    async with rt.turn() as turn:
        WHO.set(value)
        for tool in TOOLS:
            turn.call(tool)
    report = turn.report
    del turn, value
    WHO.set("nobody")
    await asyncio.sleep(1)
    gc.collect()
    assert kept() is None
    assert len(report.outcomes) == len(TOOLS)


@virtual
async def test_a_report_keeps_no_context_of_the_turns_body_either() -> None:
    rt = Runtime()
    seen_by(rt)
    kept: list[weakref.ref[Value]] = []

    async def answer() -> Any:
        WHO.set(value := Value())
        kept.append(weakref.ref(value))
        async with rt.turn(timeout="5m") as turn:
            turn.call("plain")
        return turn.report

    report = await asyncio.create_task(answer())
    await asyncio.sleep(1)
    gc.collect()
    assert kept[0]() is None
    assert len(report.outcomes) == 1


@virtual
async def test_handlers_of_an_unknown_tools_failure_run_in_its_submitters_context() -> None:
    seen: list[Any] = []

    class Handler:
        async def handle(self, report: Any) -> None:
            seen.append(WHO.get())

    def explain(*_: Any) -> None:
        seen.append(WHO.get())

    rt = Runtime(error_handler=Handler(), explain=explain)
    WHO.set("Ada")
    async with rt.turn() as turn:
        turn.call("nowhere")
    assert seen == ["Ada", "Ada", "Ada"]  # the handler, the call's text, the turn's message
