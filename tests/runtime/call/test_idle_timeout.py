"""Tools with an idle timeout: an attempt that makes no progress is ended, one that reports progress goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes import ONCE, records, virtual

import failsoft
from failsoft import Runtime, ToolTimeout
from failsoft.runtime.call.thread_attempt import ThreadAttempt
from failsoft.runtime.execution import clock as clocks
from failsoft.testing import virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


def add(rt: Runtime, *silences: float, **options: Any) -> None:
    """Add a tool that is silent for so long, reports progress, and so on."""

    async def work() -> str:
        for number, silence in enumerate(silences, 1):
            await asyncio.sleep(silence)
            failsoft.progress("page %d of %d", number, len(silences))
        return "done"

    rt.add(work, **{"idle_timeout": "5s", "timeout": "1m", "retry": ONCE, **options})


@virtual
async def test_an_attempt_that_makes_no_progress_is_ended() -> None:
    rt = Runtime()
    add(rt, 30.0, idempotent=False)
    start = now()
    outcome = await rt.call("work")
    fault = outcome.fault
    assert fault is not None
    assert now() - start == pytest.approx(5.0)
    assert (fault.rule, fault.code, fault.message) == ("idle_timeout", "DEADLINE_EXCEEDED", "No progress for 5s")
    assert (fault.classification, fault.category, fault.effect) == ("transient", "tool_transient", "unknown")
    with pytest.raises(ToolTimeout, match="No progress for 5s"):
        outcome.unwrap()


@virtual
async def test_progress_starts_the_idle_timeout_anew() -> None:
    rt = Runtime()
    add(rt, *[4.0] * 10)
    start = now()
    outcome = await rt.call("work")
    assert (outcome.value, now() - start) == ("done", pytest.approx(40.0))


@virtual
async def test_the_timeout_stays_the_cap() -> None:
    rt = Runtime()
    add(rt, *[4.0] * 100)
    start = now()
    outcome = await rt.call("work")
    assert outcome.fault is not None
    assert (outcome.fault.rule, outcome.fault.message) == ("tool_timeout", "Tool timeout after 1m")
    assert now() - start == pytest.approx(60.0)


@virtual
async def test_without_a_timeout_only_silence_ends_an_attempt() -> None:
    rt = Runtime()
    add(rt, *[4.0] * 1000, 6.0, timeout=None)
    start = now()
    outcome = await rt.call("work")
    assert outcome.fault is not None
    assert (outcome.fault.rule, now() - start) == ("idle_timeout", pytest.approx(4005.0))


@virtual
async def test_the_last_message_is_shown_while_the_call_runs_and_to_the_operator() -> None:
    rt = Runtime()
    add(rt, 1.0, 1.0, 30.0)
    running = asyncio.ensure_future(rt.call("work"))
    await asyncio.sleep(0.5)
    assert [call.progress for call in rt.running()] == [""]
    await asyncio.sleep(2)
    assert [call.progress for call in rt.running()] == ["page 2 of 3"]
    outcome = await running
    assert "the last progress was 'page 2 of 3'" in outcome.explanation.operator
    assert "page 2" not in outcome.explanation.model + outcome.explanation.user
    assert rt.running() == []


@virtual
async def test_every_attempt_has_an_idle_timeout_of_its_own_and_the_breaker_counts_each() -> None:
    rt = Runtime()
    add(
        rt,
        1.0,
        30.0,
        read_only=True,
        breaker={"failure_threshold": 3},
        retry={"max_attempts": 3, "initial_delay": "1s", "max_total_time": "5m"},
    )
    outcome = await rt.call("work")
    assert (outcome.attempts, rt.health("work").state) == (3, "open")
    assert [(event["kind"], event["timeout_ms"]) for event in records(rt, "ToolTimeout")] == [("idle", 5000)] * 3


@virtual
async def test_a_write_that_stops_making_progress_is_not_repeated() -> None:
    rt = Runtime()
    add(rt, 1.0, 30.0, idempotent=False, retry={"max_attempts": 3})
    outcome = await rt.call("work")
    assert outcome.fault is not None
    assert (outcome.attempts, outcome.fault.effect) == (1, "unknown")


@virtual
async def test_a_tool_that_cannot_be_cancelled_goes_on_and_its_progress_no_longer_counts() -> None:
    rt, ends = Runtime(), []

    @rt.tool(
        idle_timeout="5s", read_only=True, retry={"max_attempts": 2, "initial_delay": "1s", "max_total_time": "5m"}
    )
    async def stubborn() -> None:
        mine = len(ends)
        ends.append(None)
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            for _ in range(30):
                failsoft.progress("attempt %d", mine)
                await asyncio.sleep(1)
            ends[mine] = now()

    start = now()
    outcome = await rt.call("stubborn")
    assert outcome.fault is not None
    assert (outcome.fault.rule, outcome.attempts) == ("idle_timeout", 2)
    assert 10 < now() - start < 12
    assert "none was reported" in outcome.fault.reason
    await asyncio.sleep(60)
    assert ends[0] == pytest.approx(start + 35)
    assert None not in ends


@virtual
async def test_progress_of_an_inner_call_counts_for_the_calls_around_it() -> None:
    rt = Runtime()
    add(rt, *[4.0] * 5, idle_timeout=None)

    @rt.tool(idle_timeout="5s", timeout="1m", retry=ONCE)
    async def outer() -> Any:
        return (await rt.call("work")).value

    assert (await rt.call("outer")).value == "done"


@virtual
async def test_an_outer_call_ends_an_inner_one_that_is_silent_too_long() -> None:
    rt = Runtime()
    add(rt, 30.0, idle_timeout="20s")

    @rt.tool(idle_timeout="5s", timeout="1m", retry=ONCE)
    async def outer() -> Any:
        return (await rt.call("work")).value

    start = now()
    outcome = await rt.call("outer")
    assert outcome.fault is not None
    assert (outcome.fault.rule, now() - start) == ("idle_timeout", pytest.approx(5.0))


@virtual
async def test_a_caller_that_cancels_is_not_mistaken_for_silence() -> None:
    rt = Runtime()
    add(rt, 30.0)
    task = asyncio.ensure_future(rt.call("work"))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(60)
    assert records(rt, "ToolTimeout") == []


@virtual
async def test_a_tool_that_blocks_the_loop_for_too_long_has_happened() -> None:
    rt = Runtime()

    @rt.tool(idle_timeout="5s", retry=ONCE)
    async def blocks() -> str:
        clocks.current().sleep(6)
        return "too late"

    outcome = await rt.call("blocks")
    assert outcome.fault is not None
    assert (outcome.fault.rule, outcome.fault.effect) == ("idle_timeout", "happened")
    assert "blocked" in outcome.fault.reason


# -- blocking tools ----------------------------------------------------------------------------------------------------


def sync_work(rt: Runtime, *silences: float, **options: Any) -> threading.Event:
    released = threading.Event()

    def work() -> str:
        for number, silence in enumerate(silences, 1):
            released.wait(silence)
            failsoft.progress("part %d", number)
        return "done"

    rt.add(work, **{"idle_timeout": "300ms", "timeout": "30s", "retry": ONCE, "idempotent": False, **options})
    return released


@pytest.mark.parametrize("way", ["awaited", "blocking"])
@pytest.mark.parametrize("timeout", ["30s", None])
def test_a_blocking_tool_that_makes_no_progress_is_abandoned(way: str, timeout: str | None) -> None:
    rt = Runtime()
    released = sync_work(rt, 0.01, 20.0, timeout=timeout)
    began = time.monotonic()
    outcome = rt.call_sync("work") if way == "blocking" else asyncio.run(rt.call("work"))
    released.set()
    assert outcome.fault is not None
    assert 0.3 <= time.monotonic() - began < 10
    assert (outcome.fault.message, outcome.fault.effect) == ("No progress for 300ms", "unknown")
    assert "'part 1'" in outcome.fault.reason


@pytest.mark.parametrize("way", ["awaited", "blocking"])
def test_a_blocking_tool_that_makes_progress_goes_on(way: str) -> None:
    rt = Runtime()
    sync_work(rt, *[0.1] * 8, idle_timeout="500ms")
    outcome = rt.call_sync("work") if way == "blocking" else asyncio.run(rt.call("work"))
    assert outcome.value == "done"


def test_the_timeout_of_a_blocking_tool_stays_the_cap() -> None:
    rt = Runtime()
    released = sync_work(rt, *[0.05] * 100, timeout="500ms", idle_timeout="400ms")
    outcome = rt.call_sync("work")
    released.set()
    assert outcome.fault is not None
    assert outcome.fault.rule == "tool_timeout"


def test_a_blocking_tool_is_judged_by_the_clock_of_virtual_time() -> None:
    with virtual_time() as clock:
        rt = Runtime()

        @rt.tool(idle_timeout="5s", timeout="10m", retry=ONCE)
        def work(*silences: float) -> str:
            for silence in silences:
                clock.advance(silence)
                failsoft.progress()
            return "done"

        assert work(4, 4, 4) == "done"
        with pytest.raises(ToolTimeout, match="No progress for 5s") as raised:
            work(4, 6, 4)
        assert raised.value.outcome.fault is not None
        assert raised.value.outcome.fault.effect == "happened"


def test_progress_from_a_thread_of_the_call_counts() -> None:
    rt = Runtime()

    @rt.tool(idle_timeout="400ms", timeout="30s", retry=ONCE)
    def work() -> str:
        def report() -> None:
            for _ in range(8):
                time.sleep(0.1)
                failsoft.progress("from a thread")

        thread = threading.Thread(target=failsoft.in_thread(report))
        thread.start()
        thread.join()
        return "done"

    assert work() == "done"


# -- processes and commands ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def closed(rt: Runtime) -> Iterator[Runtime]:
    try:
        yield rt
    finally:
        asyncio.run(rt.close())


def reports_in_a_process(silences: list[float]) -> int:
    for number, silence in enumerate(silences, 1):
        time.sleep(silence)
        failsoft.progress("step %d", number)
    return os.getpid()


def run(rt: Runtime, way: str, tool: str, arguments: dict[str, Any]) -> Any:
    return rt.call_sync(tool, arguments) if way == "blocking" else asyncio.run(rt.call(tool, arguments))


@pytest.mark.parametrize("way", ["awaited", "blocking"])
@pytest.mark.parametrize("isolation", ["process", {"process": {"values": "json"}}])
def test_a_worker_process_reports_progress_and_is_killed_without_it(way: str, isolation: Any) -> None:
    with closed(Runtime()) as rt:
        rt.add(reports_in_a_process, id="work", isolation=isolation, idle_timeout="600ms", retry=ONCE, idempotent=False)
        steady = run(rt, way, "work", {"silences": [0.2] * 5})
        assert steady.value not in (None, os.getpid())
        began = time.monotonic()
        stuck = run(rt, way, "work", {"silences": [0.05, 20.0]})
        assert time.monotonic() - began < 10
        assert stuck.fault is not None
        assert (stuck.fault.message, stuck.fault.effect) == ("No progress for 600ms", "unknown")
        assert "'step 1'" in stuck.fault.reason


def test_the_timeout_of_a_worker_process_stays_the_cap() -> None:
    with closed(Runtime()) as rt:
        rt.add(reports_in_a_process, id="work", isolation="process", idle_timeout="800ms", timeout="1s", retry=ONCE)
        outcome = rt.call_sync("work", {"silences": [0.1] * 100})
        assert outcome.fault is not None
        assert outcome.fault.rule == "tool_timeout"


def test_progress_in_a_process_counts_for_the_call_around_it() -> None:
    with closed(Runtime()) as rt:
        rt.add(reports_in_a_process, id="work", isolation="process", retry=ONCE)

        rt.call_sync("work", {"silences": []})  # starting a worker takes time

        @rt.tool(idle_timeout="2s", timeout="30s", retry=ONCE)
        async def outer() -> Any:
            return (await rt.call("work", {"silences": [0.5] * 6})).value

        assert asyncio.run(rt.call("outer")).fault is None


@pytest.mark.parametrize("way", ["awaited", "blocking"])
@pytest.mark.parametrize("stream", ["", ">&2"])
def test_the_output_of_a_command_counts_as_progress(way: str, stream: str) -> None:
    steps = f"for n in 1 2 3 4 5; do sleep 0.5; echo 1 {stream}; done"

    def manifest(script: str) -> dict[str, Any]:
        command = {"command": ["sh", "-c", script]}
        return {"tools": {"work": {"entrypoint": command, "idle_timeout": "2s", "retry": ONCE, "read_only": False}}}

    with closed(Runtime(manifest=manifest(f"cat >/dev/null; {steps}"))) as rt:
        steady = run(rt, way, "work", {})
        assert steady.fault is None or steady.fault.rule == "command_output"
        assert steady.duration > 2.4
    with closed(Runtime(manifest=manifest("cat >/dev/null; echo 1; sleep 30"))) as rt:
        began = time.monotonic()
        stuck = run(rt, way, "work", {})
        assert time.monotonic() - began < 15
        assert stuck.fault is not None
        assert (stuck.fault.rule, stuck.fault.effect) == ("idle_timeout", "unknown")


# -- progress itself ---------------------------------------------------------------------------------------------------


def test_progress_outside_of_a_call_does_nothing() -> None:
    failsoft.progress()
    failsoft.progress("page %d", 3)
    failsoft.progress("%d", "not a number")


@virtual
async def test_a_tool_without_an_idle_timeout_may_report_progress() -> None:
    rt = Runtime()
    add(rt, 20.0, 20.0, idle_timeout=None)
    assert (await rt.call("work")).value == "done"


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (("x" * 5000,), "x" * 79 + "…"),
        (("%d pages", "three"), "%d pages"),
        (("100 %",), "100 %"),
        ((7,), "7"),
        (("two\nlines\x1b[31m",), "two lines"),
        (("token=sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD",), "token=[redacted]"),
        ((Hostile(),), "<Hostile>"),
        (("%s", Hostile()), "%s"),
    ],
)
def test_a_message_is_one_short_sanitised_text(message: tuple[Any, ...], shown: str) -> None:
    @virtual
    async def run() -> None:
        rt = Runtime()

        @rt.tool(idle_timeout="5s")
        async def work() -> list[str]:
            failsoft.progress(*message)
            return [call.progress for call in rt.running()]

        assert (await rt.call("work")).value == [shown]

    run()


# -- wrong values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"idle_timeout": 0}, "idle_timeout"),
        ({"idle_timeout": -1}, "idle_timeout"),
        ({"idle_timeout": "soon"}, "idle_timeout"),
        ({"idle_timeout": True}, "idle_timeout"),
        ({"idle_timeout": "1m"}, "idle_timeout: 1m is longer than the timeout of 30s.*raise timeout"),
        ({"idle_timeout": "10s", "timeout": "5s"}, "longer than the timeout of 5s"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], complaint: str) -> None:
    rt = Runtime()
    with pytest.raises(failsoft.ManifestError, match=complaint):
        add(rt, **{"timeout": "30s", **options})
    with pytest.raises(failsoft.ManifestError, match=complaint):
        Runtime(manifest={"tools": {"work": {"timeout": "30s", **options, "entrypoint": {"function": "json:loads"}}}})


@virtual
async def test_the_manifest_can_say_it() -> None:
    rt = Runtime(manifest={"tools": {"work": {"idle_timeout": "2s"}}})
    add(rt, 30.0, idle_timeout="5s")
    outcome = await rt.call("work")
    assert outcome.fault is not None
    assert outcome.fault.message == "No progress for 2s"


def test_a_blocking_caller_is_answered_at_the_idle_timeout_also_if_the_thread_begins_late() -> None:
    rt = Runtime()
    hung, release = threading.Event(), threading.Event()

    def start_late(run: Any) -> Any:  # the caller waits already when the tool begins
        def begin(*args: Any) -> Any:
            time.sleep(0.05)
            return run(*args)

        return begin

    def pay() -> None:
        hung.set()
        release.wait(5)

    rt.add(pay, idempotent=False, idle_timeout="150ms", timeout="10s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadAttempt, "_begin", start_late(ThreadAttempt._begin))
        began = time.monotonic()
        outcome = rt.call_sync("pay", {})
        taken = time.monotonic() - began
    release.set()
    assert hung.is_set()
    assert outcome.fault is not None
    assert (outcome.attempts, outcome.fault.rule, outcome.fault.effect) == (1, "idle_timeout", "unknown")
    assert taken < 0.8


@virtual
async def test_a_callback_that_another_task_calls_reports_progress_if_it_was_bound_in_the_tool() -> None:
    """A client session calls its callbacks in its own task, which belongs to no call."""
    rt = Runtime()
    asked: asyncio.Queue[tuple[Any, asyncio.Future[str]]] = asyncio.Queue()

    async def receive() -> None:
        while True:
            on_progress, answer = await asked.get()
            for done in range(6):
                await asyncio.sleep(3)
                await on_progress(done, 6)
            if not answer.done():
                answer.set_result("done")

    @rt.tool(idle_timeout="5s", timeout="1m", retry=ONCE, read_only=True)
    async def ask(bound: bool) -> str:
        report = failsoft.in_thread(failsoft.progress) if bound else failsoft.progress

        async def on_progress(done: int, total: int) -> None:
            report("%d of %d", done, total)

        answer = asyncio.get_running_loop().create_future()
        asked.put_nowait((on_progress, answer))
        return await answer

    session = asyncio.create_task(receive())
    assert (await rt.call("ask", {"bound": True})).value == "done"
    assert (await rt.call("ask", {"bound": False})).status == "failed"
    session.cancel()
