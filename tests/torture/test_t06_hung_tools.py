"""T6: a blocking tool ignored its timeout; 300 hung calls left 262 threads. Here callers go at the deadline, tools die."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from pathlib import Path

import pytest
from tests.fakes import OFTEN, ONCE, real
from tests.runtime.execution.processes import fake_tools
from tests.runtime.execution.processes.conftest import descendants, eventually
from tests.torture.scale import times

from failsoft import Runtime
from failsoft.runtime.execution.thread_pool import MOST_ABANDONED, MOST_THREADS

LATE = 0.1
HANGING = (
    fake_tools.sleeps,
    fake_tools.spins,
    fake_tools.ignores_sigterm,
    fake_tools.swallows_everything,
    fake_tools.reads_a_socket,
)
HUNG = times(1_000, 30)
ABREAST = 2


@real
async def test_t06_callers_of_threads_are_answered_at_the_deadline() -> None:
    rt = Runtime()
    over = threading.Event()
    rt.add(lambda: over.wait(20), id="hangs", timeout="200ms", retry=ONCE, breaker=OFTEN)
    late = []
    before = threading.active_count()
    try:
        for _ in range(5):
            began = time.monotonic()
            outcome = await rt.call("hangs")
            late.append(time.monotonic() - began - 0.2)
            assert outcome.fault is not None
            assert outcome.fault.message == "Tool timeout after 200ms"
        began = time.monotonic()
        outcomes = await asyncio.gather(*(rt.call("hangs") for _ in range(300)))
        took = time.monotonic() - began
        threads = threading.active_count() - before
    finally:
        over.set()
    assert statistics.median(late) <= LATE, late  # the median: other programs use this machine too
    assert took < 5
    assert {outcome.fault.code for outcome in outcomes if outcome.fault} == {"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
    assert threads <= MOST_ABANDONED + MOST_THREADS


@pytest.mark.slow
@real
async def test_t06_processes_leave_no_thread_and_no_process(tmp_path: Path) -> None:
    rt = Runtime()
    for tool in HANGING:
        rt.add(tool, timeout="100ms", retry=ONCE, breaker=OFTEN, isolation="process")
    rt.add(fake_tools.echo, isolation="process")
    late: list[float] = []

    async def lane(numbers: range) -> None:
        for number in numbers:
            name = HANGING[number % len(HANGING)].__name__
            outcome = await rt.call(name, {"path": str(tmp_path / f"{number}")})
            assert outcome.fault is not None
            assert outcome.fault.message == "Tool timeout after 100ms"
            (attempt,) = [e.fields for e in rt.events() if e.call_id == outcome.id and e.event_type == "ToolError"]
            late.append(attempt["duration_ms"] / 1000 - 0.1)
            assert attempt["killed"]

    async def settle() -> None:
        await asyncio.gather(*(rt.call("echo", {"value": 1}) for _ in range(ABREAST + 1)))
        await asyncio.sleep(0.3)

    async with rt:
        await settle()
        threads, processes = threading.active_count(), len(descendants())
        await asyncio.gather(*(lane(range(first, HUNG, ABREAST)) for first in range(ABREAST)))
        await settle()
        assert eventually(lambda: len(descendants()) <= processes), descendants()
        assert threading.active_count() <= threads
        assert rt.workers.kills == HUNG
    assert statistics.median(late) <= LATE
    marks = [path.read_text() for path in tmp_path.iterdir()]  # noqa: ASYNC240 - nothing else runs any more
    assert "ended" not in "".join(marks)
