"""Calls of a runtime: each is placed in the turn or the call that it is made from, and run by one of three routes.

A call in the body of a turn becomes one of the turn's. A simple one takes the fast path. All others are driven through
the pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.redact.sanitise import mask_id
from failsoft.runtime.call.driver import drive, drive_blocking
from failsoft.runtime.call.model import Call
from failsoft.runtime.fastpath.call import is_fast_eligible, run_fast, run_fast_blocking
from failsoft.runtime.scope import LIGHT, SCOPE, AskedFor, call_of
from failsoft.runtime.tools.tool import Tool, count_as_write
from failsoft.runtime.turn.agent_run import AgentRun
from failsoft.runtime.turn.turn import Turn

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.turn.ports import TurnServices


def open_call(
    rt: TurnServices, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float | None = None,
    id: str | int | None = None,
) -> Call:  # fmt: skip
    """A call of a guarded function, placed in the turn or the call that it is made from."""
    call = rt.new_call(tool, args, kwargs, rt.now() if started is None else started, id)
    scope, light = SCOPE.get(), LIGHT.get()
    if scope is None:
        call.caller = call_of(light) if light else None
    elif isinstance(outer := scope.full_call(), Call):
        call.parent, call.turn, call.thread, call.tenant = outer, outer.turn, outer.thread, outer.tenant
    if isinstance(light, AskedFor) and light.tool is tool and not (light.taken or tool.safe_to_repeat):
        _take_asked(rt, call, light)
    return call


def _take_asked(rt: TurnServices, call: Call, asked: AskedFor) -> None:
    """Make a call of a guarded function the one that a model has asked for."""
    asked.taken = True
    call.tool, call.by_agent = count_as_write(call.tool), True
    call.thread = asked.thread or call.thread
    if asked.id:
        call.caller_id = mask_id(asked.id)
        call.set_id(call.caller_id)
    run = asked.turn() if call.turn is None and asked.turn is not None else call.turn
    if isinstance(run, AgentRun) and run.engine is rt:
        run.take(call)
        asked.run = run if call.parent is None else None


async def run(rt: TurnServices, call: Call) -> Outcome[Any]:
    """Run a call to its outcome on this event loop; its caller knows of it until it has ended."""
    rt.refuse_if_closed()
    caller = None if call.tool.safe_to_repeat else call.outer or call.caller
    if caller is None:
        return await _run(rt, call)
    caller.inside.add(call)
    try:
        return await _run(rt, call)
    finally:
        caller.inside.discard(call)


async def _run(rt: TurnServices, call: Call) -> Outcome[Any]:
    scope, ticket = SCOPE.get(), call.tool.closed_ticket
    if isinstance(scope, Turn) and scope.engine is rt and call.turn is None:
        return await scope.adopt(call)
    if scope is None and ticket is not None and call.tool.kind == "async" and is_fast_eligible(rt, call):
        return await run_fast(rt, call, ticket)
    return await drive(rt, call)


def run_blocking(rt: TurnServices, call: Call) -> Outcome[Any]:
    """Run a call to its outcome in this OS thread; its caller knows of it until it has ended."""
    rt.refuse_if_closed()
    caller = None if call.tool.safe_to_repeat else call.outer or call.caller
    if caller is None:
        return _run_blocking(rt, call)
    caller.inside.add(call)
    try:
        return _run_blocking(rt, call)
    finally:
        caller.inside.discard(call)


def _run_blocking(rt: TurnServices, call: Call) -> Outcome[Any]:
    scope, ticket = SCOPE.get(), call.tool.closed_ticket
    if isinstance(scope, Turn) and scope.engine is rt and call.turn is None:
        return scope.adopt_blocking(call)
    if scope is None and ticket is not None and call.tool.kind != "stream" and is_fast_eligible(rt, call):
        return run_fast_blocking(rt, call, ticket)
    return drive_blocking(rt, call)
