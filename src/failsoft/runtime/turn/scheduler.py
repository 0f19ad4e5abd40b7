"""The scheduler of a turn: lanes, which are the tasks that run its calls, and the commands of the turn machine.

Rules
-----
- Calls that are ready run concurrently. A lane runs one ready call after another; when one of them suspends, another
  lane continues with the rest. So there are as many tasks as suspended calls, and a thousand calls that never suspend
  need one.
- Until a call fails, a new call is checked for readiness when it is dequeued, in the order of submission. By then its
  dependencies have usually succeeded.
- A call runs in a copy of the context in which it was submitted, as in a task of its own. It sees variables that the
  turn's body set before, and none that other calls set.
- A plain call that succeeds at once takes the fast path here. All others go through the pipeline.
- Every call gets an outcome, whatever happens to its lane.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from types import coroutine
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.classify.returned import PLAIN_TYPES, is_plain
from failsoft.core.model import builtin_faults
from failsoft.core.model.outcome import Outcome
from failsoft.core.turn.cascade import used_default
from failsoft.core.turn.machine import Command, Start
from failsoft.observe.events import DEFAULT_USED
from failsoft.runtime.call.first_attempt import error_result, value_result
from failsoft.runtime.call.impossible_call import refuse_call
from failsoft.runtime.call.tracebacks import without_frames
from failsoft.runtime.execution.deadline import finish
from failsoft.runtime.execution.stepping import OVER, Stepper, in_context, run_abandoned
from failsoft.runtime.fastpath.success import record_success
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.turn.commands import end, stopped
from failsoft.runtime.turn.dependencies import MissingPartError, fill_in
from failsoft.runtime.turn.handle import NO_ARGUMENTS, Handle
from failsoft.runtime.turn.turn_state import EMPTY, TurnState

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.model import AttemptResult


@coroutine
def step_call(handle: Handle[Any], running: Any) -> Stepper:
    """The tool's coroutine as a generator, like ``stepping.step``. Calls made inside are children of this one."""
    SCOPE.set(handle)
    value = yield from running
    if handle._outcome is None:  # else this attempt was abandoned, and a later one has ended the call
        handle.result = value


class Scheduler:
    """The lanes of one turn, and the queue of calls that are ready."""

    __slots__ = ("_dozing", "_ready", "_tasks", "awake", "shown", "turn")

    def __init__(self, turn: TurnState) -> None:
        self.turn = turn
        self._ready: deque[Handle[Any]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self.shown = False  # True once a handle of the turn was turned into text
        self.awake = 0  # lanes that will look at the queue again
        self._dozing: set[Handle[Any]] = set()  # suspended calls that run in no lane

    def perform(self, commands: Sequence[Command[Handle[Any]]]) -> None:
        """Perform the commands of the turn machine."""
        for command in commands:
            if isinstance(command, Start):
                self.start(command.call)
            else:
                end(self.turn, command)

    def finish(self, handle: Handle[Any], outcome: Outcome[Any]) -> None:
        """End a call with its outcome. If it was abandoned or cancelled before, the outcome is only recorded as late."""
        turn, late = self.turn, handle.done()
        if turn.machine.no_failure_yet and (outcome.status != "succeeded" or not outcome.value_known):
            self.forget_taken()
        commands = turn.machine.finish(handle, outcome.status, value_known=outcome.value_known)
        if not late:
            turn.resolve(handle, outcome)
        self.perform(commands)

    def stop(self, handle: Handle[Any], error: BaseException) -> None:
        """End a call after an exception that is not a failure of its tool, unless the call has its outcome already."""
        if handle.outcome is None:
            self.finish(handle, stopped(self.turn, handle, error))

    def start(self, handle: Handle[Any]) -> None:
        """Queue a call that is ready."""
        self._ready.append(handle)
        if not self.awake:
            self._open()

    def forget_taken(self) -> None:
        """Drop new calls from the queue before the first failure: the machine then says which of them start."""
        running = [handle for handle in self._ready if handle.state == "running"]
        self._ready.clear()  # in place: lanes refer to it
        self._ready += running

    def attach(self) -> None:
        """Count a call in a task of its own as a lane, until it suspends or is detached."""
        self.awake += 1

    def detach(self, handle: Handle[Any]) -> None:
        if handle in self._dozing:
            self._dozing.remove(handle)
        else:
            self._release()

    def suspend(self, handle: Handle[Any]) -> None:
        """Let other lanes run while a call in a task of its own is suspended, or waits for its next attempt."""
        if handle not in self._dozing:
            self._dozing.add(handle)
            self._release()

    def arrival(self, handle: Handle[Any]) -> asyncio.Future[None]:
        """A future for the outcome of this call. Several may wait for it, so shield it."""
        return self.turn.arrival(handle)

    def _release(self) -> None:
        """Let another lane continue with the queue while this one waits."""
        self.awake -= 1
        self._open()

    def _open(self) -> None:
        """Open another lane if calls are ready and no lane will look at them, unless the loop is closed."""
        if self._ready and not self.awake and not self.turn.loop.is_closed():
            self.awake += 1
            # Not by the loop's own factory: an eager one would run each lane inside the one before.
            lane = asyncio.Task(self._run(), loop=self.turn.loop, context=Context())
            self._tasks.add(lane)
            lane.add_done_callback(self._forget)

    def _forget(self, lane: asyncio.Task[None]) -> None:
        """Forget a lane that has ended. A ``BaseException`` of a tool is raised or logged elsewhere: asyncio would not mask it."""
        self._tasks.discard(lane)
        error = None if lane.cancelled() else lane.exception()
        if isinstance(error, Exception):
            self.turn.loop.call_exception_handler({"message": "a lane has failed", "exception": error, "task": lane})

    async def _run(self) -> None:  # noqa: C901, PLR0912, PLR0915 - a plain call that succeeds at once ends right here
        """Run one lane: the calls that are ready, one after another."""
        ready, turn, task = self._ready, self.turn, cast("asyncio.Task[None]", asyncio.current_task())
        awaited, kept, careful = turn.awaited, turn.pending is not None, self._is_careful()
        services, turn_id, arrive = turn.services, turn.id, turn.arrived.append
        admit, succeed = turn.machine.activate, turn.machine.succeed
        clock: float | None = None  # when the previous call ended, if that was just now
        now, trace = services.time.now, services.log.trace
        try:
            while ready and not task.cancelling():  # a tool may have cancelled its own task: no other call may use it
                handle = ready.popleft()
                if handle.state == "new":
                    admit(handle)
                if handle.state != "running":
                    continue  # it waits, or the turn ended before it began
                tool: Any = handle.tool
                handle.started = started = now() if clock is None else clock
                clock = None
                ticket = tool.closed_ticket if handle.terms[2] and not turn.notes.has_notes else None
                if careful and ticket is not None and self._needs_pipeline(handle):
                    ticket = None
                first = None
                if ticket is not None and tool.argument_check is not None and not self._fits(handle, tool):
                    ticket = None
                if ticket is not None:
                    # FAST: the cheapest shared attempt (``run_coroutine``) costs 21 % of a turn more (ADR 69).
                    running = None
                    try:
                        if handle.fills:
                            self._fill_in(handle)
                        running = tool.fn(**handle.arguments)
                        context, stepper = handle.context.copy(), step_call(handle, running)
                        waiting = context.run(next, stepper, OVER)
                        if waiting is not OVER:
                            await self._suspend(handle, run_abandoned(stepper, waiting, context.run))
                    except Exception as error:
                        first = error_result(services, handle.full_call(), started, error, entered=running is not None)
                    except BaseException as error:
                        handle.task = task
                        services.runner.on_caller_cancelled(handle.full_call(), error)
                        if not self._survives(handle, error):
                            raise
                        continue
                    else:
                        value, ended = handle.result, now()
                        if (
                            ended - started <= tool.timeout
                            and tool.closed_ticket is ticket
                            and (type(value) in PLAIN_TYPES or is_plain(type(value)))
                        ):
                            if not record_success(trace, tool, handle.id, turn_id, started, started, ended, None):
                                clock = ended
                            if turn.notes.has_notes:
                                services.books.conversations.note_success(handle.full_call())
                            repeats = 0 if turn.thread is None else self._note_value(handle, value)
                            if handle.state == "running":
                                handle.ended, handle.arguments, handle.context = ended, NO_ARGUMENTS, EMPTY
                                if followers := succeed(handle):
                                    ready += followers
                                arrive(handle)
                                if repeats and handle.outcome is not None:
                                    handle.outcome.set_repeats(repeats)
                                if awaited or kept:
                                    turn.notify_waiting(handle)
                            else:  # it was abandoned or cancelled before
                                self.perform(turn.machine.finish(handle, "succeeded"))
                            continue
                        first = value_result(services, handle.full_call(), started, ended, value)
                # Out here, so that the errors of further attempts do not get the first one as their context.
                await self._run_pipeline(handle, first, ticket)
                is_abandoned, first = first is not None and first.still_running, None  # its error may hold this frame
                if is_abandoned:
                    return  # cancel scopes of the abandoned attempt may refer to this task: no other call may use it
        finally:
            self.awake -= 1
            self._open()

    def _is_careful(self) -> bool:
        """True if some calls of the turn must not take the fast path: writes are recorded, or calls are limited."""
        return self.turn.services.books.cases.checks_writes or self.turn.allowance is not None

    def _needs_pipeline(self, handle: Handle[Any]) -> bool:
        """True if a call of a careful turn has to be counted or recorded before it runs."""
        turn = self.turn
        return turn.allowance is not None or (handle.tool.is_write and bool(turn.thread or handle.id in turn.given))

    def _note_value(self, handle: Handle[Any], value: Any) -> int:
        """Note a value in the turn's thread. Return how often it has been the same if that is no progress, else 0."""
        return self.turn.services.books.conversations.note_value(handle.full_call(), value)

    async def _suspend(self, handle: Handle[Any], stepper: Stepper) -> None:
        """Run a tool that has suspended, until it ends."""
        tool: Any = handle.tool
        handle.task = asyncio.current_task()
        self._release()
        try:
            await finish(
                stepper,
                next(stepper),
                tool,
                tool.timeout,
                handle.started,
                self.turn.services.places.deadline_queue,
                handle,
            )
        finally:
            self.awake += 1

    async def _run_pipeline(
        self, handle: Handle[Any], first: AttemptResult | None = None, ticket: Ticket | None = None
    ) -> None:
        """Run a call through the pipeline: it is not plain, or its first attempt has not succeeded."""
        turn, services = self.turn, self.turn.services
        handle.task = asyncio.current_task()
        self._release()
        try:
            impossible = self._find_obstacle(handle)
            if impossible is not None:
                handle.full_call().invoked = False  # its tool never runs
                outcome = await in_context(
                    handle.context.copy(), refuse_call(services, handle.id, handle.tool.id, impossible, turn)
                )
            else:
                call = handle.full_call()
                call.kwargs = cast(
                    "dict[str, Any]", handle.arguments
                )  # the call may have been made before they were filled in
                call.started = handle.started
                outcome = await in_context(handle.context.copy(), services.runner.drive(call, first, ticket))
        except BaseException as error:
            if not self._survives(handle, error):
                raise
            return
        finally:
            self.awake += 1
        self.finish(handle, without_frames(outcome))

    def _survives(self, handle: Handle[Any], error: BaseException) -> bool:
        """Stop a call. True if its lane continues: the tool has cancelled itself, or the turn will raise the error."""
        task, late = handle.task, handle.done()
        self.stop(handle, error)
        if isinstance(error, asyncio.CancelledError):
            return not (task is not None and task.cancelling())
        if late or isinstance(
            error, Exception | KeyboardInterrupt | SystemExit
        ):  # the event loop raises the last two itself
            return False
        if asyncio.current_task(self.turn.loop) is not task:  # thrown in from outside: the lane is being freed
            return False
        self.turn.ended_by = error
        return True

    def _fits(self, handle: Handle[Any], tool: Any) -> bool:
        """True if the tool can be called with the arguments as they are."""
        try:
            if handle.fills:
                self._fill_in(handle)
            arguments = handle.arguments
            return tool.argument_check(arguments) is arguments
        except Exception:  # the check fails again in the pipeline, which reports it
            return False

    def _fill_in(self, handle: Handle[Any]) -> None:
        fill_in(handle)
        if handle.substitutes:
            fields = {
                "message": used_default(handle.tool.id, handle.tool.label),
                "arguments": sorted(handle.substitutes),
            }
            fields |= handle.grounds()
            self.turn.emit(DEFAULT_USED, handle.tool, handle.id, fields)

    def _find_obstacle(self, handle: Handle[Any]) -> Fault | None:
        """Fill in the arguments. Return a fault if the call is impossible: no such tool, or no such part of a value."""
        if not handle.tool.is_known:
            over = None if self.turn.allowance is None else self.turn.allowance.take(handle.tool.id)
            return over or builtin_faults.unknown_tool(handle.tool.id, self.turn.services.toolbox.tools)
        try:
            if handle.fills:
                self._fill_in(handle)
        except MissingPartError as missing:
            return builtin_faults.bad_arguments(invalid=[missing.argument], detail=missing.why)
        return None
