"""Threads, event loops, forks and the end of a runtime (T24, DESIGN 2)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import coroutine
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, RESET, Scripted, Takes, real, records, virtual
from tests.runtime.execution.processes import fake_tools
from tests.soak.leaks import settle

from failsoft import FailsoftError, ManifestError, Runtime


@coroutine
def other_loops_checkpoint() -> Iterator[None]:
    """Suspend in a way that asyncio does not know, as trio's coroutines do."""
    yield


@pytest.mark.parametrize("way", ["guarded", "call", "def", "failing", "careful", "turn"])
def test_other_event_loops_than_asyncios_are_refused(way: str) -> None:
    rt = Runtime()

    async def search() -> None:
        await other_loops_checkpoint()
        if way == "failing":
            raise ConnectionError("reset")

    async def turn() -> None:
        async with rt.turn():
            pass

    guarded = rt.add(search, idempotent=False if way == "careful" else None)
    rt.add(lambda: None, id="here")
    calls = {"call": lambda: rt.call("search"), "def": lambda: rt.call("here"), "turn": turn}
    with pytest.raises(FailsoftError, match="no asyncio event loop is running here: .* not on trio"):
        calls.get(way, guarded)().send(None)


@virtual
async def test_call_sync_is_refused_where_it_would_block_a_loop() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="search")
    with pytest.raises(FailsoftError, match=r"use `await rt\.call\(\.\.\.\)` here"):
        rt.call_sync("search")


def test_call_sync_serves_tools_of_every_kind() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, "async"), id="a")
    rt.add(lambda: "thread", id="b")
    rt.add(lambda: "inline", id="c", timeout=None)
    assert [rt.call_sync(tool).value for tool in "abc"] == ["async", "thread", "inline"]
    unknown = rt.call_sync("d")
    assert unknown.fault is not None
    assert unknown.fault.category == "tool_unavailable"


def test_a_threads_event_loop_is_closed_with_the_thread() -> None:
    rt = Runtime()
    loops: list[asyncio.AbstractEventLoop] = []

    @rt.tool
    async def search() -> None:
        loops.append(asyncio.get_running_loop())

    def twice() -> None:
        rt.call_sync("search")
        rt.call_sync("search")

    thread = threading.Thread(target=twice)
    thread.start()
    thread.join()
    assert loops[0] is loops[1]
    assert loops[0].is_closed()
    assert thread.ident not in {one.ident for one in threading.enumerate()}  # nor is a dummy left in its place


@virtual
async def test_closing_twice_is_harmless_and_later_calls_raise() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted("x"), id="search")
    inline = rt.add(lambda: "x", id="inline", timeout=None)
    await rt.call("search")
    await rt.close()
    await rt.close()
    with pytest.raises(FailsoftError, match="has been closed"):
        await rt.call("search")
    with pytest.raises(FailsoftError, match="has been closed"):
        await rt.call("search", id="mine")
    with pytest.raises(FailsoftError, match="has been closed"):
        await guarded()
    with pytest.raises(FailsoftError, match="has been closed"):
        inline()
    with pytest.raises(FailsoftError, match="has been closed"):
        rt.turn()
    with pytest.raises(FailsoftError, match="has been closed"):
        await asyncio.to_thread(rt.call_sync, "inline")


@virtual
async def test_a_closed_runtime_takes_no_more_tools() -> None:
    rt = Runtime()
    await rt.close()

    async def run(_: object) -> str:
        return "x"

    with pytest.raises(FailsoftError, match="has been closed"):
        rt.add(Scripted("x"), id="search")
    with pytest.raises(FailsoftError, match="has been closed"):
        await rt.run("theirs", {}, {"theirs": run})


@virtual
async def test_closing_does_not_swallow_the_cancellation_of_a_call_in_flight() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(Takes(100)), id="slow", timeout="200s")
    tasks = [asyncio.create_task(guarded()), asyncio.create_task(rt.call("slow"))]
    await asyncio.sleep(1)
    await rt.close()
    for task in tasks:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("kind", ["process", "command"])
@real
async def test_calls_that_wait_for_a_process_are_answered_when_the_runtime_is_closed(kind: str) -> None:
    command = {"entrypoint": {"command": ["sleep", "30"]}, "concurrency": 1}
    rt = Runtime({"tools": {"command": command}})
    rt.add(fake_tools.pause, id="process", isolation="process", concurrency=1)
    args = {"seconds": 30}
    calls = [asyncio.create_task(rt.call(kind, args)) for _ in range(2)]
    async with rt.turn() as turn:
        turn.call(kind, args)
        workers = rt._engine.places.workers
        await asyncio.to_thread(settle, lambda: any(one.ready for one in (*workers._workers, *workers._commands)), 20)
        await rt.close()
    for outcome in [*(await asyncio.gather(*calls)), *turn.report.outcomes.values()]:
        assert outcome.fault is not None
        assert outcome.fault.code == "CANCELLED"


@virtual
async def test_close_cancels_abandoned_calls() -> None:
    slow = Scripted(Takes(100))
    async with Runtime() as rt:
        rt.add(slow, id="slow", timeout="200s")
        async with rt.turn(timeout="5s") as turn:
            turn.call("slow")
        assert slow.ended == []
    assert slow.ended[0] - slow.started[0] == pytest.approx(5)
    assert [record["call_id"] for record in records(rt, "CallCancelled")] == ["slow-1"]


@virtual
async def test_close_can_wait_for_abandoned_calls() -> None:
    slow = Scripted(Takes(10, "late"))
    rt = Runtime()
    rt.add(slow, id="slow")
    async with rt.turn(timeout="5s") as turn:
        turn.call("slow")
    await rt.close(grace="60s")
    assert slow.ended[0] - slow.started[0] == pytest.approx(10)
    assert len(records(rt, "LateResult")) == 1


@virtual
async def test_close_does_not_wait_without_a_grace_period() -> None:
    for rt, grace in ((Runtime(policies=None), 0), (Runtime(policies=[]), "0s")):
        slow = Scripted(Takes(10, "late"))
        rt.add(slow, id="slow")
        async with rt.turn(timeout="5s") as turn:
            turn.call("slow")
        await rt.close(grace=grace)
        assert slow.ended[0] - slow.started[0] == pytest.approx(5)
    with pytest.raises(ManifestError, match='close: grace: 5 has no unit: write "5s"'):
        await rt.close(grace=5)  # type: ignore[arg-type]


def test_one_runtime_serves_several_threads_and_loops() -> None:
    rt = Runtime()

    async def search(number: int) -> int:
        await asyncio.sleep(0.001)
        if number % 10 == 0:
            raise ValueError("bad number")
        return number

    guarded = rt.add(search, timeout="5s")
    rt.add(lambda number: number, id="blocking", timeout=None)
    problems: list[BaseException] = []

    def one_loop() -> None:
        async def main() -> None:
            outcomes = await asyncio.gather(*(rt.call("search", {"number": n}) for n in range(100)))
            assert [outcome.value for outcome in outcomes] == [n if n % 10 else None for n in range(100)]
            assert await guarded(7) == 7

        try:
            for _ in range(3):
                asyncio.run(main())
        except BaseException as error:
            problems.append(error)

    def no_loop() -> None:
        try:
            for number in range(300):
                assert rt.call_sync("blocking", {"number": number}).value == number
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=target) for target in (one_loop, one_loop, one_loop, no_loop, no_loop)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert rt.metrics("search")["success_count"] == 3 * 3 * 91
    assert rt.metrics("search")["permanent_error_count"] == 3 * 3 * 10
    assert rt.metrics("blocking")["success_count"] == 600
    numbers = [record["seq"] for record in records(rt)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_deadlines_belong_to_the_loop_that_set_them() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60)), id="slow", timeout="50ms", retry=ONCE, breaker={"failure_threshold": 1000})

    async def main() -> None:
        outcomes = await asyncio.gather(*(rt.call("slow") for _ in range(5)))
        assert {outcome.fault.code for outcome in outcomes if outcome.fault} == {"DEADLINE_EXCEEDED"}

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)]
    for thread in threads:
        thread.start()
    asyncio.run(main())
    for thread in threads:
        thread.join()
    assert rt.metrics("slow")["timeout_count"] == 20


@real
async def test_a_breaker_is_shared_by_all_loops() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 3})
    for _ in range(3):
        await asyncio.to_thread(lambda: asyncio.run(rt.call("search")))  # type: ignore[arg-type]
    assert rt.health("search").state == "open"
    assert (await rt.call("search")).attempts == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_works_although_locks_were_held() -> None:
    rt = Runtime()
    rt.add(lambda: "thread", id="thread")
    rt.add(Scripted(RESET, "async"), id="async")
    events: list[Any] = []
    rt.subscribe(events.append)
    assert rt.call_sync("thread").value == "thread"
    engine = rt._engine
    with engine.toolbox.lock, engine.log.trace._lock, engine.places.thread_pool._lock, engine.places._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - in the child
            values = [rt.call_sync("thread").value, rt.call_sync("async").value, rt.health("async").state]
            os._exit(0 if values == ["thread", "async", "closed"] else 1)
    deadline = time.monotonic() + 10
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


PROGRAM = """
import asyncio
import threading
import time

from failsoft import Runtime

rt = Runtime()


@rt.tool(timeout="2s")
async def fetch():
    return await asyncio.to_thread(str, "fetched")  # as asking for an address does


@rt.tool(timeout="50ms", retry={"max_attempts": 1})
async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


def stay():
    rt.call_sync("fetch")
    ready.set()
    time.sleep(60)


ready = threading.Event()
"""


@pytest.mark.parametrize(
    "body",
    [
        'rt.call_sync("fetch")',
        'rt.call_sync("stubborn")',
        "threading.Thread(target=stay, daemon=True).start(); ready.wait()",
        'thread = threading.Thread(target=rt.call_sync, args=["stubborn"]); thread.start(); thread.join()',
    ],
    ids=["its loop has threads", "a tool goes on", "a thread goes on", "a tool goes on in a thread"],
)
def test_a_program_that_blocks_on_async_tools_comes_to_its_end(body: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM + body], check=True, timeout=20)
