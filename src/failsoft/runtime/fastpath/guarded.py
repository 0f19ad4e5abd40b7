"""Guarded functions: what ``@rt.tool`` gives back. The happy path lives here, and nothing else does.

A call that succeeds at once reads its ticket and its scope, steps the tool and appends one record. Whatever is not
that simple (a circuit that is not closed, a turn, a limit, a failure, a tool that must not be repeated) goes to
``Runner.run`` or ``Runner.run_blocking``.
"""

from __future__ import annotations

import functools
import math
from asyncio import Task
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from failsoft.core.model.partial import Partial
from failsoft.errors import CircuitOpen
from failsoft.observe.events import CALL_SUCCEEDED
from failsoft.runtime.call.admission import refuse_from_cache
from failsoft.runtime.call.attempt import UNAWAITED
from failsoft.runtime.call.first_attempt import error_result, value_result
from failsoft.runtime.execution.deadline import Box, finish, step
from failsoft.runtime.fastpath.retry import retry_fast
from failsoft.runtime.scope import LIGHT, SCOPE, leave, made_call_of

if TYPE_CHECKING:
    from failsoft.runtime.fastpath.ports import FastServices
    from failsoft.runtime.tools.tool import Tool


scope, light, enter, reset = SCOPE.get, LIGHT.get, LIGHT.set, LIGHT.reset
_EMPTY: Box = []  # of a tool that is not watched
NO_KWARGS: dict[str, Any] = {}  # nobody changes a call's arguments


def guard(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    """The function that users call instead of the tool's own."""
    make = _guard_careful if tool.kind == "async" and tool.safe_to_repeat is False else _MAKERS[tool.kind]
    made = make(rt, tool)
    if hasattr(tool.fn, "__name__"):
        functools.update_wrapper(made, tool.fn)
    else:
        functools.update_wrapper(made, tool.fn, assigned=("__doc__",), updated=())
        made.__name__ = made.__qualname__ = tool.id
    made.__failsoft__ = tool  # type: ignore[attr-defined]  # how Runtime.call knows it again
    return made


def _guard_async(rt: FastServices, tool: Tool) -> Callable[..., Any]:  # noqa: C901 - the happy path, written out
    # No more than this: ten thousand may wait, and each has what is used here.
    now, trace, pending, runner = rt.time.now, rt.log.trace, rt.log.trace.pending, rt.runner
    watched = (
        tool.safe_to_repeat is None
    )  # whether its inner calls acted matters, and nobody has said what the tool does

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        ticket = tool.closed_ticket
        if ticket is None or scope() is not None or (watched and light() is not None):
            shut = tool.cached_refusal
            if shut is not None and scope() is None and (refused := refuse_from_cache(rt, tool, shut)) is not None:
                raise CircuitOpen(refused)
            return (await runner.run(runner.open_call(tool, args, kwargs))).unwrap()
        started = now()
        stepper = None
        if watched:
            box: Box = [started, None, runner, tool, args, kwargs, started]
            token = enter(box)
        else:
            box, token = [started, None], None
        try:
            try:
                # Without keywords no dict is made for them.
                stepper = step(tool.fn(*args, **kwargs) if kwargs else tool.fn(*args), box)
                for waiting in stepper:
                    kwargs = kwargs or NO_KWARGS
                    await finish(stepper, waiting, tool, tool.timeout, box, rt.places.deadline_queue)
            finally:
                if token is not None:
                    try:
                        reset(token)
                    except ValueError:  # an orphan goes on in another context
                        leave(LIGHT, token)
        except Exception as error:
            id, entered = box[1] or trace.number(), stepper is not None
            rest = retry_fast(rt, tool, args, kwargs, id, ticket, error, started, entered, made_call_of(box))
        except BaseException as error:
            runner.on_caller_cancelled(
                made_call_of(box) or runner.open_call(tool, args, kwargs, started, box[1]), error
            )
            raise
        else:
            ended = now()
            value = box[0]
            if ended - started <= tool.timeout and tool.closed_ticket is ticket and type(value) is not Partial:
                pending.append((CALL_SUCCEEDED, ended, tool.id, box[1], None, started))
                if len(pending) > trace.limit:
                    trace.drain()
                return value
            call = made_call_of(box) or runner.open_call(tool, args, kwargs, started, box[1])
            rest = runner.drive(call, value_result(rt, call, started, ended, value), ticket)
        # Out here, so that the errors of further attempts do not get the first one as their context.
        return (await rest).unwrap()

    return guarded


def _guard_careful(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    """Guard a tool that must not be repeated: it has to know whether an inner call has acted."""

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        shut = tool.cached_refusal
        if shut is not None and scope() is None and (refused := refuse_from_cache(rt, tool, shut)) is not None:
            raise CircuitOpen(refused)
        return (await rt.runner.run(rt.runner.open_call(tool, args, kwargs))).unwrap()

    return guarded


def _guard_sync(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    fn, now, tool_id, pending, trace = tool.fn, rt.time.now, tool.id, rt.log.trace.pending, rt.log.trace
    runner = rt.runner
    simple = math.isinf(tool.timeout) and tool.safe_to_repeat is not False
    watched = tool.safe_to_repeat is None

    def guarded(*args: Any, **kwargs: Any) -> Any:
        ticket = tool.closed_ticket
        if ticket is None or not simple or scope() is not None or (watched and light() is not None):
            shut = tool.cached_refusal
            if shut is not None and scope() is None and (refused := refuse_from_cache(rt, tool, shut)) is not None:
                raise CircuitOpen(refused)
            return runner.run_blocking(runner.open_call(tool, args, kwargs)).unwrap()
        started, token = now(), None
        box: Box = _EMPTY
        try:
            try:
                if watched:
                    box = [started, None, runner, tool, args, kwargs, started]
                    token = enter(box)
                value = fn(*args, **kwargs) if kwargs else fn(*args)
            finally:
                if token is not None:
                    reset(token)
                elif watched:  # an interrupt came when the box was entered already, and the token not there yet
                    enter(None)
        except Exception as error:
            call = made_call_of(box) or runner.open_call(tool, args, kwargs, started)
            first = error_result(rt, call, started, error, entered=False)
        except BaseException as error:
            runner.on_caller_cancelled(made_call_of(box) or runner.open_call(tool, args, kwargs, started), error)
            raise
        else:
            ended = now()
            if tool.closed_ticket is ticket and type(value) not in _ODD:
                pending.append((CALL_SUCCEEDED, ended, tool_id, None, None, started))
                if len(pending) > trace.limit:
                    trace.drain()
                return value
            call = made_call_of(box) or runner.open_call(tool, args, kwargs, started)
            first = value_result(rt, call, started, ended, value)
        return runner.drive_blocking(call, first, ticket).unwrap()

    return guarded


def _guard_async_stream(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    async def guarded(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        stream = (await rt.runner.run(rt.runner.open_call(tool, args, kwargs))).unwrap()
        try:
            async for item in stream:
                yield item
        finally:
            await stream.aclose()

    return guarded


def _guard_stream(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Iterator[Any]:
        stream = rt.runner.run_blocking(rt.runner.open_call(tool, args, kwargs)).unwrap()
        try:
            yield from stream
        finally:
            stream.close()

    return guarded


_ODD = (Partial, *UNAWAITED, Task)
_MAKERS: dict[str, Callable[[FastServices, Tool], Callable[..., Any]]] = {
    "async": _guard_async,
    "sync": _guard_sync,
    "async stream": _guard_async_stream,
    "stream": _guard_stream,
}
