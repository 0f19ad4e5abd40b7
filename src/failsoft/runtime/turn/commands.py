"""Carry out the turn machine's commands that end calls: skip, abandon at the deadline, cancel, stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.model import builtin_faults
from failsoft.core.model.builtin_faults import REQUIRED_SKIPPED
from failsoft.core.model.decision import Decision
from failsoft.core.model.outcome import Outcome, Status
from failsoft.core.turn.machine import Abandon, Cancel, RecordLate, Skip
from failsoft.observe import events
from failsoft.runtime.call.event_fields import cancelled_fields
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.turn.handle import Handle
from failsoft.runtime.turn.turn_state import Skipped, TurnState

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault

TurnCommand = Skip[Handle[Any]] | Abandon[Handle[Any]] | Cancel[Handle[Any]] | RecordLate[Handle[Any]]


def report_skip(turn: TurnState, skipped: Skipped) -> None:
    """Record a skipped call, and escalate it if the decision says so."""
    turn.emit(events.CALL_SKIPPED, skipped.handle.tool, skipped.handle.id, skipped.describe())
    if skipped.outcome.escalated:
        _escalate(turn, skipped)


def end(turn: TurnState, command: TurnCommand) -> None:
    """End a call as the turn machine says."""
    if isinstance(command, Skip):
        _skip(turn, command)
    elif isinstance(command, Abandon):
        _abandon(turn, command.call)
    elif isinstance(command, Cancel):
        _cancel(turn, command.call)
    else:
        turn.emit(events.LATE_RESULT, command.call.tool, command.call.id, {"message": "Late result recorded"})
        turn.services.log.drain_if_due()  # its call has ended, so no other event may follow


def stopped(turn: TurnState, handle: Handle[Any], error: BaseException) -> Outcome[Any]:
    """The outcome of a call that was ended by an exception which is not a failure of its tool."""
    passed = isinstance(error, ControlFlow)
    status: Status = "cancelled" if passed or isinstance(error, asyncio.CancelledError) else "failed"
    fault = builtin_faults.passed_on() if passed else builtin_faults.cancelled(started=True)
    return _outcome(turn, handle, status, fault, _attempts(handle))


def _end_call(
    turn: TurnState, handle: Handle[Any], outcome: Outcome[Any], event_type: str, fields: dict[str, Any]
) -> None:
    """Record the end of a call that the turn decides on, and give the call its outcome."""
    turn.emit(event_type, handle.tool, handle.id, fields)
    if handle.call is not None and handle.call.span is not None:
        handle.call.span.end_early(outcome, event_type, fields)
    turn.resolve(handle, outcome)


def _skip(turn: TurnState, command: Skip[Handle[Any]]) -> None:
    handle, root, because = command.call, command.root, command.because
    if root is None or because is None:
        fields: dict[str, Any] = {"root": None, "because": None}
        fault = builtin_faults.turn_timed_out(turn.timeout, started=False)
    else:
        fields = {"root": root.id, "because": because.id, **handle.grounds(because)}
        caused = cast("Outcome[Any]", root.outcome)
        lost = not caused.value_known
        fault = builtin_faults.dependency_failed(root.id, caused.label, caused.fault, lost=lost)
    if command.escalate:
        fields["message"] = REQUIRED_SKIPPED
    outcome = _outcome(turn, handle, "skipped", fault, root=fields["root"], escalated=command.escalate)
    skipped = Skipped(handle, outcome, fields)
    if command.escalate and (turn.services.judgement.handler is not None or turn.services.texts.phraser is not None):
        turn.undecided_skips.append(skipped)
        turn.resolve(handle, outcome)  # its event follows when the turn ends
        return
    _end_call(turn, handle, outcome, events.CALL_SKIPPED, skipped.describe())
    if command.escalate:
        _escalate(turn, skipped)


def _escalate(turn: TurnState, skipped: Skipped) -> None:
    if skipped.handle.tool.is_known:
        turn.services.log.escalate(skipped.handle.full_call(), skipped.outcome)


def _abandon(turn: TurnState, handle: Handle[Any]) -> None:
    attempts = _attempts(handle)
    fault = builtin_faults.turn_timed_out(turn.timeout, started=_may_have_acted(handle, attempts))
    outcome = _outcome(turn, handle, "timed_out", fault, attempts)
    _end_call(turn, handle, outcome, events.CALL_LEFT, {"duration_ms": round(outcome.duration * 1000, 3)})
    if turn.thread is not None and not handle.fills and handle.tool.is_known:
        turn.services.books.conversations.note_cut_off(handle.full_call(), outcome)
    task = handle.task
    if task is None:
        return
    call = handle.full_call()
    call.abandoned = True
    if turn.cancels or call.waiting:
        task.cancel()
    else:
        turn.services.places.abandon_task(task)


def _cancel(turn: TurnState, handle: Handle[Any]) -> None:
    attempts = _attempts(handle)
    outcome = _outcome(
        turn, handle, "cancelled", builtin_faults.cancelled(started=_may_have_acted(handle, attempts)), attempts
    )
    unknown = handle.call is not None and handle.call.may_have_written_now
    fields = cancelled_fields(attempts, outcome.duration, unknown=unknown)
    _end_call(turn, handle, outcome, events.CALL_CANCELLED, fields)
    call = None if handle.task is None else handle.full_call()
    if turn.thread is not None and turn.parent is None:
        turn.services.books.conversations.note_unanswered((turn.tenant, turn.thread), turn.id, outcome, call)
    if call is not None and handle.task is not None:
        call.end_recorded = True
        handle.task.cancel()


def _attempts(handle: Handle[Any]) -> int:
    """Count the attempts of a call so far; 0 if no lane has begun to run it.

    A call that waits for an OS thread is withdrawn first, so that it is certain whether its tool has begun.
    """
    if handle.task is None:
        return 0
    call = handle.full_call()
    call.stop_waiting()
    return call.attempts


def _may_have_acted(handle: Handle[Any], attempts: int) -> bool:
    """True if the tool may have acted: it was attempted, or an earlier start of the call is being verified."""
    return attempts > 0 or (handle.call is not None and handle.call.verifying)


def _outcome(
    turn: TurnState, handle: Handle[Any], status: Status, fault: Fault, attempts: int = 0, *, root: str | None = None,
    escalated: bool = False,
) -> Outcome[Any]:  # fmt: skip
    tool = handle.tool
    return Outcome(
        handle.id,
        tool.id,
        status,
        attempts=attempts,
        duration=0.0 if handle.task is None else turn.services.time.now() - handle.started,
        fault=fault,
        label=tool.label,
        decision=Decision("escalate", REQUIRED_SKIPPED) if escalated else None,
        root=root,
        escalated=escalated,
        explanation=turn.services.texts.explain,
        recorded=None if handle.call is None else handle.call.write_recorded,
    )
