"""One attempt of a call: take a slot, choose where the tool runs, wait for its end.

Rules
-----
- The algorithm is written once, for callers on an event loop and for callers that block. ``Waiting`` says how to wait.
- A call without a slot, a process or an OS thread is waiting (``call.waiting``). The wait does not count as the tool's
  time, and the attempt does not count as made.
- A call inside a call of the same tool uses that call's slot.
- The slot is always given back, and the result is always an ``AttemptResult``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Mapping
from time import monotonic as real_time
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.core.model import builtin_faults
from failsoft.runtime.call.attempt_blocking import BLOCKING
from failsoft.runtime.call.attempt_on_loop import ON_LOOP, run_coroutine
from failsoft.runtime.call.attempt_result import not_run, process_result
from failsoft.runtime.call.instrumented import surround, watch
from failsoft.runtime.call.model import AttemptResult, Call, Invoke
from failsoft.runtime.execution.waiting import Signal, run_blocking
from failsoft.runtime.progress import ACTIVITY, Activity
from failsoft.runtime.scope import reset_variable

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.processes.reply import Reply
    from failsoft.runtime.tools.tool import Tool


class Waiting(Protocol):
    """A way to wait for a slot, a process or a function."""

    @property
    def signal(self) -> Callable[[], Signal]: ...
    async def run_process(
        self, workers: Workers, call: Call, invoke: Invoke, arguments: Mapping[str, Any]
    ) -> Reply: ...
    async def run_command(
        self, workers: Workers, call: Call, invoke: Invoke, arguments: Mapping[str, Any]
    ) -> Reply: ...
    async def run_function(self, rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult: ...


def attempt(rt: AttemptServices, call: Call, invoke: Invoke) -> Coroutine[Any, Any, AttemptResult]:
    """Run the tool once, awaited on this event loop."""
    tool = invoke.tool
    if tool.fast_eligible and tool.kind == "async":
        return run_coroutine(rt, call, invoke)
    return _attempt(rt, ON_LOOP, call, invoke)


def attempt_blocking(rt: AttemptServices, call: Call, invoke: Invoke) -> AttemptResult:
    """Run the tool once, for a caller that blocks."""
    return run_blocking(_attempt(rt, BLOCKING, call, invoke))


def _attempt(rt: AttemptServices, waiting: Waiting, call: Call, invoke: Invoke) -> Coroutine[Any, Any, AttemptResult]:
    if invoke.tool.slots is None or _has_slot(call, invoke.tool):
        return _run(rt, waiting, call, invoke)
    return _run_in_slot(rt, waiting, call, invoke)


def _has_slot(call: Call, tool: Tool) -> bool:
    parent = call.parent
    while parent is not None:
        if parent.tool.slots is tool.slots:
            return True
        parent = parent.parent
    return False


async def _run_in_slot(rt: AttemptServices, waiting: Waiting, call: Call, invoke: Invoke) -> AttemptResult:
    tool, slots = invoke.tool, invoke.tool.slots
    assert slots is not None
    free = waiting.signal()
    wake = free.give
    try:
        answer = slots.acquire(wake)
        if answer == "full":
            return not_run(rt, builtin_faults.queue_full(tool.id, slots.waiting))
        if answer == "queued":
            call.waiting = True
            await free.wait()
            call.begin()
        return await _run(rt, waiting, call, invoke)
    finally:
        try:
            slots.release(wake)
        except BaseException:  # an interrupt, perhaps before the attempt has begun
            slots.release(wake)
            raise


def _run(rt: AttemptServices, waiting: Waiting, call: Call, invoke: Invoke) -> Coroutine[Any, Any, AttemptResult]:
    tool = invoke.tool
    elsewhere = tool.target is not None or tool.command is not None
    running = _run_in_process(rt, waiting, call, invoke) if elsewhere else waiting.run_function(rt, call, invoke)
    idle = tool.options.idle_timeout
    if idle is None and elsewhere and ACTIVITY.get() is not None:
        idle = math.inf  # passes progress on to the attempts around this one
    if idle is not None:
        running = _run_watched(call, Activity(idle, real_time if elsewhere else rt.time.now, ACTIVITY.get()), running)
    if call.span is None:
        return running
    own_thread = not elsewhere and (waiting is BLOCKING or tool.kind not in ("async", "async stream"))
    return watch(call.span, call, tool, running) if own_thread else surround(call.span, call, tool, running)


async def _run_watched(call: Call, activity: Activity, running: Coroutine[Any, Any, AttemptResult]) -> AttemptResult:
    """Let an attempt report progress."""
    call.activity = activity
    token = ACTIVITY.set(activity)
    try:
        return await running
    finally:
        reset_variable(ACTIVITY, token)
        activity.over = True
        call.activity = None


async def _run_in_process(rt: AttemptServices, waiting: Waiting, call: Call, invoke: Invoke) -> AttemptResult:
    tool, timeout = invoke
    run = waiting.run_process if tool.command is None else waiting.run_command
    arguments, workers = call.arguments(rt.time, tool), rt.places.workers
    call.waiting = True  # for a worker process that is ready
    reply = await run(workers, call, invoke, arguments)
    call.begin()  # otherwise the call would never count as begun
    return process_result(rt, call, reply, timeout, "process" if tool.command is None else "command")
