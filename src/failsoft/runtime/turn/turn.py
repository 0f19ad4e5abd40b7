"""A turn: it takes the user's calls, and drives the turn machine on an event loop.

Rules
-----
- The deadline never touches the body: open handles resolve, and later calls are skipped. Calls that still run are
  abandoned: their attempt may end, but nothing is repeated, and their result is recorded as late.
- If the body raises, open calls are cancelled and recorded, the report is filled, and the exception is raised again.
- A ``BaseException`` of a tool is raised at the end of the body, even if the body raised because the call had no value.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import Context, Token, copy_context
from copy import copy
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, Unpack, cast, overload

from failsoft.analysis.turn_report import TurnReport
from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.sanitise import mask_id
from failsoft.core.turn.machine import Command, TurnMachine
from failsoft.errors import TurnError
from failsoft.observe import events
from failsoft.observe.instrument import Entered, TurnInfo
from failsoft.runtime.call.model import Call
from failsoft.runtime.conversation.thread_notes import BLANK
from failsoft.runtime.execution.blocking_loop import running_loop
from failsoft.runtime.scope import SCOPE, Caller, LightAttempt, Scope, find_caller, find_scope, reset_variable
from failsoft.runtime.turn import body_calls
from failsoft.runtime.turn.commands import report_skip
from failsoft.runtime.turn.conclusion import conclude
from failsoft.runtime.turn.dependencies import Part, find_needs
from failsoft.runtime.turn.handle import (
    NO_ARGUMENTS,
    Handle,
    Outcomes,
    TurnCallKeywords,
    explain_missing,
    report_ends,
)
from failsoft.runtime.turn.scheduler import Scheduler
from failsoft.runtime.turn.submission import apply_options, refuse_id, retry_of, unknown_tool
from failsoft.runtime.turn.turn_state import EMPTY, TurnState

if TYPE_CHECKING:
    from failsoft.config.manifest import Plan
    from failsoft.runtime.call.allowance import CallAllowance
    from failsoft.runtime.persistence.event_writer import StoreWriter
    from failsoft.runtime.turn.ports import TurnServices

T = TypeVar("T")
_NO_CALLS: tuple[()] = ()  # compared by identity: a single handle has no truth value


class Turn(TurnState):
    """One turn of an agent: ``async with rt.turn(...) as turn``."""

    scheduler: Scheduler

    def __init__(
        self,
        services: TurnServices,
        id: str,
        *,
        timeout: float | None,
        cancels: bool,
        thread: str | None,
        tenant: str | None,
        allowance: CallAllowance | None = None,
    ) -> None:
        super().__init__(
            services, id, timeout=timeout, cancels=cancels, thread=thread, tenant=tenant, allowance=allowance
        )
        self.scheduler = Scheduler(self)
        self.acknowledged = False  # True if the store had saved everything when the turn ended
        self._find = services.toolbox.index.get
        self._events = services.log.trace.follow(id)
        self._context = EMPTY  # context of the newest call: most calls of a turn share one
        self._submitter: Caller | None = None  # the call whose tool submitted the newest call; None: the body did
        self._caller: Caller | None = None  # the call whose tool opened this turn
        self._started = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._message: str | None = None  # to the user, if it was phrased
        self._outer: Token[Scope | LightAttempt | None] | None = None
        self._report: TurnReport | None = None
        self._entered: Entered | None = None  # the context managers of instruments

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
        depends_on: Sequence[Handle[Any] | str] = _NO_CALLS,
        **options: Any,
    ) -> Handle[Any]:
        """Submit a call. It starts as soon as the calls that it depends on have succeeded.

        ``required`` and ``defaults`` decide what happens if one of them fails. ``timeout``, ``retry`` and
        ``idempotency_key`` hold for this call only.
        """
        if get_ident() != self._os_thread or not (self.scheduler.awake or self._runs_here()):
            self._refuse()
        try:
            found = self._find(tool) or unknown_tool(self.services.toolbox, tool)
            given = {**args} if args else NO_ARGUMENTS  # a copy: the caller may change the mapping later
        except TypeError:
            unknown_tool(self.services.toolbox, tool)  # raises for an object without a hash
            raise TurnError(f"args: write one mapping from names to values, not {type(args).__name__}") from None
        if id is None:
            id = self.new_id(found.id)
        else:
            if not (isinstance(id, str) and id):
                refuse_id(found.id, id)
            id = mask_id(id)
            self.given.add(id)
        handle: Handle[Any] = Handle(self.scheduler, id, found, given)
        if (depends_on is not _NO_CALLS or given) and not find_needs(handle, depends_on):
            self.machine.refuse_invalid_graph((handle,))
        if options:
            apply_options(handle, **options)
        context = copy_context()
        if context != self._context:
            self._context = context
            self._submitter = find_caller()
        handle.context = self._context
        if self._submitter is not None and not found.only_reads:
            handle.report_effect_to(self._submitter)
        commands: Sequence[Command[Handle[Any]]] = ()
        if self.machine.no_failure_yet:
            self.machine.enqueue(handle)
            self.scheduler.start(handle)
        else:
            commands = self.machine.add(handle)
        if self.pending is not None:
            self.record_open_call(handle)
        if commands:
            self.scheduler.perform(commands)
        return handle

    @property
    def report(self) -> TurnReport:
        """The report of the turn, available once the turn has ended."""
        if self._report is None:
            raise TurnError("the turn has not ended: read turn.report after the async with block")
        return self._report

    async def __aiter__(self) -> AsyncIterator[Outcome[Any]]:
        """Outcomes as they arrive, until no call is open."""
        seen = 0
        while True:
            while seen < len(self.arrived):
                seen += 1
                yield cast("Outcome[Any]", self.arrived[seen - 1].outcome)
            if not self.is_open():
                return
            await asyncio.shield(self.arrival())

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise TurnError("a turn is used once: ask rt.turn() for another one")
        self._loop = running_loop()
        self._os_thread = get_ident()
        self._started = self.services.time.now()
        outer = find_scope()
        call = None if outer is None else outer.full_call()
        self.parent = call if isinstance(call, Call) else None
        around = outer if isinstance(outer, Turn) else self.parent
        self._caller = self.parent or (outer._caller if isinstance(outer, Turn) else find_caller())
        if self._caller is not None:
            self._caller.inside.add(self)  # its calls may act until it has ended
        parent = around if around is None or isinstance(around, Turn) else around.turn
        if around is not None:  # a turn inside another belongs to the same conversation, unless it says otherwise
            self.thread, self.tenant = self.thread or around.thread, self.tenant or around.tenant
        self.notes = self.services.books.conversations.open(self.thread, self.tenant)
        if self.thread is not None and self.parent is None:
            self.pending = self.services.books.conversations.pending
        if parent is not None and parent.allowance is not None:  # its calls are also calls of the turn around it
            self.allowance = parent.allowance if self.allowance is None else self.allowance.inside(parent.allowance)
        limits = [t for t in (self.timeout, None if parent is None else parent.left()) if t is not None]
        if limits:  # an inner turn ends with the outer one at the latest
            self._deadline = self._started + max(0.0, min(limits))
            self._timer = self._loop.call_later(max(0.0, min(limits)), self._expire, context=Context())
        instruments = self.services.log.instruments
        if instruments is not None:
            parent_id = None if self.parent is None else self.parent.id
            self.info = TurnInfo(self.id, parent_id, self.thread, self.tenant)
            self._entered = instruments.turn(self.info)
        self._outer = SCOPE.set(self)
        self.emit(events.TURN_STARTED, None, None, {"thread": self.thread})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        explain_missing(error)
        try:
            if error is None:
                while self.is_open() and self.ended_by is None:
                    await asyncio.shield(self.arrival())
            if self.ended_by is not None and (error is None or isinstance(error, Exception)):
                raise self.ended_by
        except BaseException:
            self.scheduler.perform(self.machine.cancel())
            raise
        else:
            if error is not None:
                self.scheduler.perform(self.machine.cancel())
            elif self.undecided_skips or self.services.texts.phraser is not None:
                if self._timer is not None:
                    self._timer.cancel()
                self._message = await conclude(self)
        finally:
            for skipped in self.undecided_skips:  # the turn was broken off before they were decided
                report_skip(self, skipped)
            self._end()
            if self._entered is not None and self.info is not None:
                self.info.report = self._report
                self._entered.exit(error)
            if self.services.books.writer is not None and self.parent is None:
                await self._acknowledge(self.services.books.writer)

    def __enter__(self) -> NoReturn:
        raise TurnError("a turn runs on an event loop: write `async with rt.turn() as turn:`, not `with`")

    def __exit__(self, *_: object) -> None:
        """Never reached; `with` looks for it."""

    def __iter__(self) -> NoReturn:
        raise TurnError("outcomes arrive one by one: write `async for outcome in turn:`, not `for`")

    def __await__(self) -> NoReturn:
        raise TurnError("a turn is not awaited: write `async with rt.turn() as turn:`")

    def cancel_open(self) -> None:
        """Cancel the calls that are still open, for an owner that no longer waits for them."""
        if self.is_open():
            self.scheduler.perform(self.machine.cancel())

    # -- submitting --------------------------------------------------------------------------------------------------

    def submit_plan(self, plan: Plan) -> Mapping[str, Handle[Any]]:
        """Submit all calls of a plan, which may refer to each other in any order. Returns their handles by id."""
        self.refuse_if_closed()
        self._context, self._submitter = copy_context(), find_caller()
        from failsoft.config.manifest.plan import Ref, reach  # a plan was read: it is loaded

        handles: dict[str, Handle[Any]] = {}

        def find(ref: Ref) -> Handle[Any] | Part:
            return Part(handles[ref.id], ref.path, reach) if ref.path else handles[ref.id]

        for call in plan.calls:
            id = mask_id(call.id)
            self.given.add(id)
            tool = self._find(call.tool) or unknown_tool(self.services.toolbox, call.tool)
            handle = handles[call.id] = Handle(self.scheduler, id, tool, NO_ARGUMENTS)
            retry = retry_of(tool, call.retry)
            handle.set_options(call.required, call.defaults, call.timeout, retry, call.idempotency_key)
        for call in plan.calls:
            handle = handles[call.id]
            handle.context = self._context
            fills = {handles[id].id: names for id, names in call.needs.items()}
            handle.arguments = call.fill(find)
            handle.needs, handle.fills = tuple(fills), fills
        commands = self.machine.add_all([*handles.values()])
        for handle in handles.values():
            self.record_open_call(handle)
        self.scheduler.perform(commands)
        return handles

    async def adopt(self, call: Call) -> Outcome[Any]:
        """Run a guarded function that was called in the turn's body."""
        self.refuse_if_closed()
        return await body_calls.adopt(self.scheduler, call)

    def adopt_blocking(self, call: Call) -> Outcome[Any]:
        """Run a guarded blocking function that was called in the turn's body."""
        if self.is_elsewhere():
            return asyncio.run_coroutine_threadsafe(self.adopt(call), self.loop).result()
        self.refuse_if_closed()
        return body_calls.adopt_blocking(self.scheduler, call)

    # -- ending ------------------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        if self._ended:
            return
        self._expired = True
        self.emit(events.TURN_TIMED_OUT, None, None, {"timeout_ms": round((self.timeout or 0.0) * 1000)})
        self.scheduler.perform(self.machine.expire())

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._outer is not None:
            reset_variable(SCOPE, self._outer)
            self._outer = None  # a token holds its context
        self.notes = BLANK  # the trace may keep the turn for long
        if self._caller is not None:
            report_ends(self._caller, self.machine.calls.values())
            self._caller.inside.discard(self)
            self._caller = None
        duration = self.services.time.now() - self._started
        calls = self.machine.calls
        results, needs = {}, {}
        ended = self._copy_without_calls()
        for id, handle in calls.items():
            if handle.needs:
                needs[id] = handle.needs
            if handle.state == "succeeded":
                results[id] = handle.result
                if handle.call is None:
                    continue
            if ended is not None:
                handle.task, handle.context = None, EMPTY
                if handle.call is not None:
                    handle.call.turn = ended
        self.emit_end(duration, len(results) + self.machine.valueless, needs)
        self._report = TurnReport(
            self.id, Outcomes(calls), results=results, thread=self.thread, duration=duration, timed_out=self._expired,
            message=self._message or self.services.texts.compose_turn_message, trace=partial(self.services.log.trace.events_of, self._events),
        )  # fmt: skip
        self._ended, self._os_thread, self._context, self._submitter = True, 0, EMPTY, None
        self._events.over = True
        if self.services.books.ledger is not None:
            self.services.books.ledger.end_turn(self.id)
            self.services.books.ledger.finish_pending()
        self.services.log.drain_if_due()
        if ended is not None:
            self.scheduler.turn = ended
            del self.scheduler

    def _copy_without_calls(self) -> Turn | None:
        """Copy the turn without its calls, for them to refer to after the end; None while a call may still report.

        It avoids reference cycles, which only the garbage collector would free. Tasks that a tool has started and not
        awaited still belong to this turn.
        """
        if not self.machine.is_quiet():
            return None
        ended = copy(self)
        ended.machine, ended.arrived, ended._context = TurnMachine(), [], EMPTY
        ended._ended, ended._os_thread = True, 0
        del ended.scheduler
        return ended

    async def _acknowledge(self, writer: StoreWriter) -> None:
        """Wait until the store has saved the turn, unless that takes long."""
        if self.services.judgement.memory is not None:
            self.services.judgement.memory.save()
        self.acknowledged = await writer.acknowledge(self._events)


point_elsewhere(
    Turn,
    {
        **{
            name: f"turn.report.{name}, after the async with block"
            for name in ("results", "outcomes", "failures", "message")
        },
        "call_sync": "turn.call, and await the handle that it returns",
    },
)
