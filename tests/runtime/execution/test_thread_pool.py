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
