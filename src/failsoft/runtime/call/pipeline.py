"""The order of the protections around one call, from its first obstacle or failure to its outcome.

The order: limits of the turn, availability, rate hold, rate limit, breaker, slot and attempt (by the driver), retry
within its budget, fallbacks. A call that succeeds at once does not come here.

Rules
-----
- ``Pipeline.run`` is a generator of steps (``call.steps``). It holds no lock, clock, random source, log or store: the same
  answers give the same steps. ``failsoft.testing.check_driver`` proves it.
- It reads the call as it was made, and its own notes in it. State that others change (the turn's time, inner calls,
  health) comes with the answers.
- If the caller leaves, the driver throws ``Interrupted`` in at a step that takes time. The ticket is handed back
  without a verdict on the tool.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from failsoft.core.classify.returned import is_plain
from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.fault import Fault
from failsoft.core.model.ledger_entry import LedgerAnswer
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.partial import Partial, more_complete
from failsoft.core.model.verified import Verified
from failsoft.core.resilience.circuit_breaker import Ticket
from failsoft.core.resilience.error_handler import decide, refuse_retry
from failsoft.core.resilience.retry import NoRetry, Retry
from failsoft.observe import events
from failsoft.observe.success_runs import success_fields
from failsoft.runtime.call.candidate import Candidate, may_have_spawned_tasks, verdict_on
from failsoft.runtime.call.event_fields import failed_fields, recovery_fields
from failsoft.runtime.call.loop_refusal import refuse_looping
from failsoft.runtime.call.model import AttemptResult
from failsoft.runtime.call.recovery import Steps
from failsoft.runtime.call.steps import (
    Admit,
    Assess,
    CallSteps,
    CheckInside,
    CountCall,
    Emit,
    EndRecord,
    Escalate,
    FindLoop,
    Interrupted,
    Learn,
    LoopFound,
    NoteAttempt,
    NoteOutcome,
    Phrase,
    ReadValue,
    Report,
    Standing,
    Step,
    Switched,
    SwitchTo,
    TakeOffer,
    Wait,
    WarnMissing,
    make_classify,
    make_emit,
)
from failsoft.runtime.call.write_steps import WriteSteps
from failsoft.runtime.tools.control import MisfitError

_PARTIAL = Decision("partial_success", "A partial result is acceptable")
_ROUNDS = 3  # of the event loop: a task that another task starts has begun by then
_ACTED_SINCE = "a task of the failed attempt may have acted since"
_BUDGET_SPENT = "the retry budget is spent"


class Pipeline(WriteSteps):
    """One call on its way through the pipeline."""

    __slots__ = ()

    def run(self, result: AttemptResult | None = None) -> CallSteps:
        """Run the call; ``result`` is that of an attempt that has been made already."""
        turn = self._call.turn
        return self._run(result) if turn is None or turn.allowance is None else self._run_counted(result)

    def _run_counted(self, result: AttemptResult | None) -> CallSteps:
        """Count the call against the limits of its turn before it runs."""
        fault: Fault | None = yield CountCall()
        if fault is None:
            return (yield from self._run(result))
        _, decision = yield from self._decide(fault, None)
        assert isinstance(decision, Decision)  # nothing ran, so there is nothing to verify
        return (yield from self._fail(decision))

    def _run(self, result: AttemptResult | None) -> CallSteps:
        if result is None and (ended := (yield from self._end_before())) is not None:
            return ended
        while True:
            fault: LedgerAnswer | Verified | Fault | None = None
            if result is None:
                fault, result = yield from self._enter_and_attempt()
                if isinstance(fault, LedgerAnswer | Verified):
                    return (yield from self._end_replay(fault))
            if result is not None:
                result, fault = yield from self._examine(result)
                if fault is None:
                    yield from self._credit(result)
                    return (yield from self._succeed(result, self._part and _PARTIAL))
            assert isinstance(fault, Fault)
            fault, decision = yield from self._decide(fault, result)
            if isinstance(decision, Verified):
                return (yield from self._succeed_verified(decision, fault))
            if decision.strategy == "retry" and (decision.delay or self._may_act_since(fault)):
                self._call.rate_limited = fault.rule == builtin_faults.RATE_LIMIT
                decision = yield from self._prepare_retry(decision, fault)
                self._call.rate_limited = False
            if decision.strategy == "retry":
                result = None
                continue
            yield from self._stop_retrying(fault, result)
            if decision.strategy == "alternative_tool" and decision.tool is not None:
                yield from self._switch_to_fallback(decision.tool, decision.reason)
                result = None
                continue
            if decision.strategy == "partial_success" and self._best is not None:
                self._candidate = self._giver
                return (yield from self._succeed(AttemptResult(self._now, self._now, self._best), decision))
            return (yield from self._fail(decision))

    def _end_replay(self, known: LedgerAnswer | Verified) -> CallSteps:
        """End a call that has happened before, according to the ledger or ``verify``."""
        if isinstance(known, LedgerAnswer):
            return self._answer(known)
        return self._succeed_verified(known, builtin_faults.begun_before())

    def _end_before(self) -> Generator[Step, Any, Outcome[Any] | None]:
        """End a call before an attempt: it has acted since the fast path's last attempt, or it is in a loop.

        If the ledger knows by now that a looping call has happened, the call gets that answer.
        """
        if self._primary is not None and (yield from self._has_acted_since(self._primary)):
            return (yield from self._end_fast_retries(self._primary))
        if self._call.thread is None:
            return None
        found: LoopFound = yield FindLoop()
        if found.failure is None and not found.repeats:
            return None
        known = yield from self._recall()
        return (yield from refuse_looping(self._options, self._call, found) if known is None else self._answer(known))

    # -- before an attempt ---------------------------------------------------------------------------------------------

    def _enter_and_attempt(
        self,
    ) -> Generator[Step, Any, tuple[LedgerAnswer | Verified | Fault | None, AttemptResult | None]]:
        """Make an attempt if it is admitted: return its result, or the fault or answer that kept it from starting."""
        fault = yield from self._enter()
        return (None, (yield from self._attempt())) if fault is None else (fault, None)

    def _enter(self) -> Generator[Step, Any, LedgerAnswer | Verified | Fault | None]:
        """Ask for admission, use up the retry offer, record a write. A fault keeps the attempt from starting.

        So does the answer of a write that an operator has resolved as happened.
        """
        call, candidate = self._call, self._candidate
        if self._must_recall() and (known := (yield from self._recall())) is not None:
            return known
        answer: Ticket | Fault | LedgerAnswer = yield Admit(candidate)
        if isinstance(answer, Fault):
            answer = yield from self._reconsider(answer)
        if not isinstance(answer, Ticket):
            return answer
        candidate.ticket = answer
        if answer.probe is not None:
            candidate.probe = answer
        if call.offer is not None and not call.offer_taken:
            fault = yield from self._take_offer()
            if fault is not None:
                return fault
        if self._wants_record():
            return (yield from self._record_write())
        return None

    def _take_offer(self) -> Generator[Step, Any, Fault | None]:
        """Use up the offer behind a user's retry, once, as the retry is about to run."""
        call = self._call
        assert call.offer is not None
        call.waiting = True
        taken: bool | None = yield from self._wait_for(TakeOffer(call.offer))
        call.waiting = False
        if not taken:
            return builtin_faults.no_offer(call.tool.id)
        call.offer_taken = True
        fields = {"message": f"Retry offer taken for {call.tool.id}", "thread": call.thread}
        yield Emit(events.OFFER_TAKEN, call.tool, fields)
        return None

    def _attempt(self) -> Generator[Step, Any, AttemptResult]:
        """Make an attempt."""
        call, candidate = self._call, self._candidate
        call.invoked, call.acted, call.wrote = True, False, False
        try:
            result: AttemptResult = yield candidate.invoke
        except Interrupted:
            yield Report(candidate, candidate.take_ticket(), "neutral", effect="unknown")
            raise
        return result

    # -- after an attempt ----------------------------------------------------------------------------------------------

    def _examine(self, result: AttemptResult) -> Generator[Step, Any, tuple[AttemptResult, Fault | None]]:
        """Find the fault of an attempt; None if it succeeded."""
        call, candidate = self._call, self._candidate
        if result.error is None is result.fault and _needs_reading(candidate, result.value):
            result = yield ReadValue(candidate, result)
        elif isinstance(result.error, MisfitError):
            result = result._replace(entered=False)  # its arguments were refused, so the tool never ran
        value = result.value
        self._part = part = value if value is not None and isinstance(value, Partial) else None
        self._now = result.ended
        call.attempts_ended += result.entered
        call.invoked = False
        fault: Fault | None = yield make_classify((candidate, result))
        if fault is not None and may_have_spawned_tasks(candidate, fault, result):
            fault = yield from self._wait_for_spawned_tasks(fault)
        if call.thread is not None or (fault is not None and fault.category == "tool_unavailable"):
            yield NoteAttempt(candidate.tool, fault, result.entered)
        if fault is not None and part is not None:
            best = more_complete(self._best, part)
            if best is not self._best:
                self._best, self._giver = best, candidate
        return result, fault

    def _wait_for_spawned_tasks(self, fault: Fault) -> Generator[Step, Any, Fault]:
        """Let the tasks that the attempt has started begin: guarded calls in them may act."""
        for _ in range(_ROUNDS):
            self._now = yield from self._wait_for(Wait(0.0))
        acted: bool = yield CheckInside(self._candidate.tool)
        return fault._replace(effect="unknown") if acted else fault

    def _credit(self, result: AttemptResult) -> Steps:
        """Report the candidate's success to breaker and memory."""
        candidate = self._candidate
        ticket = candidate.take_ticket()
        if ticket is not None:
            yield Report(candidate, ticket, "success")
        if candidate.has_lesson:
            yield Learn(candidate, result.ended, worked=True)

    # -- after a failure -----------------------------------------------------------------------------------------------

    def _prepare_retry(self, decision: Decision, fault: Fault) -> Generator[Step, Any, Decision]:
        """Wait for the next attempt; decide again if the failed one has acted meanwhile."""
        if decision.delay:
            yield from self._pause(decision.delay)
        candidate = self._candidate
        if not (yield from self._has_acted_since(fault)):
            return decision
        self._effect, candidate.wrote = "unknown", candidate.wrote or candidate.tool.safe_to_repeat is None
        assert self._report is not None
        return decide(refuse_retry(self._report, _ACTED_SINCE)._replace(alternatives=()))

    def _has_acted_since(self, fault: Fault) -> Generator[Step, Any, bool]:
        """True if a task of a failed attempt has acted since, or may still act."""
        return self._may_act_since(fault) and (yield CheckInside(self._candidate.tool))

    def _end_fast_retries(self, fault: Fault) -> CallSteps:
        """End a call whose retries the fast path has made: a task of an earlier attempt has acted since."""
        candidate = self._candidate
        standing: Standing = yield Assess(candidate, fault, None, None, "neutral", hold=False)
        self._now, self._effect, candidate.wrote = standing.now, "unknown", True
        self._report = self._make_report(fault, standing, NoRetry(_ACTED_SINCE))
        return (yield from self._fail(decide(self._report)))

    def _pause(self, delay: float) -> Steps:
        """Wait for the next attempt."""
        call, retry = self._call, self._retry
        if isinstance(retry, Retry) and retry.hinted:
            call.hinted_wait += delay
            self._candidate.count_hinted_wait(delay)
        call.waiting = True
        self._now = yield from self._wait_for(Wait(delay))
        call.waiting = False

    def _stop_retrying(self, fault: Fault, result: AttemptResult | None) -> Steps:
        """End the attempts of this candidate. A breaker that counts calls gets its verdict now."""
        candidate = self._candidate
        if candidate.absent:
            yield WarnMissing(candidate.tool, candidate.absent)
        ticket = candidate.take_ticket()
        if result is not None:
            if ticket is not None:
                yield Report(candidate, ticket, verdict_on(fault, entered=result.entered), fault)
            if candidate.has_lesson:
                yield Learn(candidate, result.ended, worked=False)
        elif fault.rule == builtin_faults.RATE_LIMIT and ticket is None:
            yield Report(candidate, None, "neutral")  # gives the reserved token back
        elif ticket is not None:  # refused between two attempts
            yield Report(candidate, ticket, "failure" if candidate.attempts.made else "neutral", fault)

    def _switch_to_fallback(self, tool: str, reason: str) -> Steps:
        """Make a fallback the candidate; the remaining ones may follow it."""
        call, before = self._call, self._candidate
        via = next((fallback for fallback in self._fallbacks if fallback.tool == tool), Fallback(tool=tool))
        fields = {"message": "Used alternative tool", "alternative": via.tool, "reason": reason}
        yield Emit(events.FALLBACK_USED, before.tool, fields)
        found: Switched = yield SwitchTo(via)
        other = self._candidate = Candidate(call, found.tool, found.health, via)
        other.cause, other.began, other.acted_before = before.family, found.now, before.may_have_acted
        self._later = [fallback for fallback in self._fallbacks if fallback is not via]
        self._tried |= {other.tool.id}

    # -- the outcome ---------------------------------------------------------------------------------------------------

    def _succeed(self, result: AttemptResult, decision: Decision | None) -> CallSteps:
        """End the call with a value. ``decision`` accepts a partial result; None: the value is complete."""
        call, candidate, now = self._call, self._candidate, result.ended
        tool, total = candidate.tool, call.attempts_ended
        part = result.value if isinstance(result.value, Partial) else None
        if part is not None:
            yield Emit(events.PARTIAL_USED, tool, {"message": "Used partial result"})
        elif candidate.attempts.made:
            made = candidate.attempts
            yield make_emit((events.RETRY_SUCCEEDED, tool, recovery_fields(made.made + 1, now - made.first_failed_at)))
        duration = now - call.started
        fields = success_fields(call.tool.id, total, now - result.started, duration)
        if result.notes:
            fields |= result.notes
        if tool is not call.tool and call.failed_at is not None:
            fields["recovery_ms"] = round((now - call.failed_at) * 1000, 3)
        yield make_emit((events.CALL_SUCCEEDED, tool, fields))
        value, missing = (result.value, None) if part is None else part
        outcome: Outcome[Any] = Outcome(
            call.id,
            call.tool.id,
            "succeeded",
            value,
            total,
            tool.id,
            duration,
            None,
            decision,
            missing,
            call.tool.label,
        )
        outcome.recorded = call.write_recorded
        if call.thread is not None:
            yield NoteOutcome(outcome)
        if call.write_recorded is not None:
            yield EndRecord(acted=True)
        return outcome

    def _fail(self, decision: Decision) -> CallSteps:
        """End the call with the last fault of the tool that was called, and the worst effect of all attempts."""
        call, candidate, best, options = self._call, self._candidate, self._best, self._options
        assert self._primary is not None
        fault = self._primary._replace(effect=self._effect)
        known = candidate.known_effect if candidate.tool is call.tool else call.tool.known_effect
        message = None if candidate.policy is None else candidate.policy.then.message
        total = call.attempts_ended
        outcome: Outcome[Any] = Outcome(
            call.id,
            call.tool.id,
            "failed",
            attempts=total,
            duration=self._now - call.started,
            fault=fault,
            decision=decision,
            label=call.tool.label,
            escalated=decision.strategy == "escalate",
            explanation=partial(options.explain, known=known) if call.by_agent or candidate.wrote else options.explain,
            told=message,
            missing=None if best is None else best.missing,
            partial=None if best is None else best.value,
            recorded=call.write_recorded,
        )
        yield from self._end_record(fault)
        if options.phrases and message is None and not call.is_inner:
            yield Phrase(outcome)
        if total:
            yield Emit(events.CALL_FAILED, call.tool, failed_fields(outcome, fault, known.safe))
        if call.thread is not None:
            yield NoteOutcome(outcome)
        if outcome.escalated:
            yield Escalate(outcome)
        return outcome


def _needs_reading(candidate: Candidate, value: Any) -> bool:
    """True if the value may be a failure."""
    return candidate.tool.options.failed_if is not None or not is_plain(type(value))
