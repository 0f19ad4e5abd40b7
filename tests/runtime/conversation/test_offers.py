"""``rt.threads``: retry offers and unanswered calls of a conversation (R10)."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.fakes import (
    AUTH,
    DOWN,
    INVALID,
    OFTEN,
    ONCE,
    RESET,
    TIMEOUT,
    Scripted,
    Takes,
    phrases,
    real,
    records,
    virtual,
)
from tests.runtime.conversation.conversation import MISSING, THREAD, ask, faulty

from failsoft import Runtime
from failsoft.adapters.plain import run_tool_calls
from failsoft.core.conversation.thread_state import OFFER_LASTS
from failsoft.core.model.options import OnTimeout
from failsoft.stores.memory import MemoryStore
from failsoft.testing import virtual_time


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
async def test_simultaneous_retries_of_an_offer_run_once() -> None:
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
async def test_an_abandoned_call_that_is_not_safe_to_repeat_makes_no_offer() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5, DOWN)), id="step", retry=ONCE)
    async with rt.turn(thread=THREAD, timeout="1s") as turn:
        turn.call("step")
    await asyncio.sleep(10)
    assert turn.report.outcomes["step-1"].status == "timed_out"
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


# --- what uses an offer up (R31) ---------------------------------------------------------------------------------------


def stores() -> list[MemoryStore | None]:
    return [None, MemoryStore()]


def make(store: MemoryStore | None, *steps: object, **options: Any) -> tuple[Runtime, Scripted]:
    rt, tool = Runtime() if store is None else Runtime(store=store), Scripted(*steps)
    rt.add(tool, id="search", **{"retry": ONCE, "read_only": True, **options})
    return rt, tool


@pytest.mark.parametrize("store", stores(), ids=["memory", "store"])
@virtual
async def test_an_open_circuit_does_not_use_the_offer_up(store: MemoryStore | None) -> None:
    rt, tool = make(store, DOWN, "fine", breaker={"failure_threshold": 1, "timeout": "30s"})
    await ask(rt, tool="search")
    thread = rt.threads[THREAD]
    before = thread.offers
    refused = await thread.retry("search")
    assert faulty(refused) == ("tool_transient", "circuit_open", 0)
    assert "in about 30 seconds" in refused.explanation.user
    assert thread.offers == before != []
    await asyncio.sleep(31)
    assert (await thread.retry("search")).value == "fine"
    assert (thread.offers, tool.attempts) == ([], 2)


@pytest.mark.parametrize("store", stores(), ids=["memory", "store"])
@virtual
async def test_a_rate_hold_does_not_use_the_offer_up(store: MemoryStore | None) -> None:
    held = RuntimeError("Rate limit exceeded (429), retry after 300 seconds")
    rt, tool = make(store, held, "fine")
    await ask(rt, tool="search")
    thread = rt.threads[THREAD]
    refused = await thread.retry("search")
    assert faulty(refused)[1:] == ("rate_hold", 0)
    assert "in about 5 minutes" in refused.explanation.user
    assert len(thread.offers) == 1
    await asyncio.sleep(301)
    assert (await thread.retry("search")).value == "fine"
    assert tool.attempts == 2


@pytest.mark.parametrize("store", stores(), ids=["memory", "store"])
@virtual
async def test_a_full_queue_does_not_use_the_offer_up(store: MemoryStore | None) -> None:
    rt, _ = make(store, DOWN, Takes(5, "fine"), concurrency=1, queue=0, breaker=OFTEN)
    await ask(rt, tool="search")
    thread = rt.threads[THREAD]
    (before,) = thread.offers
    busy = asyncio.ensure_future(rt.call("search", {"city": "BER"}))
    await asyncio.sleep(1)
    assert faulty(await thread.retry("search"))[1:] == ("queue_full", 0)
    (after,) = thread.offers
    assert (after.arguments, after.when) == (before.arguments, before.when)
    assert after.expires == pytest.approx(before.expires)
    assert (await busy).value == "fine"
    assert (await thread.retry("search")).value == "fine"
    assert thread.offers == []


@pytest.mark.parametrize("store", stores(), ids=["memory", "store"])
@virtual
async def test_a_retry_that_is_cancelled_before_it_runs_gives_the_offer_back(store: MemoryStore | None) -> None:
    rt, tool = make(store, DOWN, Takes(5, "fine"), concurrency=1, queue=10, breaker=OFTEN)
    await ask(rt, tool="search")
    busy = asyncio.ensure_future(rt.call("search", {"city": "BER"}))
    await asyncio.sleep(1)
    retry = asyncio.ensure_future(rt.threads[THREAD].retry("search"))
    await asyncio.sleep(1)
    retry.cancel()
    await asyncio.wait([retry, busy])
    assert len(rt.threads[THREAD].offers) == 1
    assert (await rt.threads[THREAD].retry("search")).value == "fine"
    assert tool.attempts == 3


@pytest.mark.parametrize("store", stores(), ids=["memory", "store"])
@virtual
async def test_a_fallback_that_runs_for_the_retry_uses_the_offer_up(store: MemoryStore | None) -> None:
    rt, _ = make(store, DOWN, breaker={"failure_threshold": 1}, fallbacks=["other"])
    other = Scripted(DOWN, "fine")
    rt.add(other, id="other", read_only=True, retry=ONCE, breaker=OFTEN)
    await ask(rt, tool="search")
    outcome = await rt.threads[THREAD].retry("search")
    assert (outcome.value, outcome.via) == ("fine", "other")
    assert rt.threads[THREAD].offers == []


@virtual
async def test_a_failed_take_gives_the_breakers_slot_back() -> None:
    store = MemoryStore()
    rt, tool = make(store, DOWN, "fine", breaker={"failure_threshold": 1, "timeout": "30s"})
    await ask(rt, tool="search")
    await asyncio.sleep(31)
    take = store.take
    store.take = lambda *_: None  # type: ignore[method-assign]  # another process is faster
    outcome = await rt.threads[THREAD].retry("search")
    assert faulty(outcome) == ("tool_validation", "no_offer", 0)
    assert (outcome.decision and outcome.decision.strategy, outcome.escalated) == ("fail_gracefully", False)
    assert rt.health("search").state == "half_open"
    store.take = take  # type: ignore[method-assign]
    assert (await rt.threads[THREAD].retry("search")).value == "fine"
    assert tool.attempts == 2


@real
async def test_a_store_that_does_not_answer_makes_no_retry() -> None:
    store, goes = MemoryStore(), threading.Event()
    rt, tool = make(store, DOWN, "fine", breaker=OFTEN)
    await ask(rt, tool="search")
    take = store.take

    def slowly(*place: Any) -> Any:
        goes.wait(20)
        return take(*place)

    store.take = slowly  # type: ignore[method-assign]
    began = time.monotonic()
    assert faulty(await rt.threads[THREAD].retry("search"))[1:] == ("no_offer", 0)
    assert (time.monotonic() - began < 3, tool.attempts) == (True, 1)
    goes.set()
    for _ in range(100):
        await asyncio.sleep(0.02)
        if rt.threads[THREAD].offers:
            break
    assert (await rt.threads[THREAD].retry("search")).value == "fine"  # the answer that came too late was given back


@pytest.mark.parametrize("on_timeout", ["leave", "cancel"])
@pytest.mark.parametrize("store", stores(), ids=["memory", "store"])
@virtual
async def test_a_read_that_the_turns_deadline_cuts_off_is_offered(
    store: MemoryStore | None, on_timeout: OnTimeout
) -> None:
    rt, _ = make(store, Takes(10, "late"), "fine")
    async with rt.turn(thread=THREAD, timeout="2s", on_timeout=on_timeout) as turn:
        turn.call("search", {"city": "PAR"}, id="c1")
    (offer,) = rt.threads[THREAD].offers
    assert (offer.tool, offer.arguments) == ("search", {"city": "PAR"})
    assert offer.explanation == turn.report.outcomes["c1"].explanation
    await asyncio.sleep(20)  # its value arrives after the deadline and is dropped
    assert len(rt.threads[THREAD].offers) == 1
    assert (await rt.threads[THREAD].retry("search")).value == "fine"
    assert rt.threads[THREAD].offers == []
    assert "Retry offered for search" in phrases(rt)


@virtual
async def test_a_late_value_does_not_end_an_offer_whose_arguments_are_no_json() -> None:
    rt, _ = make(None, Takes(10, "late"), "fine")
    async with rt.turn(thread=THREAD, timeout="2s") as turn:
        turn.call("search", {"city": object()})
    await asyncio.sleep(20)
    assert len(rt.threads[THREAD].offers) == 1


@pytest.mark.parametrize("options", [{"idempotent": False}, {}], ids=["write", "undeclared"])
@virtual
async def test_calls_that_may_have_taken_effect_are_not_offered_at_the_deadline(options: dict[str, bool]) -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(10, "late")), id="step", **options)
    async with rt.turn(thread=THREAD, timeout="2s") as turn:
        turn.call("step", {"city": "PAR"})
    assert rt.threads[THREAD].offers == []


@pytest.mark.parametrize("restarted", [False, True])
@virtual
async def test_a_retry_of_a_call_that_a_model_asked_for_is_made_once_if_nothing_is_known_of_its_tool(
    restarted: bool,
) -> None:
    store, tool = MemoryStore(), Scripted(RESET)
    rt = Runtime(store=store)
    rt.add(tool, id="gadget", breaker=OFTEN)
    asked = {"id": "c1", "type": "function", "function": {"name": "gadget", "arguments": "{}"}}
    await run_tool_calls(rt, [asked], thread=THREAD)
    if restarted:
        rt = Runtime(store=store)
        rt.add(tool, id="gadget", breaker=OFTEN)
    outcome = await rt.threads[THREAD].retry("gadget")
    assert (outcome.attempts, tool.attempts) == (1, 2)
