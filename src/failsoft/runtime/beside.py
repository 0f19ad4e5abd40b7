"""Between two worlds: coroutines for callers that block, and functions that block for coroutines.

Rules
-----
- Callers that block share one event loop, which runs in a daemon thread of its own: clients that tools keep stay on one
  loop, a framework's short-lived threads leave none behind, and it does not matter whether the caller's thread has one.
- Context variables are the caller's. A turn is left: it lives on the event loop of another caller.
- Whatever a coroutine ends with belongs to its caller; a caller that is interrupted takes its coroutine along.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from failsoft.core import own_faults
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.turn import Turn

if TYPE_CHECKING:
    from failsoft.runtime.offload import Job
    from failsoft.runtime.runtime import Runtime

T = TypeVar("T")


def is_on_loop() -> bool:
    """Is an event loop running in this thread?"""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_beside(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Block until a coroutine has come to its end."""
    context = copy_context()
    if isinstance(SCOPE.get(), Turn):
        context.run(SCOPE.set, None)
    ended: Future[T] = Future()
    tasks: list[asyncio.Task[None]] = []

    async def run() -> None:
        try:
            ended.set_result(await make())
        except BaseException as error:  # not the shared loop's to raise
            ended.set_exception(error)

    host = _HOSTS.find()
    host.loop.call_soon_threadsafe(lambda: tasks.append(host.loop.create_task(run(), context=context)))
    try:
        return ended.result()
    except BaseException:
        host.loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])  # the caller was interrupted
        raise


class _Host:
    """A daemon thread with an event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="failsoft loop", daemon=True)
        self.thread.start()


class _Hosts:
    """The shared loop; another one for those that block it themselves, and in a forked child."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._shared: list[_Host] = []

    def find(self) -> _Host:
        with self._lock:
            for host in self._shared:
                if host.thread is not threading.current_thread():
                    return host
            self._shared.append(_Host())
            return self._shared[-1]


_HOSTS = _Hosts()


async def in_thread(runtime: Runtime, run: Callable[[], T]) -> T:
    """Run a blocking function in one of the runtime's own threads; whoever stops awaiting it leaves it behind there."""
    offload = runtime._engine.offload
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not ended.done():
            ended.set_result(None)

    def done(_: Job) -> None:
        with suppress(RuntimeError):  # the loop has been closed: nobody waits
            loop.call_soon_threadsafe(settle)

    job = offload.submit(run, lambda: None, done)
    if job is None:
        raise NoThreadError(offload.abandoned)
    try:
        await ended
    except BaseException:
        offload.abandon(job)
        raise
    if job.error is not None:
        raise job.error
    value: T = job.value
    return value


class NoThreadError(Exception):
    """Too many threads are still busy with calls that nobody awaits any more."""

    def __init__(self, abandoned: int) -> None:
        self.fault = own_faults.thread_limit("it", abandoned)
        super().__init__(self.fault.message)


os.register_at_fork(after_in_child=_HOSTS.renew)
