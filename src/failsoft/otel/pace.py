"""Start and end spans so that an SDK, a processor or an exporter that hangs never holds up a call.

Rules
-----
- Spans start and end in place if nothing that runs then can block (``sdk``): with ``BatchSpanProcessor``, for instance.
- Else they start and end on threads of their own. Calls wait for these threads as long as they keep up, so that a span
  has been exported when its call returns. A call that has waited ``START_PATIENCE`` or ``END_PATIENCE`` seconds goes on.
- While a start hangs, calls have no spans. While an end hangs, ended spans wait in a bounded queue.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from opentelemetry import trace

from failsoft._version import __version__
from failsoft.observe.delivery import Delivery, each
from failsoft.otel import names
from failsoft.otel.sdk import IN_PLACE, Pace, find_pace, processors_of

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, TracerProvider

START_PATIENCE = 0.1  # seconds
END_PATIENCE = 0.02  # seconds; after that, calls do not wait for ends any more
WAITING = 2_048  # ended spans that wait for a processor

log = logging.getLogger("failsoft")

Ended = tuple["Span", int]  # the span, and its end in nanoseconds since 1970


class Tracer:
    """Starts and ends spans of a provider; without a provider, of the global one."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self.provider = provider
        self._tracer = trace.get_tracer(names.SCOPE, __version__, provider)
        self._pace = IN_PLACE
        self._known: tuple[Any, Any] = (None, None)  # the provider and the processors that the current pace is for
        self._starting: _Starting | None = None
        self._ending: Delivery | None = None
        _ALL.add(self)

    def start(
        self, name: str, context: Context, attributes: Mapping[str, Any], links: Sequence[Link] = ()
    ) -> Span | None:
        """Start a span; None if that takes too long."""

        def start() -> Span:
            return self._tracer.start_span(name, context, attributes=attributes, links=links)

        if self._find_pace().starts_in_place:
            return start()
        if self._starting is None:
            self._starting = _Starting()
        return self._starting.run(start)

    def end(self, ended: Sequence[Ended]) -> None:
        """End spans."""
        if not ended:
            return
        if self._pace.ends_in_place:
            _end_all(ended)
            return
        if self._ending is None:
            self._ending = Delivery(
                _end_all, name="OpenTelemetry's span processor", wait=True, capacity=WAITING, patience=END_PATIENCE
            )
        self._ending.put(ended)

    def _find_pace(self) -> Pace:
        provider = trace.get_tracer_provider() if self.provider is None else self.provider
        if provider is not self._known[0] or processors_of(provider) is not self._known[1]:
            processors, self._pace = find_pace(provider)
            self._known = provider, processors
        return self._pace

    def renew_after_fork(self) -> None:
        """Forget the threads of the parent process."""
        self._starting = None
        if self._ending is not None:
            self._ending.renew_after_fork()


def _end_one(ended: Ended) -> None:
    span, at = ended
    span.end(at)


_end_all = each(_end_one)


class _Starting:
    """Starts spans on a thread of its own, one after the other."""

    def __init__(self) -> None:
        self._hangs = False
        self._told = False
        self._delivery = Delivery(each(self._start), name="OpenTelemetry's span starts", wait=False)

    def run(self, start: Callable[[], Span]) -> Span | None:
        if self._hangs:
            return None
        job = _Job(start)
        self._delivery.offer((job,))
        if job.ended.acquire(timeout=START_PATIENCE):
            return job.span
        self._hangs = not job.over
        if not self._told:
            self._told = True
            log.warning("OpenTelemetry takes long to start a span: calls go on without spans until it answers")
        return None

    def _start(self, job: _Job) -> None:
        try:
            job.span = job.start()
        finally:
            job.over, self._hangs = True, False
            job.ended.release()


class _Job:
    """A span to start."""

    __slots__ = ("ended", "over", "span", "start")

    def __init__(self, start: Callable[[], Span]) -> None:
        self.start = start
        self.span: Span | None = None
        self.over = False
        self.ended = threading.Lock()
        self.ended.acquire()


_ALL: WeakSet[Tracer] = WeakSet()


def _renew_all() -> None:
    for tracer in [*_ALL]:
        tracer.renew_after_fork()


os.register_at_fork(after_in_child=_renew_all)
