"""A tool whose breaker has a window: all routes record, and the window survives a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, virtual

from failsoft import BreakerOptions, Fallback, ManifestError, Runtime
from failsoft.stores.memory import MemoryStore

HALF = {"window": 10, "failure_rate": 0.5, "min_calls": 4, "timeout": "30s"}


def flaky(rt: Runtime, *steps: Any, **more: Any) -> Any:
    return rt.add(Scripted(*steps), id="search", **{"retry": ONCE, "breaker": HALF, "read_only": True, **more})


@virtual
async def test_every_second_failure_opens_the_circuit_and_the_event_says_why() -> None:
    rt = Runtime()
    flaky(rt, "ok", DOWN, "ok", DOWN, "ok")
    for _ in range(4):
        await rt.call("search")
    health = rt.health("search")
    assert (health.state, health.failure_count, health.failure_rate) == ("open", 1, 0.5)
    opened = [event.to_dict() for event in rt.events() if event.event_type == "CircuitOpened"]
    assert [(event["failure_rate"], event["window_calls"]) for event in opened] == [(0.5, 4)]
    assert (await rt.call("search")).fault.rule == "circuit_open"  # type: ignore[union-attr]
    await asyncio.sleep(30)
    assert (await rt.call("search")).status == "succeeded"
    health = rt.health("search")
    assert (health.state, health.failure_rate) == ("closed", None)


@virtual
async def test_guarded_functions_turns_and_blocking_calls_record_their_results() -> None:
    rt = Runtime()
    search = flaky(rt, "ok")
    await search()
    async with rt.turn() as turn:
        turn.call("search")
    await rt.call("search")
    assert rt.health("search").failure_rate == 0.0
    assert rt._engine.toolbox.tools["search"].health.state.recent == "+++"


def test_results_of_many_os_threads_are_all_recorded() -> None:
    rt = Runtime()

    @rt.tool(timeout=None, breaker={"window": 1000})
    def look() -> int:
        return 1

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(look) for _ in range(200)))

    asyncio.run(main())
    assert len(rt._engine.toolbox.tools["look"].health.state.recent) == 200


@virtual
async def test_permanent_errors_are_not_in_the_window() -> None:
    rt = Runtime()
    flaky(rt, INVALID)
    for _ in range(9):
        await rt.call("search")
    assert (rt.health("search").state, rt.health("search").failure_rate) == ("closed", None)


@virtual
async def test_a_fallback_may_have_a_window_of_its_own() -> None:
    rt = Runtime()
    spare = Fallback(tool="search", cooldown=BreakerOptions(window=10, min_calls=4))
    rt.add(Scripted(DOWN), id="main", retry=ONCE, fallbacks=[spare], breaker={"failure_threshold": 99})
    flaky(rt, "ok", DOWN, "ok", DOWN, breaker={})
    for _ in range(4):
        await rt.call("main")
    assert rt.health("search", fallback_of="main").state == "open"
    assert rt.health("search").state == "closed"


@virtual
async def test_the_window_survives_a_restart() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    flaky(rt, "ok", "ok", DOWN)
    for _ in range(3):
        await rt.call("search")
    assert await rt.flush()
    found = store.breakers.load("search")
    assert found is not None
    assert found[0].state.recent == "++-"
    again = Runtime(store=store)
    flaky(again, DOWN)
    assert again.health("search").failure_rate == 1 / 3
    await again.call("search")
    assert again.health("search").state == "open"


@virtual
async def test_successes_are_written_to_the_store_in_groups() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    flaky(rt, DOWN, "ok", breaker={"window": 40})
    written: list[int] = []
    swap = store.breakers.swap
    store.breakers.swap = lambda *args, **more: written.append(1) or swap(*args, **more)  # type: ignore[method-assign]
    for _ in range(30):
        await rt.call("search")
        assert await rt.flush()
    assert len(written) < 8


def test_a_smaller_window_keeps_the_latest_results() -> None:
    async def main() -> None:
        store = MemoryStore()
        rt = Runtime(store=store)
        flaky(rt, "ok", "ok", "ok", DOWN, breaker={"window": 9, "min_calls": 9})
        for _ in range(4):
            await rt.call("search")
        assert await rt.flush()
        smaller = Runtime(store=store)
        flaky(smaller, "ok", breaker={"window": 2})
        assert smaller._engine.toolbox.tools["search"].health.state.recent == "+-"
        none = Runtime(store=store)
        flaky(none, "ok", breaker={})
        assert none._engine.toolbox.tools["search"].health.state.recent == ""

    asyncio.run(main())


def test_a_manifest_may_have_a_window() -> None:
    rt = Runtime(
        {"defaults": {"breaker": {"window": 20}}, "tools": {"search": {"breaker": {"window": 8, "failure_rate": 0.25}}}}
    )
    rt.add(Scripted("ok"), id="search")
    rt.add(Scripted("ok"), id="other")
    breaker = rt.tools["search"].options.breaker
    assert (breaker.window, breaker.opening_rate, breaker.needed_calls) == (8, 0.25, 8)
    assert rt.tools["other"].options.breaker.window == 20
    with pytest.raises(ManifestError, match="failure_rate"):
        Runtime({"tools": {"search": {"breaker": {"window": 5, "failure_rate": 2}}}})
    with pytest.raises(ManifestError, match="needs a window"):
        Runtime({"tools": {"search": {"breaker": {"failure_rate": 0.2}}}})
