"""One attempt for a caller on an event loop: how to wait for a slot, a process or a function there."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from failsoft.runtime.call.attempt_result import blocked_loop_result, refuse_awaitable, timeout_result
from failsoft.runtime.call.model import NO_NOTES, AttemptResult, Call, Invoke, make_result
from failsoft.runtime.call.streams import begin
from failsoft.runtime.call.thread_attempt import ThreadAttempt
from failsoft.runtime.call.tool_body import run_inline
from failsoft.runtime.execution.clock import outside_finished, outside_started
from failsoft.runtime.execution.deadline import Expired, finish
from failsoft.runtime.execution.idle import finish_watched
from failsoft.runtime.execution.stepping import Box, step
from failsoft.runtime.execution.waiting import LoopSignal, resolve_threadsafe

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.processes.reply import Reply


class OnLoop:
    """Waits without holding up the event loop."""

    __slots__ = ()

    signal = LoopSignal

    async def run_process(self, workers: Workers, call: Call, invoke: Invoke, arguments: Mapping[str, Any]) -> Reply:
        target, options = invoke.tool.target, invoke.tool.options.isolation
        assert target is not None
        return await workers.run(
            target,
            call.args,
            arguments,
            timeout=invoke.limit,
            options=options,
            begun=call.begin,
            activity=call.activity,
        )

    async def run_command(self, workers: Workers, call: Call, invoke: Invoke, arguments: Mapping[str, Any]) -> Reply:
        command = invoke.tool.command
        assert command is not None
        return await workers.run_command(
            command, arguments, timeout=invoke.limit, begun=call.begin, activity=call.activity
        )

    async def run_function(self, rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
        """Run an async tool in this task, and a blocking tool in an OS thread, or here if it has no deadline."""
        tool = invoke.tool
        if tool.kind == "async":
            return await run_coroutine(rt, call, invoke)
        if tool.kind == "async stream":
            return await run_coroutine(
                rt, call, invoke, lambda: begin(tool.fn(*call.args, **call.arguments(rt.time, tool)))
            )
        if math.isinf(invoke.timeout) and call.activity is None:
            return await _await_value(rt, call, invoke, run_inline(rt, call, tool))
        return await _await_value(rt, call, invoke, await _run_in_thread(rt, call, invoke))


async def run_coroutine(
    rt: AttemptServices,
    call: Call,
    invoke: Invoke,
    start: Callable[[], Coroutine[Any, Any, Any]] | None = None,
    began: float | None = None,
) -> AttemptResult:
    """Step a coroutine inside this task, under the tool's deadline. ``start`` makes the coroutine."""
    tool, timeout = invoke
    started = rt.time.now() if began is None else began
    box: Box = [None]
    activity = call.activity
    try:
        if activity is not None and start is None:
            activity.begin(started)
        running = start() if start is not None else tool.fn(*call.args, **call.arguments(rt.time, tool))
        stepper = step(running, box)
        for waiting in stepper:
            if activity is None:
                await finish(stepper, waiting, tool, timeout, started, rt.places.deadline_queue, call)
            else:
                await finish_watched(stepper, waiting, tool, timeout, started, rt.places.deadline_queue, call, activity)
    except Expired as expired:
        return timeout_result(rt, call, tool, started, timeout, expired)
    except Exception as error:
        return make_result((started, rt.time.now(), None, error, None, True, NO_NOTES, False))
    ended = rt.time.now()
    if activity is not None:
        activity.finish(ended)
    if ended - started > timeout or (activity is not None and activity.late):
        return blocked_loop_result(rt, call, tool, started, ended, timeout)
    return make_result((started, ended, box[0], None, None, True, NO_NOTES, False))


async def _await_value(rt: AttemptServices, call: Call, invoke: Invoke, ended: AttemptResult) -> AttemptResult:
    """Await a coroutine that a plain function has returned, under the same deadline."""
    value = ended.value
    if isinstance(value, CoroutineType):
        if call.activity is not None:
            call.activity.begin(ended.ended)
        return await run_coroutine(rt, call, invoke, lambda: value, ended.started)
    return refuse_awaitable(invoke.tool, ended)


async def _run_in_thread(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    loop = asyncio.get_running_loop()
    began: asyncio.Future[None] = loop.create_future()
    ended: asyncio.Future[None] = loop.create_future()
    over = _once(lambda: outside_finished(loop))

    def done() -> None:
        resolve_threadsafe(loop, ended, None)
        over()  # not earlier: virtual time must not jump before the caller can wake up

    thread = ThreadAttempt(rt, call, invoke.tool, lambda: resolve_threadsafe(loop, began, None), done)
    job = thread.submit()
    if job is None:
        return thread.refused()
    outside_started(loop)

    async def wait() -> Any:
        await ended
        if job.error is not None:
            raise job.error
        return job.value

    try:
        await began
        if job.refused:
            return thread.refused()
        result = await run_coroutine(rt, call, invoke, wait, thread.began)
        if ended.cancelled() and thread.abandon(job):  # the deadline has cancelled it
            result = result._replace(still_running=True)
    except BaseException:
        thread.abandon(job)
        raise
    finally:
        thread.close()
        over()
    return result


def _once(do: Callable[[], None]) -> Callable[[], None]:
    pending = [do]  # the thread and its caller may both call it: popping is atomic

    def over() -> None:
        with suppress(IndexError):
            pending.pop()()

    return over


ON_LOOP = OnLoop()
