"""The end of a runtime, and its renewal in a forked child process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from time import monotonic as real_time
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakSet

from failsoft.observe.delivery import remaining
from failsoft.observe.sinks.log import flush as flush_log

if TYPE_CHECKING:
    from failsoft.runtime.services import Services
    from failsoft.stores.failsafe import FailsafeStore

T = TypeVar("T")

CANCEL_PATIENCE = 1.0  # seconds to wait for a cancelled task; a task that ignores its cancellation goes on


_ALIVE: WeakSet[Services] = WeakSet()


def begin(rt: Services) -> None:
    """Renew a runtime in every child process that is forked from now on."""
    _ALIVE.add(rt)


async def in_another_thread(run: Callable[[float], T], deadline: float) -> T:
    """Run a function that may wait until a deadline without blocking the event loop.

    An interpreter that is about to end starts no OS thread; then the function runs here. An empty thread finds that out
    before the loop's executor is made, because closing that executor would start a thread too.
    """
    try:
        threading.Thread(target=int, name="failsoft end", daemon=True).start()
        waiting = asyncio.get_running_loop().run_in_executor(None, run, deadline)
    except RuntimeError:
        return run(deadline)
    return await waiting


async def flush(rt: Services, seconds: float) -> bool:
    """Wait until all consumers have every event so far, and the store has saved it. False if that took longer."""
    write = rt.log.trace.flush if rt.books.writer is None else rt.books.writer.flush
    deadline = real_time() + seconds
    flushed = await in_another_thread(write, deadline)
    if rt.toolbox.circuits is not None:
        flushed = await in_another_thread(rt.toolbox.circuits.flush, deadline) and flushed
    await in_another_thread(lambda until: flush_log(remaining(until)), deadline)
    return flushed


async def close(rt: Services, grace: float) -> None:
    """Refuse new calls and end what still runs on this event loop: wait for ``grace`` seconds, then cancel."""
    _refuse_calls(rt)
    loop = asyncio.get_running_loop()
    tasks = rt.places.tasks_on(loop)
    if tasks:
        _, unfinished = await asyncio.wait(tasks, timeout=grace)
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=CANCEL_PATIENCE)
    close_blocking(rt, grace)


def close_blocking(rt: Services, grace: float) -> None:
    """Refuse new calls, end the worker processes, and write out what is recorded."""
    _refuse_calls(rt)
    rt.places.close_workers()
    if rt.judgement.memory is not None:
        rt.judgement.memory.save()
    deadline = real_time() + max(grace, 1.0)
    rt.log.trace.close(deadline)
    if rt.books.ledger is not None:
        rt.books.ledger.flush()
    if rt.toolbox.circuits is not None:
        rt.toolbox.circuits.close(deadline)
    if rt.books.writer is not None:
        rt.books.writer.close()
    if rt.books.store is not None:
        rt.books.store.flush(remaining(deadline))
    if rt.log.escalations is not None:
        rt.log.escalations.close(remaining(deadline))
    flush_log(remaining(deadline))


def _refuse_calls(rt: Services) -> None:
    """Take no more calls. Without a ticket, the fast path passes them to the code that refuses them."""
    rt.runner.closed = True
    for tool in rt.toolbox.tools.values():
        tool.fast_eligible, tool.cached_refusal = False, None
        tool.renew_ticket()


def renew_after_fork(rt: Services) -> None:
    """Renew locks and threads in a forked child. It has copies of its parent's locks, perhaps held, and no threads."""
    rt.toolbox.renew_lock()
    rt.log.trace.renew_after_fork()
    if rt.log.escalations is not None:
        rt.log.escalations.renew_after_fork()
    rt.books.conversations.renew_after_fork()
    if rt.books.ledger is not None and rt.books.store is not None:
        rt.books.ledger.renew_after_fork()
        cast("FailsafeStore", rt.books.store).renew_after_fork()
    if rt.books.writer is not None:
        rt.books.writer.renew_after_fork()
    if rt.toolbox.circuits is not None:
        rt.toolbox.circuits.renew_after_fork()
    if rt.judgement.memory is not None:
        rt.judgement.memory.renew_after_fork()
    rt.places.renew_after_fork()
    rt.in_flight.clear()
    for tool in rt.toolbox.tools.values():
        tool.queue = None
        if tool.slots is not None:
            tool.slots.renew()


def _after_fork() -> None:
    for rt in list(_ALIVE):
        renew_after_fork(rt)


os.register_at_fork(after_in_child=_after_fork)
