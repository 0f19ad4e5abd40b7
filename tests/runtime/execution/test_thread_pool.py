"""The worker threads of a runtime."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Coroutine
from typing import Any

from failsoft.runtime.execution.thread_pool import ThreadPool


def test_a_coroutine_that_an_abandoned_function_returns_is_closed() -> None:
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()
    made: list[Coroutine[Any, Any, None]] = []

    async def never_awaited() -> None: ...

    def makes_a_coroutine() -> Coroutine[Any, Any, None]:
        begun.set()
        go_on.wait(20)
        made.append(never_awaited())
        return made[0]

    threads = ThreadPool()
    job = threads.submit(makes_a_coroutine, lambda _: over.set())
    assert job is not None
    assert begun.wait(20)
    assert threads.abandon(job)
    go_on.set()
    assert over.wait(20)
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_a_job_of_a_signal_handler_that_interrupts_a_holder_of_the_lock_is_done() -> None:
    threads = ThreadPool()
    with threads._lock:  # as in a handler that interrupts ``submit`` in the same thread, and waits for its call
        over = threading.Event()
        job = threads.submit(lambda: 3, lambda _: over.set())
        assert over.wait(20)
    assert job is not None
    assert job.value == 3


def test_a_job_that_a_signal_handler_abandons_is_forgotten_when_it_ends() -> None:
    begun, go_on = threading.Event(), threading.Event()
    threads = ThreadPool()

    def hangs() -> None:
        begun.set()
        go_on.wait(20)

    with threads._lock:
        job = threads.submit(hangs, lambda _: None)
        assert job is not None
        assert begun.wait(20)
        assert threads.abandon(job, "hangs")
        own = next(thread for thread in threading.enumerate() if thread.ident == job.thread)
    assert threads.abandoned_names() == ["hangs"]
    go_on.set()
    own.join(20)
    assert threads.abandoned_names() == []
