"""Guarded functions that are called in the body of a turn: they become calls of the turn.

Rules
-----
- Such a call sees its caller's context, and ends if its caller does.
- A blocking function runs at once in the caller's OS thread. ``Turn.adopt_blocking`` sends calls from other OS threads to
  the turn's event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.model.outcome import Outcome
from failsoft.core.turn.machine import Start
from failsoft.runtime.fastpath.call import is_fast_eligible, run_fast
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.turn.dependencies import refuse_misused
from failsoft.runtime.turn.handle import Handle
from failsoft.runtime.turn.scheduler import Scheduler

if TYPE_CHECKING:
    from failsoft.runtime.call.model import Call


async def adopt(scheduler: Scheduler, call: Call) -> Outcome[Any]:
    """Run a call of an async function as one of the turn's."""
    turn, handle = scheduler.turn, _submit(scheduler, call)
    if handle.outcome is None:
        # Not by the loop's own factory: an eager task might end before the next line waits for it.
        task = handle.task = asyncio.Task(_run(scheduler, handle, call), loop=turn.loop)
        try:
            await turn.arrival(handle)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return cast("Outcome[Any]", handle.outcome)


def adopt_blocking(scheduler: Scheduler, call: Call) -> Outcome[Any]:
    """Run a call of a blocking function as one of the turn's."""
    handle = _submit(scheduler, call)
    if handle.outcome is not None:  # skipped: the turn's time is up
        return handle.outcome
    outcome = scheduler.turn.services.runner.drive_blocking(call)
    scheduler.finish(handle, outcome)
    return outcome


def _submit(scheduler: Scheduler, call: Call) -> Handle[Any]:
    turn = scheduler.turn
    turn.refuse_if_closed()
    refuse_misused((*call.args, *call.kwargs.values()))
    taken = call.by_agent and call.has_own_id and call.id in turn.machine.calls
    if not call.has_own_id or taken:  # some models number their calls anew in every message
        call.set_id(turn.new_id(call.tool.id))
    call.turn, call.thread, call.tenant = turn, call.thread or turn.thread, call.tenant or turn.tenant
    call.required = call.tool.options.required
    handle: Handle[Any] = Handle(scheduler, call.id, call.tool, call.kwargs)
    handle.call = call
    commands = turn.machine.add(handle)
    turn.record_open_call(handle)
    if not isinstance(commands[0], Start):
        scheduler.perform(commands)
    return handle


async def _run(scheduler: Scheduler, handle: Handle[Any], call: Call) -> None:
    turn, tool = scheduler.turn, call.tool
    services, notes = turn.services, turn.notes
    handle.started = call.started = services.time.now()
    ticket = tool.closed_ticket
    SCOPE.set(handle)
    scheduler.attach()
    try:
        scheduler.suspend(handle)
        if ticket is not None and tool.kind == "async" and not notes.has_notes and is_fast_eligible(services, call):
            outcome = await run_fast(services, call, ticket)
        else:
            outcome = await services.runner.drive(call)
    except BaseException as error:
        late = handle.outcome is not None
        scheduler.stop(handle, error)
        if late and isinstance(error, ControlFlow):
            return  # the caller has the outcome already
        raise
    finally:
        scheduler.detach(handle)
    if notes.has_notes and outcome.status == "succeeded":
        services.books.conversations.note_success(call)
    scheduler.finish(handle, outcome)
