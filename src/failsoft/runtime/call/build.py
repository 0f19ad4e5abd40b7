"""From what a caller says to a call that can run: its options read, its mistakes told as outcomes.

Rules
-----
- A tool's name and its arguments may come from a model: an unknown name and arguments that are no mapping are outcomes.
  What only a programmer writes (options, a function that is no tool) raises.
- A call of a framework's tool brings along what runs; the framework's own exceptions come out as they are (R21). If it
  succeeds at once, it takes the same short way as a guarded function's.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from contextvars import copy_context
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from failsoft.config.settings import merge_retry, refuse_lost_key, require_text_names
from failsoft.core.model import builtin_faults
from failsoft.core.model.durations import Duration, seconds
from failsoft.core.model.options import RetryOptions
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.sanitise import mask_id
from failsoft.errors import ManifestError
from failsoft.runtime.call.error_handler import decide_unknown_tool
from failsoft.runtime.call.model import AttemptResult, Call
from failsoft.runtime.call.tracebacks import without_frames
from failsoft.runtime.call.user_text import phrase
from failsoft.runtime.call_options import CallKeywords, refuse_options
from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.execution.blocking_loop import leave_turn
from failsoft.runtime.registry import declare
from failsoft.runtime.scope import SCOPE, leave
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.tools.framework_tool import RUNNING, FrameworkTool, FrameworkView, RunnerSet
from failsoft.runtime.tools.tool import count_as_write
from failsoft.runtime.turn.agent_run import AgentRun
from failsoft.runtime.turn.turn import Turn

if TYPE_CHECKING:
    from failsoft.config.settings import Settings
    from failsoft.runtime.services import Services
    from failsoft.runtime.tools.tool import Tool

T = TypeVar("T")

_TEXT = (str, NoneType)


def make_call(
    engine: Services,
    tool: Tool,
    args: Mapping[str, Any] | None,
    *,
    id: str | None = None,
    thread: str | None = None,
    tenant: str | None = None,
    timeout: Duration | None = None,
    retry: RetryOptions | Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    **unknown: object,
) -> Call:
    """A call with what was said about it."""
    if unknown:
        refuse_options(unknown, CallKeywords)
    if not (isinstance(id, _TEXT) and isinstance(thread, _TEXT) and isinstance(tenant, _TEXT)):
        require_text_names(tool.id, id=id, thread=thread, tenant=tenant)
    id = mask_id(id) if id else None
    call = engine.open_call(tool, (), {} if args is None else dict(args), id=id)
    call.caller_id, call.typed = id, True
    if thread:
        call.thread = thread
    if tenant:
        call.tenant = tenant
    if timeout is not None:
        try:
            call.timeout = seconds(timeout)
        except ValueError as error:
            raise ManifestError(f"{tool.id}: timeout: {error}") from None
    if retry is not None:
        call.retry = merge_retry(tool.options, retry)
    if idempotency_key is not None:
        refuse_lost_key(tool.options, idempotency_key)
        call.key = idempotency_key
    return call


def call_for_model(
    engine: Services, name: str, args: Mapping[str, Any], **options: Unpack[CallKeywords]
) -> Coroutine[Any, Any, Outcome[Any]]:
    """Call a tool that a model has asked for: one of which nothing is known counts as a write."""
    tool = engine.tools.get(name)
    if tool is None:
        return call_unknown_tool(engine, name, args, options.get("id"))
    call = make_call(engine, count_as_write(tool), args, **options)
    call.by_agent = True
    return run(engine, call)


async def run(engine: Services, call: Call) -> Outcome[Any]:
    """Run a call for somebody who wants its outcome."""
    return without_frames(await engine.run(call))


def run_blocking(engine: Services, call: Call) -> Outcome[Any]:
    """The same where nothing can be awaited."""
    engine.warn_of_clock()
    return without_frames(engine.run_blocking(call))


# --- calls that cannot run ------------------------------------------------------------------------------------------------


async def call_unknown_tool(engine: Services, tool: Any, args: Any, id: str | None) -> Outcome[Any]:
    """The outcome of a call of a tool that there is not."""
    if not isinstance(tool, str):
        engine.find(tool)  # raises: a function that is no tool is the caller's mistake
    require_text_names(tool, id=id)
    turn = SCOPE.get()
    if isinstance(turn, Turn) and turn.engine is engine and turn.loop is asyncio.get_running_loop():
        return await (turn.call(tool, args) if id is None else turn.call(tool, args, id=id))
    fault = builtin_faults.unknown_tool(tool, engine.tools)
    outcome = engine.unknown(mask_id(id) if id else engine.trace.number(), builtin_faults.quote(tool), fault)
    for event_type, fields in await decide_unknown_tool(engine, outcome):
        engine.record_event(event_type, None, outcome.id, None, fields)
    engine.drain_if_due()
    if engine.phraser is not None:
        await phrase(engine, None, outcome)
    if outcome.escalated:
        engine.notify_escalation(outcome)
    return outcome


def call_with_bad_arguments(engine: Services, tool: Tool, args: object, id: str | None) -> Outcome[Any]:
    """The outcome of a call whose arguments are no mapping at all."""
    require_text_names(tool.id, id=id)
    what = f"They must be one mapping from names to values, not {type(args).__name__}."
    first = AttemptResult(engine.now(), engine.now(), fault=builtin_faults.bad_arguments(detail=what), entered=False)
    call = engine.open_call(tool, (), {})
    if id is not None:
        call.set_id(mask_id(id))
    return engine.drive_blocking(call, first)


async def as_coroutine(outcome: Outcome[Any]) -> Outcome[Any]:
    """An outcome that is there already, for who awaits one."""
    return outcome


for _function in (run, call_unknown_tool, as_coroutine):
    _function.__qualname__ = "Runtime.call"  # what Python names if its await is forgotten


# --- calls of a framework's tools -----------------------------------------------------------------------------------------


def make_framework_call(
    engine: Services,
    settings: Settings,
    name: str,
    args: Mapping[str, Any] | None,
    turn: AgentRun | None,
    options: CallKeywords,
) -> Call:
    """A call of a tool that its framework runs, in the agent's run; a tool that is not declared is declared here."""
    tool = engine.tools.get(name)
    if tool is None:
        declare(engine, settings, name, {})
        tool = engine.tools[name]
    call = make_call(engine, tool if isinstance(tool, FrameworkTool) else FrameworkView(tool), args, **options)
    call.by_agent = True
    run = turn if call.turn is None else call.turn
    if isinstance(run, AgentRun):
        run.take(call)
    return call


async def run_framework_call(engine: Services, call: Call, running: RunnerSet) -> Outcome[Any]:
    """Run a call with what it has brought along."""
    token = RUNNING.set(running)
    try:
        return _count_success(call, await engine.run(call))
    except ControlFlow as passing:
        passed = passing.error
    finally:
        leave(RUNNING, token)
    try:
        raise passed
    finally:
        del passed


def run_framework_call_blocking(
    engine: Services,
    settings: Settings,
    name: str,
    args: Mapping[str, Any] | None,
    turn: AgentRun | None,
    options: CallKeywords,
    running: RunnerSet,
) -> Outcome[Any]:
    """``run_framework_call`` for frameworks that block; in a context of its own."""
    leave_turn()
    RUNNING.set(running)
    call = make_framework_call(engine, settings, name, args, turn, options)
    try:
        return _count_success(call, engine.run_blocking(call))
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


# --- event loops for callers that have none -------------------------------------------------------------------------------

_LOCAL = threading.local()
PATIENCE = 1.0  # seconds for what tools have left behind on a loop


class _Loop:
    """A thread's event loop, which is closed when the thread ends, or its virtual time, or the program.

    In a forked child it is left as it is: both listen by the same epoll, and closing it would make the parent's deaf.
    So it is in an interpreter that is being taken down, where nothing can be waited for.

    An interrupted call is cancelled before the interrupt goes on: the next call would run the rest of it. asyncio leaves
    its order to stop in the queue then, which would stop the next call, too.
    """

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self._owner = os.getpid()
        self._running: _Main[Any] | None = None

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, with the caller's context variables."""
        if self._running is not None:
            self._end_interrupted(self._running)
        running = _Main(main)
        self._running = running
        try:
            self.runner.run(running.run(), context=copy_context())
        except BaseException as error:
            if not isinstance(error, Exception):
                self._end_interrupted(running)
            self._running = None
            raise
        self._running = None
        return running.result()

    def _end_interrupted(self, running: _Main[Any]) -> None:
        loop = self.runner.get_loop()
        running.cancel()
        loop.call_soon(loop.stop)
        loop.run_forever()  # with what asyncio has left in the queue
        loop.run_until_complete(running.wait())

    def __del__(self) -> None:
        loop = self.runner.get_loop()
        if self._owner != os.getpid() or sys.is_finalizing():
            loop.is_closed = lambda: True  # type: ignore[method-assign]  # else it closes itself
            return
        # Not by the runner, which would ask for the thread: it has ended
        if asyncio._get_running_loop() is None:
            with suppress(RuntimeError):  # an order to stop that an interrupt has left; the loop is closed all the same
                loop.run_until_complete(_end(loop))
        elif asyncio.all_tasks(loop):  # a thread runs one loop at a time
            ending = threading.Thread(target=lambda: loop.run_until_complete(_end(loop)))
            ending.start()
            ending.join()
        loop.close()


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    """End what tools have left behind; what does not let itself be cancelled is not waited for, nor are threads."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=PATIENCE)
    await loop.shutdown_asyncgens()


class _Main(Generic[T]):
    """What a thread's event loop runs. Neither its end nor an interrupt inside it disturbs the loop."""

    def __init__(self, main: Coroutine[Any, Any, T]) -> None:
        self._main = main
        self._task: asyncio.Task[Any] | None = None
        self._ended: list[T] = []
        self._error: BaseException | None = None
        self._cancelled = False

    async def run(self) -> None:
        if self._cancelled:
            return
        self._task = asyncio.current_task()
        try:
            self._ended.append(await self._main)
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # from a task it would end the loop with this call unfinished
            self._error = error

    def result(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None
        return self._ended[0]

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()
        else:
            self._main.close()

    async def wait(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task], timeout=PATIENCE)


def run_here(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this thread's event loop."""
    return _loop_of_thread().run(main)


def _loop_of_thread() -> _Loop:
    """One event loop per blocking thread, so that clients which a tool keeps stay on one loop; virtual time has its own."""
    loops: dict[clocks.Clock, _Loop] = _LOCAL.__dict__.setdefault("loops", {})
    clock = clocks.current()
    if clock not in loops:
        for ended in loops.keys() - {clocks.SYSTEM}:
            del loops[ended]
        loops[clock] = _Loop()
    return loops[clock]


def forget_loops() -> None:
    """A forked child has none of its parent's, and at its end a program none."""
    _LOCAL.__dict__.clear()


atexit.register(forget_loops)
