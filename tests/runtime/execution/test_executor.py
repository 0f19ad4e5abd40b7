"""The runtime's daemon threads as an executor."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError
from typing import Any

import pytest
from tests.fakes import real

from failsoft import NothingDone, Runtime
from failsoft.integration.executor import executor_of
from failsoft.runtime.execution.executor import DaemonExecutor
from failsoft.runtime.execution.thread_pool import MOST_ABANDONED


def executor() -> DaemonExecutor:
    return executor_of(Runtime())


def test_values_and_errors_come_back() -> None:
    threads = executor()
    assert threads.submit(pow, 2, 5).result(5) == 32
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(5)
    assert [*threads.map(str, range(3))] == ["0", "1", "2"]


def test_the_executors_threads_are_daemons() -> None:
    assert executor().submit(lambda: threading.current_thread().daemon).result(5)


@real
async def test_a_tool_that_raises_stop_iteration_does_not_hang() -> None:
    def stop() -> None:
        raise StopIteration(7)

    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(executor(), stop), 5)


@real
async def test_a_cancelled_caller_does_not_wait_for_its_thread() -> None:
    over = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(executor(), over.wait, 20)
    await asyncio.sleep(0.05)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    over.set()
    assert time.monotonic() - began < 2


def test_a_job_cancelled_before_it_began_does_not_run() -> None:
    threads, over, ran = executor(), threading.Event(), []
    busy = [threads.submit(over.wait, 20) for _ in range(64)]
    waiting = threads.submit(ran.append, 1)
    assert waiting.cancel()
    over.set()
    for each in busy:
        each.result(5)
    with pytest.raises(CancelledError):
        waiting.result(5)
    assert ran == []


def exhaust(threads: DaemonExecutor) -> threading.Event:
    """Abandon as many functions as may be; the event ends them."""
    over, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        over.wait(20)

    hanging = [threads.submit(hang) for _ in range(MOST_ABANDONED)]
    for _ in hanging:
        assert begun.acquire(timeout=5)
    for each in hanging:
        each.cancel()
    return over


def test_too_many_abandoned_functions_are_refused_before_they_act() -> None:
    threads = executor()
    over = exhaust(threads)
    with pytest.raises(NothingDone) as caught:
        threads.submit(print)
    over.set()
    assert caught.value.code == "RESOURCE_EXHAUSTED"


@real
async def test_a_framework_tool_without_a_thread_is_reported_as_not_run() -> None:
    rt = Runtime()
    threads = executor_of(rt)
    over = exhaust(threads)

    async def pay(_: dict[str, Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(threads, print)

    outcome = await rt.run("pay", {}, {"pay": pay}, timeout="1s")
    over.set()
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.effect) == ("RESOURCE_EXHAUSTED", "none")
