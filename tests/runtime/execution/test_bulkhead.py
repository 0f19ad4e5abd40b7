"""A limit on how many attempts of a tool run at a time, with a bounded queue (R14)."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, real, virtual

from failsoft import Runtime
from failsoft.runtime.execution.bulkhead import Bulkhead


class Busy:
    """A tool that counts how many run at a time."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.now = self.most = self.runs = 0
        self.seconds = seconds

    async def __call__(self) -> int:
        self.now += 1
        self.runs += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        return self.most


@virtual
async def test_no_more_than_the_limit_run_at_a_time() -> None:
    rt = Runtime()
    busy = Busy()
    guarded = rt.add(busy, id="busy", concurrency=3)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(guarded() if number % 2 else rt.call("busy") for number in range(12)))
    assert (busy.most, busy.runs) == (3, 12)
    assert loop.time() - began == pytest.approx(4)


@virtual
async def test_the_queue_is_bounded_and_a_full_one_says_so() -> None:
    rt = Runtime()
    busy = Busy()
    rt.add(busy, id="busy", concurrency=1, queue=2, retry=ONCE, breaker={"failure_threshold": 1})
    outcomes = await asyncio.gather(*(rt.call("busy") for _ in range(5)))
    assert [outcome.status for outcome in outcomes] == ["succeeded"] * 3 + ["failed"] * 2
    for outcome in outcomes[3:]:
        assert outcome.fault is not None
        assert (outcome.fault.code, outcome.fault.effect, outcome.attempts) == ("RESOURCE_EXHAUSTED", "none", 0)
    assert rt.health("busy").state == "closed"
    assert busy.runs == 3


@virtual
async def test_queueing_is_not_tool_time() -> None:
    rt = Runtime()
    rt.add(Busy(2.0), id="busy", concurrency=1, timeout="3s", retry=ONCE)
    outcomes = await asyncio.gather(*(rt.call("busy") for _ in range(5)))
    assert {outcome.status for outcome in outcomes} == {"succeeded"}


@virtual
async def test_queueing_is_turn_time() -> None:
    rt = Runtime()
    rt.add(Busy(2.0), id="busy", concurrency=1)
    async with rt.turn(timeout="5s") as turn:
        for _ in range(4):
            turn.call("busy")
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["succeeded"] * 2 + ["timed_out"] * 2


@virtual
async def test_a_slot_is_free_while_a_retry_waits() -> None:
    rt = Runtime()
    tool = Scripted(DOWN, "other", "retried")
    rt.add(tool, id="tool", concurrency=1, retry={"initial_delay": "10s", "max_delay": "10s", "max_total_time": "1m"})
    first = asyncio.create_task(rt.call("tool"))
    await asyncio.sleep(1)
    assert (await rt.call("tool")).value == "other"  # it did not wait ten seconds
    assert (await first).value == "retried"


@virtual
async def test_slots_come_back_whatever_happens() -> None:
    rt = Runtime()
    tool = Scripted(Takes(100), DOWN, Takes(100), "fine")
    rt.add(tool, id="tool", concurrency=1, timeout="5s", retry=ONCE)
    running = asyncio.create_task(rt.call("tool"))
    waiting = asyncio.create_task(rt.call("tool"))
    await asyncio.sleep(1)
    waiting.cancel()  # in the queue
    running.cancel()  # in the tool
    await asyncio.gather(running, waiting, return_exceptions=True)
    assert (await rt.call("tool")).status == "failed"  # an error
    assert (await rt.call("tool")).status == "failed"  # a timeout
    assert (await rt.call("tool")).value == "fine"


@virtual
async def test_a_cancel_in_the_moment_of_the_hand_over_passes_the_slot_on() -> None:
    slots = Bulkhead(1, 10)
    woken: list[str] = []
    holder, first, second = (lambda: None), (lambda: woken.append("first")), (lambda: woken.append("second"))
    assert slots.acquire(holder) == "taken"
    assert slots.acquire(first) == slots.acquire(second) == "queued"
    slots.release(holder)
    assert woken == ["first"]
    slots.release(first)  # it had been woken already: the slot was its own
    assert woken == ["first", "second"]
    slots.release(first)  # it has nothing to give back any more
    assert slots.acquire(holder) == "queued"
    slots.release(second)
    assert slots.acquire(first) == "queued"


def test_blocking_callers_share_the_limit() -> None:
    rt = Runtime()
    lock = threading.Lock()
    counts = {"now": 0, "most": 0}

    def busy() -> None:
        with lock:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        time.sleep(0.01)
        with lock:
            counts["now"] -= 1

    rt.add(busy, concurrency=2)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(rt.call_sync("busy"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {outcome.status for outcome in results} == {"succeeded"}
    assert counts == {"now": 0, "most": 2}


@real
async def test_a_slot_is_not_handed_to_an_event_loop_that_was_closed() -> None:
    rt = Runtime()
    go_on = asyncio.Event()
    forgotten: list[Any] = []

    @rt.tool(concurrency=1)
    async def narrow() -> str:
        await go_on.wait()
        return "ran"

    async def wait_in_line() -> None:
        forgotten.append(asyncio.ensure_future(rt.call("narrow")))
        await asyncio.sleep(0.01)

    def forget() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(wait_in_line())
        loop.close()

    first = asyncio.create_task(rt.call("narrow"))
    await asyncio.sleep(0)
    await asyncio.to_thread(forget)
    second = asyncio.create_task(rt.call("narrow"))
    await asyncio.sleep(0)
    go_on.set()
    assert [(await first).value, (await asyncio.wait_for(second, 5)).value] == ["ran", "ran"]
    forgotten.pop()._log_destroy_pending = False
    gc.collect()  # the end of a caller that was passed over gives nothing back
    slots = rt._engine.toolbox.tools["narrow"].slots
    assert slots is not None
    assert [slots.acquire(lambda: None) for _ in range(2)] == ["taken", "queued"]


@real
async def test_a_forgotten_call_may_end_while_its_thread_looks_at_slots_or_health() -> None:
    rt = Runtime()
    tool = Scripted(Takes(60), DOWN)
    rt.add(tool, id="tool", concurrency=2, retry=ONCE)
    forgotten = asyncio.ensure_future(rt.call("tool"))
    await asyncio.sleep(0)
    engine = rt._engine
    slots = engine.toolbox.tools["tool"].slots
    assert slots is not None
    coro = forgotten.get_coro()

    def collect() -> None:
        with engine.toolbox.lock, slots._lock:  # as the garbage collector would, in the middle of another call
            coro.close()
            ended.set()

    ended = threading.Event()
    threading.Thread(target=collect, daemon=True).start()
    assert await asyncio.to_thread(ended.wait, 5)
    forgotten.cancel()
    assert (await rt.call("tool")).status == "failed"
