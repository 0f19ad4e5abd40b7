"""The services that a call needs, by concern, and the bundles of them that single modules take.

No protocol has more than eight members. ``runtime.services`` makes the objects.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.runtime.ports import EventLog, Time

if TYPE_CHECKING:
    import asyncio

    from failsoft.core.effects.tool_effect import KnownEffect
    from failsoft.core.model.decision import Decision
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import Fallback
    from failsoft.core.model.outcome import Outcome
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.core.resilience.error_handler import ErrorReport, Handler
    from failsoft.core.resilience.policy import Policy
    from failsoft.observe.instrument import Instruments
    from failsoft.runtime.call.in_flight import InFlight
    from failsoft.runtime.call.model import AttemptResult, Call, Phraser, Progress
    from failsoft.runtime.call.steps import PipelineOptions
    from failsoft.runtime.conversation.conversation_log import ConversationLog
    from failsoft.runtime.execution.deadline import LoopDeadlines, Queue
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.thread_pool import ThreadPool
    from failsoft.runtime.persistence.cases import Cases
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
    from failsoft.runtime.tools.health import ToolHealth
    from failsoft.runtime.tools.tool import Tool


# --- by concern -------------------------------------------------------------------------------------------------------


class CallEvents(EventLog, Protocol):
    """Recording of a call's events."""

    def emit(
        self, event_type: str, tool: Tool | None, call: Call, fields: dict[str, Any], error: BaseException | None = None
    ) -> None: ...
    def escalate(self, call: Call, outcome: Outcome[Any]) -> None: ...
    def notify_escalation(self, outcome: Outcome[Any]) -> None: ...
    def debug_fields(self, fault: Fault) -> dict[str, Any]: ...


class CallObservers(CallEvents, Protocol):
    """Recording of a call's events, and the instruments around it."""

    @property
    def instruments(self) -> Instruments | None: ...


class WithClock(Protocol):
    """Any bundle with a clock."""

    @property
    def time(self) -> Time: ...


class WithLog(WithClock, Protocol):
    """Any bundle with a clock and a log of a call's events."""

    @property
    def log(self) -> CallEvents: ...


class Tools(Protocol):
    """The tools and their health."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    @property
    def tools(self) -> dict[str, Tool]: ...
    def health_of(self, primary: Tool, tool: Tool, via: Fallback | None) -> ToolHealth: ...
    def warn_once(self, key: str, message: str, *values: object) -> None: ...


class Judgement(Protocol):
    """The user's influence on decisions about failures: a handler, policies, a memory."""

    @property
    def handler(self) -> Handler | None: ...
    @property
    def policies(self) -> tuple[Policy, ...]: ...
    @property
    def memory(self) -> RecoveryMemory | None: ...
    async def consult(self, call: Call, report: ErrorReport) -> Decision | None: ...


class Texts(Protocol):
    """Texts for people."""

    @property
    def phraser(self) -> Phraser | None: ...
    def explain(
        self, outcome: Outcome[Any], language: str | None = None, known: KnownEffect | None = None
    ) -> Explanation: ...


class CallBooks(Protocol):
    """State that outlives a call: the conversation log and the effect ledger."""

    @property
    def conversations(self) -> ConversationLog: ...
    @property
    def ledger(self) -> EffectLedger | None: ...
    @property
    def store_required(self) -> bool: ...
    @property
    def cases(self) -> Cases: ...


class RunningServices(WithLog, Protocol):
    """Services for the list of calls in flight."""

    @property
    def in_flight(self) -> InFlight: ...
    def loops(self) -> list[LoopDeadlines]: ...


class CallPlaces(RunningServices, Protocol):
    """The places where tools run, their deadlines, and a view of the calls in them."""

    @property
    def thread_pool(self) -> ThreadPool: ...
    @property
    def workers(self) -> Workers: ...
    def deadline_queue(self, tool: Tool, timeout: float) -> tuple[Queue, asyncio.Task[Any]]: ...


class DriverPlaces(CallPlaces, Protocol):
    """The places where tools run, and the event loops that are watched."""

    def deadlines_of(self, loop: asyncio.AbstractEventLoop) -> LoopDeadlines: ...


class ClockCheck(Protocol):
    """A check that the current clock is the runtime's."""

    def warn_of_clock(self) -> None: ...


class CallRunner(Protocol):
    """Opening and running calls."""

    def open_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float | None = None,
        id: str | int | None = None,
    ) -> Call: ...  # fmt: skip
    async def run(self, call: Call) -> Outcome[Any]: ...
    def run_blocking(self, call: Call) -> Outcome[Any]: ...
    def on_caller_cancelled(self, call: Call, error: BaseException) -> None: ...


class Runner(CallRunner, Protocol):
    """Making, running and driving calls."""

    def new_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float, id: str | int | None = None
    ) -> Call: ...
    async def drive(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None, progress: Progress = ...
    ) -> Outcome[Any]: ...
    def drive_blocking(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None
    ) -> Outcome[Any]: ...
    def refuse_if_closed(self) -> None: ...


class PipelineRunner(Protocol):
    """The settings of the pipeline, and the end of a call whose caller was cancelled."""

    @property
    def pipeline_options(self) -> PipelineOptions: ...
    def on_caller_cancelled(self, call: Call, error: BaseException) -> None: ...


class VerifyRunner(PipelineRunner, CallRunner, Protocol):
    """Running the tool that reads back what became of a write."""


# --- bundles ----------------------------------------------------------------------------------------------------------


class PhraserServices(Protocol):
    """Services for phrasing a text."""

    @property
    def log(self) -> CallEvents: ...
    @property
    def texts(self) -> Texts: ...
    @property
    def places(self) -> CallPlaces: ...


class ImpossibleCallServices(PhraserServices, Protocol):
    """Services for refusing a call that cannot be made at all."""

    @property
    def log(self) -> CallObservers: ...
    @property
    def judgement(self) -> Judgement: ...


class BuildServices(WithClock, Protocol):
    """Services for building a call from its caller's options."""

    @property
    def places(self) -> ClockCheck: ...
    @property
    def runner(self) -> Runner: ...


class AttemptServices(WithLog, Protocol):
    """Services for one attempt."""

    @property
    def places(self) -> CallPlaces: ...


class MisfitServices(WithClock, Protocol):
    """Services for checking a call's arguments before its first attempt."""

    @property
    def books(self) -> CallBooks: ...


class RefusalServices(WithLog, Protocol):
    """Services for refusing calls of a tool with an open circuit."""

    @property
    def toolbox(self) -> Tools: ...
    @property
    def texts(self) -> Texts: ...


class NamedRefusalServices(RefusalServices, BuildServices, Protocol):
    """Services for refusing a call by name, or running it if the circuit admits it after all."""


class InPlaceServices(RefusalServices, Protocol):
    """Services for the steps of the pipeline that take no time."""

    @property
    def judgement(self) -> Judgement: ...
    @property
    def books(self) -> CallBooks: ...
    @property
    def runner(self) -> PipelineRunner: ...


class DriverServices(InPlaceServices, Protocol):
    """Services for a driver, which performs all steps of the pipeline."""

    @property
    def places(self) -> DriverPlaces: ...
    @property
    def runner(self) -> VerifyRunner: ...
