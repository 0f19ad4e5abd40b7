"""The steps of the pipeline, and the answers that a driver gives to them.

The pipeline decides and yields steps. A driver performs each step and sends the answer back. Only ``Invoke``, ``Wait``,
``Verify``, ``Consult``, ``Phrase``, ``TakeOffer``, ``RecordWrite``, ``Recall`` and ``EndUnknown`` take time; ``in_place``
answers the others at once. Time, random numbers and state that others change reach the pipeline only in these answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from failsoft.core.model.named_tuples import maker
from failsoft.core.model.outcome import Outcome
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.runtime.call.model import AttemptResult, Invoke

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Failure, Offer
    from failsoft.core.model.decision import Decision
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.fault import Effect, Fault
    from failsoft.core.model.options import Fallback
    from failsoft.core.model.verified import Verified
    from failsoft.core.resilience.circuit_breaker import CircuitState, Result, Ticket
    from failsoft.core.resilience.error_handler import ErrorReport
    from failsoft.core.resilience.policy import Policy
    from failsoft.core.resilience.recovery_memory import Evidence, Family
    from failsoft.runtime.call.candidate import Candidate
    from failsoft.runtime.tools.health import ToolHealth
    from failsoft.runtime.tools.tool import Tool


class Interrupted(BaseException):
    """Thrown into the pipeline at a step that takes time: the caller was cancelled, or the interpreter wants to end.

    The pipeline may yield steps that take no time, and then raises ``Interrupted`` again. The driver does not throw the
    caller's exception, because a generator that delegates to another must not yield after ``GeneratorExit``.
    """


class PipelineOptions(NamedTuple):
    """The settings of a runtime that the pipeline follows."""

    explain: Callable[..., Explanation]  # kept in failed outcomes, never called by the pipeline
    policies: tuple[Policy, ...] = ()
    consults: bool = False  # the user has set an Error Handler
    phrases: bool = False  # the user has set a callable that phrases texts
    records_writes: bool = False  # there is a ledger of writes
    store_required: bool = False  # a write that could not be recorded is refused
    memory_acts: bool = False  # the recovery memory may skip retries


# --- before an attempt ------------------------------------------------------------------------------------------------


class CountCall(NamedTuple):
    """Count the call in its turn, which has limits. The answer is the ``Fault`` that refuses it, or None."""


class FindLoop(NamedTuple):
    """Check whether this very call has just failed the same way twice, or has returned the same result too often.

    The answer is a ``LoopFound``.
    """


class LoopFound(NamedTuple):
    """The answer to ``FindLoop``."""

    failure: Failure | None
    now: float
    repeats: int = 0  # identical calls that had the same result, if no more are allowed


class Admit(NamedTuple):
    """Ask availability, rate hold and breaker, in this order. The answer is a ``Ticket``, or a refusal's ``Fault``."""

    candidate: Candidate


class TakeOffer(NamedTuple):
    """Use up the retry offer behind the call. The answer is whether it was still there."""

    offer: Offer


class CheckBegun(NamedTuple):
    """Find out whether a write that was begun before can still run. The answer is a ``BegunBefore``."""


class BegunBefore(NamedTuple):
    """The answer to ``CheckBegun``."""

    why: str | None  # why it may still act; None: it cannot
    now: float
    turn_left: float | None
    abandoned: bool
    acted: bool  # it ended, and not without an effect


class RecordWrite(NamedTuple):
    """Record a write before it starts. The answer is an ``Answer`` of the ledger."""

    replaces: bool = False  # the record that this call was found to be a replay of, if it has not changed since


class Recall(NamedTuple):
    """Look up a write that is not going to run. The answer is a ``Recalled``."""


# --- after an attempt -------------------------------------------------------------------------------------------------


class ReadValue(NamedTuple):
    """Find out whether the value of an attempt is a failure. The answer is the result, with any error or fault."""

    candidate: Candidate
    result: AttemptResult


class Classify(NamedTuple):
    """Classify the result of an attempt. The answer is a ``Fault`` with the call's effect, or None for a success."""

    candidate: Candidate
    result: AttemptResult


class CheckInside(NamedTuple):
    """Find out whether an inner call of the attempt may have acted, or may still act. The answer is a bool."""

    tool: Tool


class NoteAttempt(NamedTuple):
    """Note in the call's thread whether the tool is available."""

    tool: Tool
    fault: Fault | None
    ran: bool  # the tool was entered


class Assess(NamedTuple):
    """Count a failure or a refusal, and gather everything that the decision depends on.

    The answer is a ``Standing``.
    """

    candidate: Candidate
    fault: Fault
    entered: bool | None  # the tool ran; None: the call was refused before an attempt
    ticket: Ticket | None  # to hand back with ``verdict``; None: the breaker is not told now
    verdict: Result
    hold: bool  # the service asked to be left alone


class Standing(NamedTuple):
    """The answer to ``Assess``."""

    now: float
    breaker: CircuitState  # for a probe half_open, although its failure has opened the circuit
    opened: bool  # this failure has opened the circuit
    turn_left: float | None  # seconds until the turn's deadline
    abandoned: bool  # the turn has gone on without the call
    jitter: float  # a random number in [0, 1)
    family: Family | None  # of the error, in the recovery memory
    evidence: Evidence | None  # of that family
    wrote: bool  # a known write inside the attempt may have acted
    changed: bool  # an inner call that may be repeated may have acted; this does not prevent a retry


class FindFallbacks(NamedTuple):
    """Find the tools that may replace a candidate now. The answer is a ``FallbacksFound``."""

    candidate: Candidate
    fault: Fault
    acted: bool  # a tool of this call may have acted: no write may follow
    tried: frozenset[str]
    later: Sequence[Fallback]  # fallbacks of an earlier candidate that have not been tried
    wanted: str | None  # a tool that a policy or an Error Handler asks for


class FallbacksFound(NamedTuple):
    """The answer to ``FindFallbacks``."""

    usable: list[Fallback]  # best first
    absent: tuple[str, ...] = ()  # fallbacks that do not exist


class AskMemory(NamedTuple):
    """Ask the recovery memory whether a retry is to be skipped. The answer is why, or None."""

    family: Family


class Consult(NamedTuple):
    """Ask the user's Error Handler. The answer is a ``Consulted``."""

    report: ErrorReport


class Consulted(NamedTuple):
    """The answer to ``Consult``."""

    decision: Decision | None  # None: it failed, or took too long
    now: float
    turn_left: float | None
    abandoned: bool


class Verify(NamedTuple):
    """Ask the tool's ``verify`` what became of an attempt. The answer is a ``VerifyReply``."""

    tool: Tool
    fault: Fault


class VerifyReply(NamedTuple):
    """The answer to ``Verify``."""

    verified: Verified
    now: float
    turn_left: float | None
    abandoned: bool


class Spend(NamedTuple):
    """Pay for a retry from the tool's retry budget. The answer is False if there is too little in it.

    If the retry is paid for, the driver remembers its error for the fast path, and warns if nothing tells whether the
    tool may be repeated.
    """

    candidate: Candidate
    fault: Fault
    error: Exception | None


class Wait(NamedTuple):
    """Wait. The answer is the time afterwards."""

    delay: float


class SwitchTo(NamedTuple):
    """Look up a fallback. The answer is a ``Switched``."""

    via: Fallback


class Switched(NamedTuple):
    """The answer to ``SwitchTo``."""

    tool: Tool
    health: ToolHealth
    now: float


class Report(NamedTuple):
    """Hand a ticket back to the breaker with the verdict on the attempt.

    ``effect`` is that of an attempt whose caller was cancelled.
    """

    candidate: Candidate
    ticket: Ticket | None
    verdict: Result
    fault: Fault | None = None
    effect: Effect = "none"


class Learn(NamedTuple):
    """Tell the recovery memory whether a candidate's retries, or the switch to it, have helped."""

    candidate: Candidate
    at: float
    worked: bool


# --- the outside ------------------------------------------------------------------------------------------------------


class Emit(NamedTuple):
    """Record an event."""

    event_type: str
    tool: Tool
    fields: dict[str, Any]


class EmitRetry(NamedTuple):
    """Record a ``ToolError`` whose retry depended on attempts and time only (``observe.retry_fields``)."""

    tool: Tool
    fault: Fault
    seconds: float  # the duration of the attempt
    attempt: int
    delay: float
    evidence: Evidence | None


class EmitBug(NamedTuple):
    """Record the event for diagnosing a contract bug."""

    tool: Tool
    fault: Fault


class WarnMissing(NamedTuple):
    """Log, once for each, the fallbacks that are needed and do not exist."""

    tool: Tool
    absent: tuple[str, ...]


class Phrase(NamedTuple):
    """Let the user's callable phrase the outcome for the user."""

    outcome: Outcome[Any]


class EndRecord(NamedTuple):
    """End the record of a write whose effect is known."""

    acted: bool  # its tool may have had an effect


class NoteHappened(NamedTuple):
    """Note in the ledger that the earlier start of a write has happened."""


class EndUnknown(NamedTuple):
    """Leave an open case in the ledger: a write has ended with an unknown effect."""

    fault: Fault
    runs_on: bool = False  # an abandoned attempt may still act


class NoteOutcome(NamedTuple):
    """Note in the call's thread how the call ended."""

    outcome: Outcome[Any]


class ForgetUnanswered(NamedTuple):
    """Remove the note in the call's thread that this call was begun before and not answered."""


class Escalate(NamedTuple):
    """Escalate an outcome."""

    outcome: Outcome[Any]


# --- the steps of every failed attempt, made cheaply ------------------------------------------------------------------

make_classify: Callable[[tuple[Candidate, AttemptResult]], Classify] = maker(Classify)
make_assess: Callable[[tuple[Candidate, Fault, bool | None, Ticket | None, Result, bool]], Assess] = maker(Assess)
make_standing: Callable[
    [tuple[float, CircuitState, bool, float | None, bool, float, Family | None, Evidence | None, bool, bool]], Standing
] = maker(Standing)
make_spend: Callable[[tuple[Candidate, Fault, Exception | None]], Spend] = maker(Spend)
make_emit: Callable[[tuple[str, Tool, dict[str, Any]]], Emit] = maker(Emit)
make_emit_retry: Callable[[tuple[Tool, Fault, float, int, float, Evidence | None]], EmitRetry] = maker(EmitRetry)

InPlaceStep = (
    CountCall
    | FindLoop
    | Admit
    | CheckBegun
    | ReadValue
    | Classify
    | CheckInside
    | NoteAttempt
    | Assess
    | FindFallbacks
    | AskMemory
    | Spend
    | SwitchTo
    | Report
    | Learn
    | Emit
    | EmitRetry
    | EmitBug
    | WarnMissing
    | EndRecord
    | NoteHappened
    | NoteOutcome
    | ForgetUnanswered
    | Escalate
)
Step = Invoke | RecordWrite | Recall | EndUnknown | TakeOffer | Wait | Verify | Consult | Phrase | InPlaceStep
CallSteps = Generator[Step, Any, Outcome[Any]]
