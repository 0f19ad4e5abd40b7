"""Blocking tools: in our own threads with a deadline, or inline without one (R8, T6, T24)."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.fakes import ONCE, RESET, phrases, real, records, virtual

from failsoft import CallFailed, Runtime, ToolTimeout
from failsoft.runtime.execution import thread_pool

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


@contextmanager
def gate() -> Iterator[threading.Event]:
    """A gate that hanging tools wait for; opened at the end, so that no thread outlives its test."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def hanging(rt: Runtime, held: threading.Event, **options: Any) -> Any:
    def hangs() -> str:
        held.wait(20)
        return "late"

    return rt.add(hangs, **{"timeout": "50ms", "retry": ONCE, "breaker": {"failure_threshold": 10_000}, **options})


@real
async def test_a_blocking_tool_times_out_at_its_deadline() -> None:
    rt = Runtime()
    with gate() as held:
        hanging(rt, held)
        began = time.monotonic()
        outcome = await rt.call("hangs")
        assert time.monotonic() - began < 1.0
        assert outcome.fault is not None
        assert (outcome.status, outcome.fault.message) == ("failed", "Tool timeout after 50ms")
        assert outcome.fault.effect == "unknown"
        assert "hangs goes on in its thread" in phrases(rt)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


def test_a_blocking_caller_is_answered_at_the_deadline() -> None:
    rt = Runtime()
    with gate() as held:
        guarded = hanging(rt, held)
        began = time.monotonic()
        with pytest.raises(ToolTimeout, match="Tool timeout after 50ms"):
            guarded()
        assert rt.call_sync("hangs").status == "failed"
        assert time.monotonic() - began < 2.0
        assert rt.metrics("hangs")["orphaned_count"] == 2


@real
async def test_a_late_value_of_a_thread_is_never_a_success() -> None:
    rt = Runtime()
    with gate() as held:
        hanging(rt, held)
        await rt.call("hangs")
    await asyncio.sleep(0.05)
    assert rt.metrics("hangs")["success_count"] == 0


@real
async def test_a_thread_that_a_cancelled_caller_leaves_is_reported() -> None:
    rt, runs = Runtime(), threading.Event()
    with gate() as held:

        def hangs() -> None:
            runs.set()
            held.wait(20)

        task = asyncio.create_task(rt.call(rt.add(hangs, timeout="20s")))
        await asyncio.to_thread(runs.wait, 20)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert "hangs goes on in its thread" in phrases(rt)


@real
async def test_a_bounded_number_of_threads_is_abandoned() -> None:
    rt = Runtime()
    with gate() as held:
        hanging(rt, held)
        before = threading.active_count()
        outcomes = await asyncio.gather(*(rt.call("hangs") for _ in range(thread_pool.MOST_ABANDONED)))
        assert {outcome.fault.code for outcome in outcomes if outcome.fault} == {"DEADLINE_EXCEEDED"}
        for _ in range(20):
            refused = await rt.call("hangs")
            assert refused.fault is not None
            assert (refused.fault.code, refused.fault.effect) == ("RESOURCE_EXHAUSTED", "none")
            assert refused.attempts == 0
        assert threading.active_count() - before <= thread_pool.MOST_ABANDONED
        failures = rt.health("hangs").failure_count
        assert failures == thread_pool.MOST_ABANDONED  # the refused ones do not count
    await asyncio.sleep(0.1)
    rt.add(lambda: "back", id="quick")
    assert (await rt.call("quick")).value == "back"


@real
async def test_waiting_for_a_thread_is_not_tool_time() -> None:
    rt = Runtime()

    def naps() -> str:
        time.sleep(0.02)
        return "rested"

    rt.add(naps, timeout="1s", retry=ONCE)
    outcomes = await asyncio.gather(*(rt.call("naps") for _ in range(3 * thread_pool.MOST_THREADS)))
    assert {outcome.value for outcome in outcomes} == {"rested"}


@pytest.mark.parametrize("kind", ["CallSucceeded", "ToolError"])
def test_the_time_a_blocking_caller_waited_for_a_thread_is_recorded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "MOST_THREADS", 1)
    rt = Runtime()

    def naps() -> None:
        time.sleep(0.05)
        if kind == "ToolError":
            raise ValueError("tired")

    rt.add(naps, timeout="5s", retry=ONCE)
    callers = [threading.Thread(target=rt.call_sync, args=("naps",)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert max(record.get("queued_ms", 0) for record in records(rt, kind)) > 20


@pytest.mark.parametrize("error", [None, ValueError("no seats")])
def test_a_caller_that_is_woken_late_makes_no_timeout_of_it(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = Runtime()
    submit = rt._engine.places.thread_pool.submit

    def submit_to_a_slow_thread(run: Any, done: Any) -> Any:
        def tell(job: thread_pool.Job) -> None:
            time.sleep(0.1)
            done(job)

        return submit(run, tell)

    def quick() -> str:
        if error is not None:
            raise error
        return "found"

    monkeypatch.setattr(rt._engine.places.thread_pool, "submit", submit_to_a_slow_thread)
    rt.add(quick, timeout="50ms", retry=ONCE)
    outcome = rt.call_sync("quick")
    assert (outcome.value, outcome.fault and outcome.fault.cause) == (None if error else "found", error)
    [ended] = records(rt, "ToolError" if error else "CallSucceeded")
    assert ended["duration_ms"] < 50
    assert rt.metrics("quick")["timeout_count"] == 0


@real
async def test_blocking_tools_inside_blocking_tools_do_not_use_up_all_threads() -> None:
    """All threads are in outer calls at once, and each outer call waits for two more further in."""
    rt = Runtime()
    most = thread_pool.MOST_THREADS
    everybody = threading.Barrier(most)
    seen: list[int] = []

    @rt.tool(timeout="30s", retry=ONCE)
    def innermost(number: int) -> int:
        seen.append(threading.active_count())
        return number

    @rt.tool(timeout="30s", retry=ONCE)
    def inner(number: int) -> int:
        return innermost(number)

    @rt.tool(timeout="30s", retry=ONCE)
    def outer(number: int) -> int:
        everybody.wait(20)
        return inner(number)

    before = threading.active_count()
    outcomes = await asyncio.gather(*(rt.call("outer", {"number": number}) for number in range(3 * most)))
    assert [outcome.value for outcome in outcomes] == list(range(3 * most))
    assert max(seen) - before <= 3 * most  # at most as many as before work; the others wait for them


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@real
async def test_context_variables_reach_the_tool(limit: str | None) -> None:
    rt = Runtime()

    def where() -> str:
        return WHERE.get()

    guarded = rt.add(where, timeout=limit)
    WHERE.set("here")
    assert (await rt.call("where")).value == "here"
    assert guarded() == "here"


@real
async def test_without_a_timeout_a_blocking_tool_runs_inline() -> None:
    rt = Runtime()
    rt.add(threading.get_ident, id="inline", timeout=None)
    rt.add(lambda: threading.get_ident(), id="thread")
    assert (await rt.call("inline")).value == threading.get_ident()
    assert (await rt.call("thread")).value != threading.get_ident()


@real
async def test_the_loop_goes_on_while_a_thread_is_busy() -> None:
    rt = Runtime()
    rung = threading.Event()
    rt.add(lambda: rung.wait(30), id="waits")
    task = asyncio.create_task(rt.call("waits"))
    await asyncio.sleep(0.01)
    assert not task.done()
    rung.set()  # only a loop that goes on gets here
    assert (await task).value is True


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@virtual
async def test_blocking_tools_are_retried_like_others(limit: str | None) -> None:
    rt = Runtime()
    calls: list[int] = []

    def flaky() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise RESET
        return "fine"

    rt.add(flaky, timeout=limit)
    outcome = await rt.call("flaky")
    assert (outcome.value, outcome.attempts) == ("fine", 3)
    assert [record["decision"] for record in records(rt, "ToolError")] == ["retry", "retry"]


@real
async def test_cancelling_a_caller_of_a_thread_is_neutral() -> None:
    rt = Runtime()
    with gate() as held:
        hanging(rt, held, timeout="10s", breaker={"failure_threshold": 1})
        task = asyncio.create_task(rt.call("hangs"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert rt.health("hangs").state == "closed"
        assert rt.metrics("hangs")["cancelled_count"] == 1


@real
async def test_an_attempt_that_still_runs_is_repeated_only_if_that_is_safe() -> None:
    for declared, attempts in (({"idempotent": False}, 1), ({"read_only": True}, 2)):
        rt = Runtime()
        with gate() as held:
            hanging(rt, held, retry={"max_attempts": 2, "initial_delay": "1ms"}, **declared)
            assert (await rt.call("hangs")).attempts == attempts


def test_the_interpreter_can_exit_while_a_tool_hangs() -> None:
    script = """
        import time
        from failsoft import Runtime
        rt = Runtime()
        rt.add(lambda: time.sleep(60), id="hangs", timeout="50ms", retry={"max_attempts": 1})
        print(rt.call_sync("hangs").fault.message)
    """
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert run.stdout == "Tool timeout after 50ms\n"
    assert time.monotonic() - began < 20


def test_exceptions_of_threads_keep_their_traceback() -> None:
    rt = Runtime()

    def breaks() -> None:
        raise ValueError("bad input")

    with pytest.raises(CallFailed) as caught:
        rt.add(breaks)()
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert cause.__traceback__ is not None


class Ran:
    """A job's function that notes where it ran, and lets one wait until its thread is idle again."""

    def __init__(self, pool: thread_pool.ThreadPool) -> None:
        self.pool = pool
        self.threads: list[int] = []

    def submit(self) -> thread_pool.Job:
        job = self.pool.submit(lambda: self.threads.append(threading.get_ident()), lambda _: None)
        assert job is not None
        return job

    def settle(self) -> None:
        deadline = time.monotonic() + 10
        while not self.pool._idle and time.monotonic() < deadline:
            time.sleep(0.001)


def test_a_thread_is_used_again() -> None:
    ran = Ran(thread_pool.ThreadPool())
    for _ in range(3):
        ran.submit()
        ran.settle()
    assert len(ran.threads) == 3
    assert len(set(ran.threads)) == 1


def test_a_job_that_is_abandoned_while_a_thread_is_on_its_way_never_runs() -> None:
    ran = Ran(thread_pool.ThreadPool())
    ran.submit()
    ran.settle()
    (bell,) = ran.pool._idle
    wake, bell.wake = bell.wake, threading.Lock()
    bell.wake.acquire()
    job = ran.submit()  # the thread sleeps on
    assert ran.pool.abandon(job) is False
    bell.wake = wake
    wake.release()
    ran.settle()
    assert len(ran.threads) == 1
    ran.submit()
    ran.settle()
    assert len(ran.threads) == 2


def test_a_thread_that_is_lost_while_its_job_waits_for_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "MOST_THREADS", 1)
    pool = thread_pool.ThreadPool()
    inner_runs, third_runs = threading.Event(), threading.Event()
    with gate() as held:

        def wait_for_inner() -> None:
            pool.submit(lambda: (inner_runs.set(), held.wait()), lambda _: None)
            held.wait()

        outer = pool.submit(wait_for_inner, lambda _: None)
        assert inner_runs.wait(10)
        assert outer is not None
        assert pool.abandon(outer)
        pool.submit(third_runs.set, lambda _: None)
        assert not third_runs.wait(0.05), "one thread more than there may be"
    assert third_runs.wait(10)


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "IDLE_SECONDS", 0.01)
    ran = Ran(thread_pool.ThreadPool())
    for times in (1, 2):
        ran.submit()
        deadline = time.monotonic() + 10
        while ran.pool._threads and time.monotonic() < deadline:
            time.sleep(0.001)
        assert (ran.pool._threads, ran.pool._idle, len(ran.threads)) == (0, [], times)


@real
async def test_a_system_without_threads_is_a_fault_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rt = Runtime()
    rt.add(lambda: "here", id="blocks", timeout="5s", retry=ONCE)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as system:
        system.setattr(threading.Thread, "start", refuse)
        for _ in range(thread_pool.MOST_THREADS + 1):
            assert (await rt.call("blocks")).fault is not None
    assert (await rt.call("blocks")).value == "here"


def test_the_collector_may_abandon_a_job_while_another_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = thread_pool.ThreadPool()
    held = threading.Event()
    stranded = threads.submit(held.wait, lambda _: None)
    assert stranded is not None
    active = thread_pool.ThreadPool._active

    def collected(self: thread_pool.ThreadPool) -> int:
        monkeypatch.setattr(thread_pool.ThreadPool, "_active", active)
        self.abandon(stranded)
        return active(self)

    monkeypatch.setattr(thread_pool.ThreadPool, "_active", collected)
    done = threading.Event()
    worker = threading.Thread(target=threads.submit, args=(lambda: None, lambda _: done.set()), daemon=True)
    worker.start()
    assert done.wait(20)
    held.set()
