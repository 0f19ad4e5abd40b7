"""Tools with a rate: who waits, who is refused, and what is seen of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, virtual

from failsoft import Runtime
from failsoft.core.resilience.rate_limit import MOST_BUCKETS


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual
async def test_calls_wait_for_their_turn_in_the_order_in_which_they_asked() -> None:
    rt, ended = Runtime(), []
    rt.add(Scripted("ok"), id="search", rate="2/1s")
    start = now()

    async def call(number: int) -> None:
        assert (await rt.call("search")).status == "succeeded"
        ended.append((number, round(now() - start, 3)))

    await asyncio.gather(*(call(number) for number in range(5)))
    assert ended == [(0, 0.0), (1, 0.0), (2, 0.5), (3, 1.0), (4, 1.5)]


@virtual
async def test_a_call_whose_turn_comes_too_late_is_refused_and_takes_no_place() -> None:
    rt, search = Runtime(), Scripted("ok")
    rt.add(search, id="search", rate="1/10s", breaker={"failure_threshold": 1})
    await rt.call("search")
    for _ in range(3):
        async with rt.turn(timeout="5s") as turn:
            outcome = await turn.call("search")
        assert outcome.fault is not None
        assert (outcome.fault.rule, outcome.fault.code, outcome.fault.effect) == (
            "rate_limit",
            "RESOURCE_EXHAUSTED",
            "none",
        )
        assert (outcome.attempts, outcome.escalated, turn.report.duration) == (0, False, 0.0)
        assert outcome.fault.retry_after == pytest.approx(10.0)
        assert "10 seconds" in outcome.explanation.model
    assert rt.health("search").state == "closed"
    start = now()
    await rt.call("search")
    assert now() - start == pytest.approx(10.0)


@virtual
async def test_a_call_that_is_cancelled_gives_its_place_back() -> None:
    rt = Runtime()
    rt.add(Scripted("ok"), id="search", rate="1/10s")
    await rt.call("search")
    start = now()
    waiting = asyncio.create_task(rt.call("search"))
    await asyncio.sleep(1)
    assert [call.waits_for for call in rt.running()] == ["rate limit"]
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    await rt.call("search")
    assert now() - start == pytest.approx(10.0)


@virtual
async def test_retries_take_tokens_too() -> None:
    rt, search = Runtime(), Scripted(DOWN, DOWN, "ok")
    rt.add(search, id="search", rate="1/1s", read_only=True, retry={"max_total_time": "1m", "jitter_percent": 0})
    assert (await rt.call("search")).attempts == 3
    assert search.delays == pytest.approx([1.0, 1.0])


@virtual
async def test_a_fallback_uses_its_own_rate() -> None:
    rt, spare = Runtime(), Scripted("spare")
    rt.add(
        Scripted(DOWN), id="main", retry=ONCE, fallbacks=["spare"], read_only=True, breaker={"failure_threshold": 99}
    )
    rt.add(spare, id="spare", rate="1/5s", read_only=True)
    start = now()
    outcomes = [await rt.call("main") for _ in range(2)]
    assert [one.via for one in outcomes] == ["spare", "spare"]
    assert now() - start == pytest.approx(5.0)


@virtual
async def test_a_fallback_replaces_a_tool_whose_turn_comes_too_late() -> None:
    rt = Runtime()
    rt.add(Scripted("main"), id="main", rate="1/1m", fallbacks=["spare"], read_only=True)
    rt.add(Scripted("spare"), id="spare", read_only=True)
    async with rt.turn(timeout="5s") as turn:
        assert [(await turn.call("main")).value for _ in range(2)] == ["main", "spare"]


@virtual
async def test_each_tenant_has_a_bucket_and_their_number_is_bounded() -> None:
    rt = Runtime()
    rt.add(Scripted("ok"), id="search", rate="1/1m")
    start = now()
    for number in range(MOST_BUCKETS + 50):
        assert (await rt.call("search", tenant=f"t{number}")).status == "succeeded"
    assert now() == start
    buckets = rt._engine.toolbox.tools["search"].rate_buckets
    assert buckets is not None
    assert len(buckets._buckets) <= MOST_BUCKETS


@virtual
async def test_calls_that_are_cancelled_while_they_wait_leave_no_gap_in_which_two_others_run_at_once() -> None:
    rt, starts = Runtime(), []

    @rt.tool(rate="1/1s", read_only=True)
    async def search() -> None:
        starts.append(now())

    waiting = [asyncio.ensure_future(rt.call("search")) for _ in range(4)]
    await asyncio.sleep(0.5)
    waiting[1].cancel()
    waiting += [asyncio.ensure_future(rt.call("search")) for _ in range(2)]
    await asyncio.gather(*waiting, return_exceptions=True)
    assert [round(at - starts[0], 3) for at in starts] == [0, 1, 2, 3, 4]


@virtual
async def test_the_wait_is_in_the_trace_and_the_waterfall() -> None:
    rt = Runtime()
    rt.add(Scripted("ok"), id="search", rate="1/5s")
    async with rt.turn() as turn:
        turn.call("search")
        turn.call("search")
    held = [event.to_dict() for event in rt.events() if event.event_type == "CallHeld"]
    assert [(event["rule"], event["delay_ms"]) for event in held] == [("rate_limit", 5000.0)]
    segments = turn.report.waterfall().rows[1].segments
    assert next((one.kind, one.end - one.start) for one in segments) == ("held", 5.0)


@virtual
async def test_an_open_circuit_takes_no_tokens() -> None:
    rt, search = Runtime(), Scripted(DOWN, "ok")
    rt.add(search, id="search", rate="2/1m", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10s"})
    await rt.call("search")
    for _ in range(5):
        assert (await rt.call("search")).fault.rule == "circuit_open"  # type: ignore[union-attr]
    await asyncio.sleep(10)
    start = now()
    assert (await rt.call("search")).status == "succeeded"
    assert now() == start


def test_blocking_and_awaiting_callers_share_the_rate() -> None:
    rt, times = Runtime(), []

    @rt.tool(rate="1/100ms", timeout=None)
    def search() -> float:
        times.append(time.monotonic())
        return times[-1]

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(search) for _ in range(3)), rt.call("search"), rt.call("search"))

    began = time.monotonic()
    asyncio.run(main())
    assert len(times) == 5
    assert all(at - began >= number * 0.1 - 0.01 for number, at in enumerate(sorted(times)))  # load only delays them


def test_a_refused_inner_call_is_no_failure_of_the_tool_around_it() -> None:
    rt = Runtime()

    @rt.tool(rate="1/1h", read_only=True)
    async def inner() -> str:
        return "inner"

    @rt.tool(read_only=True, breaker={"failure_threshold": 1})
    async def outer() -> Any:
        return await inner()

    async def main() -> None:
        assert (await rt.call("outer")).status == "succeeded"
        assert (await rt.call("outer")).status == "failed"

    asyncio.run(main())
    assert rt.health("outer").state == "closed"
