"""Run a user's blocking function (a phraser, a ``verify``) in an OS thread of the pool, awaited on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from failsoft.runtime.execution.clock import outside_finished, outside_started

if TYPE_CHECKING:
    from failsoft.runtime.execution.thread_pool import Job, ThreadPool


async def run_in_own_thread(pool: ThreadPool, do: Callable[[], Any], purpose: str) -> Any:
    """Run a blocking function in a daemon thread. The end of the program does not wait for it.

    ``purpose`` completes the error "no worker thread is free to …".
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def resolve() -> None:
        if not ended.done():
            ended.set_result(None)

    def done(_: Job) -> None:
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(resolve)

    job = pool.submit(do, done)
    if job is None:
        raise RuntimeError(f"no worker thread is free to {purpose}")
    outside_started(loop)
    try:
        await ended
    except BaseException:
        pool.abandon(job)
        raise
    finally:
        outside_finished(loop)
    if job.error is not None:
        raise job.error if isinstance(job.error, Exception) else RuntimeError(f"ended with {job.error!r}")
    return job.value
