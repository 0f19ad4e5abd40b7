"""The instrument: spans around turns, calls and attempts, and metrics from their events.

Rules
-----
- One ``execute_tool`` span per call, over all its attempts and waits. If a framework has made a span for the same call,
  that span gets failsoft's attributes and events, and the attempts are its children.
- The context is set and restored, not detached: a call may end in another context than it began in.
- Nothing here may raise into a call or hold it up: the runtime catches exceptions, ``pace`` limits the time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from time import time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import attach, get_current
from opentelemetry.trace import Link, Status, StatusCode

from failsoft.errors import ManifestError
from failsoft.observe.instrument import CallInfo, Instrument, Manager, MetricReader, TurnInfo
from failsoft.otel import names
from failsoft.otel.framework_spans import find_framework_span, will_be_traced
from failsoft.otel.metrics import MetricSink
from failsoft.otel.pace import Tracer
from failsoft.otel.spans import AttemptSpan, CallSpans, is_error
from failsoft.otel.values import json_text, type_name, without_none

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from failsoft.observe.subscriptions import EventSink

log = logging.getLogger("failsoft")

_API = ("opentelemetry.trace", "opentelemetry.metrics")  # providers of the API alone do nothing
_NANO = 1_000_000_000


class OpenTelemetry(Instrument):
    """Spans and metrics for turns, calls and attempts: ``Runtime(instruments=[OpenTelemetry()])``.

    Providers default to the global ones. Arguments and results may hold personal data: they are recorded, sanitised, only
    on request.
    """

    opener = "failsoft.otel.worker:open_context"

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        record_arguments: bool = False,
        record_results: bool = False,
    ) -> None:
        _require("tracer_provider", tracer_provider, "get_tracer", "TracerProvider")
        _require("meter_provider", meter_provider, "get_meter", "MeterProvider")
        _require_flag("record_arguments", record_arguments)
        _require_flag("record_results", record_results)
        self._tracer = Tracer(tracer_provider)
        self._meter_provider = meter_provider
        self._records_arguments = record_arguments
        self._records_results = record_results
        self._destination = tracer_provider, meter_provider
        self._sdk_is_checked = False  # True once a provider of the SDK was found, or its absence was logged

    def sink(self, metrics: MetricReader) -> EventSink:
        return MetricSink(self._meter_provider, metrics)

    # -- turns -------------------------------------------------------------------------------------------------------

    def turn(self, turn: TurnInfo) -> Manager | None:
        self._warn_without_sdk()
        around = get_current()
        attributes = {names.TURN_ID: turn.id, names.CONVERSATION: turn.thread, names.TENANT: turn.tenant}
        span = self._tracer.start(names.TURN, around, without_none(attributes))
        if span is None:
            return None
        turn.notes[self] = span, trace.get_current_span(around)
        return _TurnScope(self._tracer, turn, span)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, call: CallInfo) -> Manager | None:
        self._warn_without_sdk()
        found = find_framework_span(call)
        if found is not None:
            told = {names.CALL_ID: call.id, names.TURN_ID: call.turn_id, names.TOOL_ARGUMENTS: self._arguments(call)}
            if names.TOOL_CALL_ID not in (getattr(found, "attributes", None) or ()):
                told[names.TOOL_CALL_ID] = call.asked_id
            found.set_attributes(without_none(told))
            spans = CallSpans(self._tracer, found, trace.set_span_in_context(found), own=False)
        else:
            made = self._start_call(call)
            if made is None:
                return None
            spans = CallSpans(self._tracer, made, trace.set_span_in_context(made), own=True)
        call.notes[self] = spans
        return _CallScope(call, spans, records_result=self._records_results)

    def _warn_without_sdk(self) -> None:
        """Log once that spans and metrics go nowhere, because the application has set up no provider."""
        if self._sdk_is_checked:
            return
        self._sdk_is_checked = True
        tracing = trace.get_tracer_provider() if self._tracer.provider is None else self._tracer.provider
        metering = metrics.get_meter_provider() if self._meter_provider is None else self._meter_provider
        switched_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        of_the_api = all(type(each).__module__.startswith(_API) for each in (tracing, metering))
        if of_the_api and not switched_off:
            log.warning(
                "OpenTelemetry(): no SDK is set up, so spans and metrics go nowhere: call trace.set_tracer_provider(…) before the "
                "first call, or give OpenTelemetry(tracer_provider=…)"
            )

    def _start_call(self, call: CallInfo) -> Span | None:
        context, links = self._parent_of(call)
        traced = will_be_traced(call)
        attributes = {
            names.OPERATION: None if traced else names.EXECUTE_TOOL,
            names.TOOL_NAME: call.tool,
            names.TOOL_TYPE: names.FUNCTION,
            names.TOOL_CALL_ID: call.asked_id,
            names.TOOL_DESCRIPTION: call.description or None,
            names.CONVERSATION: call.thread,
            names.CALL_ID: call.id,
            names.TURN_ID: call.turn_id,
            names.TENANT: call.tenant,
            names.TOOL_ARGUMENTS: self._arguments(call),
        }
        name = call.tool if call.known else names.UNKNOWN_TOOL
        kind = names.CALL if traced else names.EXECUTE_TOOL
        return self._tracer.start(f"{kind} {name}", context, without_none(attributes), links)

    def _arguments(self, call: CallInfo) -> str | None:
        return json_text(call.arguments) if self._records_arguments else None

    def _parent_of(self, call: CallInfo) -> tuple[Context, list[Link]]:
        """The context of the parent span.

        The calls of an agent's run do not see the context of its turn. They are children of the turn if the span around them
        is the one around the turn; otherwise children of the current span, with a link to the turn.
        """
        context = get_current()
        noted = None if call.turn is None or call.turn.surrounds else call.turn.notes.get(self)
        if noted is None or call.parent_id is not None:
            return context, []
        turn, around = noted
        if trace.get_current_span(context).get_span_context() == around.get_span_context():
            return trace.set_span_in_context(turn, context), []
        return context, [Link(turn.get_span_context(), {names.LINK: "turn"})]

    def event(self, call: CallInfo, event_type: str, fields: Mapping[str, Any]) -> None:
        spans = call.notes.get(self)
        if spans is not None:
            spans.record(call, event_type, fields)

    # -- attempts ----------------------------------------------------------------------------------------------------

    def attempt(self, call: CallInfo, number: int) -> Manager | None:
        spans = call.notes.get(self)
        attempt = None if spans is None else spans.start_attempt(call, number)
        return None if attempt is None else _AttemptScope(attempt)

    def item(self, call: CallInfo, number: int) -> Manager | None:
        spans = call.notes.get(self)
        attempt = None if spans is None else spans.attempts.get(number)
        return None if attempt is None else _ItemScope(attempt.span)

    def verify(self, call: CallInfo) -> Manager | None:
        spans = call.notes.get(self)
        asked = None if spans is None else spans.start_verify(call)
        return None if asked is None else _AttemptScope(asked)

    def abandoned(self, call: CallInfo, number: int) -> None:
        spans = call.notes.get(self)
        if spans is not None:
            spans.abandon(number)

    def carrier(self, call: CallInfo, number: int) -> Mapping[str, str]:
        spans = call.notes.get(self)
        attempt = None if spans is None else spans.attempts.get(number)
        if attempt is None:
            return {}
        found: dict[str, str] = {}
        propagate.inject(found, trace.set_span_in_context(attempt.span))
        return {name.upper().replace("-", "_"): value for name, value in found.items()}


class _Scope:
    """Makes a span the current one."""

    __slots__ = ("_before", "_inside", "_span")

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> None:
        self._before = get_current()
        self._inside = trace.set_span_in_context(self._span, self._before)
        attach(self._inside)

    def restore(self) -> None:
        if get_current() is self._inside:  # otherwise this is another context
            attach(self._before)

    def restore_here(self) -> None:
        """Restore the context in which the scope was entered, even if the tool has set another one and not reset it."""
        attach(self._before)


class _ItemScope(_Scope):
    """Makes the span of an attempt the current one again, although it has ended."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        self.restore_here()


class _TurnScope(_Scope):
    __slots__ = ("_tracer", "_turn")

    def __init__(self, tracer: Tracer, turn: TurnInfo, span: Span) -> None:
        super().__init__(span)
        self._tracer = tracer
        self._turn = turn

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()
        span, turn = self._span, self._turn
        report = turn.report
        if report is not None:
            failed = [outcome for outcome in report.outcomes.values() if outcome.status != "succeeded"]
            span.set_attributes({names.TURN_CALLS: len(report.outcomes), names.TURN_FAILED: len(failed)})
            if report.timed_out:
                span.set_attribute(names.TURN_TIMED_OUT, True)
            for outcome in failed:
                if outcome.status == "skipped":
                    skipped = {names.TOOL: outcome.tool, names.CALL_ID: outcome.id, "failsoft.root": outcome.root}
                    span.add_event("failsoft.call_skipped", without_none(skipped))
        if error is not None and is_error(error):
            span.set_attribute(names.ERROR_TYPE, type_name(error))
            span.set_status(Status(StatusCode.ERROR))
        self._tracer.end([(span, time_ns() if turn.ended is None else int(turn.ended * _NANO))])


class _CallScope(_Scope):
    __slots__ = ("_call", "_records_result", "_spans")

    def __init__(self, call: CallInfo, spans: CallSpans, *, records_result: bool) -> None:
        super().__init__(spans.span)
        self._call = call
        self._spans = spans
        self._records_result = records_result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()
        outcome = self._call.outcome
        wanted = self._records_result and outcome is not None and outcome.status == "succeeded"
        self._spans.end(outcome, error, json_text(outcome.value) if wanted else None)


class _AttemptScope(_Scope):
    __slots__ = ("_attempt",)

    def __init__(self, attempt: AttemptSpan) -> None:
        super().__init__(attempt.span)
        self._attempt = attempt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore_here()
        attempt = self._attempt
        if attempt.ended_at is not None:  # it was abandoned
            return
        if error is not None and is_error(error):
            attempt.fail(error)
        attempt.ended_at = time_ns()


def _require(option: str, given: object, method: str, kind: str) -> None:
    if given is not None and not callable(getattr(given, method, None)):
        raise ManifestError(f"{option}: expected a {kind} of OpenTelemetry, got {given!r:.80}")


def _require_flag(option: str, given: object) -> None:
    if not isinstance(given, bool):
        raise ManifestError(f"{option}: expected True or False, got {given!r:.80}")
