"""Tools that an agent framework runs: declared here, run there (R11, R21)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, RESET, Scripted, Takes, records, virtual

from failsoft import FailsoftError, ManifestError, Runtime

SAFE = {"tools": {"search": {"read_only": True}}}


def runner(tool: Callable[..., Any]) -> Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]:
    async def run(arguments: dict[str, Any]) -> Any:
        return await tool(**arguments)

    return run


class AskAgain(Exception):
    """A framework's control flow."""


@virtual
async def test_a_runner_passed_with_the_call_receives_the_arguments() -> None:
    rt, tool = Runtime(), Scripted("3 flights")
    outcome = await rt.run("search", {"city": "PAR"}, {"search": runner(tool)})
    assert (outcome.value, outcome.attempts, tool.arguments) == ("3 flights", 1, [{"city": "PAR"}])
    assert [record["event_type"] for record in records(rt)] == ["CallSucceeded"]


@virtual
async def test_ids_that_are_taken_or_empty_are_replaced() -> None:
    rt = Runtime()
    async with rt.turn() as turn:
        for id in ("call_0", "call_0", ""):
            await rt.run("search", {}, {"search": runner(Scripted("3 flights"))}, id=id)
    assert list(turn.report.outcomes) == ["call_0", "search-1", "search-2"]


@virtual
async def test_not_repeated_while_the_effect_is_unknown() -> None:
    rt, tool = Runtime(), Scripted(RESET, "done")
    outcome = await rt.run("pay", {}, {"pay": runner(tool)})
    assert (outcome.status, tool.attempts) == ("failed", 1)


@pytest.mark.parametrize("how", ["manifest", "declared", "registered"])
@virtual
async def test_repeated_once_declared(how: str) -> None:
    rt, tool = Runtime(SAFE if how == "manifest" else None), Scripted(RESET, "done")
    if how == "declared":
        rt.declare("search", read_only=True)
    if how == "registered":
        rt.add(Scripted("never run"), id="search", read_only=True)
    outcome = await rt.run("search", {}, {"search": runner(tool)})
    assert (outcome.value, outcome.attempts) == ("done", 2)


@pytest.mark.parametrize("how", ["manifest", "declared", "registered"])
@virtual
async def test_a_tool_without_declared_effects_is_not_repeated(how: str) -> None:
    said: dict[str, Any] = {"timeout": "5s"}
    rt, tool = Runtime({"tools": {"pay": said}} if how == "manifest" else None), Scripted(RESET, "done")
    if how == "declared":
        rt.declare("pay", **said)
    if how == "registered":
        rt.add(Scripted("never run"), id="pay", **said)
    outcome = await rt.run("pay", {}, {"pay": runner(tool)})
    assert (outcome.status, tool.attempts) == ("failed", 1)


@virtual
async def test_an_attempt_that_changes_its_arguments_does_not_affect_the_next_one() -> None:
    rt, seen, given = Runtime(SAFE), [], {"city": "PAR"}

    async def run(arguments: dict[str, Any]) -> Any:
        seen.append(arguments.pop("city", "nothing"))
        if len(seen) == 1:
            raise RESET
        return "done"

    assert (await rt.run("search", given, {"search": run})).value == "done"
    assert (seen, given) == (["PAR", "PAR"], {"city": "PAR"})


@virtual
async def test_a_registered_tool_and_its_shadow_have_one_health() -> None:
    rt, tool = Runtime(), Scripted(DOWN)
    own = Scripted("own")
    guarded = rt.add(own, id="search", isolation="thread", retry={"max_attempts": 1}, breaker={"failure_threshold": 1})
    await guarded()
    await rt.run("search", {}, {"search": runner(tool)})
    assert rt.health("search").state == "open"
    assert (await rt.call("search")).attempts == 0, "its ticket is gone too"
    assert own.attempts == 1


@virtual
async def test_a_framework_tool_may_be_a_fallback_of_another() -> None:
    rt, first, second = Runtime(), Scripted(DOWN), Scripted("from the backup")
    rt.declare("search", fallbacks=["backup"])
    rt.declare("backup")
    outcome = await rt.run("search", {"city": "PAR"}, {"search": runner(first), "backup": runner(second)})
    assert (outcome.value, outcome.via, second.arguments) == ("from the backup", "backup", [{"city": "PAR"}])


@virtual
async def test_control_flow_passes_and_is_no_verdict() -> None:
    rt = Runtime(SAFE)
    raised, cause = AskAgain("which one?"), KeyError("x")
    raised.__cause__ = cause
    runs = []

    async def ask(arguments: dict[str, Any]) -> None:
        runs.append(1)
        raise raised

    for turns in (0, 1):
        with pytest.raises(AskAgain) as caught:
            if turns:
                async with rt.turn() as turn:
                    await rt.run("search", {}, {"search": ask}, control=(AskAgain,))
            else:
                await rt.run("search", {}, {"search": ask}, control=(AskAgain,))
        assert caught.value is raised
        assert (raised.__cause__, raised.__context__) == (cause, None)
    assert len(runs) == 2
    assert turn.report.outcomes["search-1"].status == "cancelled"
    assert "stopped" not in turn.report.message
    assert (rt.health("search").failure_count, records(rt, "ToolError")) == (0, [])


@virtual
async def test_without_an_agent_it_says_where_it_belongs() -> None:
    rt = Runtime()
    rt.declare("search")
    outcome = await rt.call("search", {"city": "PAR"})
    assert outcome.fault is not None
    assert outcome.fault.message == "search belongs to an agent framework: it runs only inside the agent"
    assert isinstance(outcome.fault.cause, FailsoftError)


def test_two_tools_of_one_name_are_one_tool() -> None:
    rt = Runtime()
    rt.declare("search", read_only=True)
    rt.declare("search", read_only=True)
    with pytest.raises(ManifestError, match="search: declared as {'read_only': True} before, and now as {}"):
        rt.declare("search")


def test_a_framework_tool_cannot_run_in_another_process() -> None:
    with pytest.raises(
        ManifestError, match=r'search: isolation: .* guard the function with @runtime.tool\(isolation="'
    ):
        Runtime().declare("search", isolation="process")


@virtual
async def test_a_registered_tool_keeps_its_options() -> None:
    rt = Runtime()
    rt.add(Scripted(1), id="search", read_only=True)
    rt.declare("search", idempotent=False)
    tool = Scripted(RESET, "done")
    assert (await rt.run("search", {}, {"search": runner(tool)})).attempts == 2


# --- in a turn: a call that is awaited in its body runs in its caller's context, and ends with its caller -------------

WHO: ContextVar[str] = ContextVar("who")


@virtual
async def test_calls_side_by_side_keep_their_own_context() -> None:
    rt, seen = Runtime(), []

    @rt.tool
    async def look() -> None:
        await asyncio.sleep(1)
        seen.append(WHO.get())

    async def ask(who: str) -> None:
        WHO.set(who)
        await look()

    async with rt.turn():
        await asyncio.gather(*(ask(who) for who in "abc"))
    assert sorted(seen) == ["a", "b", "c"]


@virtual
async def test_a_call_ends_with_its_caller() -> None:
    rt, tool = Runtime(), Scripted(Takes(60, "late"))
    guarded = rt.add(tool, id="search", timeout=None)
    loop = asyncio.get_running_loop()
    async with rt.turn() as turn:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(guarded(), 2)
        assert (loop.time(), tool.ended) == (2, [2])
    assert turn.report.outcomes["search-1"].status == "cancelled"
    assert rt.health("search").failure_count == 0


@virtual
async def test_the_turns_deadline_ends_calls_awaited_in_the_body() -> None:
    rt, tool = Runtime(), Scripted(Takes(20, "late"))
    guarded = rt.add(tool, id="search")
    loop = asyncio.get_running_loop()
    async with rt.turn(timeout="5s") as turn:
        outcome = await rt.call("search")
        assert (outcome.status, loop.time(), tool.ended) == ("timed_out", 5, [])
        with pytest.raises(FailsoftError):
            await guarded()
    assert [o.status for o in turn.report.outcomes.values()] == ["timed_out", "skipped"]
    await rt.close()


@virtual
async def test_a_tools_own_fault_in_a_turn_still_comes_out() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(INVALID), id="search")
    async with rt.turn():
        with pytest.raises(FailsoftError, match="Invalid airport code"):
            await guarded()


@pytest.mark.parametrize("how", ["plainly", "by position", "with an option", "sync"])
@virtual
async def test_awaited_and_submitted_calls_run_side_by_side(how: str) -> None:
    """A call that is awaited in the body and one that was submitted run side by side, whichever begins first."""
    rt, loop = Runtime(), asyncio.get_running_loop()

    async def wait(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return loop.time()

    guarded = rt.add(wait, id="wait")
    rt.add(lambda seconds: seconds, id="sync")
    ways: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "plainly": lambda: guarded(seconds=5),
        "by position": lambda: guarded(5),
        "with an option": lambda: rt.call("wait", {"seconds": 5}, timeout="20s"),
        "sync": lambda: rt.call("sync", {"seconds": 5}),
    }
    async with rt.turn() as turn:
        first = turn.call("wait", {"seconds": 3})
        awaited = asyncio.create_task(ways[how]())
        await asyncio.sleep(1)
        later = turn.call("wait", {"seconds": 1})
        await awaited
        assert (await first.value(), await later.value()) == (3, 2)
        again = turn.call("wait", {"seconds": 1})
        assert await again.value() == loop.time()
    assert {outcome.status for outcome in turn.report.outcomes.values()} == {"succeeded"}
    assert loop.time() <= 6
