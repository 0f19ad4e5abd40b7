"""Calls in flight: ``rt.running()`` and ``CallRunning``."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.runtime.call.running import Watch
from failsoft.testing import virtual_time


def events_of(rt: Runtime) -> list[Any]:
    return [event for event in rt.events() if event.event_type == "CallRunning"]


async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@pytest.mark.parametrize("timeout", ["30s", None])
@pytest.mark.parametrize("how", ["call", "call with id", "guarded", "turn", "turn body", "slots"])
def test_a_call_that_takes_long_is_listed_and_reported_once(how: str, timeout: str | None) -> None:
    async def main(rt: Runtime, guarded: Any) -> None:
        async def work() -> None:
            if how.startswith("call"):
                await rt.call("slow", {"seconds": 5.0}, **({"id": "mine"} if how == "call with id" else {}))
            elif how == "turn":
                async with rt.turn(id="t1", thread="c1") as turn:
                    turn.call("slow", {"seconds": 5.0})
            elif how == "turn body":
                async with rt.turn(id="t1"):
                    await guarded(5.0)
            else:
                await guarded(5.0)

        task = asyncio.create_task(work())
        await asyncio.sleep(0.5)
        assert not events_of(rt)
        await asyncio.sleep(2.5)
        (running,) = rt.running()
        assert running.tool == "slow"
        assert running.seconds == pytest.approx(3.0, abs=0.1)
        assert running.attempt == 1
        assert running.waits_for == "tool"
        assert running.turn_id == ("t1" if how.startswith("turn") else None)
        if how == "call with id":
            assert running.call_id == "mine"
        if how == "turn":
            assert (running.call_id, running.thread) == ("slow-1", "c1")
        await task
        assert rt.running() == []
        (event,) = events_of(rt)
        assert event.fields["duration_ms"] == pytest.approx(1000, abs=50)
        assert event.call_id == running.call_id
        await rt.close()

    with virtual_time() as clock:
        rt = Runtime()
        extra: dict[str, Any] = {"concurrency": 1} if how == "slots" else {}
        guarded = rt.add(slow, read_only=True, timeout=timeout, **extra)
        clock.run(main(rt, guarded))


def hang(seconds: float) -> str:
    time.sleep(seconds)
    return "done"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("isolation", "blocking", "reported"),
    [("thread", False, True), ("thread", True, True), ("process", False, True), ("process", True, False)],
)
def test_blocking_tools_and_worker_processes_are_listed(isolation: str, *, blocking: bool, reported: bool) -> None:
    rt = Runtime()
    rt.add(hang, read_only=True, isolation=isolation)
    seen: list[Any] = []

    def look() -> None:
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline and not (seen and (events_of(rt) or not reported)):
            time.sleep(0.05)
            seen[:] = rt.running()

    async def main() -> Any:
        return await rt.call("hang", {"seconds": 3.0})

    looking = threading.Thread(target=look)
    looking.start()
    outcome = rt.call_sync("hang", {"seconds": 3.0}) if blocking else asyncio.run(main())
    looking.join()
    assert outcome.value == "done"
    assert [call.tool for call in seen] == ["hang"]
    assert len(events_of(rt)) == reported
    assert rt.running() == []


def test_a_call_between_two_attempts_waits_for_the_next_one() -> None:
    async def fails() -> None:
        raise ConnectionError("503 Service Unavailable")

    async def main(rt: Runtime) -> None:
        task = asyncio.create_task(rt.call("fails"))
        await asyncio.sleep(3.0)
        (running,) = rt.running()
        assert (running.attempt, running.waits_for) == (2, "next attempt")
        await task
        assert len(events_of(rt)) == 1

    with virtual_time() as clock:
        rt = Runtime()
        retry = {"initial_delay": "10s", "max_delay": "10s", "max_total_time": "60s", "max_attempts": 2}
        rt.add(fails, read_only=True, retry=retry)
        clock.run(main(rt))


def test_the_report_of_an_inner_call_names_the_call_around_it() -> None:
    with virtual_time() as clock:
        rt = Runtime()

        @rt.tool(read_only=True)
        async def inner() -> None:
            await asyncio.sleep(2)

        @rt.tool(read_only=True)
        async def outer() -> None:
            await inner()

        clock.run(outer())
        parents = {
            (event.event_type, event.tool_id): event.fields.get("parent_id")
            for event in rt.events()
            if event.tool_id == "inner"
        }
    assert parents[("CallRunning", "inner")] == parents[("CallSucceeded", "inner")] == "outer-1"


def test_short_calls_leave_no_event_and_later_calls_are_still_watched() -> None:
    async def main(rt: Runtime) -> None:
        for _ in range(20):
            await rt.call("slow", {"seconds": 0.3})
        assert not events_of(rt)
        await rt.call("slow", {"seconds": 2.0})
        assert len(events_of(rt)) == 1
        await asyncio.sleep(100)
        await asyncio.gather(*(rt.call("slow", {"seconds": 2.0}) for _ in range(3)))
        assert len(events_of(rt)) == 4

    with virtual_time() as clock:
        rt = Runtime()
        rt.add(slow, read_only=True)
        clock.run(main(rt))


def test_an_interrupt_that_loses_the_timer_keeps_no_later_call_from_being_reported() -> None:
    def interrupt(frame: FrameType, _event: str, _arg: Any) -> None:
        handle = frame.f_locals.get("self")
        if isinstance(handle, asyncio.TimerHandle) and frame.f_code.co_name == "_run":
            callback: Any = handle._callback  # type: ignore[attr-defined]
            if getattr(callback, "__func__", None) is Watch._look:
                raise KeyboardInterrupt

    with virtual_time():
        rt = Runtime(memory="off")
        rt.add(slow, timeout="30s")
        sys.settrace(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                rt.call_sync("slow", {"seconds": 5.0})
        finally:
            sys.settrace(None)
        assert rt.call_sync("slow", {"seconds": 5.0}).value == "done"
        assert [event.call_id for event in events_of(rt)] == ["slow-2"]


def test_looking_at_young_calls_leaves_no_frame_objects_behind() -> None:
    async def main(rt: Runtime, guarded: Any) -> None:
        calls = [asyncio.create_task(guarded(0.5)) for _ in range(50)]
        await asyncio.sleep(0.1)
        (deadlines,) = rt._engine.places.loops()
        assert isinstance(deadlines.watch, Watch)
        deadlines.watch.timer = None
        deadlines.watch._look()
        kept = gc.get_referents(*deadlines.queue(30.0).live)
        assert len(kept) >= 50
        assert FrameType not in {*map(type, kept)}
        await asyncio.gather(*calls)

    with virtual_time():
        rt = Runtime(memory="off")
        asyncio.run(main(rt, rt.tool(slow, timeout="30s", read_only=True)))
