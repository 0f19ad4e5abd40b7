"""Calls of a runtime: place each in the turn or call around it, and run it by one of three routes.

A call in the body of a turn becomes one of the turn's. A simple one takes the fast path. All others are driven through
the pipeline.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.redact.sanitise import mask_id
from failsoft.errors import FailsoftError
from failsoft.runtime.call import driver, instrumented
from failsoft.runtime.call.emit import emit_cancelled
from failsoft.runtime.call.model import NO_PROGRESS, AttemptResult, Call, Progress
from failsoft.runtime.call.steps import PipelineOptions
from failsoft.runtime.fastpath.call import is_fast_eligible, run_fast, run_fast_blocking
from failsoft.runtime.scope import ASKED, SCOPE, AskedFor, TurnScope, find_scope
from failsoft.runtime.tools.counted_as_write import count_as_write
from failsoft.runtime.tools.tool import Tool
from failsoft.runtime.turn.agent_run import AgentRun

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from failsoft.core.model.outcome import Outcome
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.ports import DriverServices
    from failsoft.runtime.fastpath.ports import FastCallServices
    from failsoft.runtime.turn.turn import Turn


class CallRunner:
    """Makes the calls of a runtime and runs them."""

    def __init__(self, rt: DriverServices, fast: FastCallServices) -> None:
        self._rt = rt
        self._fast = fast  # the same object, typed for the fast path
        self.closed = False

    def refuse_if_closed(self) -> None:
        """Raise if the runtime has been closed."""
        if self.closed:
            raise FailsoftError("this Runtime has been closed: make another one")

    @cached_property
    def pipeline_options(self) -> PipelineOptions:
        """The settings that the pipeline follows."""
        rt = self._rt
        memory = rt.judgement.memory
        return PipelineOptions(
            rt.texts.explain,
            rt.judgement.policies,
            consults=rt.judgement.handler is not None,
            phrases=rt.texts.phraser is not None,
            records_writes=rt.books.ledger is not None,
            store_required=rt.books.store_required,
            memory_acts=memory is not None and memory.mode == "act",
        )

    # -- making ------------------------------------------------------------------------------------------------------

    def new_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float, id: str | int | None = None
    ) -> Call:
        """A call outside of all turns and calls."""
        return Call(self._rt.log.trace.number() if id is None else id, tool, args, kwargs, started)

    def open_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float | None = None,
        id: str | int | None = None,
    ) -> Call:  # fmt: skip
        """A call of a guarded function, placed in the turn or the call that it is made from."""
        scope, asked = find_scope(), ASKED.get()
        call = self.new_call(tool, args, kwargs, self._rt.time.now() if started is None else started, id)
        if scope is not None:
            outer = scope.full_call()
            if isinstance(outer, Call):
                call.parent, call.turn, call.thread, call.tenant = outer, outer.turn, outer.thread, outer.tenant
            else:
                call.caller = outer
        if asked is not None and asked.tool is tool and not (asked.taken or tool.safe_to_repeat):
            self._take_asked(call, asked)
        return call

    def _take_asked(self, call: Call, asked: AskedFor) -> None:
        """Turn a call of a guarded function into the call that a model has asked for."""
        asked.taken = True
        call.tool, call.by_agent = count_as_write(call.tool), True
        call.thread = asked.thread or call.thread
        if asked.id:
            call.caller_id = mask_id(asked.id)
            call.set_id(call.caller_id)
        run = asked.turn() if call.turn is None and asked.turn is not None else call.turn
        if isinstance(run, AgentRun) and run.services.log is self._rt.log:
            run.take(call)
            asked.run = run if call.parent is None else None

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self, call: Call) -> Outcome[Any]:
        """Run a call to its outcome on this event loop. The call around it lists it until it has ended."""
        self.refuse_if_closed()
        caller = (call.outer or call.caller) if call.acts_anew else None
        if caller is None:
            return await self._run(call)
        caller.inside.add(call)
        try:
            return await self._run(call)
        finally:
            caller.inside.discard(call)

    async def _run(self, call: Call) -> Outcome[Any]:
        scope, ticket = SCOPE.get(), call.tool.closed_ticket
        if isinstance(scope, TurnScope) and call.turn is None:
            turn = cast("Turn", scope)
            if turn.services.runner is self:
                return await turn.adopt(call)
        if ticket is not None and call.tool.kind == "async" and is_fast_eligible(self._fast, call):
            return await run_fast(self._fast, call, ticket)
        return await self.drive(call)

    def run_blocking(self, call: Call) -> Outcome[Any]:
        """Run a call to its outcome in this OS thread. The call around it lists it until it has ended."""
        self.refuse_if_closed()
        caller = (call.outer or call.caller) if call.acts_anew else None
        if caller is None:
            return self._run_blocking(call)
        caller.inside.add(call)
        try:
            return self._run_blocking(call)
        finally:
            caller.inside.discard(call)

    def _run_blocking(self, call: Call) -> Outcome[Any]:
        scope, ticket = SCOPE.get(), call.tool.closed_ticket
        if isinstance(scope, TurnScope) and call.turn is None:
            turn = cast("Turn", scope)
            if turn.services.runner is self:
                return turn.adopt_blocking(call)
        if ticket is not None and call.tool.kind != "stream" and is_fast_eligible(self._fast, call):
            return run_fast_blocking(self._fast, call, ticket)
        return self.drive_blocking(call)

    # -- driving -----------------------------------------------------------------------------------------------------

    def drive(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None, past: Progress = NO_PROGRESS
    ) -> Coroutine[Any, Any, Outcome[Any]]:
        """Drive a call through the pipeline, on this event loop."""
        driving = driver.drive(self._rt, call, first, ticket, past)
        instruments = self._fast.log.instruments
        return driving if instruments is None else instrumented.drive(instruments, call, driving)

    def drive_blocking(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None
    ) -> Outcome[Any]:
        """Drive a call through the pipeline, in this OS thread."""
        instruments = self._fast.log.instruments
        if instruments is None:
            return driver.drive_blocking(self._rt, call, first, ticket)
        driving = partial(driver.drive_blocking, self._rt, call, first, ticket)
        return instrumented.drive_blocking(instruments, call, driving)

    def on_caller_cancelled(self, call: Call, error: BaseException) -> None:
        """Record that a call ended because its caller was cancelled or interrupted."""
        emit_cancelled(self._rt.log, self._rt.books, call, error, self._rt.time.now())
