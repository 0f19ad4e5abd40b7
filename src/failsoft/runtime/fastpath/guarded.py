"""Guarded functions, which ``@rt.tool`` returns. Only the happy path is here.

A call that succeeds at once reads its ticket and its scope, steps the tool and appends one record. Anything else (a circuit
that is not closed, a turn, a limit, a failure, a tool that must not be repeated) is passed to ``rt.run`` or
``rt.run_blocking``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from failsoft.core.classify.returned import PLAIN_TYPES, is_plain
from failsoft.errors import CircuitOpen
from failsoft.observe.events import CALL_SUCCEEDED
from failsoft.runtime.call.admission import renew_refusal
from failsoft.runtime.call.attempt_result import UNAWAITED
from failsoft.runtime.call.first_attempt import error_result, value_result
from failsoft.runtime.execution.deadline import finish
from failsoft.runtime.execution.stepping import step
from failsoft.runtime.fastpath.refusal import refuse_from_cache
from failsoft.runtime.fastpath.retry import retry_fast
from failsoft.runtime.fastpath.success import check_value, end_inner_attempt
from failsoft.runtime.scope import ASKED, SCOPE, call_of, report_inner_write, reset_variable

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.fastpath.ports import FastServices
    from failsoft.runtime.scope import LightAttempt
    from failsoft.runtime.tools.tool import Tool


scope, enter, reset = SCOPE.get, SCOPE.set, SCOPE.reset
NO_KWARGS: dict[str, Any] = {}  # shared: a call's arguments are never changed


def guard(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    """Return the guarded function of a tool."""
    careful = tool.safe_to_repeat is False or (tool.kind == "sync" and math.isfinite(tool.timeout))
    makers = _CAREFUL_MAKERS if careful else _MAKERS
    made = makers[tool.kind](rt, tool)
    if hasattr(tool.fn, "__name__"):
        functools.update_wrapper(made, tool.fn)
    else:
        functools.update_wrapper(made, tool.fn, assigned=("__doc__",), updated=())
        made.__name__ = made.__qualname__ = tool.id
    made.__failsoft__ = tool  # type: ignore[attr-defined]  # how Runtime.call knows it again
    return made


def _guard_async(rt: FastServices, tool: Tool) -> Callable[..., Any]:  # noqa: C901 - a call that ends at once ends here
    # Few local variables: ten thousand calls may be suspended here at a time.
    now, trace, pending, numbers = rt.time.now, rt.log.trace, rt.log.trace.pending, rt.log.trace.numbers
    fn, site, success = tool.fn, (rt.runner, tool), (CALL_SUCCEEDED, tool.id)

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        ticket, outer = tool.closed_ticket, scope()
        if ticket is None or (outer is not None and not (type(outer) is list and tool.only_reads)):
            cached = tool.cached_refusal
            if (
                cached is not None
                and outer is None
                and ((started := now()) < cached[1] or (cached := renew_refusal(rt, tool, started)) is not None)
            ):  # FAST: ``refuse_from_cache`` in place saves 700 of 9,600 instructions.
                id = next(numbers)
                pending.append((cached[2], started, tool.id, id, None, cached[0]))
                if id >= trace.due:
                    trace.drain_if_many(id)
                raise CircuitOpen(cached[0], id)
            return (await rt.runner.run(rt.runner.open_call(tool, args, kwargs))).unwrap()
        started, id, stepper = now(), next(numbers), None
        box: LightAttempt = [None, id, started, site, args, kwargs, outer]
        token = enter(box)
        try:
            try:
                # FAST: an attempt in place saves 36,000 of 45,800 instructions. Without keywords no dict is made for them.
                stepper = step(fn(*args, **kwargs) if kwargs else fn(*args), box)
                for waiting in stepper:
                    kwargs = box[5] = kwargs or NO_KWARGS
                    await finish(stepper, waiting, tool, tool.timeout, started, rt.places.deadline_queue, box)
            finally:
                try:
                    reset(token)
                except ValueError:  # an abandoned tool runs on in another context
                    reset_variable(SCOPE, token)
        except Exception as error:
            rest = retry_fast(rt, box, ticket, error, entered=stepper is not None)
        except BaseException as error:
            report_inner_write(box, tool)
            rt.runner.on_caller_cancelled(call_of(box), error)
            raise
        else:
            ended = now()
            value = box[0]
            if (
                ended - started <= tool.timeout
                and tool.closed_ticket is ticket
                and (type(value) in PLAIN_TYPES or is_plain(type(value)))
            ):
                if outer is not None:
                    end_inner_attempt(trace, tool, box, ended)
                else:  # FAST: ``record_success`` in place saves 2,500 of 12,400 instructions.
                    pending.append((success, ended, tool.id, id, None, started))
                    if id >= trace.due:
                        trace.drain_if_many(id)
                return value
            rest = check_value(rt, box, ticket, ended)
        # Outside of ``except``: the first error must not become the context of later ones.
        return (await rest).unwrap()

    return guarded


def _guard_async_careful(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    """Guard a tool that must not be repeated: its call must know whether an inner call has acted."""

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        cached = tool.cached_refusal
        if cached is not None and scope() is None and (refused := refuse_from_cache(rt, tool, cached)) is not None:
            raise CircuitOpen(*refused)
        return _unwrap(tool, await rt.runner.run(rt.runner.open_call(tool, args, kwargs)))

    return guarded


def _unwrap(tool: Tool, outcome: Outcome[Any]) -> Any:
    """Return the value, or raise the failure. A lost value is None, and the framework that runs the function is told."""
    if not outcome.value_known and (asked := ASKED.get()) is not None and asked.tool is tool:
        asked.valueless = outcome
    return outcome.unwrap()


def _guard_sync(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    now, trace, pending, numbers = rt.time.now, rt.log.trace, rt.log.trace.pending, rt.log.trace.numbers
    fn, tool_id, site, success = tool.fn, tool.id, (rt.runner, tool), (CALL_SUCCEEDED, tool.id)

    def guarded(*args: Any, **kwargs: Any) -> Any:
        ticket, outer = tool.closed_ticket, scope()
        if ticket is None or (outer is not None and not (type(outer) is list and tool.only_reads)):
            cached = tool.cached_refusal
            if cached is not None and outer is None and (refused := refuse_from_cache(rt, tool, cached)) is not None:
                raise CircuitOpen(*refused)
            return _unwrap(tool, rt.runner.run_blocking(rt.runner.open_call(tool, args, kwargs)))
        started, id = now(), next(numbers)
        box: LightAttempt = [None, id, started, site, args, kwargs, outer]
        try:
            try:
                token = enter(box)
                # FAST: an attempt in place saves 39,000 of 46,800 instructions.
                value = fn(*args, **kwargs) if kwargs else fn(*args)
            except BaseException:
                enter(outer)  # no ``reset``: an interrupt may have come before the token was stored
                raise
            reset(token)
        except Exception as error:
            call = call_of(box)
            first = error_result(rt, call, started, error, entered=False)
        except BaseException as error:
            report_inner_write(box, tool)
            rt.runner.on_caller_cancelled(call_of(box), error)
            raise
        else:
            ended = now()
            if tool.closed_ticket is ticket and (type(value) in PLAIN_TYPES or _is_finished(type(value))):
                if outer is not None:
                    end_inner_attempt(trace, tool, box, ended)
                else:  # FAST: ``record_success`` in place saves 2,500 of 9,600 instructions.
                    pending.append((success, ended, tool_id, id, None, started))
                    if id >= trace.due:
                        trace.drain_if_many(id)
                return value
            call = call_of(box)
            first = value_result(rt, call, started, ended, value)
        return rt.runner.drive_blocking(call, first, ticket).unwrap()

    return guarded


def _guard_sync_careful(rt: FastServices, tool: Tool) -> Callable[..., Any]:
    """Guard a blocking tool that must not be repeated, or that has a deadline and so needs an OS thread."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        cached = tool.cached_refusal
        if cached is not None and scope() is None and (refused := refuse_from_cache(rt, tool, cached)) is not None:
            raise CircuitOpen(*refused)
        return _unwrap(tool, rt.runner.run_blocking(rt.runner.open_call(tool, args, kwargs)))

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


def _is_finished(kind: type) -> bool:
    """True if the type of a value shows that it is no failure and need not be awaited."""
    return not issubclass(kind, UNAWAITED) and is_plain(kind)


_MAKERS: dict[str, Callable[[FastServices, Tool], Callable[..., Any]]] = {
    "async": _guard_async,
    "sync": _guard_sync,
    "async stream": _guard_async_stream,
    "stream": _guard_stream,
}
_CAREFUL_MAKERS = {**_MAKERS, "async": _guard_async_careful, "sync": _guard_sync_careful}
