"""Guarded functions that are called in the body of a turn: they become calls of the turn.

Rules
-----
- Such a call sees its caller's context, and ends if its caller does.
- One that blocks runs here and now; for a caller in another thread it runs on the turn's event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.model.outcome import Outcome
from failsoft.core.turn.machine import Start
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.turn.commands import stop
from failsoft.runtime.turn.dependencies import refuse_misused
from failsoft.runtime.turn.handle import Handle

if TYPE_CHECKING:
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.turn.turn import Turn


async def adopt(turn: Turn, call: Call) -> Outcome[Any]:
    """Run the call as one of the turn's."""
    handle = _submit(turn, call)
    if handle.outcome is None:
        # Not by the loop's own factory: with an eager one it might have ended before anybody waits for it.
        task = handle.task = asyncio.Task(_run(turn, handle, call), loop=turn.loop)
        try:
            await turn.arrival(handle)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return cast("Outcome[Any]", handle.outcome)


def adopt_blocking(turn: Turn, call: Call) -> Outcome[Any]:
    """The same for a function that blocks."""
    if turn.is_elsewhere():
        return asyncio.run_coroutine_threadsafe(adopt(turn, call), turn.loop).result()
    handle = _submit(turn, call)
    if handle.outcome is not None:  # skipped: the turn's time is up
        return handle.outcome
    outcome = turn.engine.drive_blocking(call)
    turn.finished(handle, outcome)
    return outcome


def _submit(turn: Turn, call: Call) -> Handle[Any]:
    turn.refuse_if_closed()
    refuse_misused((*call.args, *call.kwargs.values()))
    taken = call.by_agent and call.has_own_id and call.id in turn.machine.calls
    if not call.has_own_id or taken:  # some models number their calls anew in every message
        call.set_id(turn.new_id(call.tool.id))
    call.turn, call.thread, call.tenant = turn, call.thread or turn.thread, call.tenant or turn.tenant
    call.required = call.tool.options.required
    handle: Handle[Any] = Handle(turn.scheduler, call.id, call.tool, call.kwargs)
    handle.call = call
    commands = turn.machine.add(handle)
    turn.record_open_call(handle)
    if not isinstance(commands[0], Start):
        turn.perform(commands)
    return handle


async def _run(turn: Turn, handle: Handle[Any], call: Call) -> None:
    engine, notes, tool = turn.engine, turn.notes, call.tool
    handle.started = call.started = engine.now()
    ticket = tool.closed_ticket
    SCOPE.set(handle)
    turn.scheduler.attach()
    try:
        if ticket is not None and tool.quick is not None and not notes.wary and _is_fast_eligible(turn, call):
            outcome = await tool.quick(call.kwargs, handle.id, ticket, handle)
        else:
            turn.suspend(handle)
            outcome = await engine.drive(call)
    except BaseException as error:
        late = handle.outcome is not None
        stop(turn, handle, error)
        if late and isinstance(error, ControlFlow):
            return  # nobody waits for it any more
        raise
    finally:
        turn.scheduler.detach(handle)
    if notes.wary and outcome.status == "succeeded":
        engine.conversations.note_success(call)
    turn.finished(handle, outcome)


def _is_fast_eligible(turn: Turn, call: Call) -> bool:
    """Does it say nothing that the happy path would not see?"""
    if not call.fits_exactly:
        return False
    said = (call.timeout, call.retry, call.key if call.offer is None else call.offer)
    ledger = turn.engine.ledger
    if ledger is not None and ledger.wants(call, call.tool):
        return False
    return said == (None, None, None) and not call.args and (call.thread, call.tenant) == (turn.thread, turn.tenant)
