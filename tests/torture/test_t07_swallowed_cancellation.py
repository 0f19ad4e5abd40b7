"""T7: a tool that swallows its cancellation was waited for, then called a success. Here it is neither."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.fakes import OFTEN, ONCE, virtual

from failsoft import CallFailed, Runtime

CALLS = 100


@virtual
async def test_t07_a_caller_is_answered_at_the_deadline_and_the_attempt_is_counted_as_abandoned() -> None:
    rt = Runtime()
    loop = asyncio.get_running_loop()
    ended: list[float] = []

    async def stubborn() -> str:
        for _ in range(5):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(20)
        ended.append(loop.time())
        return "too late"

    guarded = rt.add(stubborn, timeout="2s", retry=ONCE, breaker=OFTEN)

    async def by_function() -> float:
        began = loop.time()
        with pytest.raises(CallFailed, match="Tool timeout after 2s"):
            await guarded()
        return loop.time() - began

    async def by_name() -> float:
        began = loop.time()
        outcome = await rt.call("stubborn")
        assert (outcome.status, outcome.value, outcome.fault and outcome.fault.code) == (
            "failed", None, "DEADLINE_EXCEEDED",
        )  # fmt: skip
        return loop.time() - began

    lasted = await asyncio.gather(*(way() for way in (by_function, by_name) for _ in range(CALLS // 2)))
    assert lasted == pytest.approx([2.0] * CALLS)
    assert ended == []
    assert rt.metrics("stubborn")["orphaned_count"] == CALLS
    await asyncio.sleep(200)
    assert len(ended) == CALLS  # each continued by itself, and no caller received a success
    figures = rt.metrics("stubborn")
    assert (figures["success_count"], figures["timeout_count"]) == (0, CALLS)
