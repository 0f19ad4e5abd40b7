"""Verification in the pipeline: ask the tool's ``verify`` what became of an attempt, and end the call if it happened.

Like the pipeline, this only yields steps; the decisions are pure functions of ``core.effects.verification``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from failsoft.core.effects.verification import delay_verify, fault_after, why_not_asked
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.verified import Verified
from failsoft.observe import events
from failsoft.observe.success_runs import success_fields
from failsoft.runtime.call.candidate import verdict_on
from failsoft.runtime.call.event_fields import verified_fields
from failsoft.runtime.call.steps import (
    CallSteps,
    Emit,
    EndRecord,
    Interrupted,
    NoteOutcome,
    Report,
    Standing,
    Step,
    Verify,
    VerifyReply,
    Wait,
    make_emit,
)

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.runtime.call.candidate import Candidate
    from failsoft.runtime.call.model import Call


class Verification:
    """The part of the pipeline that verifies the effect of an attempt."""

    __slots__ = ("_abandoned", "_call", "_candidate", "_checked", "_now")

    _call: Call
    _candidate: Candidate
    _checked: Verified | None  # the answer about the latest failure
    _now: float
    _abandoned: bool

    def _verify(
        self, fault: Fault, standing: Standing, *, running: bool
    ) -> Generator[Step, Any, tuple[Fault, Standing]]:
        """Find out what became of an attempt; return the updated fault and standing."""
        call, candidate = self._call, self._candidate
        if call.failed_at is None:
            call.failed_at = standing.now
        why = why_not_asked(
            running=running,
            turn_left=standing.turn_left,
            abandoned=standing.abandoned,
            delay=delay_verify(candidate.tool.options, is_command=candidate.tool.command is not None),
        )
        reply = yield from self._ask(
            fault, VerifyReply(Verified.unknown(why or ""), standing.now, standing.turn_left, standing.abandoned)
        )
        verified = self._checked = reply.verified
        fault = fault_after(fault, verified)
        yield Report(candidate, None, "neutral", effect=fault.effect)
        if reply.now > standing.now:
            candidate.count_hinted_wait(reply.now - standing.now)  # not part of max_total_time
        self._now, self._abandoned = reply.now, reply.abandoned
        return fault, standing._replace(now=reply.now, turn_left=reply.turn_left, abandoned=reply.abandoned)

    def _ask(self, fault: Fault, reply: VerifyReply) -> Generator[Step, Any, VerifyReply]:
        """Ask ``verify`` unless ``reply`` has a reason against it, and record the answer."""
        call, candidate = self._call, self._candidate
        delay = delay_verify(candidate.tool.options, is_command=candidate.tool.command is not None)
        asked = reply.now
        if reply.verified.reason:
            delay = 0.0
        else:
            call.verifying = True
            try:
                if delay:
                    asked = yield Wait(delay)
                reply = yield Verify(candidate.tool, fault)
            except Interrupted:
                yield Report(candidate, candidate.take_ticket(), "neutral", effect="unknown")
                raise
            call.verifying = False
        fields = verified_fields(reply.verified, candidate.attempts.made, delay, reply.now - asked)
        yield Emit(events.EFFECT_VERIFIED, candidate.tool, fields)
        return reply

    def _succeed_verified(self, verified: Verified, fault: Fault) -> CallSteps:
        """End a call whose tool has acted, as ``verify`` found out. A breaker that counts calls counts a failure."""
        call, now = self._call, self._now
        ticket = self._candidate.take_ticket()
        if ticket is not None:
            yield Report(self._candidate, ticket, verdict_on(fault, entered=call.attempts_ended > 0), fault)
        total, duration = call.attempts_ended, self._now - call.started
        fields = success_fields(call.tool.id, total, 0.0, duration)
        fields["via"] = "verify"
        if not verified.value_known:
            fields["value_known"] = False
        if call.failed_at is not None:
            fields["recovery_ms"] = round((now - call.failed_at) * 1000, 3)
        yield make_emit((events.CALL_SUCCEEDED, self._candidate.tool, fields))
        value = verified.value if verified.value_known else None
        outcome: Outcome[Any] = Outcome(
            call.id, call.tool.id, "succeeded", value, total, "verify", duration, label=call.tool.label
        )
        outcome.recorded = call.write_recorded
        if not verified.value_known:
            outcome.lose_value()
        if call.thread is not None:
            yield NoteOutcome(outcome)
        if call.write_recorded is not None:
            yield EndRecord(acted=True)
        return outcome
