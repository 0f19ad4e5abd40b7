"""``rt.threads``: missing tools, loops, offers and dangling calls, through the runtime (R10, R14)."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

import pytest
from tests.fakes import AUTH, DOWN, INVALID, OFTEN, ONCE, RESET, TIMEOUT, Scripted, Takes, phrases, records, virtual

from failsoft import Outcome, Runtime, ToolUnavailable
from failsoft.core.threads import OFFER_LASTS
from failsoft.runtime import threads
from failsoft.stores.base import key_of
from failsoft.stores.memory import MemoryStore
from failsoft.testing import virtual_time

MISSING = RuntimeError("Invalid extension.gateway.execute.request")
THREAD = "chat-42"


def faulty(outcome: Outcome[Any]) -> tuple[str, str, int]:
    assert outcome.fault is not None
    return outcome.fault.category, outcome.fault.rule, outcome.attempts


# --- availability ------------------------------------------------------------------------------------------------------


@virtual
async def test_a_text_switches_a_tool_off_for_its_thread_only_and_one_probe_brings_it_back() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, MISSING, "fine")
    rt.add(tool, id="search")
    first = await rt.call("search", thread=THREAD)
    assert (faulty(first)[0], first.attempts) == ("tool_unavailable", 1)
    second = await rt.call("search", thread=THREAD)
    assert faulty(second) == ("tool_unavailable", "tool_marked_unavailable", 0)
    assert second.fault is not None
    assert second.fault.retry_after == pytest.approx(600)
    assert records(rt, "CallRefused")[-1]["rule"] == "tool_marked_unavailable"
    assert (rt.threads[THREAD].available("search"), rt.threads[THREAD].unavailable) == (False, ("search",))
    assert (rt.threads["other"].available("search"), rt.threads["other"].unavailable) == (True, ())
    assert rt.threads(THREAD, tenant="acme").available("search")
    assert rt.health("search").available
    await asyncio.sleep(601)
    assert rt.threads[THREAD].available("search")
    await rt.call("search", thread=THREAD)  # the probe, which meets the same
    assert tool.attempts == 2
    assert faulty(await rt.call("search", thread=THREAD))[1] == "tool_marked_unavailable"
    await asyncio.sleep(601)
    assert (await rt.call("search", thread=THREAD)).value == "fine"
    assert (await rt.call("search", thread=THREAD)).value == "fine"


@virtual
async def test_one_probe_at_a_time() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, Takes(5, "fine"), "fine")
    rt.add(tool, id="search")
    await rt.call("search", thread=THREAD)
    await asyncio.sleep(601)
    probe, other = await asyncio.gather(rt.call("search", thread=THREAD), rt.call("search", thread=THREAD))
    assert probe.value == "fine"
    assert faulty(other)[1] == "tool_marked_unavailable"


@virtual
async def test_a_probe_may_be_retried_like_any_call() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, DOWN, "fine")
    rt.add(tool, id="search")
    await rt.call("search", thread=THREAD)
    await asyncio.sleep(601)
    outcome = await rt.call("search", thread=THREAD)
    assert (outcome.value, outcome.attempts) == ("fine", 2)


@virtual
async def test_without_a_thread_nothing_is_remembered() -> None:
    rt = Runtime()
    tool = Scripted(MISSING)
    rt.add(tool, id="search")
    for _ in range(5):
        await rt.call("search", {})
    assert tool.attempts == 5
    assert rt.metrics("search")["loops_prevented"] == 0


@virtual
async def test_a_turn_in_a_thread_asks_and_tells_on_its_fast_way_too() -> None:
    rt = Runtime()
    tool = Scripted(MISSING, "fine")
    rt.add(tool, id="search")
    for expected in ("phrase", "tool_marked_unavailable"):
        async with rt.turn(thread=THREAD) as turn:
            turn.call("search", id="S")
        assert faulty(turn.report.outcomes["S"])[1].startswith(expected)
    assert tool.attempts == 1
    assert turn.report.message.endswith("This capability isn’t available in this deployment yet.")


@virtual
async def test_a_fallback_that_is_missing_in_the_thread_is_left_out() -> None:
    rt = Runtime()
    backup = Scripted(MISSING)
    rt.add(backup, id="backup")
    rt.add(Scripted(DOWN), id="search", fallbacks=["backup"], retry=ONCE)
    await rt.call("search", {"n": 1}, thread=THREAD)
    await rt.call("search", {"n": 2}, thread=THREAD)
    assert backup.attempts == 1
    await rt.call("search", {"n": 2}, thread="other")
    assert backup.attempts == 2


@virtual
async def test_a_missing_tool_with_a_fallback_is_replaced_without_being_run() -> None:
    rt = Runtime()
    tool = Scripted(MISSING)
    rt.add(tool, id="search", fallbacks=["backup"])
    rt.add(Scripted("from the backup"), id="backup")
    for _ in range(3):
        outcome = await rt.call("search", thread=THREAD)
        assert (outcome.value, outcome.via) == ("from the backup", "backup")
    assert tool.attempts == 1


def test_a_program_that_is_not_there_is_missing_for_the_whole_deployment() -> None:
    command = {"command": ["no-such-program-here"]}
    rt = Runtime(manifest={"tools": {"shout": {"entrypoint": command}}})
    first, second = rt.call_sync("shout"), rt.call_sync("shout")
    asyncio.run(rt.close())
    assert faulty(first)[:2] == ("tool_unavailable", "command_start")
    assert faulty(second) == ("tool_unavailable", "tool_marked_unavailable", 0)
    assert not rt.health("shout").available
    assert rt.threads["any"].unavailable == ("shout",)


@virtual
async def test_registering_a_tool_again_makes_it_available() -> None:
    rt = Runtime(manifest={"tools": {"search": {"entrypoint": {"function": "no.such.module:search"}}}})
    assert not rt.health("search").available
    assert faulty(await rt.call("search"))[1] == "tool_marked_unavailable"
    with pytest.raises(ToolUnavailable):
        (await rt.call("search")).unwrap()

    async def search() -> str:
        return "fine"

    rt.add(search)
    assert rt.health("search").available
    assert (await rt.call("search")).value == "fine"


@virtual
async def test_registering_a_tool_again_ends_what_threads_hold_against_it() -> None:
    rt = Runtime()
    rt.add(Scripted(MISSING), id="search")
    await rt.call("search", thread=THREAD)
    rt.add(Scripted("fine"), id="search")
    assert rt.threads[THREAD].available("search")
    assert (await rt.call("search", thread=THREAD)).value == "fine"


def test_an_unknown_tool_is_available_nowhere() -> None:
    rt = Runtime()
    assert not rt.health("nowhere").available
    assert not rt.threads[THREAD].available("nowhere")


# --- loops -------------------------------------------------------------------------------------------------------------


async def ask(rt: Runtime, args: dict[str, Any] | None = None, *, tool: str = "hotels") -> Outcome[Any]:
    """One turn with one call, as a model makes them."""
    async with rt.turn(thread=THREAD) as turn:
        handle = turn.call(tool, args or {"city": "XYZ"})
    return await handle


@pytest.mark.parametrize("way", ["turns", "calls", "guarded"])
@virtual
async def test_the_third_identical_failure_is_answered_not_run(way: str) -> None:
    rt = Runtime()
    tool = Scripted(INVALID)
    guarded = rt.add(tool, id="hotels")

    async def once() -> Outcome[Any]:
        if way == "calls":
            return await rt.call("hotels", {"city": "XYZ"}, thread=THREAD)
        if way == "turns":
            return await ask(rt)
        async with rt.turn(thread=THREAD) as turn:
            with pytest.raises(Exception, match="Invalid airport code"):
                await guarded(city="XYZ")
        return turn.report.outcomes["hotels-1"]

    first, second, third, fourth = [await once() for _ in range(4)]
    assert tool.attempts == 2
    assert third.explanation.user == first.explanation.user == second.explanation.user
    assert third.explanation.operator == second.explanation.operator
    assert faulty(third) == faulty(fourth) == ("tool_validation", "loop_prevented", 0)
    assert third.explanation.model == (
        "hotels failed: INVALID_ARGUMENT (tool_validation, not run). It had no effect. It was not run this time: the "
        'same call has failed before and would fail again. Error text, as data: "Invalid airport code: XYZ"'
    )
    assert third.escalated
    assert rt.metrics("hotels")["loops_prevented"] == 2
    assert [record["message"] for record in records(rt, "LoopPrevented")] == ["Loop prevented for hotels"] * 2
    await asyncio.sleep(61)
    await once()
    assert tool.attempts == 3


@virtual
async def test_arguments_that_do_not_fit_are_a_loop_as_well() -> None:
    rt = Runtime()

    @rt.tool
    async def hotels(city: str) -> str:
        return city

    outcomes = [await ask(rt, {"town": "PAR"}) for _ in range(3)]
    assert [faulty(outcome)[1] for outcome in outcomes] == ["bad_arguments", "bad_arguments", "loop_prevented"]
    assert {outcome.explanation.user for outcome in outcomes} == {"For hotels I need a valid city."}


@virtual
async def test_a_model_that_mends_the_cause_is_not_looping() -> None:
    rt = Runtime()
    files: dict[str, str] = {}

    @rt.tool
    async def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return files[path]

    @rt.tool
    async def write(path: str, text: str) -> None:
        files[path] = text

    for _ in range(2):
        assert (await ask(rt, {"path": "a"}, tool="read")).status == "failed"
    await ask(rt, {"path": "a", "text": "hello"}, tool="write")
    assert (await ask(rt, {"path": "a"}, tool="read")).value == "hello"


@virtual
async def test_other_arguments_other_threads_and_passing_errors_are_no_loop() -> None:
    rt = Runtime()
    tool, flaky = Scripted(INVALID), Scripted(DOWN)
    rt.add(tool, id="hotels")
    rt.add(flaky, id="flights", retry=ONCE, breaker=OFTEN)
    for number in range(4):
        await ask(rt, {"city": str(number)})
        await rt.call("hotels", {"city": "XYZ"}, thread=f"thread {number}")
        await ask(rt, {"city": "PAR"}, tool="flights")
    assert (tool.attempts, flaky.attempts) == (8, 4)


@virtual
async def test_a_loop_of_a_call_inside_another_is_nobodys() -> None:
    rt = Runtime()
    inner = Scripted(INVALID)
    guarded = rt.add(inner, id="inner")

    async def outer(n: int) -> str:
        try:
            await guarded(city="XYZ")
        except Exception:
            return "went on without"
        return "never"

    rt.add(outer)
    for number in range(5):
        assert (await ask(rt, {"n": number}, tool="outer")).value == "went on without"
    assert inner.attempts == 5


@virtual
async def test_availability_comes_before_the_loop_and_the_loop_before_the_breaker() -> None:
    rt = Runtime()
    rt.add(Scripted(MISSING), id="missing")
    for expected in ("phrase", "tool_marked_unavailable", "tool_marked_unavailable", "tool_marked_unavailable"):
        assert faulty(await ask(rt, tool="missing"))[1].startswith(expected)
    steps = Scripted(INVALID, INVALID, DOWN)
    rt.add(steps, id="hotels", retry=ONCE, breaker={"failure_threshold": 1})
    await ask(rt)
    await ask(rt)
    await ask(rt, {"city": "PAR"})
    assert rt.health("hotels").state == "open"
    assert faulty(await ask(rt))[1] == "loop_prevented"
    assert faulty(await ask(rt, {"city": "LON"}))[1] == "circuit_open"


# --- offers ------------------------------------------------------------------------------------------------------------


@virtual
async def test_an_exhausted_passing_failure_leaves_one_offer() -> None:
    rt = Runtime()
    tool = Scripted(TIMEOUT, TIMEOUT, "fine")
    rt.add(tool, id="search", retry={"max_attempts": 2}, read_only=True)
    outcome = await rt.call("search", {"city": "PAR"}, thread=THREAD)
    thread = rt.threads[THREAD]
    (offer,) = thread.offers
    assert (offer.tool, offer.arguments) == ("search", {"city": "PAR"})
    assert offer.explanation == outcome.explanation
    assert offer.when == pytest.approx(records(rt)[-1] and rt.events()[-1].timestamp)
    again = await thread.retry("search")
    assert (again.value, tool.arguments[-1]) == ("fine", {"city": "PAR"})
    assert thread.offers == []
    nothing = await thread.retry("search")
    assert faulty(nothing) == ("tool_validation", "no_offer", 0)
    assert nothing.status == "failed"
    assert nothing.explanation == (
        "There’s nothing to try again for search.",
        "search was not run: there is no retry offer for it in this thread. It had no effect. "
        "Call it as usual only if the user wants something new.",
        "search was not run: there was no retry offer for it in this thread. To do: nothing.",
    )
    assert tool.attempts == 3
    messages = ["Retry offered for search", "Retry offer taken for search"]
    assert [text for text in phrases(rt) if text.startswith("Retry offer")] == messages


@virtual
async def test_a_retry_that_fails_leaves_no_second_offer() -> None:
    rt = Runtime()
    tool = Scripted(DOWN)
    rt.add(tool, id="search", retry=ONCE, breaker=OFTEN)
    thread = rt.threads[THREAD]
    await ask(rt, tool="search")
    assert faulty(await thread.retry("search"))[0] == "tool_transient"
    assert thread.offers == []
    assert faulty(await thread.retry("search"))[1] == "no_offer"
    assert tool.attempts == 2
    await ask(rt, tool="search")  # a new call is a new matter
    assert len(thread.offers) == 1


@virtual
async def test_two_wishes_at_once_make_one_retry() -> None:
    rt = Runtime()
    tool = Scripted(DOWN, Takes(1, "fine"))
    rt.add(tool, id="search", retry=ONCE)
    await ask(rt, tool="search")
    outcomes = await asyncio.gather(*(rt.threads[THREAD].retry("search") for _ in range(5)))
    assert sorted(outcome.status for outcome in outcomes) == ["failed"] * 4 + ["succeeded"]
    assert tool.attempts == 2


@virtual
async def test_a_retry_keeps_what_was_said_about_the_call() -> None:
    rt = Runtime()
    keys: list[str] = []

    @rt.tool(idempotency_key="key", retry=ONCE)
    async def pay(amount: int, key: str) -> str:
        keys.append(key)
        await asyncio.sleep(3)
        if len(keys) == 1:
            raise RESET
        return "paid"

    await rt.call("pay", {"amount": 5}, thread=THREAD, timeout="2s")
    assert faulty(await rt.threads[THREAD].retry(pay))[1] == "tool_timeout"  # two seconds again
    assert keys[0] == keys[1]  # so that the service does not do it twice


@virtual
async def test_arguments_by_position_come_again() -> None:
    rt = Runtime()
    seen: list[tuple[str, int]] = []

    @rt.tool(retry=ONCE)
    async def search(city: str, nights: int = 1) -> str:
        seen.append((city, nights))
        if len(seen) == 1:
            raise DOWN
        return city

    async with rt.turn(thread=THREAD):
        with pytest.raises(Exception, match="503"):
            await search("PAR", nights=3)
    assert (await rt.threads[THREAD].retry("search")).value == "PAR"
    assert seen == [("PAR", 3)] * 2


@virtual
async def test_a_retry_in_a_turn_is_one_of_its_calls() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "fine"), id="search", retry=ONCE)
    await ask(rt, tool="search")
    async with rt.turn(thread=THREAD) as turn:
        await rt.threads[THREAD].retry("search")
    assert turn.report.results == {"search-1": "fine"}


@pytest.mark.parametrize("hard", [MISSING, AUTH, TypeError("a bug")])
@virtual
async def test_a_hard_failure_clears_the_offer_of_its_tool_and_no_other(hard: Exception) -> None:
    rt = Runtime()
    for tool in ("search", "other"):
        rt.add(Scripted(DOWN, hard), id=tool, retry=ONCE)
        await ask(rt, tool=tool)
    await ask(rt, {"city": "LON"}, tool="search")
    assert [offer.tool for offer in rt.threads[THREAD].offers] == ["other"]
    assert faulty(await rt.threads[THREAD].retry("search"))[1] == "no_offer"
    assert "Retry offer cleared for search" in phrases(rt)


@virtual
async def test_a_refused_input_keeps_the_offer() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, INVALID), id="search", retry=ONCE)
    await ask(rt, {"city": "PAR"}, tool="search")
    await ask(rt, {"city": "XYZ"}, tool="search")
    assert [offer.arguments for offer in rt.threads[THREAD].offers] == [{"city": "PAR"}]


@virtual
async def test_an_offer_is_settled_by_the_same_call_succeeding_and_by_time() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "other", "fine", DOWN), id="search", retry=ONCE)
    await ask(rt, {"city": "PAR"}, tool="search")
    await ask(rt, {"city": "LON"}, tool="search")
    assert rt.threads[THREAD].offers
    await ask(rt, {"city": "PAR"}, tool="search")
    assert not rt.threads[THREAD].offers
    await ask(rt, {"city": "PAR"}, tool="search")
    assert rt.threads[THREAD].offers
    await asyncio.sleep(OFFER_LASTS)
    assert not rt.threads[THREAD].offers


@virtual
async def test_threads_and_tenants_do_not_see_each_other() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=OFTEN)
    await rt.call("search", {"city": "PAR"}, thread=THREAD, tenant="acme")
    async with rt.turn(thread=THREAD, tenant="bolt") as turn:
        turn.call("search", {"city": "LON"})
    await rt.call("search", {"city": "ROM"}, tenant="acme")  # no thread
    found = {tenant: rt.threads(THREAD, tenant=tenant).offers for tenant in ("acme", "bolt", "cog", None)}
    assert {tenant: [offer.arguments["city"] for offer in offers] for tenant, offers in found.items()} == {
        "acme": ["PAR"],
        "bolt": ["LON"],
        "cog": [],
        None: [],
    }
    assert rt.threads["other"].offers == []
    assert repr(rt.threads(THREAD, tenant="acme")) == "<Thread 'chat-42' of 'acme'>"


@virtual
async def test_clearing_forgets_one_tool_or_all() -> None:
    rt = Runtime()
    for tool in ("search", "other"):
        rt.add(Scripted(DOWN, MISSING), id=tool, retry=ONCE)
        await ask(rt, tool=tool)
    thread = rt.threads[THREAD]
    thread.clear("search")
    assert [offer.tool for offer in thread.offers] == ["other"]
    await ask(rt, {"city": "LON"}, tool="search")
    assert thread.unavailable == ("search",)
    thread.clear()
    assert (thread.offers, thread.unavailable) == ([], ())


@virtual
async def test_a_call_that_its_turn_left_behind_makes_no_offer() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5, DOWN)), id="search", retry=ONCE)
    async with rt.turn(thread=THREAD, timeout="1s") as turn:
        turn.call("search")
    await asyncio.sleep(10)
    assert turn.report.outcomes["search-1"].status == "timed_out"
    assert rt.threads[THREAD].offers == []


@virtual
async def test_an_open_circuit_is_offered_too() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "fine"), id="search", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "30s"})
    await rt.call("search", {"city": "PAR"})
    refused = await ask(rt, {"city": "LON"}, tool="search")
    assert faulty(refused)[1] == "circuit_open"
    await asyncio.sleep(31)
    assert (await rt.threads[THREAD].retry("search")).value == "fine"


@virtual
async def test_a_retry_of_a_function_that_is_no_tool_is_the_callers_mistake() -> None:
    rt = Runtime()
    with pytest.raises(Exception, match="is not a tool of this Runtime"):
        await rt.threads[THREAD].retry(print)
    assert faulty(await rt.threads[THREAD].retry("nowhere"))[1] == "no_offer"
    assert rt.metrics("nowhere")["refused_count"] == 0


def test_blocking_calls_make_and_take_offers() -> None:
    with virtual_time() as time:
        rt = Runtime()
        runs: list[str] = []

        @rt.tool(retry=ONCE, timeout=None)
        def search(city: str) -> str:
            runs.append(city)
            if len(runs) == 1:
                raise DOWN
            return city

        rt.call_sync("search", {"city": "PAR"}, thread=THREAD)
        assert time.run(rt.threads[THREAD].retry("search")).value == "PAR"


# --- dangling calls ----------------------------------------------------------------------------------------------------


@virtual
async def test_a_turn_that_crashes_leaves_its_open_calls_to_be_told() -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="quick")
    rt.add(Scripted(Takes(100)), id="slow")
    turn = rt.turn(thread=THREAD, id="T")
    with pytest.raises(KeyError):
        async with turn:
            await turn.call("quick", id="Q")
            turn.call("slow", id="S")
            turn.call("slow", id="D", depends_on=["S"])
            await asyncio.sleep(1)
            raise KeyError("a bug in the agent")
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["succeeded", "cancelled", "cancelled"]
    thread = rt.threads[THREAD]
    assert [(call.call_id, call.tool, call.turn_id) for call in thread.dangling] == [
        ("S", "slow", "T"),
        ("D", "slow", "T"),
    ]
    assert [call.text for call in thread.close_dangling()] == [
        "slow was cancelled. It may already have taken effect: check before calling again. "
        "Call it again only if it is still wanted.",
        "slow was cancelled. It had no effect. Call it again only if it is still wanted.",
    ]
    assert thread.dangling == thread.close_dangling() == []
    assert rt.threads["other"].dangling == []


@virtual
async def test_a_turn_that_is_cancelled_leaves_them_too_one_that_ends_leaves_none() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(100)), id="slow")
    rt.add(Scripted("fine"), id="quick")
    await ask(rt, tool="quick")
    task = asyncio.create_task(ask(rt, tool="slow"))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.call_id for call in rt.threads[THREAD].dangling] == ["slow-1"]
    async with rt.turn(thread="late", timeout="1s") as turn:
        turn.call("slow")
    assert rt.threads["late"].dangling == []  # timed out, and the report has said so


@virtual
async def test_calls_of_a_turn_inside_a_call_are_not_the_conversations() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(100)), id="slow")

    @rt.tool
    async def sub_agent(city: str) -> None:
        async with rt.turn() as turn:
            turn.call("slow")

    task = asyncio.create_task(ask(rt, tool="sub_agent"))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.tool for call in rt.threads[THREAD].dangling] == ["sub_agent"]


# --- turns inside calls ------------------------------------------------------------------------------------------------


@virtual
async def test_a_sub_agent_belongs_to_the_conversation_and_its_failure_is_offered_once() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE)

    @rt.tool
    async def sub_agent(city: str) -> Any:
        async with rt.turn() as turn:
            handle = turn.call("search")
        assert turn.report.thread == THREAD
        return await handle.value()

    outcome = await ask(rt, tool="sub_agent")
    assert outcome.fault is not None
    assert outcome.fault.message == "Service unavailable (503)"
    assert [offer.tool for offer in rt.threads[THREAD].offers] == ["sub_agent"]
    assert outcome.explanation.user.startswith("I couldn’t reach search right now.")


@virtual
async def test_a_missing_tool_inside_marks_itself_and_not_the_one_around_it() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(MISSING), id="inner")

    @rt.tool
    async def outer(city: str) -> Any:
        return await guarded()

    outcome = await ask(rt, tool="outer")
    assert faulty(outcome)[0] == "tool_unavailable"
    assert rt.threads[THREAD].unavailable == ("inner",)


# --- what it costs -----------------------------------------------------------------------------------------------------


@virtual
async def test_threads_without_notes_leave_nothing_behind() -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search")
    for number in range(50):
        async with rt.turn(thread=f"thread {number}") as turn:
            turn.call("search")
        rt.threads[f"thread {number}"].offers  # noqa: B018 - looking is not noting
    del turn
    gc.collect()
    notebook = rt._engine.notebook
    assert (len(notebook._states), len(notebook._kept)) == (0, 0)


@virtual
async def test_only_so_many_threads_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MOST_THREADS", 10)
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=OFTEN)
    for number in range(30):
        await rt.call("search", thread=f"thread {number}")
    gc.collect()
    assert len(rt._engine.notebook._kept) == 10
    assert rt.threads["thread 19"].offers == []
    assert rt.threads["thread 20"].offers != []


@virtual
async def test_names_that_a_model_invents_leave_no_figures_and_no_notes() -> None:
    rt = Runtime()
    async with rt.turn(thread=THREAD) as turn:
        for number in range(20):
            turn.call(f"invented {number}")
            await rt.call(f"made up {number}")
            await rt.call(f"dreamt {number}", thread=THREAD)
    for number in range(20):
        await rt.call(f"imagined {number}", thread=THREAD)
        rt.metrics(f"guessed {number}")
    assert rt.metrics("invented 1")["refused_count"] == 0
    assert rt._engine.trace._metrics == {}
    assert rt._engine.notebook._kept == {}
    assert len(turn.report.outcomes) == 60


@virtual
async def test_an_unknown_tool_in_a_turns_body_is_one_of_its_calls() -> None:
    rt = Runtime()
    async with rt.turn() as turn:
        outcome = await rt.call("nowhere", {"a": 1}, id="N")
        await rt.call("nowhere\n" * 100)
    assert turn.report.outcomes["N"] is outcome
    assert faulty(outcome) == ("tool_unavailable", "unknown_tool", 0)
    _, strange = turn.report.outcomes.values()
    assert len(strange.tool) <= 80
    assert "\n" not in strange.id


def test_notes_are_taken_from_several_threads() -> None:
    rt = Runtime()

    @rt.tool(timeout=None, retry=ONCE, breaker=OFTEN)
    def search(n: int) -> None:
        raise DOWN

    def work(number: int) -> None:
        for n in range(50):
            rt.call_sync("search", {"n": n}, thread=f"thread {number % 2}")
            rt.threads[f"thread {number % 2}"].clear()

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(switch)
    assert rt._engine.notebook._kept == {}
    assert rt.metrics("search")["error_count"] == 200


# --- after a restart ---------------------------------------------------------------------------------------------------


@virtual
async def test_offers_outlive_the_process_in_the_store() -> None:
    clock = asyncio.get_running_loop()
    store = MemoryStore(wall=lambda: 1e9 + clock.time())
    before = Runtime(store=store)
    before.add(Scripted(DOWN), id="search", retry=ONCE, breaker=OFTEN)
    before.add(Scripted(DOWN), id="other", retry=ONCE)
    for tool in ("search", "other"):
        await ask(before, {"city": "PAR"}, tool=tool)
        await asyncio.sleep(1)
    await before.call("search", {"city": object()}, thread="local")  # arguments that JSON cannot write
    after = Runtime(store=store)
    tool = Scripted("fine")
    after.add(tool, id="search", retry=ONCE)
    after.add(Scripted(AUTH), id="other")
    thread = after.threads[THREAD]
    assert [(offer.tool, offer.arguments) for offer in thread.offers] == [
        ("search", {"city": "PAR"}),
        ("other", {"city": "PAR"}),
    ]
    assert thread.offers == [
        offer._replace(expires=pytest.approx(offer.expires)) for offer in before.threads[THREAD].offers
    ]
    assert after.threads(THREAD, tenant="acme").offers == after.threads["local"].offers == []
    assert len(before.threads["local"].offers) == 1
    assert (await thread.retry("search")).value == "fine"
    assert tool.arguments == [{"city": "PAR"}]
    assert faulty(await before.threads[THREAD].retry("search"))[1] == "no_offer"  # taken elsewhere
    await ask(after, {"city": "LON"}, tool="other")  # a hard failure
    assert thread.offers == before.threads[THREAD].offers == []


@virtual
async def test_offers_in_the_store_are_cleared_settled_and_expire() -> None:
    clock = asyncio.get_running_loop()
    store = MemoryStore(wall=lambda: 1e9 + clock.time())
    rt = Runtime(store=store)
    rt.add(Scripted(DOWN, "fine", DOWN), id="search", retry=ONCE, breaker=OFTEN)
    await ask(rt, tool="search")
    await ask(rt, tool="search")  # the same call succeeds
    assert store.find("pending") == []
    await ask(rt, tool="search")
    assert len(store.find("pending")) == 1
    rt.threads[THREAD].clear()
    assert store.find("pending") == []
    await ask(rt, tool="search")
    await asyncio.sleep(OFFER_LASTS)
    assert rt.threads[THREAD].offers == store.find("pending") == []


@virtual
async def test_calls_that_a_dead_process_had_open_dangle() -> None:
    store = MemoryStore()
    dead = Runtime(store=store)
    dead.add(Scripted(Takes(100)), id="slow")
    dead.add(Scripted("fine"), id="quick")
    turn = dead.turn(thread=THREAD, id="T")
    async with turn:
        await turn.call("quick")
        turn.call("slow", id="S")
        await asyncio.sleep(1)
        assert dead.threads[THREAD].dangling == []  # it is running
        after = Runtime(store=store)
        after.add(Scripted("fine"), id="slow")
        (call,) = after.threads[THREAD].dangling
        assert (call.call_id, call.tool, call.turn_id) == ("S", "slow", "T")
        assert call.text.startswith("slow was cancelled. It may already have taken effect")
        assert after.threads[THREAD].close_dangling() == [call]
        assert after.threads[THREAD].dangling == []
    assert store.find("pending", key_of(None, THREAD, "call")) == []


@virtual
async def test_a_cancelled_call_dangles_after_a_restart_as_well() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    rt.add(Scripted(Takes(100)), id="slow")
    with pytest.raises(KeyError):
        async with rt.turn(thread=THREAD) as turn:
            turn.call("slow")
            await asyncio.sleep(1)
            raise KeyError
    assert rt.threads[THREAD].dangling == Runtime(store=store).threads[THREAD].dangling != []
    rt.threads[THREAD].close_dangling()
    assert Runtime(store=store).threads[THREAD].dangling == []


@virtual
async def test_missing_tools_stay_missing_after_a_restart() -> None:
    clock = asyncio.get_running_loop()
    store = MemoryStore(wall=lambda: 1e9 + clock.time())

    def start(*steps: object) -> tuple[Runtime, Scripted]:
        rt, tool = Runtime(store=store), Scripted(*steps)
        rt.add(tool, id="search", retry=ONCE)
        rt.add(Scripted("fine"), id="other")
        return rt, tool

    before, _ = start(RuntimeError("Tool 'search' not found in registry"))
    await before.call("search", thread=THREAD, tenant="acme")
    assert not before.threads(THREAD, tenant="acme").available("search")
    await asyncio.sleep(400)
    rt, tool = start("fine")
    thread = rt.threads(THREAD, tenant="acme")
    assert thread.unavailable == ("search",)
    assert rt.threads[THREAD].available("search")  # nobody else's
    refused = await rt.call("search", thread=THREAD, tenant="acme")
    assert (refused.attempts, tool.attempts) == (0, 0)
    await asyncio.sleep(201)
    assert (await rt.call("search", thread=THREAD, tenant="acme")).value == "fine"
    assert store.find("availability") == []


@virtual
async def test_registering_again_clearing_and_success_end_an_absence_in_the_store_too() -> None:
    store = MemoryStore()
    missing = RuntimeError("Tool 'search' not found in registry")
    for end in ("register", "clear", "clear all"):
        rt = Runtime(store=store)
        rt.add(Scripted(missing), id="search", retry=ONCE)
        await rt.call("search", thread=THREAD)
        assert len(store.find("availability")) == 1
        if end == "register":
            rt.add(Scripted("fine"), id="search")
        else:
            rt.threads[THREAD].clear("search" if end == "clear" else None)
        assert store.find("availability") == []
        assert rt.threads[THREAD].available("search")
