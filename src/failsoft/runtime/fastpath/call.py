"""The fast path of a call by name, and of a call that is already a ``Call``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failsoft.core.classify.returned import PLAIN_TYPES, is_plain
from failsoft.core.model.outcome import Outcome, succeed
from failsoft.observe.events import CALL_SUCCEEDED
from failsoft.runtime.call.attempt_blocking import run_function
from failsoft.runtime.call.attempt_on_loop import run_coroutine
from failsoft.runtime.call.first_attempt import misfit_result
from failsoft.runtime.call.model import Invoke
from failsoft.runtime.call.returned_value import is_success
from failsoft.runtime.call.tool_body import run_body, start_async
from failsoft.runtime.call.tracebacks import was_entered, without_frames
from failsoft.runtime.execution.deadline import finish
from failsoft.runtime.execution.stepping import step
from failsoft.runtime.fastpath.retry import retry_fast
from failsoft.runtime.fastpath.success import check_value, end_call, end_inner_attempt
from failsoft.runtime.scope import SCOPE, call_of, report_inner_write, reset_variable

if TYPE_CHECKING:
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.fastpath.ports import AwaitedCallServices, FastCallServices, FastServices
    from failsoft.runtime.scope import LightAttempt
    from failsoft.runtime.tools.tool import FastCall, Tool


scope, enter, reset = SCOPE.get, SCOPE.set, SCOPE.reset


def make_fast_call(rt: FastServices, tool: Tool) -> FastCall:
    """Return a function that runs a plain async tool by name. Unless it succeeds at once, the pipeline continues."""
    fn, timeout, now, tool_id, label = tool.fn, float(tool.timeout), rt.time.now, tool.id, tool.label
    pending, trace = rt.log.trace.pending, rt.log.trace
    site, success = (rt.runner, tool), (CALL_SUCCEEDED, tool.id)

    async def by_name(kwargs: Mapping[str, Any], id: int, ticket: Ticket) -> Outcome[Any]:
        outer = scope()
        if outer is not None and not (type(outer) is list and tool.only_reads):  # awaited in another scope
            return without_frames(await rt.runner.run(rt.runner.open_call(tool, (), dict(kwargs), now(), id)))
        started, running = now(), None
        box: LightAttempt = [None, id, started, site, (), kwargs, outer]
        token = enter(box)
        try:
            try:
                # FAST: an attempt in place saves 38,000 of 54,000 instructions.
                running = fn(**kwargs)
                stepper = step(running, box)
                for waiting in stepper:
                    await finish(stepper, waiting, tool, timeout, started, rt.places.deadline_queue, box)
            finally:
                try:
                    reset(token)
                except ValueError:  # an abandoned tool runs on in another context
                    reset_variable(SCOPE, token)
        except Exception as error:
            rest = retry_fast(rt, box, ticket, error, entered=running is not None)
        except BaseException as error:
            report_inner_write(box, tool)
            rt.runner.on_caller_cancelled(call_of(box), error)
            raise
        else:
            ended = now()
            value, taken = box[0], ended - started
            if (
                taken <= timeout
                and tool.closed_ticket is ticket
                and (type(value) in PLAIN_TYPES or is_plain(type(value)))
            ):
                if outer is not None:
                    end_inner_attempt(trace, tool, box, ended)
                else:  # FAST: ``record_success`` in place saves 2,600 of 18,800 instructions.
                    pending.append((success, ended, tool_id, id, None, started))
                    if id >= trace.due:
                        trace.drain_if_many(id)
                return succeed(id, tool_id, value, 1, taken, label)
            rest = check_value(rt, box, ticket, ended)
        # Outside of ``except``: the first error must not become the context of later ones.
        return without_frames(await rest)

    by_name.__qualname__ = f"rt.call({tool_id!r}, …)"  # shown in Python's warning if the await is forgotten
    return by_name


def run_fast_blocking(rt: FastCallServices, call: Call, ticket: Ticket) -> Outcome[Any]:
    """Run a plain call for a caller that blocks. Unless it succeeds at once, the pipeline continues."""
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
    at_once = first.error is None is first.fault and is_success(tool, first.value) and not first.notes
    if at_once and tool.closed_ticket is ticket:
        return succeed_fast(rt, call, first.started, first.ended, first.value)
    caller = start_async if tool.kind == "async" else run_body
    if isinstance(first.error, TypeError) and not was_entered(first.error, caller):
        first = misfit_result(rt, call) or first
    return rt.runner.drive_blocking(call, first, ticket)


async def run_fast(rt: AwaitedCallServices, call: Call, ticket: Ticket) -> Outcome[Any]:
    """``run_fast_blocking`` for a caller that awaits."""
    tool = call.tool
    token = SCOPE.set(call)
    try:
        first = await run_coroutine(rt, call, Invoke(tool, tool.configured_timeout))
    except BaseException as error:
        call.report_effect(tool, "unknown")
        rt.runner.on_caller_cancelled(call, error)
        raise
    finally:
        reset_variable(SCOPE, token)
    if first.error is None is first.fault and is_success(tool, first.value) and tool.closed_ticket is ticket:
        return succeed_fast(rt, call, first.started, first.ended, first.value)
    if isinstance(first.error, TypeError) and not was_entered(first.error, run_coroutine):
        first = misfit_result(rt, call) or first
    rest = rt.runner.drive(call, first, ticket)
    first = None  # type: ignore[assignment]  # its error's traceback holds this frame
    return await rest


def is_fast_eligible(rt: AwaitedCallServices, call: Call) -> bool:
    """True if a call may take the fast path: no thread notes, arguments that fit, nothing to record or count."""
    if call.timeout is not None or call.offer is not None or not call.fits_exactly:
        return False
    if call.turn is not None and call.turn.allowance is not None:
        return False
    if rt.books.cases.checks_writes and call.tool.is_write and (call.caller_id or call.thread) is not None:
        return False
    return call.thread is None or rt.books.conversations.find(call) is None


def succeed_fast(rt: AwaitedCallServices, call: Call, started: float, ended: float, value: Any) -> Outcome[Any]:
    """Return the outcome of a plain call that succeeded at once."""
    end_call(rt.log.trace, call, started, ended)
    outcome = succeed(call.raw_id, call.tool.id, value, 1, ended - call.started, call.tool.label)
    if call.thread is not None:
        rt.books.conversations.note_success(call)  # a concurrent call may have made notes
        if repeats := rt.books.conversations.note_value(call, value):
            outcome.set_repeats(repeats)
    return outcome
