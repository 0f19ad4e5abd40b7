"""Ends that a turn gives to its calls: skipped, left behind at the deadline, cancelled, stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from failsoft.core.model import builtin_faults
from failsoft.core.model.builtin_faults import REQUIRED_SKIPPED
from failsoft.core.model.outcome import Decision, Outcome, Status
from failsoft.core.turn.machine import Abandon, Cancel, RecordLate, Skip
from failsoft.observe import events
from failsoft.runtime.tools.control import ControlFlow

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.runtime.turn.handle import Handle
    from failsoft.runtime.turn.turn import Turn

TurnCommand = Skip["Handle[Any]"] | Abandon["Handle[Any]"] | Cancel["Handle[Any]"] | RecordLate["Handle[Any]"]


class Skipped(NamedTuple):
    """A call that was not run, and what its event says."""

    handle: Handle[Any]
    outcome: Outcome[Any]
    fields: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """The event's fields. A decision is told with what it rests on, as every other one is."""
        decision, fault = self.outcome.decision, self.outcome.fault
        if decision is None or fault is None:
            return self.fields
        return {
            **self.fields,
            "error": fault.message,
            "classification": fault.classification,
            "retry_count": 0,
            "decision": decision.strategy,
            "reason": decision.reason,
        }

    def report(self, turn: Turn) -> None:
        """Record what was decided, and escalate if that is it."""
        turn.emit(events.CALL_SKIPPED, self.handle.tool, self.handle.id, self.describe())
        if self.outcome.escalated:
            self.escalate(turn)

    def escalate(self, turn: Turn) -> None:
        if not isinstance(self.handle.tool, str):
            turn.engine.escalate(self.handle.full_call(), self.outcome)


def end(turn: Turn, command: TurnCommand) -> None:
    """Do what the machine says about a call that is not to start."""
    if isinstance(command, Skip):
        _skip(turn, command)
    elif isinstance(command, Abandon):
        _leave(turn, command.call)
    elif isinstance(command, Cancel):
        _cancel(turn, command.call)
    else:
        turn.emit(events.LATE_RESULT, command.call.tool, command.call.id, {"message": "Late result recorded"})


def stop(turn: Turn, handle: Handle[Any], error: BaseException) -> None:
    """Something that is no failure of the tool's has ended a call."""
    if handle.outcome is None:
        passed = isinstance(error, ControlFlow)
        status: Status = "cancelled" if passed or isinstance(error, asyncio.CancelledError) else "failed"
        fault = builtin_faults.passed_on() if passed else builtin_faults.cancelled(started=True)
        turn.finished(handle, _outcome(turn, handle, status, fault, _attempts(handle)))


def _skip(turn: Turn, command: Skip[Handle[Any]]) -> None:
    handle, root, because = command.call, command.root, command.because
    if root is None or because is None:
        fields: dict[str, Any] = {"root": None, "because": None}
        fault = builtin_faults.turn_timed_out(turn.timeout, started=False)
    else:
        fields = {"root": root.id, "because": because.id, **handle.grounds(because)}
        caused = cast("Outcome[Any]", root.outcome)
        fault = builtin_faults.dependency_failed(root.id, caused.label, caused.fault)
    if command.escalate:
        fields["message"] = REQUIRED_SKIPPED
    outcome = _outcome(turn, handle, "skipped", fault, root=fields["root"], escalated=command.escalate)
    skipped = Skipped(handle, outcome, fields)
    if command.escalate and (turn.engine.handler is not None or turn.engine.phraser is not None):
        turn.undecided_skips.append(skipped)
        turn.resolve(handle, outcome)
        return
    turn.emit(events.CALL_SKIPPED, handle.tool, handle.id, skipped.describe())
    turn.resolve(handle, outcome)
    if command.escalate:
        skipped.escalate(turn)


def _leave(turn: Turn, handle: Handle[Any]) -> None:
    attempts = _attempts(handle)
    fault = builtin_faults.turn_timed_out(turn.timeout, started=attempts > 0)
    outcome = _outcome(turn, handle, "timed_out", fault, attempts)
    turn.emit(events.CALL_LEFT, handle.tool, handle.id, {"duration_ms": round(outcome.duration * 1000, 3)})
    turn.resolve(handle, outcome)
    if turn.thread is not None and not handle.fills and not isinstance(handle.tool, str):
        turn.engine.conversations.note_cut_off(handle.full_call(), outcome)
    task = handle.task
    if task is None:
        return
    call = handle.full_call()
    call.abandoned = True
    if turn.cancels or call.waiting:
        task.cancel()
    else:
        turn.engine.abandon_task(task)


def _cancel(turn: Turn, handle: Handle[Any]) -> None:
    attempts = _attempts(handle)
    outcome = _outcome(turn, handle, "cancelled", builtin_faults.cancelled(started=attempts > 0), attempts)
    fields = {"attempts": attempts, "duration_ms": round(outcome.duration * 1000, 3)}
    turn.emit(events.CALL_CANCELLED, handle.tool, handle.id, fields)
    turn.resolve(handle, outcome)
    call = None if handle.task is None else handle.full_call()
    if turn.thread is not None and turn.parent is None:
        turn.engine.conversations.note_dangling((turn.tenant, turn.thread), turn.id, outcome, call)
    if call is not None and handle.task is not None:
        call.end_recorded = True
        handle.task.cancel()


def has_acted(handle: Handle[Any]) -> bool:
    """May it have had an effect that must not be had twice?"""
    outcome = handle.outcome
    if outcome is None or isinstance(handle.tool, str) or handle.tool.safe_to_repeat:
        return False
    return outcome.fault is None or outcome.fault.effect != "none"


def _attempts(handle: Handle[Any]) -> int:
    """How often a call's tool has been tried so far; one that no lane has taken up yet has not begun.

    A call that waits for a thread is withdrawn first: nothing is said before it is known whether the thread has begun.
    """
    if handle.task is None or isinstance(handle.tool, str):
        return 0
    call = handle.full_call()
    call.stop_waiting()
    return call.attempts


def _outcome(
    turn: Turn, handle: Handle[Any], status: Status, fault: Fault, attempts: int = 0, *, root: str | None = None,
    escalated: bool = False,
) -> Outcome[Any]:  # fmt: skip
    tool = handle.tool
    return Outcome(
        handle.id,
        tool if isinstance(tool, str) else tool.id,
        status,
        attempts=attempts,
        duration=0.0 if handle.task is None else turn.engine.now() - handle.started,
        fault=fault,
        label="" if isinstance(tool, str) else tool.label,
        decision=Decision("escalate", REQUIRED_SKIPPED) if escalated else None,
        root=root,
        escalated=escalated,
        explanation=turn.engine.explain,
        recorded=None if handle.call is None else handle.call.write_recorded,
    )
