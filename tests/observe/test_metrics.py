"""Metrics per tool: how each outcome is counted."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import DOWN, INVALID, ONCE, RESET, Scripted, Takes, virtual

from failsoft import Runtime


@virtual
async def test_a_tool_that_was_never_called_has_zeros() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="search")
    figures = rt.metrics("search")
    assert (figures["retry_success_rate"], figures["recovery_seconds"]) == (None, None)
    assert {value for value in figures.values() if value is not None} == {0}
    assert rt.metrics("nowhere").keys() == figures.keys()


@virtual
async def test_retries_and_the_time_until_recovery() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, RESET, "fine", RESET, "fine"), id="search")
    await rt.call("search")
    await rt.call("search")
    figures = rt.metrics("search")
    assert (figures["error_count"], figures["transient_error_count"], figures["retry_count"]) == (3, 3, 3)
    assert figures["retry_success_rate"] == pytest.approx(200 / 3)
    assert figures["recovery_seconds"] == pytest.approx((0.3 + 0.1) / 2, rel=0.1)
    assert figures["success_count"] == 2


@virtual
async def test_refusals_skips_and_cancellations_are_no_errors() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1})
    rt.add(Scripted(Takes(100)), id="slow")
    for _ in range(4):
        await rt.call("search")
    task = asyncio.create_task(rt.call("slow"))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with rt.turn() as turn:
        turn.call("slow", {"after": turn.call("search")})
    search, slow = rt.metrics("search"), rt.metrics("slow")
    assert (search["error_count"], search["refused_count"], search["circuit_breaker_opens"]) == (1, 4, 1)
    assert (slow["error_count"], slow["cancelled_count"], slow["skipped_count"]) == (0, 1, 1)


@virtual
async def test_alternatives_count_for_the_tool_that_needed_one() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search", fallbacks=["backup"])
    rt.add(Scripted("spare"), id="backup")
    for _ in range(2):
        await rt.call("search")
    assert rt.metrics("search")["fallback_count"] == 2
    assert rt.metrics("search")["permanent_error_count"] == 2
    assert (rt.metrics("backup")["success_count"], rt.metrics("backup")["fallback_count"]) == (2, 0)
