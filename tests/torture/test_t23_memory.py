"""T23: one exception raised 20,000 times grew to 48 MB. Here a million rejections cost ≤ 1 MB, a million keys no more."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.fakes import DOWN, ONCE, RESET
from tests.torture.scale import FULL, times

from failsoft import CircuitOpen, Runtime
from failsoft.core.resilience import recovery_memory as core_memory
from failsoft.runtime.conversation import thread_notes
from failsoft.runtime.execution.deadline import QUEUES

REJECTIONS = times(1_000_000, 200_000)
KEYS = times(1_000_000, 3_000)
WARM = times(150_000, 2_000)  # the allocator's arenas stop growing after about 120,000
MEGABYTE = 1 << 20


def memory() -> int:
    """Bytes of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def grown(use: Callable[[int], Awaitable[None]], count: int, warm: int) -> int:
    """By how much the process has grown over ``count`` uses, after some that may fill what is bounded."""
    for number in range(warm):
        await use(number)
    before = memory()
    for number in range(warm, warm + count):
        await use(number)
    return memory() - before


@pytest.mark.slow
def test_t23_a_million_rejections_cost_a_megabyte() -> None:
    rt = Runtime()

    async def search() -> None:
        raise DOWN

    guarded = rt.add(search, retry=ONCE, breaker={"failure_threshold": 1, "timeout": "1h"})
    raised: set[int] = set()

    async def reject(number: int) -> None:
        try:
            await guarded()
        except CircuitOpen as refused:
            if number % 1000 == 0:
                raised.add(len(str(refused)) + sum(1 for _ in frames(refused)))

    async def main() -> int:
        await rt.call("search")
        return await grown(reject, REJECTIONS, 50_000)

    assert asyncio.run(main()) <= MEGABYTE
    assert len(raised) <= 2  # neither its text nor its traceback grows


def frames(error: BaseException) -> list[object]:
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


@pytest.mark.slow
def test_t23_a_million_keys_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call with a thread, a tenant, an id, a timeout, a text and a tool name that nobody has seen before."""
    monkeypatch.setattr(logging.getLogger("failsoft"), "propagate", False)  # pytest keeps every record
    rt = Runtime()
    if not FULL:  # smaller bounds, so that a few thousand keys reach them
        monkeypatch.setattr(thread_notes, "MOST_THREADS", 500)
        monkeypatch.setattr(core_memory, "FAMILIES", 200)
        rt._engine.log.trace._capacity = 1_000

    async def search(text: str) -> None:
        await asyncio.sleep(0)
        raise type(RESET)(f"Connection reset by {text}")

    rt.add(search, retry=ONCE, breaker={"failure_threshold": 10**9})

    async def use(number: int) -> None:
        text = "".join(chr(97 + int(digit)) for digit in str(number)) * 3
        await rt.call(
            "search", {"text": text}, thread=text, tenant=f"t{number}", id=f"id{number}", timeout=f"{number + 1000}ms"
        )  # fmt: skip
        await rt.call(f"unknown {text}")

    async def main() -> int:
        growth = await grown(use, KEYS, WARM)
        (deadlines,) = rt._engine.places._loops.values()
        assert len(deadlines._queues) <= QUEUES
        return growth

    assert asyncio.run(main()) <= MEGABYTE
