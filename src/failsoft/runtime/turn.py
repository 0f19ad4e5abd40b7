"""A turn on an event loop: it performs what the turn machine commands.

Rules
-----
- A call that is ready starts at once, side by side with the others. A task (a lane) runs one ready call after another;
  when one of them suspends, the next lane takes over the rest. So there are as many tasks as calls that wait for
  something, and a thousand calls that do not wait need one.
- The deadline never touches the body: open handles resolve, later calls come back skipped (R7). What still runs is
  left behind: its attempt may end, but nothing is repeated; what it brings is recorded as late.
- If the body raises, open calls are cancelled and recorded, the report is filled, and the exception goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack, cast, overload

from failsoft.core import own_faults
from failsoft.core.cascade import REQUIRED_SKIPPED, used_default
from failsoft.core.durations import Duration, seconds
from failsoft.core.options import RetryOptions
from failsoft.core.outcome import Outcome, Status
from failsoft.core.report import TurnReport
from failsoft.core.turn import Call as Planned
from failsoft.core.turn import Cancel, Command, Leave, Skip, Start, TurnMachine
from failsoft.errors import ManifestError, TurnError
from failsoft.observe import events
from failsoft.observe.events import Event
from failsoft.observe.trace import Batch
from failsoft.runtime.call import Call
from failsoft.runtime.consulting import judge_unknown
from failsoft.runtime.foreign import Passing
from failsoft.runtime.handle import PLAIN, Extra, Handle, handles_in
from failsoft.runtime.phrasing import phrase
from failsoft.runtime.quick import quick
from failsoft.runtime.scope import SCOPE, leave
from failsoft.runtime.settings import merged
from failsoft.runtime.threads import BLANK

if TYPE_CHECKING:
    from failsoft.core.manifest import Plan
    from failsoft.runtime.engine import Engine
    from failsoft.runtime.keeping import Keeper
    from failsoft.runtime.pending import Pending
    from failsoft.runtime.tool import Tool

T = TypeVar("T")
_NONE: Mapping[str, Any] = {}
_NOTHING = (None, None, None)
PATIENCE = 0.1  # seconds that the end of a turn waits for the store, all in all


class TurnCallKeywords(TypedDict, total=False):
    """What can be said about a call of a turn."""

    id: str
    depends_on: Sequence[Handle[Any] | str]
    required: bool | None
    defaults: Mapping[str, Any] | None
    timeout: Duration | None
    retry: RetryOptions | Mapping[str, Any] | None
    idempotency_key: str | None


class Turn:
    """One turn of an agent: ``async with rt.turn(...) as turn``."""

    def __init__(
        self,
        engine: Engine,
        id: str,
        *,
        timeout: float | None,
        cancels: bool,
        thread: str | None,
        tenant: str | None,
    ) -> None:
        self.engine = engine
        self.id = id
        self.thread = thread
        self.tenant = tenant
        self.batches: list[Batch] = []  # of the event stream, with this turn's records among others
        self._timeout = timeout
        self._cancels = cancels
        self._deadline: float | None = None
        self._machine = TurnMachine()
        self._handles: dict[str, Handle[Any]] = {}
        self._needs: dict[str, Mapping[str, Any]] = {}  # of calls that depend on others; for the trace
        self._numbers: dict[str, int] = {}
        self._arrived: list[Outcome[Any]] = []
        self._open = 0
        self._ready: deque[Handle[Any]] = deque()
        self._awake = 0  # lanes that will see to what is ready
        self._lanes: set[asyncio.Task[None]] = set()
        self._change: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._report: TurnReport | None = None
        self._started = 0.0
        self._expired = False
        self._outer: Any = None
        self.parent: Call | None = None  # the call that this turn is inside of
        self._notes = BLANK  # what the thread remembers
        self._pending: Pending | None = None  # where its open calls are written down, if anywhere
        self.acknowledged = False  # whether the store had all of it safe when the turn ended

    # -- for users ---------------------------------------------------------------------------------------------------

    @overload
    def call(
        self,
        tool: Callable[..., Awaitable[T]],
        args: Mapping[str, Any] | None = None,
        /,
        **options: Unpack[TurnCallKeywords],
    ) -> Handle[T]: ...
    @overload
    def call(
        self, tool: Callable[..., T], args: Mapping[str, Any] | None = None, /, **options: Unpack[TurnCallKeywords]
    ) -> Handle[T]: ...
    @overload
    def call(
        self, tool: str, args: Mapping[str, Any] | None = None, /, **options: Unpack[TurnCallKeywords]
    ) -> Handle[Any]: ...
    def call(
        self,
        tool: str | Callable[..., Any],
        args: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        depends_on: Sequence[Handle[Any] | str] = (),
        required: bool | None = None,
        defaults: Mapping[str, Any] | None = None,
        timeout: Duration | None = None,
        retry: RetryOptions | Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Handle[Any]:
        """Submit a call; it starts at once, or when what it depends on is there."""
        if self._report is not None or get_ident() != self._thread:
            self._refuse()
        found = self.engine.index.get(tool)
        name = self._unknown_name(tool) if found is None else found.id
        handle: Handle[Any] = Handle(self, self._new_id(name) if id is None else id, found or name, args or _NONE)
        if required is not None or timeout is not None or retry is not None or idempotency_key is not None:
            handle.extra = Extra(required, _limit(timeout), self._retry(name, retry), idempotency_key)
        needs = _NONE
        if depends_on or not PLAIN.issuperset(map(type, handle.arguments.values())):
            needs = self._find_needs(handle, depends_on)
        if found is not None and (found.options.defaults or found.options.required is not None):
            required, defaults = self._rules(handle, required, defaults)
        commands = self._machine.add(handle.id, needs, required, defaults or _NONE)
        if needs:
            self._needs[handle.id] = needs
        self._enter(handle)
        if commands:
            self._perform(commands)
        return handle

    @property
    def report(self) -> TurnReport:
        """What became of the turn; there once it has ended."""
        if self._report is None:
            raise TurnError("the turn has not ended: read turn.report after the async with block")
        return self._report

    async def __aiter__(self) -> AsyncIterator[Outcome[Any]]:
        """Outcomes as they arrive, until no call is open."""
        seen = 0
        while True:
            while seen < len(self._arrived):
                seen += 1
                yield self._arrived[seen - 1]
            if not self._open:
                return
            await self._changed()

    def left(self) -> float | None:
        """Seconds until the turn's deadline; None if it has none."""
        return None if self._deadline is None else self._deadline - self.engine.now()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise TurnError("the turn has not begun: use it with async with")
        return self._loop

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise TurnError("a turn is used once: ask rt.turn() for another one")
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._started = self.engine.now()
        outer = SCOPE.get()
        if isinstance(outer, Handle):
            outer = outer.whole()
        self.parent = outer if isinstance(outer, Call) else None
        parent = outer if outer is None or isinstance(outer, Turn) else outer.turn
        if outer is not None:  # a turn inside another belongs to the same conversation, unless it says otherwise
            self.thread, self.tenant = self.thread or outer.thread, self.tenant or outer.tenant
        self._notes = self.engine.notebook.open(self.thread, self.tenant)
        if self.thread is not None and self.parent is None:
            self._pending = self.engine.notebook.pending
        lefts = [t for t in (self._timeout, None if parent is None else parent.left()) if t is not None]
        if lefts:  # a turn inside another has no more time than that one
            self._deadline = self._started + max(0.0, min(lefts))
            self._timer = self._loop.call_later(max(0.0, min(lefts)), self._expire)
        self._outer = SCOPE.set(self)
        self._emit(events.TURN_STARTED, None, None, {"thread": self.thread})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                while self._open:
                    await self._changed()
        except BaseException:
            self._perform(self._machine.cancel())
            raise
        else:
            if error is not None:
                self._perform(self._machine.cancel())
        finally:
            self._end()
            if self.engine.keeper is not None and self.parent is None:
                await self._acknowledge(self.engine.keeper)

    # -- submitting --------------------------------------------------------------------------------------------------

    def submit_plan(self, plan: Plan) -> Mapping[str, Handle[Any]]:
        """Take a whole plan, whose calls may refer to each other in any order; their handles, by id."""
        if self._report is not None or get_ident() != self._thread:
            self._refuse()
        handles: dict[str, Handle[Any]] = {}
        for call in plan.calls:
            handle = handles[call.id] = Handle(self, call.id, self.engine.index.get(call.tool) or call.tool, _NONE)
            handle.extra = Extra(call.required, call.timeout, self._retry(call.tool, call.retry), call.idempotency_key)
        for call in plan.calls:
            handle = handles[call.id]
            handle.arguments = call.fill(handles)
            handle.refers = any(call.needs.values())
        commands = self._machine.add_all(
            [
                Planned(call.id, call.needs, *self._rules(handles[call.id], call.required, call.defaults))
                for call in plan.calls
            ]
        )
        self._needs.update((call.id, call.needs) for call in plan.calls if call.needs)
        for handle in handles.values():
            self._enter(handle)
        self._perform(commands)
        return handles

    def _retry(self, name: str, said: RetryOptions | Mapping[str, Any] | None) -> RetryOptions | None:
        tool = self.engine.tools.get(name)
        return None if said is None or tool is None else merged(tool.options.retry, said)

    def _unknown_name(self, tool: str | Callable[..., Any]) -> str:
        found = self.engine.find(tool)  # raises for a function that is no tool
        return own_faults.quote(found) if isinstance(found, str) else found.id

    async def adopt(self, call: Call) -> Outcome[Any]:
        """A guarded function was called in the turn's body: it sees its caller's context, and ends if its caller does."""
        handle = self._adopt(call)
        if handle.outcome is None:
            task = handle.task = self.loop.create_task(self._run_adopted(handle))
            try:
                await handle.settled()
            except asyncio.CancelledError:
                task.cancel()
                await asyncio.wait([task])
                raise
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error
        return cast("Outcome[Any]", handle.outcome)

    async def _run_adopted(self, handle: Handle[Any]) -> None:
        engine, call, notes = self.engine, handle.whole(), self._notes
        handle.started = call.started = engine.now()
        tool, ticket = call.tool, call.tool.ticket
        said = (call.timeout, call.retry, call.key)
        special = (
            notes.wary or call.args or said != _NOTHING or call.thread != self.thread or call.tenant != self.tenant
        )
        SCOPE.set(handle)
        self._awake += 1  # like a lane, for as long as it does not suspend
        try:
            if ticket is not None and not special and tool.kind == "async":
                outcome = await quick(engine, tool, call.kwargs, handle.id, ticket, handle)
            else:
                self.doze(handle)
                outcome = await engine.drive(call)
        except BaseException as error:
            if isinstance(error, Passing):
                engine.left(call)
            late = handle.outcome is not None
            self._stopped(handle, error)
            if late and isinstance(error, Passing):
                return  # nobody waits for it any more
            raise
        finally:
            self._awake -= not handle.dozes
            if self._ready and not self._awake:
                self._spawn()
        if notes.wary and outcome.status == "succeeded":
            engine.notebook.note_success(call)
        self._finished(handle, outcome)

    def adopt_blocking(self, call: Call) -> Outcome[Any]:
        """The same for a function that blocks: it runs here and now, or for a caller in another thread on the loop."""
        if get_ident() != self._thread and self._report is None:
            return asyncio.run_coroutine_threadsafe(self.adopt(call), self.loop).result()
        handle = self._adopt(call)
        if handle.outcome is not None:  # skipped: the turn's time is up
            return handle.outcome
        outcome = self.engine.drive_blocking(call)
        self._finished(handle, outcome)
        return outcome

    def _adopt(self, call: Call) -> Handle[Any]:
        if self._report is not None or get_ident() != self._thread:
            self._refuse()
        if not call.named:
            call.name(self._new_id(call.tool.id))
        call.turn, call.thread, call.tenant = self, call.thread or self.thread, call.tenant or self.tenant
        call.required = call.tool.options.required
        handle: Handle[Any] = Handle(self, call.id, call.tool, call.kwargs)
        handle.call = call
        commands = self._machine.add(call.id)
        self._enter(handle)
        if not isinstance(commands[0], Start):
            self._perform(commands)
        return handle

    def _rules(
        self, handle: Handle[Any], required: bool | None, defaults: Mapping[str, Any] | None
    ) -> tuple[bool | None, Mapping[str, Any]]:
        """What the call says about failed dependencies, over what its tool says (R9)."""
        if isinstance(handle.tool, str):
            return required, defaults or _NONE
        options = handle.tool.options
        return options.required if required is None else required, {**options.defaults, **(defaults or _NONE)}

    def _new_id(self, tool_id: str) -> str:
        number = self._numbers.get(tool_id, 0)
        while True:
            number += 1
            id = f"{tool_id}-{number}"
            if id not in self._handles:
                self._numbers[tool_id] = number
                return id

    def _find_needs(self, handle: Handle[Any], depends_on: Sequence[Handle[Any] | str]) -> Mapping[str, Any]:
        """The calls that this one waits for, each with the arguments that its value fills."""
        needs: dict[str, Any] = {}
        for each in depends_on:
            if isinstance(each, Handle):
                if each.turn is not self:
                    self._refuse_foreign(each)
                needs[each.id] = ()
            else:
                needs[each] = ()
        if PLAIN.issuperset(map(type, handle.arguments.values())):
            return needs
        for name, other in handles_in(handle.arguments):
            if other.turn is not self:
                self._refuse_foreign(other)
            needs[other.id] = (*needs.get(other.id, ()), name)
            handle.refers = True
        return needs

    def _refuse_foreign(self, handle: Handle[Any]) -> None:
        raise TurnError(f"{handle.id!r} belongs to another turn: await it there and pass its value on")

    def _refuse(self) -> None:
        self.engine.refuse_if_closed()
        if self._report is not None:
            raise TurnError("the turn has ended: it takes no more calls")
        if self._loop is None:
            raise TurnError("the turn has not begun: use it with async with")
        raise TurnError("the turn belongs to the event loop of another thread: submit its calls from there")

    def _enter(self, handle: Handle[Any]) -> None:
        self._handles[handle.id] = handle
        self._open += 1
        if self._pending is not None and self.thread is not None:
            tool = handle.tool if isinstance(handle.tool, str) else handle.tool.id
            self._pending.open_call((self.tenant, self.thread), self.id, handle.id, tool)

    # -- performing --------------------------------------------------------------------------------------------------

    def _perform(self, commands: Sequence[Command]) -> None:
        """Do what the machine says."""
        for command in commands:
            handle = self._handles[command.call_id]
            if isinstance(command, Start):
                if self._prepare(handle, command):
                    self._ready.append(handle)
            elif isinstance(command, Skip):
                self._skip(handle, command)
            elif isinstance(command, Leave):
                self._leave(handle)
            elif isinstance(command, Cancel):
                self._cancel(handle, command)
            else:
                self._emit(events.LATE_RESULT, handle.tool, handle.id, {"message": "Late result recorded"})
        if self._ready and not self._awake:
            self._spawn()

    def _prepare(self, handle: Handle[Any], command: Start) -> bool:
        """Put values in the place of handles; False if there is no such tool."""
        tool = handle.tool
        if isinstance(tool, str):
            fault = own_faults.unknown_tool(tool, self.engine.tools)
            outcome = self.engine.unknown(handle.id, tool, fault)
            judging = self.loop.create_task(self._judge_unknown(handle, outcome))
            self._lanes.add(judging)
            judging.add_done_callback(self._lanes.discard)
            return False
        if handle.refers:
            handle.fill_in(command.substitutes)
            if command.substitutes:
                fields = {"message": used_default(tool.label), "arguments": sorted(command.substitutes)}
                fields |= self._machine.grounds(handle.id)
                self._emit(events.DEFAULT_USED, tool, handle.id, fields)
        return True

    async def _judge_unknown(self, handle: Handle[Any], outcome: Outcome[Any]) -> None:
        for event_type, fields in await judge_unknown(self.engine, outcome, self):
            self._emit(event_type, handle.tool, handle.id, fields)
        if self.engine.phraser is not None:
            await phrase(self.engine, self, outcome)
        if outcome.escalated:
            self.engine.tell(outcome)
        self._finished(handle, outcome)

    def _spawn(self) -> None:
        self._awake += 1
        lane = self.loop.create_task(self._lane())
        self._lanes.add(lane)
        lane.add_done_callback(self._lanes.discard)

    def doze(self, handle: Handle[Any]) -> None:
        """A call suspends: its lane waits with it, and another one goes on with what is ready."""
        handle.dozes = True
        self._awake -= 1
        if self._ready and not self._awake:
            self._spawn()

    async def _lane(self) -> None:
        """Run what is ready, one call after the other."""
        task = asyncio.current_task()
        engine, ready, finish, notes = self.engine, self._ready, self._machine.finish, self._notes
        try:
            while ready:
                handle = ready.popleft()
                if handle.outcome is not None:
                    continue  # the turn was over before it began
                handle.task = task
                handle.started = engine.now()
                SCOPE.set(handle)
                tool: Any = handle.tool
                ticket = tool.ticket
                special = handle.extra is not None or handle.call is not None or notes.wary
                try:
                    if ticket is not None and not special and tool.kind == "async":
                        outcome = await quick(engine, tool, handle.arguments, handle.id, ticket, handle)
                    else:
                        self.doze(handle)
                        outcome = await engine.drive(handle.whole())
                except BaseException as error:  # no call may vanish, whatever becomes of its lane
                    self._stopped(handle, error)
                    if not isinstance(error, asyncio.CancelledError) or (task is not None and task.cancelling()):
                        raise
                    continue  # the tool cancelled itself: its lane lives on
                finally:
                    if handle.dozes:
                        self._awake += 1
                if notes.wary and outcome.status == "succeeded":
                    engine.notebook.note_success(handle.whole())
                commands = finish(handle.id, outcome.status)
                if handle.outcome is None:
                    self._settle(handle, outcome)
                if commands:
                    self._perform(commands)
        finally:
            self._awake -= 1
            if ready and not self._awake:
                self._spawn()

    def _finished(self, handle: Handle[Any], outcome: Outcome[Any]) -> None:
        commands = self._machine.finish(handle.id, outcome.status)
        if handle.outcome is None:
            self._settle(handle, outcome)
        self._perform(commands)

    def _stopped(self, handle: Handle[Any], error: BaseException) -> None:
        if handle.outcome is None:
            status: Status = "cancelled" if isinstance(error, asyncio.CancelledError | Passing) else "failed"
            self._finished(handle, self._outcome(handle, status, own_faults.cancelled(started=True)))

    def _settle(self, handle: Handle[Any], outcome: Outcome[Any]) -> None:
        handle.settle(outcome)
        self._arrived.append(outcome)
        self._open -= 1
        if self._pending is not None and self.thread is not None:
            self._pending.close_call((self.tenant, self.thread), self.id, handle.id)
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def _changed(self) -> None:
        if self._change is None or self._change.done():
            self._change = self.loop.create_future()
        await asyncio.shield(self._change)

    def _skip(self, handle: Handle[Any], command: Skip) -> None:
        fields: dict[str, Any] = {"root": command.root, "because": command.because}
        fields |= self._machine.grounds(handle.id, command.because)
        if command.root is None:
            fault = own_faults.turn_timed_out(self._timeout, started=False)
        else:
            root = cast("Outcome[Any]", self._handles[command.root].outcome)
            fault = own_faults.dependency_failed(command.root, root.label, root.fault)
        if command.escalate:
            fields["message"] = REQUIRED_SKIPPED
        self._emit(events.CALL_SKIPPED, handle.tool, handle.id, fields)
        outcome = self._outcome(handle, "skipped", fault, root=command.root, escalated=command.escalate)
        self._settle(handle, outcome)
        if command.escalate and not isinstance(handle.tool, str):
            self.engine.escalate(handle.whole(), outcome)

    def _leave(self, handle: Handle[Any]) -> None:
        fault = own_faults.turn_timed_out(self._timeout, started=True)
        outcome = self._outcome(handle, "timed_out", fault)
        self._emit(events.CALL_LEFT, handle.tool, handle.id, {"duration_ms": round(outcome.duration * 1000, 3)})
        self._settle(handle, outcome)
        task = handle.task
        if task is None:
            return
        call = handle.whole()
        call.left_behind = True
        if self._cancels or call.waiting:
            task.cancel()
        else:
            self.engine.leave_behind(task)

    def _cancel(self, handle: Handle[Any], command: Cancel) -> None:
        outcome = self._outcome(handle, "cancelled", own_faults.cancelled(started=command.started))
        fields = {"attempts": int(command.started), "duration_ms": round(outcome.duration * 1000, 3)}
        self._emit(events.CALL_CANCELLED, handle.tool, handle.id, fields)
        self._settle(handle, outcome)
        if self.thread is not None and self.parent is None:
            self.engine.notebook.note_dangling((self.tenant, self.thread), self.id, outcome)
        if handle.task is not None:
            handle.whole().recorded = True
            handle.task.cancel()

    def _outcome(
        self, handle: Handle[Any], status: Status, fault: Any, *, root: str | None = None, escalated: bool = False
    ) -> Outcome[Any]:
        tool = handle.tool
        return Outcome(
            handle.id,
            tool if isinstance(tool, str) else tool.id,
            status,
            duration=0.0 if handle.task is None else self.engine.now() - handle.started,
            fault=fault,
            label="" if isinstance(tool, str) else tool.label,
            root=root,
            escalated=escalated,
            explanation=self.engine.explain,
        )

    def _expire(self) -> None:
        if self._report is not None:
            return
        self._expired = True
        self._emit(events.TURN_TIMED_OUT, None, None, {"timeout_ms": round((self._timeout or 0.0) * 1000)})
        self._perform(self._machine.expire())

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._outer is not None:
            leave(SCOPE, self._outer)
        self._notes = BLANK  # the trace may keep the turn for long
        duration = self.engine.now() - self._started
        outcomes = {id: cast("Outcome[Any]", handle.outcome) for id, handle in self._handles.items()}
        counts = {"calls": len(outcomes), "succeeded": sum(o.status == "succeeded" for o in outcomes.values())}
        self._emit(
            events.TURN_ENDED, None, None,
            {"duration_ms": round(duration * 1000, 3), **counts, "needs": self._needs},
        )  # fmt: skip
        self._report = TurnReport(
            self.id, outcomes, thread=self.thread, duration=duration, timed_out=self._expired,
            message=self.engine.compose, trace=self._trace,
        )  # fmt: skip
        self.engine.settle()

    async def _acknowledge(self, keeper: Keeper) -> None:
        """Have the turn on disk before its caller goes on, unless that takes long."""
        if self.engine.memory is not None:
            self.engine.memory.save()
        with suppress(TimeoutError):  # every thread may be taken: that too is not worth waiting for
            self.acknowledged = await asyncio.wait_for(asyncio.to_thread(keeper.acknowledge), PATIENCE)

    def _trace(self) -> tuple[Event, ...]:
        return self.engine.trace.events_of(self)

    def _emit(self, event_type: str, tool: Tool | str | None, call_id: str | None, fields: dict[str, Any]) -> None:
        self.engine.trace.record((event_type, self.engine.now(), tool, call_id, self, fields))


def _limit(timeout: Duration | None) -> float | None:
    try:
        return None if timeout is None else seconds(timeout)
    except ValueError as error:
        raise ManifestError(f"timeout: {error}") from None
