"""The state that all calls of a runtime share: tools and their health, time, the event stream, the books.

``Runtime`` is what users hold; ``Services`` is what a ``Runtime`` holds.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from types import CoroutineType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from failsoft.core.effects.tool_effect import UNKNOWN, KnownEffect
from failsoft.core.model.builtin_faults import did_you_mean, quote
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Decision, Outcome
from failsoft.core.resilience.error_handler import ErrorReport, Handler
from failsoft.errors import FailsoftError
from failsoft.observe import events
from failsoft.runtime import calls
from failsoft.runtime.call import driver
from failsoft.runtime.call.emit import CallLog
from failsoft.runtime.call.error_handler import consult, handler_failed_fields
from failsoft.runtime.call.model import Call, Phraser
from failsoft.runtime.call.running import Watch
from failsoft.runtime.call.user_text import Catalogue
from failsoft.runtime.conversation.conversation_log import ConversationLog
from failsoft.runtime.execution.clock import SYSTEM, Clock, current
from failsoft.runtime.execution.deadline import LoopDeadlines, Queue, log_end
from failsoft.runtime.execution.thread_pool import ThreadPool
from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
from failsoft.runtime.tools.health import HealthView, ToolHealth
from failsoft.runtime.tools.tool import Tool

if TYPE_CHECKING:
    from random import Random

    from failsoft.analysis.turn_report import TurnReport
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.resilience.policy import Policy
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.persistence.circuits import Circuits
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.persistence.event_writer import StoreWriter
    from failsoft.stores.ports import Store

log = logging.getLogger("failsoft")
MOST_WARNED = 100  # warnings that are logged once


class Services:
    """The state of a runtime, and small lookups in it."""

    open_call = calls.open_call
    run = calls.run
    run_blocking = calls.run_blocking
    drive = driver.drive
    drive_blocking = driver.drive_blocking
    misfit_result = driver.misfit_result
    error_result = driver.error_result
    value_result = driver.value_result

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        handler: Handler | None,
        on_escalation: Callable[[Outcome[Any]], Any] | None,
        policies: tuple[Policy, ...] = (),
        store: Store | None = None,
        store_required: bool = False,
        phraser: Phraser | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.clock = clock
        self.now = clock.monotonic
        self.wall = clock.wall
        self.random = random.random
        self._bits = random.getrandbits
        self.handler = handler
        self.policies = policies
        self.memory: RecoveryMemory | None = None  # None: it is off
        self.store = store  # None: nothing outlives the process
        self.writer: StoreWriter | None = None  # of events in the store
        self.circuits: Circuits | None = None  # kept and shared; None: they stay in this process
        self.phraser = phraser
        self.catalogue = catalogue or Catalogue()
        self.conversations = ConversationLog(self)
        self.ledger: EffectLedger | None = None  # of writes; None: there is no store
        if self.store is not None and self.conversations.pending is not None:
            from failsoft.runtime.persistence.effect_ledger import EffectLedger  # only with a store

            self.ledger = EffectLedger(self.store, self.conversations.pending.run)
        self.store_required = store_required
        self.tools: dict[str, Tool] = {}
        self._warned: set[str] = set()
        self.labels: dict[str, str] = {}  # by tool id, where the tool's options have one
        self.disabled: dict[str, str | None] = {}  # why, by tool id; None: enabled whatever its options say
        self.index: dict[Any, Tool] = {}  # by id and by guarded function
        self.log = CallLog(clock, self, on_escalation)
        self.trace = self.log.trace
        self.emit, self.record_event = self.log.emit, self.log.record_event
        self.drain_if_due, self.escalate = self.log.drain_if_due, self.log.escalate
        self.notify_escalation, self.debug_fields = self.log.notify_escalation, self.log.debug_fields
        self.on_caller_cancelled = self.log.on_caller_cancelled
        self.thread_pool = ThreadPool()
        self._workers: Workers | None = None
        self.lock = threading.RLock()  # the garbage collector may end a forgotten call in a thread that holds it
        self.closed = False
        self.calls: dict[Call, None] = {}  # in the pipeline now, in order
        self.retrying: dict[tuple[str, str | int], tuple[Tool, float, int]] = {}  # in the fast retry loop now
        self._abandoned_tasks: set[asyncio.Task[None]] = set()  # of turns that went on without them (R7)
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopDeadlines] = WeakKeyDictionary()
        self._fallback_health: dict[tuple[str, str], ToolHealth] = {}

    @property
    def workers(self) -> Workers:
        """Processes of our own, loaded with the first tool that needs one: most programs have none."""
        from failsoft.runtime.execution.processes.pool import Workers

        with self.lock:
            if self._workers is None:
                self._workers = Workers()
            return self._workers

    # -- calls -------------------------------------------------------------------------------------------------------

    def new_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float, id: str | int | None = None
    ) -> Call:
        """A call that is placed nowhere."""
        return Call(self.trace.number() if id is None else id, tool, args, kwargs, started)

    def refuse_if_closed(self) -> None:
        if self.closed:
            raise FailsoftError("this Runtime has been closed: make another one")

    def forget_loops(self) -> None:
        """Forget all event loops."""
        self._loops.clear()

    def loops(self) -> list[LoopDeadlines]:
        """The deadlines of every event loop that has been used."""
        return list(self._loops.values())

    def find(self, tool: str | Callable[..., Any]) -> Tool | str:
        """The tool that is meant: by its id, or by its guarded function. Its bare name if there is none."""
        found = self.index.get(tool)
        if found is not None:
            return found
        if not isinstance(tool, str):
            raise FailsoftError(_no_tool(tool))
        return tool

    def find_labels(self, tools: Iterable[str]) -> dict[str, Any]:
        """The field of an event that says how people call these tools; none without labels."""
        labels = {id: self.labels[id] for id in {*tools} & self.labels.keys()}
        return {"labels": labels} if labels else {}

    def warn_of_typo(self, name: str, *, always: bool = False) -> None:
        """Log once that no tool has this name, if one has a similar name, or ``always``."""
        hint = did_you_mean(name, self.tools)
        if hint or always:
            self.warn_once(name, "there is no tool %s%s", quote(name), hint)

    def warn_once(self, key: str, message: str, *values: object) -> None:
        """Log a warning that is of use once; ``key`` tells it from others."""
        if key not in self._warned and len(self._warned) < MOST_WARNED:
            self._warned.add(key)
            log.warning(message, *values)

    def unknown(self, call_id: str | int, name: str, fault: Fault) -> Outcome[Any]:
        """The outcome of a call of a tool that does not exist."""
        outcome: Outcome[Any] = Outcome(
            call_id, name, "failed", fault=fault, decision=Decision("escalate", "Permanent error (no retry)"),
            escalated=True, explanation=self.explain,
        )  # fmt: skip
        return outcome

    def abandon_task(self, task: asyncio.Task[None]) -> None:
        self._abandoned_tasks.add(task)
        task.add_done_callback(self._abandoned_tasks.discard)
        task.add_done_callback(log_end)

    def tasks_on(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
        """The tasks on an event loop that no turn and no call waits for any more."""
        tasks: list[asyncio.Task[Any]] = [task for task in self._abandoned_tasks if task.get_loop() is loop]
        of_loop = self._loops.get(loop)
        return tasks if of_loop is None else [*tasks, *of_loop.orphans]

    def close_workers(self) -> None:
        """End the worker processes, if there are any."""
        if self._workers is not None:
            self._workers.close()

    def new_key(self) -> str:
        """An idempotency key: unique, and no secret."""
        return f"{self._bits(128):032x}"

    # -- health ------------------------------------------------------------------------------------------------------

    def health_of(self, primary: Tool, tool: Tool, via: Fallback | None) -> ToolHealth:
        """A tool's health; a fallback with a cooldown of its own has another one for each primary (R19)."""
        if via is None or via.cooldown is None:
            return tool.health
        key = (primary.id, tool.id)
        with self.lock:
            health = self._fallback_health.get(key)
            if health is None:
                health = self._fallback_health[key] = ToolHealth(via.cooldown)
                if self.circuits is not None:
                    self.circuits.register(health, *key)
            return health

    def health_as_fallback(self, tool_id: str, primary_id: str) -> ToolHealth | None:
        """The health that a tool has as another one's fallback; None: it does not exist."""
        primary = self.tools.get(primary_id)
        listed = () if primary is None else primary.options.fallbacks
        via = next((fallback for fallback in listed if fallback.tool == tool_id), None)
        if primary is None or via is None:
            known = ", ".join(fallback.tool for fallback in listed) or "none"
            raise FailsoftError(f"{tool_id} is no fallback of {primary_id}: its fallbacks are {known}")
        tool = self.tools.get(tool_id)
        return None if tool is None else self.health_of(primary, tool, via)

    def health_view(self, tool: Tool, health: ToolHealth | None = None) -> HealthView:
        """A tool's circuit; ``health`` in place of its own where it is another tool's fallback."""
        now = self.now()
        health = health or tool.health
        with self.lock:
            return HealthView(
                health.observe(now), health.state.failures, tool.unavailable_fault is None, health.open_for(now)
            )

    def deadline_queue(self, tool: Tool, timeout: float) -> tuple[Queue, asyncio.Task[Any]]:
        """The deadline queue for this timeout on the running loop, and the task that runs."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise FailsoftError(f"{tool.id}: a guarded tool is awaited in an asyncio task; here is none")
        tool.queue = self.deadlines_of(loop).queue(timeout)
        return tool.queue, task

    def deadlines_of(self, loop: asyncio.AbstractEventLoop) -> LoopDeadlines:
        """Everything that is kept for an event loop."""
        of_loop = self._loops.get(loop)
        if of_loop is None:
            for other in self._loops.keyrefs():
                if (known := other()) is not None and known.is_closed():
                    self._loops.pop(known, None)  # what belongs to it holds it
            of_loop = self._loops[loop] = LoopDeadlines(loop, self.now)
            of_loop.watch = Watch(self, of_loop).arm
            self.warn_of_clock()
        return of_loop

    def warn_of_clock(self) -> None:
        """Log a warning if the clock here is another than the runtime's."""
        if current() not in (SYSTEM, self.clock):
            log.warning(
                "this Runtime was made outside of virtual_time() and does not live by its clock: "
                "deadlines and circuits take real time. Make the Runtime inside."
            )

    def explain(
        self, outcome: Outcome[Any], language: str | None = None, known: KnownEffect | None = None
    ) -> Explanation:
        """An outcome in three texts. ``known``: what is known of its tool's effect, if that is not the tool's own."""
        from failsoft.core.explain.explanation import explain  # most outcomes are never explained

        if known is None:
            tool = self.tools.get(outcome.tool)
            known = UNKNOWN if tool is None else tool.known_effect
        return explain(outcome, self.catalogue.texts(language), known=known)

    def compose_turn_message(self, report: TurnReport) -> str:
        """A turn in one or two sentences, for the user."""
        from failsoft.core.explain.turn_message import compose  # not every turn is told

        writes = {tool.id for tool in self.tools.values() if tool.known_effect.warns_user}
        return compose(report.outcomes, self.catalogue.texts(), writes=writes)

    # -- somebody else's Error Handler -------------------------------------------------------------------------------

    async def consult(self, call: Call, report: ErrorReport) -> Decision | None:
        """Ask; if it fails or is slow the built-in decides, and the stream says so."""
        answer = await consult(self, report)
        if isinstance(answer, Decision):
            return answer
        self.emit(events.HANDLER_FAILED, call.tool, call, handler_failed_fields(answer))
        return None


def _no_tool(found: object) -> str:
    """Explain what is wrong with what was given as a tool."""
    if isinstance(found, CoroutineType):
        name = found.__qualname__
        found.close()  # or Python warns as well
        return f'{name}(…) was called already: give the tool and its arguments apart, like call({name}, {{"x": 1}})'
    if callable(found):
        return f"{found!r} is not a tool of this Runtime: decorate it with @rt.tool, or rt.add() it"
    return (
        f"{found!r:.80} is not a tool of this Runtime, but a value of type {type(found).__name__}: give the tool's name or its "
        'function, and its arguments apart, like call(search, {"x": 1}) instead of call(search(1))'
    )
