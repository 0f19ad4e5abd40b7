"""A turn on an event loop: it performs what the turn machine commands.

Rules
-----
- A call that is ready starts at once, in a task of its own; when it ends, the first call that it made ready goes on in
  the same task. So a chain of a thousand calls needs one task.
- The deadline never touches the body: open handles resolve, later calls come back skipped (R7). What still runs is
  left behind: its attempt may end, but nothing is repeated; what it brings is recorded as late.
- If the body raises, open calls are cancelled and recorded, the report is filled, and the exception goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from failsoft.core import own_faults
from failsoft.core.cascade import REQUIRED_SKIPPED, used_default
from failsoft.core.options import RetryOptions
from failsoft.core.outcome import Outcome, Status
from failsoft.core.report import TurnReport
from failsoft.core.turn import Call as Planned
from failsoft.core.turn import Cancel, Command, Leave, Skip, Start, TurnMachine
from failsoft.errors import TurnError
from failsoft.observe import events
from failsoft.observe.events import Event
from failsoft.runtime.call import Call
from failsoft.runtime.quick import quick
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.settings import merged

if TYPE_CHECKING:
    from failsoft.core.manifest import Plan, PlannedCall
    from failsoft.runtime.engine import Engine
    from failsoft.runtime.tool import Tool

T = TypeVar("T")
_NONE: Mapping[str, Any] = {}


class Handle(Generic[T]):
    """A call of a turn that has been submitted: await it for its outcome, or use it as another call's argument."""

    __slots__ = ("_future", "_tool", "arguments", "call", "id", "needs", "outcome", "task", "turn")

    def __init__(self, turn: Turn, id: str, tool: Tool | str, call: Call | None, arguments: Mapping[str, Any]) -> None:
        self.turn = turn
        self.id = id
        self.call = call  # None: there is no such tool
        self.outcome: Outcome[T] | None = None  # None: still open
        self.task: asyncio.Task[None] | None = None
        self._tool = tool
        self.arguments = arguments
        self._future: asyncio.Future[None] | None = None
        self.needs: Mapping[str, Any] = _NONE

    def __await__(self) -> Generator[Any, None, Outcome[T]]:
        while self.outcome is None:
            if self._future is None:
                self._future = self.turn.loop.create_future()
            yield from asyncio.shield(self._future).__await__()
        return self.outcome

    async def value(self) -> T:
        """The call's value; raises ``CallFailed`` if it has none."""
        return (await self).unwrap()

    def done(self) -> bool:
        return self.outcome is not None

    def __repr__(self) -> str:
        return f"<Handle {self.id!r}, {'open' if self.outcome is None else self.outcome.status}>"

    def settle(self, outcome: Outcome[Any]) -> None:
        self.outcome = outcome
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


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
        self.events: list[Event] = []
        self._timeout = timeout
        self._cancels = cancels
        self._deadline: float | None = None
        self._machine = TurnMachine()
        self._handles: dict[str, Handle[Any]] = {}
        self._numbers: dict[str, int] = {}
        self._arrived: list[Outcome[Any]] = []
        self._open = 0
        self._change: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._report: TurnReport | None = None
        self._started = 0.0
        self._expired = False
        self._outer: Any = None

    # -- for users ---------------------------------------------------------------------------------------------------

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
        timeout: float | None = None,
        retry: RetryOptions | None = None,
        idempotency_key: str | None = None,
    ) -> Handle[Any]:
        """Submit a call; it starts at once, or when what it depends on is there."""
        self._refuse_if_over()
        handle = self._handle(tool, {} if args is None else args, id, required, timeout, retry, idempotency_key)
        needs = self._find_needs(handle, depends_on)
        commands = self._machine.add(handle.id, needs, *self._rules(handle, required, defaults))
        handle.needs = needs
        self._enter(handle)
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
        self._started = self.engine.now()
        outer = SCOPE.get()
        parent = outer.turn if isinstance(outer, Call) else outer
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

    # -- submitting --------------------------------------------------------------------------------------------------

    def submit_plan(self, plan: Plan) -> None:
        """Take a whole plan, whose calls may refer to each other in any order."""
        self._refuse_if_over()
        handles = {}
        for call in plan.calls:
            handle = self._handle(
                call.tool, {}, call.id, call.required, call.timeout, self._retry(call), call.idempotency_key
            )
            handle.needs = call.needs
            handles[call.id] = handle
        for call in plan.calls:
            handles[call.id].arguments = call.fill(handles)
        planned = [
            Planned(call.id, call.needs, *self._rules(handles[call.id], call.required, call.defaults))
            for call in plan.calls
        ]
        commands = self._machine.add_all(planned)
        for handle in handles.values():
            self._enter(handle)
        self._perform(commands)

    def _retry(self, call: PlannedCall) -> RetryOptions | None:
        tool = self.engine.tools.get(call.tool)
        return None if call.retry is None or tool is None else merged(tool.options.retry, call.retry)

    async def adopt(self, call: Call) -> Outcome[Any]:
        """A guarded function was called in the turn's body."""
        return await self._adopt(call, start=True)

    def adopt_blocking(self, call: Call) -> Outcome[Any]:
        """The same for a function that blocks: it runs here and now."""
        handle = self._adopt(call, start=False)
        outcome = self.engine.drive_blocking(call)
        self._finished(handle, outcome)
        return outcome

    def _adopt(self, call: Call, *, start: bool) -> Handle[Any]:
        self._refuse_if_over()
        call.name(self._new_id(call.tool.id))
        call.turn, call.thread, call.tenant = self, self.thread, self.tenant
        call.required = call.tool.options.required
        handle: Handle[Any] = Handle(self, call.id, call.tool, call, call.kwargs)
        commands = self._machine.add(call.id)
        self._enter(handle)
        if start or not isinstance(commands[0], Start):
            self._perform(commands)
        return handle

    def _handle(
        self,
        tool: str | Callable[..., Any],
        args: Mapping[str, Any],
        id: str | None,
        required: bool | None,
        timeout: float | None,
        retry: RetryOptions | None,
        key: str | None,
    ) -> Handle[Any]:
        found = self.engine.find(tool)
        name = found if isinstance(found, str) else found.id
        id = self._new_id(name) if id is None else id
        if isinstance(found, str):
            return Handle(self, id, found, None, args)
        call = Call(
            id, found, (), cast("dict[str, Any]", args), 0.0, turn=self, thread=self.thread, tenant=self.tenant,
            timeout=timeout, retry=retry, key=key, required=found.options.required if required is None else required,
        )  # fmt: skip
        return Handle(self, id, found, call, args)

    def _rules(
        self, handle: Handle[Any], required: bool | None, defaults: Mapping[str, Any] | None
    ) -> tuple[bool | None, Mapping[str, Any]]:
        tool = handle._tool
        if isinstance(tool, str):
            return required, defaults or _NONE
        declared = tool.options
        if declared.defaults:
            defaults = {**declared.defaults, **(defaults or _NONE)}
        return declared.required if required is None else required, defaults or _NONE

    def _new_id(self, tool_id: str) -> str:
        number = self._numbers.get(tool_id, 0) + 1
        while f"{tool_id}-{number}" in self._handles:
            number += 1
        self._numbers[tool_id] = number
        return f"{tool_id}-{number}"

    def _find_needs(self, handle: Handle[Any], depends_on: Sequence[Handle[Any] | str]) -> Mapping[str, Any]:
        needs: dict[str, list[str]] | None = None
        for name, value in handle.arguments.items():
            if type(value) in _PLAIN:
                continue
            for found in _handles_in(value):
                self._refuse_foreign(found)
                needs = {} if needs is None else needs
                needs.setdefault(found.id, []).append(name)
        for each in depends_on:
            needs = {} if needs is None else needs
            if isinstance(each, Handle):
                self._refuse_foreign(each)
            needs.setdefault(each.id if isinstance(each, Handle) else each, [])
        return _NONE if needs is None else needs

    def _refuse_foreign(self, handle: Handle[Any]) -> None:
        if handle.turn is not self:
            raise TurnError(f"{handle.id!r} belongs to another turn: await it there and pass its value on")

    def _refuse_if_over(self) -> None:
        if self._report is not None:
            raise TurnError("the turn has ended: it takes no more calls")
        if self._loop is None:
            raise TurnError("the turn has not begun: use it with async with")
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self._loop:
            raise TurnError("the turn belongs to another event loop: submit its calls from there")

    def _enter(self, handle: Handle[Any]) -> None:
        self._handles[handle.id] = handle
        self._open += 1

    # -- performing --------------------------------------------------------------------------------------------------

    def _perform(self, commands: Sequence[Command], *, keep: bool = False) -> Handle[Any] | None:
        """Do what the machine says. ``keep``: give back the first call to start instead of making a task for it."""
        kept: Handle[Any] | None = None
        for command in commands:
            handle = self._handles[command.call_id]
            if isinstance(command, Start):
                if not self._prepare(handle, command):
                    continue
                if keep and kept is None:
                    kept = handle
                else:
                    handle.task = self.loop.create_task(self._lane(handle))
            elif isinstance(command, Skip):
                self._skip(handle, command)
            elif isinstance(command, Leave):
                self._leave(handle)
            elif isinstance(command, Cancel):
                self._cancel(handle, command)
            else:
                self._emit(events.LATE_RESULT, handle._tool, handle.id, {"message": "Late result recorded"})
        return kept

    def _prepare(self, handle: Handle[Any], command: Start) -> bool:
        """Put values in the place of handles; False if there is no such tool."""
        call = handle.call
        if call is None:
            fault = own_faults.unknown_tool(handle._tool, self.engine.tools)
            self._emit(events.CALL_REFUSED, handle._tool, handle.id, {"error": fault.message, "code": fault.code.value})
            outcome = self.engine.unknown(handle.id, cast("str", handle._tool), fault)
            self._finished(handle, outcome)
            return False
        call.started = self.engine.now()
        call.kwargs = cast("dict[str, Any]", handle.arguments)
        if handle.needs:
            arguments = {**handle.arguments, **command.substitutes}
            call.kwargs = {name: _resolved(value, self._handles) for name, value in arguments.items()}
            if command.substitutes:
                message = used_default(call.tool.label)
                fields = {"message": message, "arguments": sorted(command.substitutes)}
                self._emit(events.DEFAULT_USED, call.tool, handle.id, fields)
        return True

    async def _lane(self, handle: Handle[Any] | None) -> None:
        """Run a call, then the first one that it made ready, and so on."""
        task = asyncio.current_task()
        engine = self.engine
        while handle is not None:
            handle.task = task
            call = cast("Call", handle.call)
            SCOPE.set(call)
            tool = call.tool
            ticket = tool.ticket
            try:
                if ticket is not None and tool.kind == "async" and call.timeout is None and not call.args:
                    outcome = await quick(engine, tool, call.kwargs, handle.id, ticket, call)
                else:
                    outcome = await engine.drive(call)
            except asyncio.CancelledError:
                self._stopped(handle, "cancelled", own_faults.cancelled(started=True))
                raise
            except BaseException:  # KeyboardInterrupt and its kind go on, but no call may vanish
                self._stopped(handle, "failed", own_faults.cancelled(started=True))
                raise
            handle = self._finished(handle, outcome, keep=True)

    def _finished(self, handle: Handle[Any], outcome: Outcome[Any], *, keep: bool = False) -> Handle[Any] | None:
        commands = self._machine.finish(handle.id, outcome.status)
        if handle.outcome is None:
            self._settle(handle, outcome)
        return self._perform(commands, keep=keep) if commands else None

    def _stopped(self, handle: Handle[Any], status: Status, fault: Any) -> None:
        if handle.outcome is None:
            self._finished(handle, self._outcome(handle, status, fault))

    def _settle(self, handle: Handle[Any], outcome: Outcome[Any]) -> None:
        handle.settle(outcome)
        self._arrived.append(outcome)
        self._open -= 1
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def _changed(self) -> None:
        if self._change is None or self._change.done():
            self._change = self.loop.create_future()
        await asyncio.shield(self._change)

    def _skip(self, handle: Handle[Any], command: Skip) -> None:
        fields: dict[str, Any] = {"root": command.root, "because": command.because}
        if command.root is None:
            fault = own_faults.turn_timed_out(self._timeout, started=False)
        else:
            root = cast("Outcome[Any]", self._handles[command.root].outcome)
            fault = own_faults.dependency_failed(command.root, root.label, root.fault)
        if command.escalate:
            fields["message"] = REQUIRED_SKIPPED
        self._emit(events.CALL_SKIPPED, handle._tool, handle.id, fields)
        outcome = self._outcome(handle, "skipped", fault, root=command.root, escalated=command.escalate)
        self._settle(handle, outcome)
        if command.escalate and handle.call is not None:
            self.engine.escalate(handle.call, outcome)

    def _leave(self, handle: Handle[Any]) -> None:
        fault = own_faults.turn_timed_out(self._timeout, started=True)
        call, task = handle.call, handle.task
        self._settle(handle, self._outcome(handle, "timed_out", fault))
        if call is None or task is None:
            return
        call.left_behind = True
        if self._cancels or call.waiting:
            task.cancel()
        else:
            self.engine.leave_behind(task)

    def _cancel(self, handle: Handle[Any], command: Cancel) -> None:
        self._settle(handle, self._outcome(handle, "cancelled", own_faults.cancelled(started=command.started)))
        if handle.task is not None:
            handle.task.cancel()
        elif not command.started:
            self._emit(events.CALL_CANCELLED, handle._tool, handle.id, {"attempts": 0})

    def _outcome(
        self, handle: Handle[Any], status: Status, fault: Any, *, root: str | None = None, escalated: bool = False
    ) -> Outcome[Any]:
        tool, call = handle._tool, handle.call
        started = call is not None and call.started
        return Outcome(
            handle.id,
            tool if isinstance(tool, str) else tool.id,
            status,
            duration=self.engine.now() - call.started if call is not None and started else 0.0,
            fault=fault,
            label="" if isinstance(tool, str) else tool.label,
            root=root,
            escalated=escalated,
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
            SCOPE.reset(self._outer)
        duration = self.engine.now() - self._started
        outcomes = {id: cast("Outcome[Any]", handle.outcome) for id, handle in self._handles.items()}
        counts = {"calls": len(outcomes), "succeeded": sum(o.status == "succeeded" for o in outcomes.values())}
        self._emit(events.TURN_ENDED, None, None, {"duration_ms": round(duration * 1000, 3), **counts})
        self._report = TurnReport(
            self.id, outcomes, thread=self.thread, duration=duration, timed_out=self._expired, trace=self._trace
        )
        self.engine.settle()

    def _trace(self) -> tuple[Event, ...]:
        self.engine.trace.drain()
        return tuple(self.events)

    def _emit(self, event_type: str, tool: Tool | str | None, call_id: str | None, fields: dict[str, Any]) -> None:
        self.engine.trace.record((event_type, self.engine.now(), tool, call_id, self, fields))


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _handles_in(value: Any) -> list[Handle[Any]]:
    """The handles in an argument, also inside lists and dicts."""
    if isinstance(value, Handle):
        return [value]
    if isinstance(value, Mapping):
        return [handle for item in value.values() for handle in _handles_in(item)]
    if isinstance(value, list | tuple):
        return [handle for item in value for handle in _handles_in(item)]
    return []


def _resolved(value: Any, handles: Mapping[str, Handle[Any]]) -> Any:
    if isinstance(value, Handle):
        return None if value.outcome is None else value.outcome.value
    if isinstance(value, Mapping) and _handles_in(value):
        return {key: _resolved(item, handles) for key, item in value.items()}
    if isinstance(value, list | tuple) and _handles_in(value):
        return type(value)(_resolved(item, handles) for item in value)
    return value
