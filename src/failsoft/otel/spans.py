"""The spans of one call: its own or that of a framework, and one per attempt.

Rules
-----
- The span of an attempt contains the decision about the attempt. So it is ended after the decision, with the time at
  which the attempt ended.
- The span of an abandoned attempt ends when the call abandons it; the tool may continue.
- The spans of a call that its turn abandons end at the turn's deadline. Later events of the call are in no span.
- Every span that was started is ended once, whatever happens to its call.
- The span of a framework is not ended here. The framework sets its status and its exceptions. failsoft sets its
  ``error.type`` only if the framework has not.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping
from time import time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Link, Status, StatusCode

from failsoft.core.redact.sanitise import sanitise
from failsoft.observe import events
from failsoft.otel import names
from failsoft.otel.span_events import decision_attributes, outcome_attributes, span_event
from failsoft.otel.values import exception_fields, type_name, without_none

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from failsoft.core.model.outcome import Outcome
    from failsoft.observe.instrument import CallInfo
    from failsoft.otel.pace import Tracer

_NO_ERRORS = (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)  # the caller was cancelled
_CONTROL_FLOW = "ControlFlow"  # an exception that an agent framework uses for control flow


def is_error(error: BaseException | None) -> bool:
    """True for a failure. A cancelled caller and a framework's control flow are not failures."""
    return error is not None and not isinstance(error, _NO_ERRORS) and type(error).__name__ != _CONTROL_FLOW


class AttemptSpan:
    """The span of one attempt."""

    __slots__ = ("_open", "candidate", "ended_at", "failed", "span")

    def __init__(self, span: Span, candidate: str) -> None:
        self.span = span
        self.candidate = candidate
        self.failed = False
        self.ended_at: int | None = None  # None: the attempt runs
        self._open = [True]

    def fail(self, error: BaseException) -> None:
        """Record the exception that ended the attempt."""
        self.failed = True
        self.span.set_attribute(names.ERROR_TYPE, type_name(error))
        self.span.add_event(names.EXCEPTION_EVENT, exception_fields(error))
        self.span.set_status(Status(StatusCode.ERROR, sanitise(error)))

    def decide(self, fields: Mapping[str, Any]) -> None:
        """Record the decision about the failed attempt."""
        self.failed = True
        self.span.set_attributes(decision_attributes(fields))
        self.span.set_status(Status(StatusCode.ERROR, fields.get("error")))

    def take(self) -> tuple[Span, int] | None:
        """Return the span and its end time to the first caller, who must end the span; None to all others."""
        try:
            self._open.pop()
        except IndexError:
            return None
        return self.span, time_ns() if self.ended_at is None else self.ended_at


class CallSpans:
    """The spans of one call."""

    def __init__(self, tracer: Tracer, span: Span, context: Context, *, own: bool) -> None:
        self._tracer = tracer
        self.span = span
        self.context = context  # in which it is the current span
        self.own = own  # False if a framework made it
        self.attempts: dict[int, AttemptSpan] = {}
        self.verifies: list[AttemptSpan] = []
        self._is_over = False

    def start_attempt(self, call: CallInfo, number: int) -> AttemptSpan | None:
        """Start the span of an attempt; None if the spans of the call have ended."""
        if self._is_over:
            return None
        self.end_attempts(only_ended=True)
        attributes: dict[str, Any] = {names.TOOL_NAME: call.candidate, names.ATTEMPT_NUMBER: number}
        links = []
        if call.candidate != call.tool:
            attributes[names.FALLBACK_FROM] = call.tool
            links = [
                Link(each.span.get_span_context(), {names.LINK: "fallback"})
                for each in self.attempts.values()
                if each.failed and each.candidate != call.candidate
            ]
        span = self._tracer.start(f"{names.ATTEMPT} {call.candidate}", self.context, without_none(attributes), links)
        if span is None:
            return None
        made = self.attempts[number] = AttemptSpan(span, call.candidate)
        return made

    def start_verify(self, call: CallInfo) -> AttemptSpan | None:
        """Start the span of a question to ``verify``, with a link to the attempt that it is about."""
        if self._is_over:
            return None
        asked = [each for each in self.attempts.values() if each.failed][-1:]
        links = [Link(each.span.get_span_context(), {names.LINK: "verify"}) for each in asked]
        attributes = {names.TOOL_NAME: call.candidate}
        span = self._tracer.start(f"{names.VERIFY} {call.candidate}", self.context, attributes, links)
        if span is None:
            return None
        made = AttemptSpan(span, call.candidate)
        self.verifies.append(made)
        return made

    def record(self, call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> None:
        """Record an event of the call: on its latest attempt if the event is about that, else on the call."""
        if self._is_over:
            return
        if event_type == events.CALL_LEFT:
            self._abandon_call(call.outcome)
            return
        if event_type == events.TOOL_ERROR:
            latest = next(reversed(self.attempts.values()), None)
            if latest is not None:
                latest.decide(fields)
                self.end_attempts(only_ended=True)
            return
        event = span_event(call, event_type, fields)
        if event is not None:
            self.span.add_event(*event)

    def abandon(self, number: int) -> None:
        """End the span of an abandoned attempt."""
        attempt = self.attempts.get(number)
        if attempt is not None:
            attempt.span.set_attribute(names.ABANDONED, True)
            attempt.ended_at = time_ns() if attempt.ended_at is None else attempt.ended_at

    def _abandon_call(self, outcome: Outcome[Any]) -> None:
        """End all spans now: the turn has abandoned the call."""
        for attempt in [*self.attempts.values()]:
            if attempt.ended_at is None:
                attempt.span.set_attribute(names.ABANDONED, True)
                if outcome.fault is not None:
                    attempt.span.set_attribute(names.ERROR_TYPE, outcome.fault.code.value)
                    attempt.span.set_status(Status(StatusCode.ERROR, outcome.fault.message))
                attempt.ended_at = time_ns()
        self.end(outcome, None, None)

    def end_attempts(self, *, only_ended: bool) -> None:
        """End the spans of attempts; with ``only_ended`` not that of an attempt that runs."""
        wanted = [each for each in self.attempts.values() if each.ended_at is not None or not only_ended]
        self._tracer.end([ended for ended in (each.take() for each in wanted) if ended is not None])

    def end(self, outcome: Outcome[Any] | None, error: BaseException | None, result: str | None) -> None:
        """End all spans with the outcome of the call; None if its caller was cancelled. Only the first end counts."""
        at = time_ns()
        if self._is_over:
            self.end_attempts(only_ended=False)
            return
        self._is_over = True
        left = names.CONTROL_FLOW if type(error).__name__ == _CONTROL_FLOW else names.CANCELLED
        attributes = {names.OUTCOME: left} if outcome is None else outcome_attributes(outcome)
        if result is not None:
            attributes[names.TOOL_RESULT] = result
        if not self.own and names.ERROR_TYPE in (getattr(self.span, "attributes", None) or ()):
            attributes.pop(names.ERROR_TYPE, None)
        self.span.set_attributes(attributes)
        parts = (*self.attempts.values(), *self.verifies)
        ended = [taken for taken in (each.take() for each in parts) if taken is not None]
        if self.own:
            fault = None if outcome is None else outcome.fault
            if error is not None and is_error(error):
                self.span.add_event(names.EXCEPTION_EVENT, exception_fields(error))
            if fault is not None:
                self.span.set_status(Status(StatusCode.ERROR, fault.message))
            ended.append((self.span, at))
        self._tracer.end(ended)
