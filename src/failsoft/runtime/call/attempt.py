"""One attempt, awaited: a slot, a deadline, and whatever the tool is made of. The answer is always an ``AttemptResult``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType, CoroutineType
from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.core.model.durations import text
from failsoft.core.model.fault import Effect, Fault
from failsoft.observe import events
from failsoft.runtime.call.model import AttemptResult, Call, Invoke
from failsoft.runtime.call.streams import begin, begin_blocking
from failsoft.runtime.execution.blocking_loop import run_on_loop_thread
from failsoft.runtime.execution.clock import outside_finished, outside_started
from failsoft.runtime.execution.deadline import Box, Expired, finish, step
from failsoft.runtime.execution.thread_pool import Job
from failsoft.runtime.tools.framework_tool import FrameworkFunction, run_here

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices, CallEvents
    from failsoft.runtime.execution.processes.reply import Reply
    from failsoft.runtime.tools.tool import Tool


LATE = 0.25  # seconds after which a deadline that fires late means that the loop was blocked
UNAWAITED = (CoroutineType, AsyncGeneratorType, asyncio.Future)


def attempt(rt: AttemptServices, call: Call, invoke: Invoke) -> Coroutine[Any, Any, AttemptResult]:
    """Run the tool once."""
    tool = invoke.tool
    if tool.fast_eligible and tool.kind == "async":
        return run_coroutine(rt, call, invoke)
    return _attempt(rt, call, invoke)


async def _attempt(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    tool = invoke.tool
    if tool.slots is None or has_slot(call, tool):
        return await _run(rt, call, invoke)
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> bool:
        return _resolve_threadsafe(loop, ready, None)

    try:
        answer = tool.slots.acquire(wake)
        if answer == "full":
            return _not_run(rt, builtin_faults.queue_full(tool.id, tool.slots.waiting))
        if answer == "queued":
            call.waiting = True
            await ready
            call.begin()
        return await _run(rt, call, invoke)
    finally:
        try:
            tool.slots.release(wake)
        except BaseException:  # an interrupt, perhaps before anything was done
            tool.slots.release(wake)
            raise


def has_slot(call: Call, tool: Tool) -> bool:
    """A call inside a call of the same tool is covered by that one's slot (R24)."""
    parent = call.parent
    while parent is not None:
        if parent.tool.slots is tool.slots:
            return True
        parent = parent.parent
    return False


async def _run(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    tool, timeout = invoke
    limit = None if math.isinf(timeout) else timeout
    if tool.target is not None:
        arguments, options = call.arguments(rt.time, tool), tool.options.isolation
        call.waiting = True  # for a process that is ready
        reply = await rt.places.workers.run(
            tool.target, call.args, arguments, timeout=limit, options=options, begun=call.begin
        )  # fmt: skip
        call.begin()  # or it never will
        return process_result(rt, reply, timeout, "process")
    if tool.command is not None:
        call.waiting = True
        reply = await rt.places.workers.run_command(
            tool.command, call.arguments(rt.time, tool), timeout=limit, begun=call.begin
        )  # fmt: skip
        call.begin()
        return process_result(rt, reply, timeout, "command")
    if tool.kind == "async":
        return await run_coroutine(rt, call, invoke)
    if tool.kind == "async stream":
        return await run_coroutine(
            rt, call, invoke, lambda: begin(tool.fn(*call.args, **call.arguments(rt.time, tool)))
        )
    if math.isinf(timeout):
        return await _awaited(rt, call, invoke, run_inline(rt, call, tool))
    return await _awaited(rt, call, invoke, await _threaded(rt, call, invoke))


async def run_coroutine(
    rt: AttemptServices,
    call: Call,
    invoke: Invoke,
    start: Callable[[], Coroutine[Any, Any, Any]] | None = None,
    began: float | None = None,
) -> AttemptResult:
    """Step a coroutine inside this task, under the tool's deadline: the tool's own, or one that stands for it."""
    tool, timeout = invoke
    started = rt.time.now() if began is None else began
    box: Box = [None]
    try:
        running = start() if start is not None else tool.fn(*call.args, **call.arguments(rt.time, tool))
        stepper = step(running, box)
        for waiting in stepper:
            await finish(stepper, waiting, tool, timeout, started, rt.places.deadline_queue, call)
    except Expired as expired:
        return timeout_result(rt, call, tool, started, timeout, expired)
    except Exception as error:
        return AttemptResult(started, rt.time.now(), error=error)
    ended = rt.time.now()
    if ended - started > timeout:
        return blocked_loop_result(rt, call, tool, started, ended, timeout)
    return AttemptResult(started, ended, box[0])


def timeout_result(
    rt: AttemptServices, call: Call, tool: Tool, started: float, timeout: float, expired: Expired
) -> AttemptResult:
    """The deadline has passed; a tool that did not let itself be cancelled is reported."""
    if expired.orphan is not None:
        emit_abandoned(rt.log, call, tool)
    ended = rt.time.now()
    effect: Effect = "happened" if expired.late else "unknown"
    overdue = ended - started - timeout
    fault = builtin_faults.tool_timeout(timeout, effect=effect)
    if overdue > LATE and tool.kind in ("async", "async stream"):  # a deadline fires at once on a loop that turns
        fault = fault._replace(reason=_blocked_reason(tool.id, overdue))
    return AttemptResult(started, ended, fault=fault, still_running=expired.orphan is not None)


def emit_abandoned(log: CallEvents, call: Call, tool: Tool) -> None:
    """An attempt of this tool goes on by itself."""
    log.emit(events.TOOL_ORPHANED, tool, call, {"message": f"{tool.id} did not let itself be cancelled"})


def blocked_loop_result(
    rt: AttemptServices, call: Call, tool: Tool, started: float, ended: float, timeout: float
) -> AttemptResult:
    """It has a value, but its deadline could not even be noticed: somebody kept the event loop busy (T8)."""
    rt.log.emit(
        events.LOOP_BLOCKED, tool, call,
        {
            "message": f"The event loop was blocked while {tool.id} ran: use def instead of async def for tools that block",
            "blocked_ms": round((ended - started) * 1000, 3),
        },
    )  # fmt: skip
    reason = _blocked_reason(tool.id, ended - started)
    return AttemptResult(
        started, ended, fault=builtin_faults.tool_timeout(timeout, effect="happened")._replace(reason=reason)
    )


def _blocked_reason(tool: str, seconds: float) -> str:
    """The reason for a timeout that was noticed too late: the event loop was blocked for so many seconds."""
    return (
        f"The event loop was blocked for {text(round(seconds, 3))} while {tool} ran: write a tool that blocks as def, not "
        "async def, or await asyncio.to_thread(…) in it"
    )


def process_result(rt: AttemptServices, reply: Reply, timeout: float, isolation: str) -> AttemptResult:
    """Convert the reply of a process into an attempt result."""
    ended = rt.time.now()
    fault = None
    if reply.kind in ("timeout", "late"):
        fault = builtin_faults.tool_timeout(timeout, effect="happened" if reply.kind == "late" else "unknown")
    elif reply.kind == "cancelled":
        fault = builtin_faults.cancelled(started=reply.started is not None)
    notes = {"isolation": isolation, "pid": reply.pid, "killed": reply.killed}
    ran = reply.started is not None
    return AttemptResult(ended - reply.duration, ended, reply.value, reply.error, fault, ran, notes)


def run_body(rt: AttemptServices, tool: Tool, call: Call) -> Any:
    """A blocking tool itself; a stream of one up to its first item. An async one is awaited beside its caller."""
    fn, args, arguments = tool.fn, call.args, call.arguments(rt.time, tool)
    if tool.kind == "sync":
        return fn(*args, **arguments)
    if tool.kind == "stream":
        return begin_blocking(fn(*args, **arguments))
    return (
        run_here(fn, arguments)
        if isinstance(fn, FrameworkFunction)
        else run_on_loop_thread(lambda: start_async(fn, args, arguments))
    )


def start_async(
    fn: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...], arguments: Mapping[str, Any]
) -> Coroutine[Any, Any, Any]:
    """Call an async tool; a frame of its own shows in a traceback whether the tool took its arguments."""
    return fn(*args, **arguments)


def run_inline(rt: AttemptServices, call: Call, tool: Tool) -> AttemptResult:
    """Run a blocking tool right here."""
    started = rt.time.now()
    try:
        value = run_body(rt, tool, call)
    except Exception as error:
        return AttemptResult(started, rt.time.now(), error=error)
    return AttemptResult(started, rt.time.now(), value)


async def _awaited(rt: AttemptServices, call: Call, invoke: Invoke, ended: AttemptResult) -> AttemptResult:
    """Await a coroutine that a plain function has returned, under the same deadline."""
    value = ended.value
    if isinstance(value, CoroutineType):
        return await run_coroutine(rt, call, invoke, lambda: value, ended.started)
    return refuse_awaitable(invoke.tool, ended)


def refuse_awaitable(tool: Tool, ended: AttemptResult) -> AttemptResult:
    """The end of a plain function; what it has brought must not be something that is still to be awaited."""
    return ended._replace(fault=unawaited(tool, ended.value)) if isinstance(ended.value, UNAWAITED) else ended


async def _threaded(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    tool = invoke.tool
    loop = asyncio.get_running_loop()
    began: asyncio.Future[float] = loop.create_future()
    ended: asyncio.Future[None] = loop.create_future()

    def begin() -> None:
        call.begin()
        _resolve_threadsafe(loop, began, rt.time.now())

    def run() -> Any:
        begin()
        return run_body(rt, tool, call)

    def done(job: Job) -> None:
        if job.refused:
            begin()
        _resolve_threadsafe(loop, ended, None)
        over()  # only now: virtual time must not jump while nobody has been told

    over = _once(lambda: outside_finished(loop))
    call.waiting = True
    job = rt.places.thread_pool.submit(run, done)
    if job is None:
        call.begin()
        return _not_run(rt, builtin_faults.thread_limit(tool.id, rt.places.thread_pool.abandoned))
    call.withdraw = partial(rt.places.thread_pool.withdraw, job)
    outside_started(loop)

    async def wait() -> Any:
        await ended
        if job.error is not None:
            raise job.error
        return job.value

    try:
        started = await began  # waiting for a thread is not tool time (R27)
        if job.refused:
            over()
            return _not_run(rt, builtin_faults.thread_limit(tool.id, rt.places.thread_pool.abandoned))
        result = await run_coroutine(rt, call, invoke, wait, started)
    except BaseException:
        if _abandon(rt, call, tool, job):
            call.begin()  # the thread may not have come to say so yet
        over()
        raise
    finally:
        call.withdraw = None
    if ended.cancelled() and _abandon(rt, call, tool, job):  # by the deadline
        result = result._replace(still_running=True)
    over()  # nobody waits for the thread any more
    return result


def _abandon(rt: AttemptServices, call: Call, tool: Tool, job: Job) -> bool:
    """Wait no longer for a thread. True if it is running and goes on."""
    is_running = rt.places.thread_pool.abandon(job)
    if is_running:
        rt.log.emit(events.TOOL_ORPHANED, tool, call, {"message": f"{tool.id} goes on in its thread"})
    return is_running


def _once(do: Callable[[], None]) -> Callable[[], None]:
    left = [do]  # a thread and its caller may both come to the end: popping is atomic

    def over() -> None:
        with suppress(IndexError):
            left.pop()()

    return over


def unawaited(tool: Tool, value: Any) -> Fault | None:
    """A function that hands back what is still to be awaited was not protected at all (T15)."""
    if isinstance(value, CoroutineType):
        value.close()
    elif not isinstance(value, UNAWAITED):
        return None
    return builtin_faults.unprotected(tool.id)


def _not_run(rt: AttemptServices, fault: Fault) -> AttemptResult:
    now = rt.time.now()
    return AttemptResult(now, now, fault=fault, entered=False)


def _resolve_threadsafe(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], value: Any) -> bool:
    """Settle a future of another thread's; False if nobody waits: its loop has been closed."""
    try:
        loop.call_soon_threadsafe(_resolve, future, value)
    except RuntimeError:
        return False
    return True


def _resolve(future: asyncio.Future[Any], value: Any = None) -> None:
    if not future.done():
        future.set_result(value)
