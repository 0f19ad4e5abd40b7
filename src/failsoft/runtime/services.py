"""State that all calls of a runtime share: tools, health, time, the event stream; and the async driver.

``Runtime`` is what users hold; this is what it holds. Decisions are the core's, sequence is ``run_pipeline``'s; here is
only what they need to be carried out.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from time import monotonic as real_time
from types import CoroutineType
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from failsoft.core.effects.tool_effect import UNKNOWN, KnownEffect
from failsoft.core.model.builtin_faults import BAD_ARGUMENTS, did_you_mean, quote
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Decision, Outcome
from failsoft.core.redact.sanitise import mask_id
from failsoft.core.resilience.circuit_breaker import Ticket
from failsoft.core.resilience.error_handler import ErrorReport, Handler
from failsoft.errors import FailsoftError
from failsoft.observe import events
from failsoft.observe.delivery import left
from failsoft.observe.exception_text import exception_text
from failsoft.observe.recorder import Recorder
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.observe.sinks.log import is_logged, level_of
from failsoft.observe.sinks.log import put as log_event
from failsoft.runtime.call.admission import is_absent
from failsoft.runtime.call.attempt import attempt, blocked_loop_result, emit_abandoned, timeout_result, unawaited
from failsoft.runtime.call.attempt_blocking import run_blocking
from failsoft.runtime.call.error_handler import consult, handler_failed_fields
from failsoft.runtime.call.escalation import Escalations
from failsoft.runtime.call.model import (
    NO_PROGRESS,
    AttemptResult,
    Call,
    Consult,
    Invoke,
    Phrase,
    Progress,
    RecordWrite,
    TakeOffer,
    Wait,
)
from failsoft.runtime.call.pipeline import run_pipeline
from failsoft.runtime.call.running import Watch
from failsoft.runtime.call.tracebacks import was_entered
from failsoft.runtime.call.user_text import Catalogue, Phraser, phrase
from failsoft.runtime.conversation.conversation_log import ConversationLog
from failsoft.runtime.execution.blocking_loop import running_loop
from failsoft.runtime.execution.clock import SYSTEM, Clock, current
from failsoft.runtime.execution.deadline import Expired, LoopDeadlines, Queue, log_end
from failsoft.runtime.execution.thread_pool import ThreadPool
from failsoft.runtime.fastpath.call import is_fast_eligible, run_fast, run_fast_blocking
from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
from failsoft.runtime.scope import LIGHT, SCOPE, AskedFor, call_of, leave
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.tools.health import HealthView, ToolHealth
from failsoft.runtime.tools.tool import Tool, count_as_write
from failsoft.runtime.turn.agent_run import AgentRun
from failsoft.runtime.turn.turn import Turn

if TYPE_CHECKING:
    from random import Random

    from failsoft.analysis.turn_report import TurnReport
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.resilience.policy import Policy
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.persistence.effect_ledger import Answer, EffectLedger
    from failsoft.runtime.persistence.event_writer import StoreWriter
    from failsoft.stores.failsafe import FailsafeStore
    from failsoft.stores.ports import Store

log = logging.getLogger("failsoft")
MOST_WARNED = 100  # warnings that are logged once


class Services:
    """The inside of a runtime."""

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
        self.writer: StoreWriter | None = None  # of events and circuits in the store
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
        self.trace = Recorder(clock.monotonic, clock.wall)
        self.thread_pool = ThreadPool()
        self._workers: Workers | None = None
        self.lock = threading.RLock()  # the garbage collector may end a forgotten call in a thread that holds it
        self.closed = False
        self.calls: dict[Call, None] = {}  # in the pipeline now, in order
        self.retrying: dict[tuple[str, str | int], tuple[Tool, float, int]] = {}  # in the fast retry loop now
        self._abandoned_tasks: set[asyncio.Task[None]] = set()  # of turns that went on without them (R7)
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopDeadlines] = WeakKeyDictionary()
        self._fallback_health: dict[tuple[str, str], ToolHealth] = {}
        self.escalations = None if on_escalation is None else Escalations(on_escalation)

    @property
    def workers(self) -> Workers:
        """Processes of our own, loaded with the first tool that needs one: most programs have none."""
        from failsoft.runtime.execution.processes.pool import Workers

        with self.lock:
            if self._workers is None:
                self._workers = Workers()
            return self._workers

    # -- calls -------------------------------------------------------------------------------------------------------

    def open_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float | None = None,
        id: str | int | None = None,
    ) -> Call:  # fmt: skip
        """A call of a guarded function, placed in the turn or the call that it is made from."""
        call = self.new_call(tool, args, kwargs, self.now() if started is None else started, id)
        scope, light = SCOPE.get(), LIGHT.get()
        if scope is None:
            call.caller = call_of(light) if light else None
        elif isinstance(outer := scope.full_call(), Call):
            call.parent, call.turn, call.thread, call.tenant = outer, outer.turn, outer.thread, outer.tenant
        if isinstance(light, AskedFor) and light.tool is tool and not (light.taken or tool.safe_to_repeat):
            self._take_asked(call, light)
        return call

    def _take_asked(self, call: Call, asked: AskedFor) -> None:
        """Make a call of a guarded function the one that a model has asked for."""
        asked.taken = True
        call.tool, call.by_agent = count_as_write(call.tool), True
        call.thread = asked.thread or call.thread
        if asked.id:
            call.caller_id = mask_id(asked.id)
            call.set_id(call.caller_id)
        run = asked.turn() if call.turn is None and asked.turn is not None else call.turn
        if isinstance(run, AgentRun) and run.engine is self:
            run.take(call)
            asked.run = run if call.parent is None else None

    def new_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float, id: str | int | None = None
    ) -> Call:
        """A call that is placed nowhere."""
        return Call(self.trace.number() if id is None else id, tool, args, kwargs, started)

    def refuse_if_closed(self) -> None:
        if self.closed:
            raise FailsoftError("this Runtime has been closed: make another one")

    async def run(self, call: Call) -> Outcome[Any]:
        """Drive a call to its outcome on this event loop; in the body of a turn it becomes one of the turn's."""
        self.refuse_if_closed()
        caller = None if call.tool.safe_to_repeat else call.outer or call.caller
        if caller is None:
            return await self._run(call)
        caller.inside.add(call)
        try:
            return await self._run(call)
        finally:
            caller.inside.discard(call)

    async def _run(self, call: Call) -> Outcome[Any]:
        scope, ticket = SCOPE.get(), call.tool.closed_ticket
        if isinstance(scope, Turn) and scope.engine is self and call.turn is None:
            return await scope.adopt(call)
        if scope is None and ticket is not None and call.tool.kind == "async" and is_fast_eligible(self, call):
            return await run_fast(self, call, ticket)
        return await self.drive(call)

    async def drive(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None, past: Progress = NO_PROGRESS
    ) -> Outcome[Any]:
        self._deadlines(running_loop()).start_watch()
        first = first or self.misfit_result(call)
        steps = run_pipeline(self, call, first, ticket, past)
        self.calls[call] = None
        token = SCOPE.set(call)
        answer: AttemptResult | Decision | Answer | bool | None
        try:
            step = next(steps)
            while True:
                try:
                    if isinstance(step, Invoke):
                        answer = await attempt(self, call, step)
                    else:
                        answer = await self._perform(call, step)
                except BaseException as error:
                    self.on_caller_cancelled(call, error)
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
                    answer = None  # it may hold an error, whose traceback holds this frame
        except StopIteration as done:
            outcome: Outcome[Any] = done.value
            return outcome
        finally:
            self.calls.pop(call, None)
            leave(SCOPE, token)
            self.drain_if_due()

    def loops(self) -> list[LoopDeadlines]:
        """The deadlines of every event loop that has been used."""
        return list(self._loops.values())

    async def _perform(
        self, call: Call, step: RecordWrite | TakeOffer | Wait | Consult | Phrase
    ) -> Decision | Answer | bool | None:
        if isinstance(step, TakeOffer):
            return await self.conversations.take_offer(call, step.offer)
        if isinstance(step, RecordWrite):
            assert self.ledger is not None
            return await self.ledger.begin(call)
        if isinstance(step, Wait):
            await asyncio.sleep(step.delay)
            return None
        if isinstance(step, Phrase):
            await phrase(self, call.turn, step.outcome)
            return None
        return await self.consult(call, step.report)

    def run_blocking(self, call: Call) -> Outcome[Any]:
        """Drive a call to its outcome in this thread."""
        self.refuse_if_closed()
        caller = None if call.tool.safe_to_repeat else call.outer or call.caller
        if caller is None:
            return self._run_blocking(call)
        caller.inside.add(call)
        try:
            return self._run_blocking(call)
        finally:
            caller.inside.discard(call)

    def _run_blocking(self, call: Call) -> Outcome[Any]:
        scope, ticket = SCOPE.get(), call.tool.closed_ticket
        if isinstance(scope, Turn) and scope.engine is self and call.turn is None:
            return scope.adopt_blocking(call)
        if scope is None and ticket is not None and call.tool.kind != "stream" and is_fast_eligible(self, call):
            return run_fast_blocking(self, call, ticket)
        return self.drive_blocking(call)

    def drive_blocking(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None
    ) -> Outcome[Any]:
        return run_blocking(self, call, first or self.misfit_result(call), ticket)

    def misfit_result(self, call: Call) -> AttemptResult | None:
        """The end of a call whose arguments do not fit; a shut gate comes first (R14)."""
        if call.thread is not None and (is_absent(self, call, call.tool) or self.conversations.find_loop(call)):
            return None
        fault = call.tool.misfit(call.args, call.arguments(self, call.tool), typed=call.typed)
        return None if fault is None else AttemptResult(call.started, call.started, fault=fault, entered=False)

    # -- from the happy path -----------------------------------------------------------------------------------------

    def error_result(self, call: Call, started: float, error: Exception, *, entered: bool) -> AttemptResult:
        """The end of a first attempt that failed on the happy path.

        Unless it is known to have been entered, its arguments may not have fitted; its traceback tells.
        """
        misfit = None if entered or was_entered(error) else call.tool.misfit(call.args, call.kwargs)
        if misfit is not None:
            return AttemptResult(started, started, fault=misfit, entered=False)
        if isinstance(error, Expired):
            return timeout_result(self, call, call.tool, started, call.tool.configured_timeout, error)
        return AttemptResult(started, self.now(), error=error)

    def value_result(self, call: Call, started: float, ended: float, value: Any) -> AttemptResult:
        """The first attempt has a value on the happy path, but something about it is not plain."""
        if ended - started > call.tool.timeout:
            return blocked_loop_result(self, call, call.tool, started, ended, call.tool.configured_timeout)
        return AttemptResult(started, ended, value, fault=unawaited(call.tool, value))

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

    def notify_escalation(self, outcome: Outcome[Any]) -> None:
        """Let whoever wants to know of escalations hear of this one."""
        if self.escalations is not None:
            self.escalations.notify(outcome)

    def abandon_task(self, task: asyncio.Task[None]) -> None:
        self._abandoned_tasks.add(task)
        task.add_done_callback(self._abandoned_tasks.discard)
        task.add_done_callback(log_end)

    async def close(self, grace: float) -> None:
        """End what is left behind: first by waiting, then by cancelling."""
        self._shut()
        mine = [task for task in self._abandoned_tasks if task.get_loop() is asyncio.get_running_loop()]
        of_loop = self._loops.get(asyncio.get_running_loop())
        if of_loop is not None:
            mine += of_loop.orphans
        if mine:
            _, open_ = await asyncio.wait(mine, timeout=grace)
            for task in open_:
                task.cancel()
            if open_:
                await asyncio.wait(open_, timeout=1.0)  # one that swallows this too is not waited for
        self.close_blocking(grace)

    def close_blocking(self, grace: float) -> None:
        self._shut()
        if self._workers is not None:
            self._workers.close()
        if self.memory is not None:
            self.memory.save()
        deadline = real_time() + max(grace, 1.0)
        self.trace.close(deadline)
        if self.ledger is not None:
            self.ledger.finish_pending()
        if self.writer is not None:
            self.writer.close()
        if self.store is not None:
            self.store.flush(left(deadline))
        if self.escalations is not None:
            self.escalations.close(left(deadline))
        flush_log(left(deadline))

    def _shut(self) -> None:
        """Take no more calls: without tickets the happy path leads to where that is said."""
        self.closed = True
        for tool in self.tools.values():
            tool.fast_eligible, tool.cached_refusal = False, None
            tool.renew_ticket()

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
                if self.writer is not None:
                    self.writer.restore_circuit(health, *key)
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
        tool.queue = self._deadlines(loop).queue(timeout)
        return tool.queue, task

    def _deadlines(self, loop: asyncio.AbstractEventLoop) -> LoopDeadlines:
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

    # -- the stream --------------------------------------------------------------------------------------------------

    def emit(
        self, event_type: str, tool: Tool | None, call: Call, fields: dict[str, Any], error: BaseException | None = None
    ) -> None:
        if call.parent is not None:
            fields["parent_id"] = call.parent.id
        self.record_event(event_type, tool, call.id, None if call.turn is None else call.turn.id, fields, error)

    def record_event(
        self, event_type: str, tool: Tool | str | None, call_id: str | int | None, turn_id: str | None,
        fields: dict[str, Any], error: BaseException | None = None,
    ) -> None:  # fmt: skip
        """Record an event, and log it if the application wants its level; ``error`` gives the traceback."""
        now = self.now()
        self.trace.record((event_type, now, tool, call_id, turn_id, fields))
        level = level_of(event_type, fields, known_tool=isinstance(tool, Tool))
        if is_logged(level):
            tool_id = tool.id if isinstance(tool, Tool) else tool
            id = f"{tool_id}-{call_id}" if isinstance(call_id, int) else call_id
            log_event(level, event_type, self.wall(), tool_id, id, turn_id, fields, error)

    def drain_if_due(self) -> None:
        """At the end of a call that was not plain: let listeners hear of it now."""
        if len(self.trace.pending) > self.trace.limit:
            self.trace.drain()

    def on_caller_cancelled(self, call: Call, error: BaseException) -> None:
        """Its caller has left, or the interpreter wants to end: no verdict on the tool."""
        tool = vars(error).pop("orphan", None)  # for whoever hears of it first
        if tool is not None:
            emit_abandoned(self, call, tool)
        if call.write_record is not None and self.ledger is not None:
            passed = isinstance(error, ControlFlow)
            if passed or call.abandoned or not call.is_running:
                self.ledger.end(call, acted=not passed and call.is_running)
            else:  # its tool may have acted, and nobody is told
                self.ledger.abandon(call)
        if call.offer_taken and not call.attempts:
            self.conversations.return_offer(call)
        if call.end_recorded:
            return
        if not isinstance(error, ControlFlow):  # with that the framework itself goes on, and may make the call again
            self.conversations.note_abandoned(call)
        duration = round((self.now() - call.started) * 1000, 3)
        self.emit(events.CALL_CANCELLED, call.tool, call, {"attempts": call.attempts, "duration_ms": duration})
        self.drain_if_due()

    def escalate(self, call: Call, outcome: Outcome[Any]) -> None:
        fault = outcome.fault
        fields: dict[str, Any] = {"message": f"Escalated {call.tool.id}", "code": None, "attempts": outcome.attempts}
        if fault is not None:
            fields |= {"code": fault.code.value, "category": fault.category, "error": fault.message}
        entered = fault is not None and fault.rule != BAD_ARGUMENTS  # else the traceback would show the library
        self.emit(events.ESCALATED, call.tool, call, fields, fault.cause if fault is not None and entered else None)
        if not call.is_inner:
            self.notify_escalation(outcome)

    def debug_fields(self, fault: Fault) -> dict[str, Any]:
        """Return the event fields that help to find a contract bug."""
        cause = fault.cause
        return {
            "error": fault.message,
            "exception": None if cause is None else f"{type(cause).__module__}.{type(cause).__qualname__}",
            "traceback": "" if cause is None else exception_text(cause),
            "code": fault.code.value,
            "rule": fault.rule,
            "reason": fault.reason,
        }

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

    def renew_after_fork(self) -> None:
        """A forked child has its parent's locks as they were, held or not, and none of its threads (T24)."""
        self.lock = threading.RLock()
        self.trace.renew_after_fork()
        if self.escalations is not None:
            self.escalations.renew_after_fork()
        self.conversations.renew_after_fork()
        if self.ledger is not None and self.store is not None:
            self.ledger.renew_after_fork()
            cast("FailsafeStore", self.store).renew_after_fork()
        if self.writer is not None:
            self.writer.renew_after_fork()
        if self.memory is not None:
            self.memory.renew_after_fork()
        self.thread_pool.renew()
        self.calls.clear()
        self.retrying.clear()
        self._loops.clear()  # nobody runs them here, though one of them may seem to be running
        for tool in self.tools.values():
            tool.queue = None
            if tool.slots is not None:
                tool.slots.renew()


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
