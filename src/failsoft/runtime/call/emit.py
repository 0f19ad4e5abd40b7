"""The event stream as calls use it: record an event, escalate an outcome, note that a caller has gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from failsoft.core.model.builtin_faults import BAD_ARGUMENTS, cancelled
from failsoft.observe import events
from failsoft.observe.exception_text import exception_text
from failsoft.observe.recorder import Recorder
from failsoft.observe.sinks.log import Entry, is_logged, level_of
from failsoft.observe.sinks.log import put as log_event
from failsoft.runtime.call.attempt_result import emit_abandoned
from failsoft.runtime.call.escalation import Escalations
from failsoft.runtime.call.event_fields import cancelled_fields
from failsoft.runtime.tools.control import ControlFlow
from failsoft.runtime.tools.tool import Tool

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.outcome import Outcome
    from failsoft.observe.instrument import Instruments
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.call.ports import CallBooks, CallEvents
    from failsoft.runtime.execution.clock import Clock


class CallLog:
    """Records the events of calls and delivers escalated outcomes."""

    def __init__(self, clock: Clock, on_escalation: Callable[[Outcome[Any]], Any] | None) -> None:
        self.trace = Recorder(clock.monotonic, clock.wall)
        self.escalations = None if on_escalation is None else Escalations(on_escalation)
        self.instruments: Instruments | None = None  # around turns, calls and attempts
        self._now, self._wall = clock.monotonic, clock.wall

    def emit(
        self, event_type: str, tool: Tool | None, call: Call, fields: dict[str, Any], error: BaseException | None = None
    ) -> None:
        """Record an event of a call."""
        if call.parent is not None:
            fields["parent_id"] = call.parent.id
        if call.span is not None:
            call.span.event(call.tool.id if tool is None else tool.id, event_type, fields)
        self.record_event(event_type, tool, call.id, None if call.turn is None else call.turn.id, fields, error=error)

    def record_event(
        self, event_type: str, tool: Tool | str | None, call_id: str | int | None, turn_id: str | None,
        fields: dict[str, Any], *, error: BaseException | None = None,
    ) -> None:  # fmt: skip
        """Record an event, and log it if its level is enabled; ``error`` gives the traceback.

        If ``tool`` is only a name, the event shows it, but no metrics count it.
        """
        now = self._now()
        self.trace.record((event_type, now, tool, call_id, turn_id, fields))
        level = level_of(event_type, fields, known_tool=isinstance(tool, Tool))
        if is_logged(level):
            tool_id = tool.id if isinstance(tool, Tool) else tool
            id = f"{tool_id}-{call_id}" if isinstance(call_id, int) else call_id
            log_event(Entry(level, event_type, self._wall(), tool_id, id, turn_id, fields), error)

    def drain_if_due(self) -> None:
        """Deliver the recorded events if enough of them wait. Called at the end of each call in the pipeline."""
        if len(self.trace.pending) > self.trace.limit:
            self.trace.drain()

    def escalate(self, call: Call, outcome: Outcome[Any]) -> None:
        """Record that a call was escalated, and deliver its outcome unless it is an inner call."""
        fault = outcome.fault
        fields: dict[str, Any] = {"message": f"Escalated {call.tool.id}", "code": None, "attempts": outcome.attempts}
        if fault is not None:
            fields |= {"code": fault.code.value, "category": fault.category, "error": fault.message}
        entered = fault is not None and fault.rule != BAD_ARGUMENTS  # else the traceback shows only failsoft
        self.emit(events.ESCALATED, call.tool, call, fields, fault.cause if fault is not None and entered else None)
        if not call.is_inner:
            self.notify_escalation(outcome)

    def notify_escalation(self, outcome: Outcome[Any]) -> None:
        """Deliver an escalated outcome to ``on_escalation``, if the user has set it."""
        if self.escalations is not None:
            self.escalations.notify(outcome)

    def debug_fields(self, fault: Fault) -> dict[str, Any]:
        """Return the event fields for diagnosing a contract bug."""
        cause = fault.cause
        return {
            "error": fault.message,
            "exception": None if cause is None else f"{type(cause).__module__}.{type(cause).__qualname__}",
            "traceback": "" if cause is None else exception_text(cause),
            "code": fault.code.value,
            "rule": fault.rule,
            "reason": fault.reason,
        }


def emit_cancelled(log: CallEvents, books: CallBooks, call: Call, error: BaseException, now: float) -> None:
    """Record that a call ended because its caller was cancelled or interrupted. This says nothing about the tool."""
    tool = vars(error).pop("abandoned", None)  # reported by the first call that sees the error
    if tool is not None:
        emit_abandoned(log, call, tool)
    passed = isinstance(error, ControlFlow)
    unknown = not passed and call.may_have_written_now
    _end_write(books, call, unknown=unknown)
    if call.offer_taken and not call.attempts:
        books.conversations.return_offer(call)
    if call.end_recorded:
        return
    if not passed:  # after control flow the framework continues, and may make the call again
        books.conversations.note_abandoned(call)
    fields = cancelled_fields(call.attempts, now - call.started, unknown=unknown)
    log.emit(events.CALL_CANCELLED, call.tool, call, fields)
    log.drain_if_due()


def _end_write(books: CallBooks, call: Call, *, unknown: bool) -> None:
    """End the record of a write whose caller was cancelled; ``unknown``: its tool may have acted."""
    if call.write_record is None or books.ledger is None:
        if unknown and not call.has_case:
            books.cases.end_unknown_soon(call, cancelled(started=True))
    elif not unknown:
        books.ledger.end(call, acted=False)
    elif call.abandoned:  # its turn has reported it
        books.cases.end_unknown_soon(call, cancelled(started=True))
    else:  # its caller cannot be told
        books.ledger.abandon(call)
