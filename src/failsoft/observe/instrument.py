"""Instruments: hooks around turns, calls and attempts, for tracing and profiling.

Rules
-----
- A hook returns a context manager, or None. It is entered where the code that it surrounds runs: same task, OS thread and
  context. A context variable that it sets is seen by the tool, and a span that it makes is the parent of the tool's spans.
- Hooks of several instruments are entered in order and left in reverse order.
- ``__exit__`` gets the exception that ended the attempt, the call or the turn, or None. Its answer is ignored.
- An instrument that raises never affects a call. Its first exception is logged; it stays in use.
- Tools leave the fast path while there is an instrument. Without one, nothing here runs.
- Events (``observe.events``) say what happened; instruments are for what must surround the code itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from copy import copy
from typing import Any

from failsoft.observe.exception_text import exception_text

log = logging.getLogger("failsoft")

Manager = AbstractContextManager[object]

CARRIED: ContextVar[Mapping[str, str] | None] = ContextVar("failsoft_carried", default=None)
CARRIED_PATH = f"{__name__}:CARRIED"  # under this name worker processes get it


def carried() -> Mapping[str, str]:
    """In a tool that runs in a worker process: what the instruments of its caller sent along (``Instrument.carrier``)."""
    return CARRIED.get() or {}


class TurnInfo:
    """A turn, for an instrument."""

    __slots__ = ("id", "parent_id", "report", "tenant", "thread")

    def __init__(self, id: str, parent_id: str | None, thread: str | None, tenant: str | None) -> None:
        self.id = id  # as in ``TurnReport.turn_id``
        self.parent_id = parent_id  # the call whose tool opened the turn
        self.thread = thread  # the conversation
        self.tenant = tenant  # the customer
        self.report: Any = None  # the TurnReport, once the turn has ended


class CallInfo:
    """A call, for an instrument."""

    __slots__ = ("arguments", "candidate", "id", "outcome", "parent_id", "tenant", "thread", "tool", "turn_id")

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
    ) -> None:
        self.tool = tool  # the id of the tool that was asked for
        self.candidate = tool  # for an attempt: the tool that runs, the one asked for or a fallback
        self.id = id  # as in ``Outcome.id``
        self.turn_id = turn_id  # as in ``TurnReport.turn_id``; None outside a turn
        self.parent_id = parent_id  # the call inside whose tool it was made
        self.thread = thread  # the conversation
        self.tenant = tenant  # the customer
        self.arguments = arguments  # as given by name; may hold secrets
        self.outcome: Any = None  # the Outcome, once the call has ended


class Instrument:
    """Base class of instruments. Override the hooks you need; each does nothing by default."""

    def turn(self, turn: TurnInfo) -> Manager | None:
        """Surround the body of ``async with rt.turn()``, and the calls that are submitted in it."""

    def call(self, call: CallInfo) -> Manager | None:
        """Surround a call with all its attempts, waits and fallbacks."""

    def attempt(self, call: CallInfo, number: int) -> Manager | None:
        """Surround one run of a tool; ``number`` is 1 for the first. Waiting for a slot or an OS thread comes before it.

        A blocking tool that outlives its deadline leaves the context manager when it ends, after the call.
        """

    def abandoned(self, call: CallInfo, number: int) -> None:
        """Learn that an attempt goes on although its call does not wait for it any more."""

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
        """Enter one more."""
        manager.__enter__()
        self._managers.append((instrument, manager))

    def exit(self, error: BaseException | None = None) -> None:
        """Leave all, the last one first."""
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

    def __init__(self, each: tuple[Instrument, ...], failed: set[int] | None = None) -> None:
        self.each = each
        self._failed: set[int] = set() if failed is None else failed  # instruments whose failure has been logged

    def replaced(self, each: tuple[Instrument, ...]) -> Instruments | None:
        """The same with other instruments; None if there are none."""
        return Instruments(each, self._failed) if each else None

    def turn(self, turn: TurnInfo) -> Entered:
        """Enter the hooks around a turn."""
        return self._enter(lambda instrument: instrument.turn(turn))

    def call(self, call: CallInfo) -> Entered:
        """Enter the hooks around a call."""
        return self._enter(lambda instrument: instrument.call(call))

    def attempt(self, call: CallInfo, number: int) -> Entered:
        """Enter the hooks around an attempt."""
        return self._enter(lambda instrument: instrument.attempt(call, number))

    def abandoned(self, call: CallInfo, number: int) -> None:
        """Tell all that an attempt goes on by itself."""
        for instrument in self.each:
            try:
                instrument.abandoned(call, number)
            except Exception as failure:
                self.report(instrument, failure)

    def carrier(self, call: CallInfo, number: int) -> dict[str, str]:
        """Collect what an attempt takes along to another process; anything but text is left out."""
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
        """Leave the hooks around the call with its outcome."""
        self.info.outcome = outcome
        entered.exit(cause)

    def enter_attempt(self, tool_id: str, number: int) -> Entered:
        """Enter the hooks around an attempt."""
        return self._instruments.attempt(self._of(tool_id), number)

    def carrier(self, tool_id: str, number: int) -> dict[str, str]:
        """Return what an attempt takes along to another process."""
        return self._instruments.carrier(self._of(tool_id), number)

    def abandoned(self, tool_id: str, number: int) -> None:
        """Tell the instruments that an attempt goes on by itself."""
        self._instruments.abandoned(self._of(tool_id), number)

    def _of(self, tool_id: str) -> CallInfo:
        """The call as an attempt sees it. A copy: an abandoned attempt may go on beside the next one."""
        info = copy(self.info)
        info.candidate = tool_id
        return info
