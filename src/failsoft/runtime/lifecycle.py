"""The end of a runtime, and its renewal in a forked child process."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic as real_time
from typing import TYPE_CHECKING, cast

from failsoft.observe.delivery import left
from failsoft.observe.sinks.log import flush as flush_log

if TYPE_CHECKING:
    from failsoft.runtime.services import Services
    from failsoft.stores.failsafe import FailsafeStore

CANCEL_PATIENCE = 1.0  # seconds for which a cancelled task is waited for; one that ignores this goes on


async def close(rt: Services, grace: float) -> None:
    """Refuse new calls and end what still runs on this event loop: wait for ``grace`` seconds, then cancel."""
    _refuse_calls(rt)
    loop = asyncio.get_running_loop()
    tasks = rt.tasks_on(loop)
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
    rt.close_workers()
    if rt.memory is not None:
        rt.memory.save()
    deadline = real_time() + max(grace, 1.0)
    rt.trace.close(deadline)
    if rt.ledger is not None:
        rt.ledger.finish_pending()
    if rt.circuits is not None:
        rt.circuits.close(deadline)
    if rt.writer is not None:
        rt.writer.close()
    if rt.store is not None:
        rt.store.flush(left(deadline))
    if rt.log.escalations is not None:
        rt.log.escalations.close(left(deadline))
    flush_log(left(deadline))


def _refuse_calls(rt: Services) -> None:
    """Take no more calls: without a ticket the fast path leads to the place where they are refused."""
    rt.closed = True
    for tool in rt.tools.values():
        tool.fast_eligible, tool.cached_refusal = False, None
        tool.renew_ticket()


def renew_after_fork(rt: Services) -> None:
    """Renew locks and threads in a forked child: it has its parent's locks, held or not, and none of its threads."""
    rt.lock = threading.RLock()
    rt.trace.renew_after_fork()
    if rt.log.escalations is not None:
        rt.log.escalations.renew_after_fork()
    rt.conversations.renew_after_fork()
    if rt.ledger is not None and rt.store is not None:
        rt.ledger.renew_after_fork()
        cast("FailsafeStore", rt.store).renew_after_fork()
    if rt.writer is not None:
        rt.writer.renew_after_fork()
    if rt.circuits is not None:
        rt.circuits.renew_after_fork()
    if rt.memory is not None:
        rt.memory.renew_after_fork()
    rt.thread_pool.renew()
    rt.calls.clear()
    rt.retrying.clear()
    rt.forget_loops()  # they run in the parent only, though one of them may seem to be running here
    for tool in rt.tools.values():
        tool.queue = None
        if tool.slots is not None:
            tool.slots.renew()
