"""The happy path of a call by name, in a turn or out of one; and of a call that blocks.

``guard`` has the same steps written out in place: a coroutine less is worth a fifth of what a guarded function costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failsoft.core.model.outcome import Outcome, succeed
from failsoft.core.model.partial import Partial
from failsoft.observe.events import CALL_SUCCEEDED
from failsoft.runtime.call.attempt import run_body, start_async
from failsoft.runtime.call.attempt_blocking import run_function
from failsoft.runtime.call.first_attempt import error_result, misfit_result, value_result
from failsoft.runtime.call.tracebacks import was_entered, without_frames
from failsoft.runtime.execution.deadline import Box, finish, step
from failsoft.runtime.fastpath.retry import retry_fast
from failsoft.runtime.scope import LIGHT, SCOPE, leave, made_call_of

if TYPE_CHECKING:
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.model import Call, TurnCall
    from failsoft.runtime.fastpath.ports import FastCallServices, FastServices
    from failsoft.runtime.tools.tool import FastCall, Tool


light, enter, reset = LIGHT.get, LIGHT.set, LIGHT.reset


def make_fast_call(rt: FastServices, tool: Tool) -> FastCall:  # noqa: C901 - the happy path, written out
    """A function that runs a plain async tool once; what is not a success at once goes on as a whole call."""
    fn, timeout, now, tool_id, label = tool.fn, float(tool.timeout), rt.time.now, tool.id, tool.label
    pending, trace, runner = rt.log.trace.pending, rt.log.trace, rt.runner
    watched = (
        tool.safe_to_repeat is None
    )  # whether its inner calls acted matters, and nobody has said what the tool does

    async def quick(  # noqa: C901, PLR0912
        kwargs: Mapping[str, Any], id: str | int, ticket: Ticket, handle: TurnCall | None = None
    ) -> Outcome[Any]:
        started = now() if handle is None else handle.started
        running = None
        if watched and handle is None:
            if light() is not None:  # an inner call: what it does must be told
                return without_frames(await runner.run(runner.open_call(tool, (), dict(kwargs), started, id)))
            box: Box = [started, None, runner, tool, (), kwargs, started]
            token = enter(box)
        else:
            box, token = [started, None], None
        try:
            try:
                running = fn(**kwargs)
                stepper = step(running, box)
                for waiting in stepper:
                    if handle is not None:
                        handle.suspend()
                    whose = id if handle is None else handle
                    await finish(stepper, waiting, tool, timeout, box, rt.places.deadline_queue, whose)
            finally:
                if token is not None:
                    try:
                        reset(token)
                    except ValueError:  # an orphan goes on in another context
                        leave(LIGHT, token)
        except Exception as error:
            if handle is None:
                made = made_call_of(box)
                rest = retry_fast(rt, tool, (), kwargs, id, ticket, error, started, running is not None, made)
            else:
                whole = handle.full_call()
                rest = rt.runner.drive(
                    whole, error_result(rt, whole, started, error, entered=running is not None), ticket
                )
        except BaseException as error:
            rt.runner.on_caller_cancelled(_full_call(rt, tool, kwargs, id, started, handle), error)
            raise
        else:
            ended = now()
            value, taken = box[0], ended - started
            if taken <= timeout and tool.closed_ticket is ticket and type(value) is not Partial:
                pending.append(
                    (CALL_SUCCEEDED, ended, tool_id, id, None if handle is None else handle.turn.id, started)
                )
                if len(pending) > trace.limit:
                    trace.drain()
                return succeed(id, tool_id, value, 1, taken, label)
            whole = made_call_of(box) or _full_call(rt, tool, kwargs, id, started, handle)
            whole.set_id(id)
            rest = rt.runner.drive(whole, value_result(rt, whole, started, ended, value), ticket)
        # Out here, so that the errors of further attempts do not get the first one as their context.
        if handle is not None:
            handle.suspend()
        outcome = await rest
        return without_frames(outcome) if handle is None else outcome

    quick.__qualname__ = f"rt.call({tool_id!r}, …)"  # what Python names if its await is forgotten
    return quick


def run_fast_blocking(rt: FastCallServices, call: Call, ticket: Ticket) -> Outcome[Any]:
    """Run a plain call for a caller that blocks; what is not a success at once goes on as a whole call."""
    tool = call.tool
    before = SCOPE.get()
    try:  # an interrupt right after the scope was set must not leave it set
        SCOPE.set(call)
        rt.in_flight.calls[call] = None
        first = run_function(rt, call, tool, tool.configured_timeout)
    except BaseException as error:
        call.report_effect(tool, "unknown")
        rt.runner.on_caller_cancelled(call, error)
        raise
    finally:
        try:
            SCOPE.set(before)
        finally:
            rt.in_flight.calls.pop(call, None)
    first = first.with_queue_time(first.started - call.started)
    at_once = first.error is None is first.fault and first.value.__class__ is not Partial and not first.notes
    if at_once and tool.closed_ticket is ticket:
        return succeed_fast(rt, call, first.started, first.ended, first.value)
    caller = start_async if tool.kind == "async" else run_body
    if isinstance(first.error, TypeError) and not was_entered(first.error, caller):
        first = misfit_result(rt, call) or first
    return rt.runner.drive_blocking(call, first, ticket)


async def run_fast(rt: FastCallServices, call: Call, ticket: Ticket) -> Outcome[Any]:
    """The same for one that awaits. Unlike on the happy path, calls made inside know that they are."""
    tool, started = call.tool, rt.time.now()
    box: Box = [started, None]
    running = None
    token = SCOPE.set(call)
    try:
        running = tool.fn(*call.args, **call.kwargs)
        stepper = step(running, box)
        for waiting in stepper:
            await finish(stepper, waiting, tool, tool.timeout, box, rt.places.deadline_queue, call.raw_id)
    except Exception as error:
        rest = rt.runner.drive(call, error_result(rt, call, started, error, entered=running is not None), ticket)
    except BaseException as error:
        call.report_effect(tool, "unknown")
        rt.runner.on_caller_cancelled(call, error)
        raise
    else:
        ended, value = rt.time.now(), box[0]
        if ended - started <= tool.timeout and value.__class__ is not Partial and tool.closed_ticket is ticket:
            return succeed_fast(rt, call, started, ended, value)
        rest = rt.runner.drive(call, value_result(rt, call, started, ended, value), ticket)
    finally:
        leave(SCOPE, token)
    return await rest  # out here, and nothing else kept: the error's traceback holds this frame


def is_fast_eligible(rt: FastCallServices, call: Call) -> bool:
    """True if a call may take the short way: no call is around it, its thread has no notes, nothing is to be recorded."""
    if call.parent is not None or call.timeout is not None or call.offer is not None or not call.fits_exactly:
        return False
    if rt.books.ledger is not None and rt.books.ledger.wants(call, call.tool):
        return False
    return call.thread is None or rt.books.conversations.find(call) is None


def succeed_fast(rt: FastCallServices, call: Call, started: float, ended: float, value: Any) -> Outcome[Any]:
    """The outcome of a plain call that has succeeded at once."""
    tool, id, trace = call.tool, call.raw_id, rt.log.trace
    call.report_effect(tool, "happened")
    turn_id = None if call.turn is None else call.turn.id
    trace.record((CALL_SUCCEEDED, ended, tool.id, id, turn_id, started))
    if len(trace.pending) > trace.limit:
        trace.drain()
    if call.thread is not None:
        rt.books.conversations.note_success(call)  # a call beside it may have left notes
    return succeed(id, tool.id, value, 1, ended - call.started, tool.label)


def _full_call(
    rt: FastServices, tool: Tool, kwargs: Mapping[str, Any], id: str | int, started: float, handle: TurnCall | None
) -> Call:
    if handle is not None:
        return handle.full_call()
    return rt.runner.open_call(tool, (), dict(kwargs), started, id)
