"""Runs of an agent, recorded as turns.

Rules
-----
- One run of an agent is one turn without a deadline. The manifest's limits of calls per turn apply. The framework
  drives the run; failsoft sees only its calls, which may come from any event loop and any OS thread.
- The framework's own object for a run identifies it. The turn starts when the object is first seen. It ends when the
  adapter says so, else when the object is freed, when the runtime is closed, or at the end of the program.
- Inside a turn or inside another call there is no run: the calls belong to that turn or that call.
"""

from __future__ import annotations

import atexit
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet, finalize

from failsoft.observe import events
from failsoft.observe.instrument import Instruments, RunSpan, TurnInfo
from failsoft.runtime.call.allowance import allow_calls
from failsoft.runtime.scope import find_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from failsoft.core.model.options import TurnOptions
    from failsoft.runtime.call.allowance import CallAllowance
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.turn.ports import RunServices

    AtEnd = Callable[[Callable[[], None]], object]


class AgentRun:
    """The turn of one agent run."""

    def __init__(
        self, services: RunServices, id: str, thread: str | None, allowance: CallAllowance | None = None
    ) -> None:
        self.id = id
        self.thread = thread
        self.parent: Call | None = None
        self.allowance = allowance  # None: its calls are not limited
        self.services = services
        self._started = services.time.now()
        self._ids: dict[str, object] = {}  # call ids that are taken
        self._taken: list[None] = []  # its length is the number of calls; appending takes no lock
        self._succeeded: list[None] = []
        self._tools: set[str] = set()
        self._ended = False
        self.info: TurnInfo | None = None
        self.span: RunSpan | None = None  # its instruments
        services.log.trace.record((events.TURN_STARTED, self._started, None, None, id, {"thread": thread}))

    def enter(self, instruments: Instruments) -> None:
        """Enter the hooks of instruments, in a context of their own: there is no block of code to surround."""
        self.info = TurnInfo(self.id, None, self.thread, None, surrounds=False)
        self.span = RunSpan(instruments, self.info)

    @property
    def over(self) -> bool:
        """True once the run has ended."""
        return self._ended

    def left(self) -> float | None:
        """None: an agent's run has no deadline."""
        return None

    def take(self, call: Call) -> None:
        """Add the call to this run, or to the call around it.

        Some models use the same call ids in every message. An id that is taken gets the outer call's id as a prefix, or a
        number as a suffix, so that ids are unique within the run.
        """
        self._tools.add(call.tool.id)
        if call.parent is None:
            call.turn = self
            self._taken.append(None)
        if call.has_own_id:
            call.set_id(self._unique(call))

    def note_success(self) -> None:
        """Count a call of this run that has succeeded."""
        self._succeeded.append(None)

    def _unique(self, call: Call) -> str:
        mark, id = object(), call.id
        if self._ids.setdefault(id, mark) is mark:
            return id
        if call.parent is not None:
            id = f"{call.parent.id}/{id}"
        wanted, number = id, 2
        while self._ids.setdefault(wanted, mark) is not mark:
            wanted, number = f"{id}#{number}", number + 1
        return wanted

    def end(self) -> None:
        """Record the end, once.

        This may run as a finaliser, at any moment and in any OS thread: it appends one record and takes no lock.
        """
        if self._ended:
            return
        self._ended = True
        now = self.services.time.now()
        counts = {"calls": len(self._taken), "succeeded": len(self._succeeded)}
        fields = {"duration_ms": round((now - self._started) * 1000, 3), **counts, "needs": {}}
        if self.services.toolbox.labels:
            fields |= self.services.toolbox.find_labels(self._tools)
        self.services.log.trace.record((events.TURN_ENDED, now, None, None, self.id, fields))
        if self.info is not None:
            self.info.ended = self.services.time.wall()
        if self.services.books.ledger is not None:
            self.services.books.ledger.end_turn(self.id)


class AgentRuns:
    """The runs that are under way in one runtime, by the framework's object for each."""

    def __init__(self, services: RunServices, new_id: Callable[[], str], options: TurnOptions) -> None:
        self._engine = services
        self._options = options
        self._new_id = new_id
        self._open: dict[int, AgentRun] = {}
        _ALL.add(self)
        # Handlers run in reverse order: this one before those that write the events to disk.
        atexit.unregister(_end_all)
        atexit.register(_end_all)

    def find(self, key: object, thread: str | None, at_end: AtEnd | None = None) -> AgentRun | None:
        """Return the run that ``key`` identifies; the first call with a key starts its turn.

        ``key`` must allow weak references. ``at_end`` is given a function that ends the turn. None inside a turn or a call.
        """
        if find_scope() is not None:
            return None
        run = self._open.get(id(key))
        return self._start(key, thread, at_end) if run is None else run

    def _start(self, key: object, thread: str | None, at_end: AtEnd | None) -> AgentRun:
        instruments = self._engine.log.instruments
        with self._engine.toolbox.lock:  # calls of one run may start in several OS threads at once
            run = self._open.get(id(key))
            if run is not None:
                instruments = None
            else:
                run = self._open[id(key)] = AgentRun(self._engine, self._new_id(), thread, allow_calls(self._options))
                finalize(key, self._drop, id(key)).atexit = False
                if at_end is not None:
                    at_end(partial(self._end, id(key)))
        if instruments is not None:  # without the lock: instruments are user code
            run.enter(instruments)
        return run

    def end(self, key: object) -> None:
        """End the run that ``key`` identifies, if its turn has started."""
        self._end(id(key))
        self._engine.log.drain_if_due()
        if self._engine.books.ledger is not None:
            self._engine.books.ledger.finish_pending()

    def _end(self, key: int) -> None:
        run = self._open.pop(key, None)
        if run is not None:
            run.end()
            if run.span is not None:
                run.span.exit()

    def _drop(self, key: int) -> None:
        """End a run as its finaliser."""
        run = self._open.pop(key, None)
        if run is not None:
            run.end()
            if run.span is not None:
                run.span.exit_later()

    def end_all(self) -> None:
        """End the runs that are still open, when the runtime is closed or the program ends."""
        for key in [*self._open]:
            self._end(key)
        if self._engine.log.instruments is not None:
            self._engine.log.instruments.exit_ended()


_ALL: WeakSet[AgentRuns] = WeakSet()


def _end_all() -> None:
    for runs in [*_ALL]:
        runs.end_all()
