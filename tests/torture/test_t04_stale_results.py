"""T4: a stale success closed the circuit, stale failures kept it open. Here a call reports to its own generation only."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import Runtime

STALE = 50


def make(*steps: object) -> Runtime:
    rt = Runtime()
    rt.add(
        Scripted(*steps), id="search", timeout="5m", retry=ONCE, breaker={"failure_threshold": 3, "timeout": "30s"}
    )  # fmt: skip
    return rt


async def admitted_before_the_trip(rt: Runtime) -> list[asyncio.Future[object]]:
    """Calls that are under way when the circuit opens, at 1 s."""
    early = [asyncio.ensure_future(rt.call("search")) for _ in range(STALE)]
    await asyncio.sleep(1)
    for _ in range(3):
        await rt.call("search")
    assert rt.health("search").state == "open"
    return early


@pytest.mark.parametrize("late", [Takes(11, "flights"), Takes(11, DOWN)], ids=["successes", "failures"])
@virtual
async def test_t04_calls_admitted_before_the_trip_do_not_change_an_open_circuit(late: Takes) -> None:
    rt = make(*[late] * STALE, DOWN)
    await asyncio.gather(*await admitted_before_the_trip(rt))  # they end at 11 s
    health = rt.health("search")
    assert (health.state, health.retry_after) == ("open", pytest.approx(20))
    await asyncio.sleep(20)
    assert rt.health("search").state == "half_open"


@pytest.mark.parametrize("late", [Takes(60, "flights"), Takes(60, DOWN)], ids=["successes", "failures"])
@virtual
async def test_t04_calls_admitted_before_the_trip_do_not_change_a_recovered_circuit(late: Takes) -> None:
    rt = make(*[late] * STALE, DOWN, DOWN, DOWN, "probe", DOWN, DOWN)
    early = await admitted_before_the_trip(rt)
    await asyncio.sleep(30)
    assert (await rt.call("search")).value == "probe"
    for _ in range(2):
        await rt.call("search")
    await asyncio.gather(*early)  # they end at 60 s
    health = rt.health("search")
    assert (health.state, health.failure_count) == ("closed", 2)  # one failure short of the threshold, as before
