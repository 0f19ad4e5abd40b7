"""Calls that agents make: by the name that a model has written, and of tools that a framework runs.

Rules
-----
- The name may come from a model: an unknown name gives a failed outcome. A function that is not a tool raises.
- A call of a framework's tool carries the functions to run; the framework's own exceptions are raised unchanged. If it
  succeeds at once, it takes the same fast path as a call of a guarded function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

from failsoft.config.settings import require_text_names
from failsoft.core.model import builtin_faults
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.printable import quote
from failsoft.core.redact.sanitise import mask_id
from failsoft.runtime.call.build import make_call, run
from failsoft.runtime.call.impossible_call import refuse_call
from failsoft.runtime.call_options import CallKeywords
from failsoft.runtime.execution.blocking_loop import detach_from_turn
from failsoft.runtime.registry import declare
from failsoft.runtime.scope import SCOPE, TurnScope, reset_variable
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.tools.counted_as_write import count_as_write
from failsoft.runtime.tools.framework_tool import RUNNING, FrameworkTool, FrameworkView, RunnerSet
from failsoft.runtime.turn.agent_run import AgentRun

if TYPE_CHECKING:
    from failsoft.config.settings import Settings
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.services import Services
    from failsoft.runtime.turn.turn import Turn


def call_for_model(
    services: Services, name: str, args: Mapping[str, Any], **options: Unpack[CallKeywords]
) -> Coroutine[Any, Any, Outcome[Any]]:
    """Call a tool that a model has asked for. A tool with an undeclared effect counts as a write."""
    tool = services.toolbox.tools.get(name)
    if tool is None:
        return call_unknown_tool(services, name, args, options.get("id"))
    call = make_call(services, count_as_write(tool), args, **options)
    call.by_agent = True
    return run(services, call)


async def call_unknown_tool(services: Services, tool: Any, args: Any, id: str | None) -> Outcome[Any]:
    """The outcome of a call of a tool that does not exist."""
    if not isinstance(tool, str):
        services.toolbox.find(tool)  # raises for a function that is not a tool
    require_text_names(tool, id=id)
    scope = SCOPE.get()
    if isinstance(scope, TurnScope):
        turn = cast("Turn", scope)
        if turn.services is services and turn.loop is asyncio.get_running_loop():
            return await (turn.call(tool, args) if id is None else turn.call(tool, args, id=id))
    fault = builtin_faults.unknown_tool(tool, services.toolbox.tools)
    call_id = mask_id(id) if id else services.log.trace.number()
    return await refuse_call(services, call_id, quote(tool), fault)


call_unknown_tool.__qualname__ = "Runtime.call"  # shown in Python's warning if the await is forgotten


# --- calls of a framework's tools -----------------------------------------------------------------------------------------


def make_framework_call(
    services: Services,
    settings: Settings,
    name: str,
    args: Mapping[str, Any] | None,
    *,
    turn: AgentRun | None,
    options: CallKeywords,
) -> Call:
    """Build a call of a framework's tool, in the agent's run. Declares the tool if it is not known yet."""
    tool = services.toolbox.tools.get(name)
    if tool is None:
        declare(services, settings, name, {})
        tool = services.toolbox.tools[name]
    call = make_call(services, tool if isinstance(tool, FrameworkTool) else FrameworkView(tool), args, **options)
    call.by_agent = True
    run = turn if call.turn is None else call.turn
    if isinstance(run, AgentRun):
        run.take(call)
    return call


async def run_framework_call(services: Services, call: Call, running: RunnerSet) -> Outcome[Any]:
    """Run a call with the functions that its framework gave for it."""
    token = RUNNING.set(running)
    try:
        return _count_success(call, await services.runner.run(call))
    except ControlFlow as passing:
        passed = passing.error
    finally:
        reset_variable(RUNNING, token)
    try:
        raise passed
    finally:
        del passed


def run_framework_call_blocking(
    services: Services,
    settings: Settings,
    name: str,
    args: Mapping[str, Any] | None,
    *,
    turn: AgentRun | None,
    options: CallKeywords,
    running: RunnerSet,
) -> Outcome[Any]:
    """``run_framework_call`` for frameworks that block; in a context of its own."""
    detach_from_turn()
    RUNNING.set(running)
    call = make_framework_call(services, settings, name, args, turn=turn, options=options)
    try:
        return _count_success(call, services.runner.run_blocking(call))
    except ControlFlow as passing:
        passed = passing.error
    try:
        raise passed
    finally:
        del passed  # its traceback holds this frame


def _count_success(call: Call, outcome: Outcome[Any]) -> Outcome[Any]:
    """Count a success in the agent's run; a call inside another call is not one of the run's own."""
    if isinstance(call.turn, AgentRun) and call.parent is None and outcome.status == "succeeded":
        call.turn.note_success()
    return outcome
