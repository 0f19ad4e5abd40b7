"""Calls and attempts surrounded by instruments (``observe.instrument``).

A call that is driven while the runtime has instruments gets a ``CallSpan``; without one, attempts run bare. The hooks of a
blocking tool are entered in the OS thread that it runs in (``surround_body``), all others here.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from failsoft.core.model.fault import Code
from failsoft.core.redact.sanitise import mask_id
from failsoft.errors import FailsoftError
from failsoft.observe.instrument import CARRIED, OPENERS, CallInfo, CallSpan, Instruments
from failsoft.runtime.call.streams import AsyncStream, Stream
from failsoft.runtime.scope import ASKED
from failsoft.runtime.tools.framework_tool import FrameworkTool

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.call.model import AttemptResult, Call, HandleTurn
    from failsoft.runtime.tools.tool import Tool

# --- calls ------------------------------------------------------------------------------------------------------------


def _span(instruments: Instruments, call: Call) -> CallSpan:
    turn: object = call.turn
    asked, asked_id, thread = ASKED.get(), call.caller_id, call.thread
    if asked is not None and asked.tool is call.tool and not asked.taken:  # a guarded read: the model chose no id
        asked.taken = True
        asked_id, thread = mask_id(asked.id) if asked.id else None, thread or asked.thread
        turn = asked.turn() if turn is None and asked.turn is not None else turn
    info = CallInfo(
        call.tool.id,
        call.id,
        asked_id=asked_id or None,
        turn_id=getattr(turn, "id", None),
        turn=getattr(turn, "info", None),  # None also for a turn older than the instruments
        parent_id=None if call.parent is None else call.parent.id,
        thread=thread,
        tenant=call.tenant,
        arguments=_by_name(call),
        describe=lambda: call.tool.description,
        by_framework=isinstance(call.tool, FrameworkTool),
    )
    return CallSpan(instruments, info)


def _by_name(call: Call) -> Mapping[str, Any]:
    """The arguments of a call by name; those given by position get the names of the function's parameters."""
    if not call.args:
        return call.kwargs
    code = getattr(call.tool.fn, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    placed = zip_longest(names[: len(call.args)], call.args)
    return {name or f"argument {place}": value for place, (name, value) in enumerate(placed, 1)} | call.kwargs


def impossible_span(instruments: Instruments, outcome: Outcome[Any], turn: HandleTurn | None) -> CallSpan:
    """The instruments of a call that does not enter the pipeline."""
    fault = outcome.fault
    info = CallInfo(
        outcome.tool,
        outcome.id,
        turn_id=None if turn is None else turn.id,
        turn=getattr(turn, "info", None),
        parent_id=None,
        thread=None if turn is None else turn.thread,
        tenant=None if turn is None else turn.tenant,
        arguments={},
        known=fault is None or fault.category != "tool_unavailable",
    )
    return CallSpan(instruments, info)


async def drive(instruments: Instruments, call: Call, driving: Coroutine[Any, Any, Outcome[Any]]) -> Outcome[Any]:
    """Drive a call on this event loop, surrounded by instruments."""
    call.span = span = _span(instruments, call)
    entered = span.enter_call()
    try:
        outcome = await driving
    except BaseException as error:
        entered.exit(error)
        raise
    span.end_call(entered, outcome, None if outcome.fault is None else outcome.fault.cause)
    return outcome


def drive_blocking(instruments: Instruments, call: Call, driving: Callable[[], Outcome[Any]]) -> Outcome[Any]:
    """Drive a call in this OS thread, surrounded by instruments."""
    call.span = span = _span(instruments, call)
    entered = span.enter_call()
    try:
        outcome = driving()
    except BaseException as error:
        entered.exit(error)
        raise
    span.end_call(entered, outcome, None if outcome.fault is None else outcome.fault.cause)
    return outcome


# --- attempts ---------------------------------------------------------------------------------------------------------


async def surround(
    span: CallSpan, call: Call, tool: Tool, running: Coroutine[Any, Any, AttemptResult]
) -> AttemptResult:
    """Await an attempt that runs in this task, or in another process."""
    number = call.attempts_ended + 1
    entered = span.enter_attempt(tool.id, number)
    elsewhere = tool.target is not None or tool.command is not None
    token = CARRIED.set(span.carrier(tool.id, number)) if elsewhere else None
    openers = OPENERS.set(span.openers) if tool.target is not None else None
    try:
        result = await running
    except BaseException as error:
        entered.exit(error)
        raise
    finally:
        if token is not None:
            CARRIED.reset(token)
        if openers is not None:
            OPENERS.reset(openers)
    entered.exit(_error(result))
    if result.still_running:
        span.abandoned(tool.id, number)
    _surround_items(span, tool, number, result.value)
    return result


async def watch(span: CallSpan, call: Call, tool: Tool, running: Coroutine[Any, Any, AttemptResult]) -> AttemptResult:
    """Await an attempt whose hooks are entered in the OS thread that it runs in."""
    number = call.attempts_ended + 1
    result = await running
    if result.still_running:
        span.abandoned(tool.id, number)
    return result


def surround_body(span: CallSpan, tool: Tool, number: int, run: Callable[[], Any]) -> Any:
    """Run a tool in this OS thread."""
    entered = span.enter_attempt(tool.id, number)
    try:
        value = run()
    except BaseException as error:
        entered.exit(error)
        raise
    entered.exit()
    _surround_items(span, tool, number, value)
    return value


def _surround_items(span: CallSpan, tool: Tool, number: int, value: Any) -> None:
    """Surround the items of a stream that are read after the attempt."""
    if type(value) in (AsyncStream, Stream):
        value.surround = lambda: span.enter_item(tool.id, number)


def _error(result: AttemptResult) -> BaseException | None:
    """The exception that ended an attempt, or one made from its fault; None if there is a value."""
    if result.error is not None or result.fault is None:
        return result.error
    kind = TimeoutError if result.fault.code is Code.DEADLINE_EXCEEDED else FailsoftError
    return kind(result.fault.message)
