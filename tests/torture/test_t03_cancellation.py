"""T3: a caller's cancellation counted as a failure, or as a success. Here it is no verdict on the tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import Runtime, ToolTimeout

CANCELS = 10_000
TOGETHER = 500


@pytest.mark.parametrize("failures", [0, 1])
@virtual
async def test_t03_10000_cancels_change_nothing(failures: int) -> None:
    rt = Runtime()
    steps: list[Any] = [DOWN] * failures
    guarded = rt.add(Scripted(*steps, Takes(20)), id="search", retry=ONCE, breaker={"failure_threshold": 2})
    for _ in range(failures):
        await rt.call("search")
    ways: list[Callable[[], Awaitable[Any]]] = [guarded, lambda: rt.call("search")]
    for number in range(CANCELS // 2 // TOGETHER):  # half of them with, half without a failure before
        tasks = [asyncio.ensure_future(ways[number % 2]()) for _ in range(TOGETHER)]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in ended)
        assert (rt.health("search").state, rt.health("search").failure_count) == ("closed", failures)
    figures = rt.metrics("search")
    assert (figures["error_count"], figures["success_count"]) == (failures, 0)
    assert figures["cancelled_count"] == CANCELS // 2


@virtual
async def test_t03_no_cancellation_is_pending_after_a_timeout() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(Takes(20)), id="search", timeout="1s", retry={"max_attempts": 3})
    task = asyncio.current_task()
    assert task is not None
    for _ in range(100):
        with pytest.raises(ToolTimeout):
            await guarded()
        assert task.cancelling() == 0
        await asyncio.sleep(60)


@virtual
async def test_t03_a_cancel_in_the_moment_of_the_timeout_is_the_callers() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(Takes(20)), id="search", timeout="1s", retry=ONCE, breaker={"failure_threshold": 1})
    loop = asyncio.get_running_loop()
    for _ in range(100):
        task = asyncio.ensure_future(guarded())
        loop.call_later(1.0, task.cancel)
        await asyncio.wait([task])
        assert task.cancelled()
    assert rt.health("search").failure_count == 0
