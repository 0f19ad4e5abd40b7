"""The effect ledger in the pipeline: record a write, recognise one that was begun or resolved, leave open cases.

Rules
-----
- A write that was resolved as happened returns its value without running. This check comes before every refusal: a
  replay gets its value even while the tool is down or disabled.
- If the caller of a write was cancelled, the notes of its thread refuse the same write. It runs once an operator has
  resolved it as none.
- A write that ends with an unknown effect leaves an open case, even if it was not recorded before.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from failsoft.core.effects.verification import ACTED_BEFORE, can_verify, delay_verify, doubt_none, why_not_asked
from failsoft.core.model import builtin_faults
from failsoft.core.model.ledger_entry import LedgerAnswer
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.verified import Verified
from failsoft.observe import events
from failsoft.observe.success_runs import success_fields
from failsoft.runtime.call.recovery import Recovery, Steps
from failsoft.runtime.call.steps import (
    Admit,
    BegunBefore,
    CallSteps,
    CheckBegun,
    Emit,
    EndRecord,
    EndUnknown,
    ForgetUnanswered,
    NoteHappened,
    NoteOutcome,
    Recall,
    RecordWrite,
    Report,
    Step,
    VerifyReply,
    make_emit,
)

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.ledger_entry import Recalled
    from failsoft.core.resilience.circuit_breaker import Ticket

LEDGER = "ledger"  # ``Outcome.via`` of a call that the ledger has answered


class WriteSteps(Recovery):
    """The steps of a call that use the effect ledger."""

    __slots__ = ()

    # -- before an attempt ---------------------------------------------------------------------------------------------

    def _wants_record(self) -> bool:
        """True if the call must be recorded before the candidate runs."""
        call = self._call
        return (
            self._options.records_writes
            and call.write_recorded is None
            and self._candidate.tool.is_write
            and (call.caller_id is not None or call.thread is not None)
        )

    def _record_write(self) -> Generator[Step, Any, LedgerAnswer | Verified | Fault | None]:
        """Record a write before it starts; a fault or an answer keeps it from starting."""
        call, required = self._call, self._options.store_required
        call.waiting = True
        answer = yield from self._wait_for(RecordWrite())
        call.waiting = False
        if isinstance(answer, LedgerAnswer):
            return (yield from self._find_value(answer))
        if answer == "begun":
            return (yield from self._verify_begun())
        call.write_recorded = answer == "kept"
        if call.write_recorded:
            return None
        fields = {"message": f"{call.tool.id} could not be recorded before it starts", "refused": required}
        yield Emit(events.NOT_RECORDED, call.tool, fields)
        return builtin_faults.not_recorded(call.tool.id) if required else None

    def _verify_begun(self) -> Generator[Step, Any, LedgerAnswer | Verified | Fault | None]:
        """Ask ``verify`` about an earlier start of this write. None: it was not done, and this call may do it."""
        call, fault = self._call, builtin_faults.begun_before()
        verified = yield from self._ask_about_begun(fault)
        if verified is None:
            return fault
        if verified.answer == "unknown":
            return (
                fault._replace(reason=f"{fault.reason}; not verified: {verified.reason}") if verified.reason else fault
            )
        if verified.answer == "happened":
            yield NoteHappened()
            return verified
        call.waiting = True
        answer = yield from self._wait_for(RecordWrite(replaces=True))
        call.waiting = False
        if isinstance(answer, LedgerAnswer):
            return answer
        if answer != "kept":  # another replay was faster, or the store does not answer
            yield EndRecord(acted=False)
            return fault
        call.write_recorded = True
        return None

    def _ask_about_begun(self, fault: Fault) -> Generator[Step, Any, Verified | None]:
        """Ask ``verify`` about an earlier start of this write; None if it cannot be asked."""
        tool = self._candidate.tool
        if not can_verify(tool.options, fault, tool.safe_to_repeat):
            return None
        before: BegunBefore = yield CheckBegun()
        why = before.why or why_not_asked(
            running=False,
            turn_left=before.turn_left,
            abandoned=before.abandoned,
            delay=delay_verify(tool.options, is_command=tool.command is not None),
        )
        reply = yield from self._ask(
            fault, VerifyReply(Verified.unknown(why or ""), before.now, before.turn_left, before.abandoned)
        )
        self._now = reply.now
        return doubt_none(reply.verified, ACTED_BEFORE if before.acted else "")

    def _find_value(self, known: LedgerAnswer) -> Generator[Step, Any, LedgerAnswer | Verified]:
        """Ask ``verify`` for the value of a write that a replay has made: the ledger keeps no values of tools."""
        if not known.by_replay:
            return known
        verified = yield from self._ask_about_begun(builtin_faults.begun_before())
        return verified if verified is not None and verified.answer == "happened" and verified.value_known else known

    # -- writes that were begun before ---------------------------------------------------------------------------------

    def _is_replayable(self) -> bool:
        """True if the call can be a replay of a write that the ledger knows."""
        call = self._call
        return call.caller_id is not None and call.tool.is_write and call.write_recorded is None

    def _must_recall(self) -> bool:
        """True if a write must be looked up before it is admitted: without a store it is not recorded."""
        return not self._options.records_writes and not self._call.attempts_ended and self._is_replayable()

    def _recall(self) -> Generator[Step, Any, LedgerAnswer | None]:
        """Return the answer of a write that was resolved as happened."""
        found = yield from self._look_up()
        return found if isinstance(found, LedgerAnswer) else None

    def _look_up(self) -> Generator[Step, Any, Recalled]:
        if not self._is_replayable():
            return None
        call = self._call
        call.waiting = True
        found: Recalled = yield from self._wait_for(Recall())
        call.waiting = False
        return found

    def _reconsider(self, fault: Fault) -> Generator[Step, Any, LedgerAnswer | Fault | Ticket]:
        """Look up a refused write: it may have happened, or been begun before and resolved since."""
        found = yield from self._look_up()
        if isinstance(found, LedgerAnswer):
            return found
        if found == "begun":
            return builtin_faults.begun_before()
        if found == "free" and fault.rule == builtin_faults.CANCELLED:
            yield ForgetUnanswered()
            answer: Ticket | Fault = yield Admit(self._candidate)
            return answer
        return fault

    def _answer(self, answer: LedgerAnswer) -> CallSteps:
        """End a call with the value that the ledger has, without running it."""
        call, candidate = self._call, self._candidate
        ticket = candidate.take_ticket()
        if ticket is not None:
            yield Report(candidate, ticket, "neutral")
        duration = self._now - call.started
        fields = {**success_fields(call.tool.id, 0, 0.0, duration), "via": LEDGER}
        if not answer.value_known:
            fields["value_known"] = False
        yield make_emit((events.CALL_SUCCEEDED, call.tool, fields))
        outcome: Outcome[Any] = Outcome(
            call.id,
            call.tool.id,
            "succeeded",
            answer.value,
            0,
            LEDGER,
            duration,
            label=call.tool.label,
            explanation=self._options.explain,
        )
        if not answer.value_known:
            outcome.lose_value()
        if call.thread is not None:
            yield NoteOutcome(outcome)
        return outcome

    # -- after it ------------------------------------------------------------------------------------------------------

    def _end_record(self, fault: Fault) -> Steps:
        """End the record of a failed call; an unknown effect of a write leaves an open case."""
        call = self._call
        wrote = call.tool.is_write or self._candidate.tool.is_write
        if fault.effect == "unknown" and call.attempts_ended and wrote:
            call.has_case = True
            yield EndUnknown(fault, self._runs_on)
        elif call.write_recorded is not None:
            yield EndRecord(acted=fault.effect != "none")
