"""The function of a tool, run in the current OS thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from failsoft.runtime.call.instrumented import surround_body
from failsoft.runtime.call.model import AttemptResult, Call
from failsoft.runtime.call.streams import begin_blocking
from failsoft.runtime.execution.blocking_loop import run_on_loop_thread
from failsoft.runtime.execution.running_tasks import note_running_tasks
from failsoft.runtime.scope import find_caller
from failsoft.runtime.tools.framework_tool import FrameworkFunction, run_here

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import AttemptServices
    from failsoft.runtime.tools.tool import Tool


def run_tool(rt: AttemptServices, tool: Tool, call: Call, number: int) -> Any:
    """Run a tool in this OS thread, surrounded by the call's instruments if it has any; ``number`` is the attempt's."""
    if call.span is None:
        return run_body(rt, tool, call)
    return surround_body(call.span, tool, number, partial(run_body, rt, tool, call))


def run_body(rt: AttemptServices, tool: Tool, call: Call) -> Any:
    """Run a tool: a stream up to its first item, an async tool on the event loop of another OS thread."""
    fn, args, arguments = tool.fn, call.args, call.arguments(rt.time, tool)
    if tool.kind == "sync":
        return fn(*args, **arguments)
    if tool.kind == "stream":
        return begin_blocking(fn(*args, **arguments))
    return (
        run_here(fn, arguments)
        if isinstance(fn, FrameworkFunction)
        else run_on_loop_thread(lambda: _note_tasks(start_async(fn, args, arguments)))
    )


def start_async(
    fn: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...], arguments: Mapping[str, Any]
) -> Coroutine[Any, Any, Any]:
    """Call an async tool. The frame of this function shows in a traceback whether the arguments fitted."""
    return fn(*args, **arguments)


async def _note_tasks(running: Coroutine[Any, Any, Any]) -> Any:
    """Await a tool on an event loop that its caller does not see; if it fails, count its tasks that still run."""
    try:
        return await running
    except Exception:
        if (caller := find_caller()) is not None:
            note_running_tasks(caller)
        raise


def run_inline(rt: AttemptServices, call: Call, tool: Tool) -> AttemptResult:
    """Run a tool without a deadline."""
    started = rt.time.now()
    try:
        value = run_tool(rt, tool, call, call.attempts_ended + 1)
    except Exception as error:
        return AttemptResult(started, rt.time.now(), error=error)
    return AttemptResult(started, rt.time.now(), value)
