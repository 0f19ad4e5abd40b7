"""Instruments: hooks around turns, calls and attempts, for tracing and profiling.

Rules
-----
- A hook returns a context manager, or None. It is entered where the code that it surrounds runs: same task, OS thread and
  context. A context variable that it sets is seen by the tool, and a span that it makes is the parent of the tool's spans.
- Hooks of several instruments are entered in order and exited in reverse order.
- ``__exit__`` gets the exception that ended the attempt, the call or the turn, or None. Its answer is ignored.
- An instrument that raises never affects a call. Its first exception is logged; it stays in use.
- Tools leave the fast path while there is an instrument. Without one, nothing here runs.
- A run of an agent framework has a ``turn`` hook too, but no block of code that it could surround: its context manager is
  entered in a context of its own. A call finds the turn in ``CallInfo.turn``.
- ``event`` tells what happens to a call while its context manager is open. A sink (``observe.subscriptions``) gets all
  events later, on a thread of its own.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.observe.exception_text import exception_text

if TYPE_CHECKING:
    from failsoft.observe.subscriptions import EventSink

log = logging.getLogger("failsoft")

Manager = AbstractContextManager[object]

CARRIED: ContextVar[Mapping[str, str] | None] = ContextVar("failsoft_carried", default=None)
CARRIED_PATH = f"{__name__}:CARRIED"  # under this name worker processes get it
OPENERS: ContextVar[tuple[str, ...]] = ContextVar("failsoft_openers", default=())
OPENERS_PATH = f"{__name__}:OPENERS"


def carried() -> Mapping[str, str]:
    """Return what the caller's instruments sent to this worker process (``Instrument.carrier``). For code in a tool."""
    return CARRIED.get() or {}


class TurnInfo:
    """A turn, for an instrument."""

    __slots__ = ("ended", "id", "notes", "parent_id", "report", "surrounds", "tenant", "thread")

    def __init__(
        self, id: str, parent_id: str | None, thread: str | None, tenant: str | None, *, surrounds: bool = True
    ) -> None:
        self.id = id  # as in ``TurnReport.turn_id``
        self.parent_id = parent_id  # the call whose tool opened the turn
        self.thread = thread  # the conversation
        self.tenant = tenant  # the customer
        self.surrounds = surrounds  # False for a run of an agent framework: calls do not see its context
        self.report: Any = None  # the TurnReport, once the turn has ended; None for a run of an agent framework
        self.ended: float | None = None  # seconds since 1970, if the hook is exited later
        self.notes: dict[object, Any] = {}  # for instruments, each under itself as the key


class CallInfo:
    """A call, for an instrument."""

    __slots__ = (
        "_describe", "arguments", "asked_id", "by_framework", "candidate", "id", "known", "notes", "outcome", "parent_id", "tenant", "thread",
        "tool", "turn", "turn_id",
    )  # fmt: skip

    def __init__(
        self,
        tool: str,
        id: str,
        *,
        turn_id: str | None,
        parent_id: str | None,
        thread: str | None,
        tenant: str | None,
        arguments: Mapping[str, Any],
        turn: TurnInfo | None = None,
        describe: Callable[[], str] = str,
        known: bool = True,
        asked_id: str | None = None,
        by_framework: bool = False,
    ) -> None:
        self.tool = tool  # the id of the tool that was asked for
        self.known = known  # False if no tool has that name: a model may have invented it
        self._describe = describe
        self.by_framework = by_framework  # an agent framework runs the function, and may trace it
        self.candidate = tool  # for an attempt: the tool that runs, the one asked for or a fallback
        self.id = id  # as in ``Outcome.id``
        self.asked_id = id if asked_id is None else asked_id  # the id that a model gave to the call, if it did
        self.turn_id = turn_id  # as in ``TurnReport.turn_id``; None outside a turn
        self.turn = turn  # None outside a turn, and if the instrument was added after the turn had started
        self.parent_id = parent_id  # the call inside whose tool it was made
        self.thread = thread  # the conversation
        self.tenant = tenant  # the customer
        self.arguments = arguments  # as given by name; may hold secrets
        self.outcome: Any = None  # the Outcome, once the call has ended
        # For instruments, shared by all attempts; each instrument uses itself as the key
        self.notes: dict[object, Any] = {}

    @property
    def description(self) -> str:
        """The description of the tool that was asked for."""
        return self._describe()


class MetricReader(Protocol):
    """The metrics of a runtime."""

    def read(self) -> Sequence[Any]:
        """The samples of ``rt.samples()``."""

    @property
    def label(self) -> Callable[[str | None], str]:
        """A function that returns the value of the label ``tool`` for a tool's id."""


class Instrument:
    """Base class of instruments. Override the hooks you need; each does nothing by default."""

    opener: str | None = None
    """``module:function``, called in a worker process with what ``carrier`` returned, in the context of the tool."""

    # Where it records: two instruments with the same destination would record everything twice
    _destination: object = None

    def turn(self, turn: TurnInfo) -> Manager | None:
        """Surround the body of ``async with rt.turn()``, and the calls that are submitted in it.

        Also called for the run of an agent framework, which it does not surround (``TurnInfo.surrounds``).
        """

    def call(self, call: CallInfo) -> Manager | None:
        """Surround a call with all its attempts, waits and fallbacks."""

    def attempt(self, call: CallInfo, number: int) -> Manager | None:
        """Surround one run of a tool; ``number`` is 1 for the first. Waiting for a slot or an OS thread comes before it.

        A blocking tool that outlives its deadline leaves the context manager when it ends, after the call.
        """

    def item(self, call: CallInfo, number: int) -> Manager | None:
        """Surround an item of a stream after the first.

        The first item ends the attempt; the reader may take the others later.
        """

    def abandoned(self, call: CallInfo, number: int) -> None:
        """Called when an attempt is abandoned: it continues, but its call no longer waits for it."""

    def event(self, call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> None:
        """Called with every event of a call; ``call.candidate`` is the tool that the event is about.

        With ``CallLeft`` the call's turn has ended without it. ``call.outcome`` says so, and the call may go on for long.
        """

    def verify(self, call: CallInfo) -> Manager | None:
        """Surround the question to a tool's ``verify``."""

    def sink(self, metrics: MetricReader) -> EventSink | None:  # noqa: ARG002 - for subclasses
        """Return a sink for all events of the runtime, if the instrument wants them. ``metrics`` reads its metrics."""
        return None

    def carrier(self, call: CallInfo, number: int) -> Mapping[str, str]:  # noqa: ARG002 - for subclasses
        """Return what an attempt takes along to another process.

        A program gets it as environment variables (``TRACEPARENT``); a function in a worker process reads it with
        ``carried()``.
        """
        return {}


class Entered:
    """Context managers that have been entered."""

    __slots__ = ("_managers", "_of")

    def __init__(self, of: Instruments) -> None:
        self._of = of
        self._managers: list[tuple[Instrument, Manager]] = []

    def add(self, instrument: Instrument, manager: Manager) -> None:
        """Enter another context manager."""
        manager.__enter__()
        self._managers.append((instrument, manager))

    def exit(self, error: BaseException | None = None) -> None:
        """Exit all, the last one first."""
        kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
        while self._managers:
            instrument, manager = self._managers.pop()
            try:
                manager.__exit__(kind, error, trace)
            except Exception as failure:
                if failure is not error:
                    self._of.report(instrument, failure)


class Instruments:
    """The instruments of a runtime, used as one."""

    def __init__(self, each: tuple[Instrument, ...], before: Instruments | None = None) -> None:
        self.each = each
        self.openers = tuple(one.opener for one in each if one.opener is not None)
        self._failed: set[int] = (
            set() if before is None else before._failed
        )  # instruments whose failure has been logged
        self._ended: deque[RunSpan] = (
            deque() if before is None else before._ended
        )  # runs that the garbage collector ended

    def replaced(self, each: tuple[Instrument, ...]) -> Instruments | None:
        """Return a copy with other instruments; None if there are none."""
        return Instruments(each, self) if each else None

    def turn(self, turn: TurnInfo) -> Entered:
        """Enter the hooks around a turn."""
        self.exit_ended()
        return self._enter(lambda instrument: instrument.turn(turn))

    def exit_later(self, run: RunSpan) -> None:
        """Exit the hooks of a run soon. Takes no lock: the caller may be a finaliser."""
        self._ended.append(run)

    def exit_ended(self) -> None:
        """Exit the hooks of runs that a finaliser has ended."""
        with suppress(IndexError):  # another OS thread may take the last one
            while self._ended:
                self._ended.popleft().exit()

    def event(self, call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> None:
        """Pass an event of a call to all instruments."""
        for instrument in self.each:
            try:
                instrument.event(call, event_type, fields)
            except Exception as failure:
                self.report(instrument, failure)

    def call(self, call: CallInfo) -> Entered:
        """Enter the hooks around a call."""
        if self._ended:
            self.exit_ended()
        return self._enter(lambda instrument: instrument.call(call))

    def attempt(self, call: CallInfo, number: int) -> Entered:
        """Enter the hooks around an attempt."""
        return self._enter(lambda instrument: instrument.attempt(call, number))

    def item(self, call: CallInfo, number: int) -> Entered:
        """Enter the hooks around an item of a stream."""
        return self._enter(lambda instrument: instrument.item(call, number))

    def verify(self, call: CallInfo) -> Entered:
        """Enter the hooks around ``verify``."""
        return self._enter(lambda instrument: instrument.verify(call))

    def abandoned(self, call: CallInfo, number: int) -> None:
        """Tell all instruments that an attempt was abandoned."""
        for instrument in self.each:
            try:
                instrument.abandoned(call, number)
            except Exception as failure:
                self.report(instrument, failure)

    def carrier(self, call: CallInfo, number: int) -> dict[str, str]:
        """Collect the data that an attempt takes to another process; anything but text is dropped."""
        found: dict[str, str] = {}
        for instrument in self.each:
            try:
                given = instrument.carrier(call, number)
                found |= {
                    name: value for name, value in given.items() if isinstance(name, str) and isinstance(value, str)
                }
            except Exception as failure:
                self.report(instrument, failure)
        return found

    def _enter(self, hook: Callable[[Instrument], Manager | None]) -> Entered:
        entered = Entered(self)
        for instrument in self.each:
            try:
                manager = hook(instrument)
                if manager is not None:
                    entered.add(instrument, manager)
            except Exception as failure:
                self.report(instrument, failure)
        return entered

    def report(self, instrument: Instrument, failure: Exception) -> None:
        """Log the first failure of an instrument."""
        if id(instrument) not in self._failed:
            self._failed.add(id(instrument))
            name = type(instrument).__qualname__
            log.error("instrument %s failed; calls go on without it\n%s", name, exception_text(failure))


class RunSpan:
    """The instruments of one run of an agent framework, entered in a context of their own."""

    __slots__ = ("_context", "_entered", "_instruments", "info")

    def __init__(self, instruments: Instruments, info: TurnInfo) -> None:
        self.info = info
        self._instruments = instruments
        self._context: Context = copy_context()
        self._entered = self._context.run(instruments.turn, info)

    def exit(self) -> None:
        """Exit the hooks."""
        try:
            self._context.run(self._entered.exit)
        except RuntimeError:  # the context is in use: a hook has ended its own run
            self._entered.exit()

    def exit_later(self) -> None:
        """Exit the hooks before the next call. For finalisers: a hook may need a lock that this OS thread holds."""
        self._instruments.exit_later(self)


class CallSpan:
    """The instruments of one call."""

    __slots__ = ("_instruments", "info")

    def __init__(self, instruments: Instruments, info: CallInfo) -> None:
        self._instruments = instruments
        self.info = info

    def enter_call(self) -> Entered:
        """Enter the hooks around the call."""
        return self._instruments.call(self.info)

    def end_call(self, entered: Entered, outcome: Any, cause: BaseException | None) -> None:
        """Exit the hooks around the call with its outcome."""
        self.info.outcome = outcome
        entered.exit(cause)

    def end_early(self, outcome: Any, event_type: str, fields: Mapping[str, Any]) -> None:
        """Tell the instruments how the call's turn has ended it. Their hooks are exited when the call itself ends."""
        self.info.outcome = outcome
        self._instruments.event(self.info, event_type, fields)

    def enter_attempt(self, tool_id: str, number: int) -> Entered:
        """Enter the hooks around an attempt."""
        return self._instruments.attempt(self._of(tool_id), number)

    def enter_item(self, tool_id: str, number: int) -> Entered:
        """Enter the hooks around an item of a stream."""
        return self._instruments.item(self._of(tool_id), number)

    def enter_verify(self, tool_id: str) -> Entered:
        """Enter the hooks around ``verify``."""
        return self._instruments.verify(self._of(tool_id))

    def carrier(self, tool_id: str, number: int) -> dict[str, str]:
        """Return what an attempt takes along to another process."""
        return self._instruments.carrier(self._of(tool_id), number)

    @property
    def openers(self) -> tuple[str, ...]:
        """The functions that a worker process calls before the tool."""
        return self._instruments.openers

    def event(self, tool_id: str, event_type: str, fields: Mapping[str, Any]) -> None:
        """Pass an event of the call to the instruments."""
        self._instruments.event(self._of(tool_id), event_type, fields)

    def abandoned(self, tool_id: str, number: int) -> None:
        """Tell the instruments that an attempt was abandoned."""
        self._instruments.abandoned(self._of(tool_id), number)

    def _of(self, tool_id: str) -> CallInfo:
        """The call as an attempt sees it. A fallback gets a copy: an abandoned attempt may still run at the same time."""
        if tool_id == self.info.tool:
            return self.info
        from copy import copy  # start-up: only instruments need it

        info = copy(self.info)
        info.candidate = tool_id
        return info
