"""The state of one turn: its calls, its deadline, its event loop, and the futures that wait for outcomes.

The scheduler, the commands, the calls of the body and the conclusion work on this. ``Turn`` adds what users call.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextvars import Context
from functools import partial
from itertools import count
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

from failsoft.core.model.outcome import Outcome
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.core.turn.machine import TurnMachine
from failsoft.errors import TurnError
from failsoft.observe import events
from failsoft.runtime.conversation.thread_notes import BLANK
from failsoft.runtime.scope import TurnScope
from failsoft.runtime.turn.handle import Handle, HandleScheduler, report_ends

if TYPE_CHECKING:
    from failsoft.observe.instrument import TurnInfo
    from failsoft.runtime.call.allowance import CallAllowance
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.conversation.thread_store import ConversationStore
    from failsoft.runtime.tools.tool import Tool
    from failsoft.runtime.turn.ports import TurnServices

EMPTY = Context()


class Skipped(NamedTuple):
    """A call that was not run, and the fields of its event."""

    handle: Handle[Any]
    outcome: Outcome[Any]
    fields: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """The fields of its event, with the decision and its reasons if one was made."""
        decision, fault = self.outcome.decision, self.outcome.fault
        if decision is None or fault is None:
            return self.fields
        return {
            **self.fields,
            "error": fault.message,
            "classification": fault.classification,
            "retry_count": 0,
            "decision": decision.strategy,
            "reason": decision.reason,
        }


class TurnState(TurnScope):
    """One turn, as its parts see it."""

    scheduler: HandleScheduler  # exists until the turn has ended

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
        self.services = services
        self.id = id
        self.thread = thread
        self.tenant = tenant
        self.timeout = timeout
        self.cancels = cancels  # whether calls that still run at the deadline are cancelled
        self.allowance = allowance  # None: its calls are not limited
        self.parent: Call | None = None  # the call that this turn is inside of
        self.info: TurnInfo | None = None  # for instruments
        self.notes = BLANK  # the thread's memory
        self.machine: TurnMachine[Handle[Any]] = TurnMachine()
        self.arrived: list[Handle[Any]] = []
        self.awaited: dict[Handle[Any] | None, asyncio.Future[None]] = {}  # None: the next outcome of any call
        self.given: set[str] = set()  # ids that callers have chosen
        self.pending: ConversationStore | None = None  # where open calls are recorded, if anywhere
        self.undecided_skips: list[Skipped] = []  # required calls that were skipped; decided and phrased at the end
        self.ended_by: BaseException | None = None  # a tool's exception that only the caller may handle
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(partial(count, 1))  # for calls without an id
        self._loop: asyncio.AbstractEventLoop | None = None
        self._os_thread = 0  # the OS thread that runs the turn, while the turn accepts calls
        self._deadline: float | None = None
        self._expired = self._ended = False

    # -- time and place ----------------------------------------------------------------------------------------------

    def left(self) -> float | None:
        """Seconds until the turn's deadline; None if it has none."""
        return None if self._deadline is None else self._deadline - self.services.time.now()

    @property
    def expired(self) -> bool:
        """True once the deadline has passed with calls still open."""
        return self._expired

    @property
    def over(self) -> bool:
        """True once the turn has ended."""
        return self._ended

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise TurnError("the turn has not begun: use it with async with")
        return self._loop

    def full_call(self) -> None:
        """None: calls made in the body are not inside another call."""

    def step_out(self, tool: object, started: float) -> Call | None:  # noqa: ARG002
        """The call that this turn is inside of."""
        return self.parent

    def is_elsewhere(self) -> bool:
        """True if the event loop of another OS thread runs this turn."""
        return not self._ended and get_ident() != self._os_thread

    def refuse_if_closed(self) -> None:
        """Raise unless the turn is under way and its event loop is the current one."""
        if get_ident() != self._os_thread or not self._runs_here():
            self._refuse()

    def _runs_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:  # no loop runs: the turn's own loop is paused
            return True

    def _refuse(self) -> NoReturn:
        self.services.runner.refuse_if_closed()
        if self._ended:
            raise TurnError("the turn has ended: it takes no more calls")
        if self._loop is None:
            raise TurnError("the turn has not begun: use it with async with")
        raise TurnError("the turn belongs to another event loop: submit its calls from there")

    # -- calls -------------------------------------------------------------------------------------------------------

    def new_id(self, tool_id: str) -> str:
        """Make an id from the tool's id and a number; skip ids that are taken."""
        numbers, calls = self._numbers[tool_id], self.machine.calls
        while (id := f"{tool_id}-{next(numbers)}") in calls:
            pass
        return id

    def record_open_call(self, handle: Handle[Any]) -> None:
        """Record an open call in the store, so that it outlives the process."""
        if self.pending is not None and self.thread is not None:
            self.pending.open_call((self.tenant, self.thread), self.id, handle.id, handle.tool.id)

    def resolve(self, handle: Handle[Any], outcome: Outcome[Any]) -> None:
        """Give a call its outcome."""
        handle.resolve(outcome)
        caller = None if handle.call is None else handle.call.caller
        if caller is not None:
            report_ends(caller, (handle,))
            caller.inside.discard(handle)
        self.arrived.append(handle)
        if self.awaited or self.pending is not None:
            self.notify_waiting(handle)

    def notify_waiting(self, handle: Handle[Any]) -> None:
        """Close the record of a call that has its outcome, and wake the tasks that wait for it."""
        if self.pending is not None and self.thread is not None:
            self.pending.close_call((self.tenant, self.thread), self.id, handle.id)
        for key in (handle, None):
            future = self.awaited.pop(key, None)
            if future is not None and not future.done():
                future.set_result(None)

    def arrival(self, handle: Handle[Any] | None = None) -> asyncio.Future[None]:
        """A future for the outcome of this call, or of any. Several may wait for it, so shield it."""
        if handle not in self.awaited:
            self.awaited[handle] = self.loop.create_future()
        return self.awaited[handle]

    def is_open(self) -> bool:
        """True while a call has no outcome."""
        return len(self.arrived) < len(self.machine.calls)

    def emit(self, event_type: str, tool: Tool | None, call_id: str | None, fields: dict[str, Any]) -> None:
        """Record an event of this turn. An unknown tool is named, and counted in no metrics."""
        subject = tool if tool is None or tool.is_known else tool.id
        self.services.log.record_event(event_type, subject, call_id, self.id, fields)

    def emit_end(self, duration: float, succeeded: int, needs: Mapping[str, Any]) -> None:
        """Record the end of the turn."""
        calls = self.machine.calls
        fields: dict[str, Any] = {
            "duration_ms": round(duration * 1000, 3),
            "calls": len(calls),
            "succeeded": succeeded,
            "needs": needs,
        }
        if self.services.toolbox.labels:
            fields |= self.services.toolbox.find_labels(handle.tool.id for handle in calls.values())
        self.emit(events.TURN_ENDED, None, None, fields)
