"""The services that a call needs, by concern. ``Services`` implements all of them.

The last classes are the combinations that single modules take.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.runtime.ports import EventLog, Time

if TYPE_CHECKING:
    import asyncio

    from failsoft.core.effects.tool_effect import KnownEffect
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import Fallback
    from failsoft.core.model.outcome import Decision, Outcome
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.core.resilience.error_handler import ErrorReport, Handler
    from failsoft.core.resilience.policy import Policy
    from failsoft.runtime.call.model import AttemptResult, Call, Phraser
    from failsoft.runtime.conversation.conversation_log import ConversationLog
    from failsoft.runtime.execution.clock import Clock
    from failsoft.runtime.execution.deadline import LoopDeadlines, Queue
    from failsoft.runtime.execution.processes.pool import Workers
    from failsoft.runtime.execution.thread_pool import ThreadPool
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
    from failsoft.runtime.tools.health import ToolHealth
    from failsoft.runtime.tools.tool import Tool


class Keys(Protocol):
    """Idempotency keys."""

    def new_key(self) -> str: ...


class CallEvents(EventLog, Protocol):
    """Recording of a call's events."""

    def emit(
        self, event_type: str, tool: Tool | None, call: Call, fields: dict[str, Any], error: BaseException | None = None
    ) -> None: ...
    def escalate(self, call: Call, outcome: Outcome[Any]) -> None: ...
    def debug_fields(self, fault: Fault) -> dict[str, Any]: ...


class Tools(Keys, Protocol):
    """The tools and their health."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    @property
    def tools(self) -> dict[str, Tool]: ...
    def health_of(self, primary: Tool, tool: Tool, via: Fallback | None) -> ToolHealth: ...
    def warn_once(self, key: str, message: str, *values: object) -> None: ...


class Judgement(Protocol):
    """The user's say in failures: a handler, policies, a memory."""

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


class Books(Protocol):
    """State that outlives a call: the conversation log and the effect ledger."""

    @property
    def conversations(self) -> ConversationLog: ...
    @property
    def ledger(self) -> EffectLedger | None: ...
    @property
    def store_required(self) -> bool: ...


class Threads(Protocol):
    """OS threads."""

    @property
    def thread_pool(self) -> ThreadPool: ...


class Execution(Threads, Protocol):
    """The places where tools run, and their deadlines."""

    @property
    def clock(self) -> Clock: ...
    @property
    def workers(self) -> Workers: ...
    def deadlines_of(self, loop: asyncio.AbstractEventLoop) -> LoopDeadlines: ...
    def deadline_queue(self, tool: Tool, timeout: float) -> tuple[Queue, asyncio.Task[Any]]: ...


class InFlight(Protocol):
    """The calls that are under way."""

    @property
    def calls(self) -> dict[Call, None]: ...
    @property
    def retrying(self) -> dict[tuple[str, str | int], tuple[Tool, float, int]]: ...
    def loops(self) -> list[LoopDeadlines]: ...
    def on_caller_cancelled(self, call: Call, error: BaseException) -> None: ...


class Calls(Protocol):
    """Making and running calls."""

    def new_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float, id: str | int | None = None
    ) -> Call: ...
    def open_call(
        self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], started: float | None = None,
        id: str | int | None = None,
    ) -> Call: ...  # fmt: skip
    async def run(self, call: Call) -> Outcome[Any]: ...
    def run_blocking(self, call: Call) -> Outcome[Any]: ...
    def drive_blocking(
        self, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None
    ) -> Outcome[Any]: ...
    def warn_of_clock(self) -> None: ...


# --- combinations -----------------------------------------------------------------------------------------------------


class PhraserServices(EventLog, Texts, Threads, Protocol):
    """Services for phrasing a text."""


class RunningServices(Time, EventLog, InFlight, Protocol):
    """Services for the list of calls in flight."""


class BuildServices(Time, Calls, Protocol):
    """Services for building a call from its caller's options."""


class AttemptServices(Time, CallEvents, Keys, Execution, Protocol):
    """Services for one attempt."""


class PipelineServices(Time, CallEvents, Tools, Judgement, Texts, Books, Protocol):
    """Services for the pipeline."""


class DriverServices(PipelineServices, AttemptServices, InFlight, Protocol):
    """Services for a driver, which also performs the pipeline's steps."""
