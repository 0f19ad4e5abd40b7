"""T10: a batch ran one call after the other once retries or the breaker were on. Here independent calls run abreast."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import OFTEN, RESET, Scripted, Takes, virtual

from failsoft import Runtime

CALLS = 20
STEADY = {"max_attempts": 3, "jitter_percent": 0}


@virtual
async def test_t10_a_turn_takes_as_long_as_its_longest_call() -> None:
    rt = Runtime()
    for number in range(CALLS):
        rt.add(Scripted(Takes(1, RESET), Takes(1, number)), id=f"tool{number}", retry=STEADY)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn() as turn:
        for number in range(CALLS):
            turn.call(f"tool{number}")
    assert [*turn.report.results.values()] == [*range(CALLS)]
    assert loop.time() - began == pytest.approx(2.1)  # an attempt, a pause, an attempt


@virtual
async def test_t10_calls_of_one_tool_with_its_own_limits_run_abreast() -> None:
    rt = Runtime()

    async def search(number: int) -> int:
        await asyncio.sleep(1)
        return number

    rt.add(search, timeout="5s", retry=STEADY, breaker=OFTEN, fallbacks=["other"], read_only=True)
    rt.add(search, id="other")
    loop = asyncio.get_running_loop()
    began = loop.time()
    plan: dict[str, Any] = {"calls": [{"tool": "search", "args": {"number": number}} for number in range(CALLS)]}
    report = await rt.run_plan(plan)
    assert [*report.results.values()] == [*range(CALLS)]
    await asyncio.gather(*(rt.call("search", {"number": number}) for number in range(CALLS)))
    assert loop.time() - began == pytest.approx(2)
