"""Pending state of threads, in the store and after a restart."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import AUTH, DOWN, OFTEN, ONCE, Scripted, Takes, virtual
from tests.runtime.conversation.conversation import THREAD, ask, faulty

from failsoft import Runtime
from failsoft.core.conversation.thread_state import OFFER_LASTS
from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import key_of


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
async def test_stored_offers_end_on_success_clearing_or_expiry() -> None:
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
async def test_a_call_that_is_skipped_as_soon_as_it_is_submitted_does_not_dangle() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    rt.add(Scripted(AUTH), id="bad")
    rt.add(Scripted("fine"), id="good")
    async with rt.turn(thread=THREAD) as turn:
        bad = turn.call("bad")
        await bad
        assert turn.call("good", depends_on=[bad]).done()
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


@virtual
async def test_a_call_that_must_not_be_made_twice_is_not_made_again_after_a_crash() -> None:
    store = MemoryStore()
    dead = Runtime(store=store)
    dead.add(Scripted(DOWN), id="search")
    await ask(dead, tool="search")  # an offer lies in the store beside them
    dead.add(Scripted(Takes(100)), id="pay", idempotent=False)
    async with dead.turn(thread=THREAD) as running:
        running.call("pay", {"amount": 4}, id="c1")
        running.call("pay", id="c2")
        running.call("pay")  # the turn has counted it
        await asyncio.sleep(1)
        after = Runtime(store=store)
        pay = Scripted("paid")
        after.add(pay, id="pay", idempotent=False)
        async with after.turn(thread=THREAD) as turn:
            turn.call("pay", {"amount": 4}, id="c1")
            turn.call("pay", {"amount": 5}, id="c2")
            turn.call("pay")
        first, *others = turn.report.outcomes.values()
        assert "It may already have taken effect: check before calling again." in first.explanation.model
        assert [other.value for other in others] == ["paid", "paid"]
        assert pay.attempts == 2
        assert "c1" not in [call.call_id for call in after.threads[THREAD].dangling]
        assert (await after.call("pay", {"amount": 4}, id="c1", thread=THREAD)).attempts == 0
        after.threads[THREAD].close_dangling()
        assert (await after.call("pay", {"amount": 4}, id="c1", thread=THREAD)).value == "paid"


@virtual
async def test_arguments_that_no_store_can_hold_leave_the_id() -> None:
    store = MemoryStore()
    dead = Runtime(store=store)
    dead.add(Scripted(Takes(100)), id="pay", idempotent=False)
    async with dead.turn(thread=THREAD) as running:
        running.call("pay", {"card": object()}, id="c1")
        await asyncio.sleep(1)
        after = Runtime(store=store)
        after.add(Scripted("paid"), id="pay", idempotent=False)
        assert (await after.call("pay", {"card": object()}, id="c1", thread=THREAD)).status == "failed"


@virtual
async def test_a_call_that_has_ended_elsewhere_is_another_one_when_its_id_comes_again() -> None:
    store = MemoryStore()
    busy = Runtime(store=store)
    busy.add(Scripted(Takes(5)), id="pay", idempotent=False)
    async with busy.turn(thread=THREAD) as running:
        running.call("pay", id="c1")
        await asyncio.sleep(1)
        beside = Runtime(store=store)
        beside.add(Scripted("paid"), id="pay", idempotent=False)
    assert beside.threads[THREAD].dangling == []
    assert (await beside.call("pay", id="c1", thread=THREAD)).value == "paid"
