"""Metrics: the definitions of ``observe.metric_definitions`` as OpenTelemetry's instruments.

Rules
-----
- Durations are recorded from the event stream, on a delivery thread. Counters and gauges are read from the runtime
  when a reader of the SDK collects them, in that reader's thread. Calls never record metrics themselves.
- Every attribute has a bounded set of values; ``label`` maps names that no tool has to ``_unknown``.
- Several runtimes of one provider share their instruments: counters are added up, and so are the gauges that count
  attempts and calls. Of the other gauges, the value that needs attention is reported: the lowest budget, the open
  circuit. Rates and means cannot be added up, so those of the latest runtime are reported. The counters of a runtime
  that was closed stay in the sums.
- Without a provider, nothing is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from failsoft._version import __version__
from failsoft.core.model.fault import Code
from failsoft.observe import events
from failsoft.observe.metric_definitions import (
    AVAILABLE,
    BREAKER_STATE,
    BUCKETS,
    BUDGET,
    CALL_DURATION,
    DEFINITIONS,
    SPECIFIED,
    MetricDefinition,
)
from failsoft.otel import names
from failsoft.runtime.event_counts import EventCounts

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from failsoft.observe.events import Event
    from failsoft.observe.instrument import MetricReader

FRESH = 0.5  # seconds for which one reading of a runtime serves all its metrics

_Key = tuple[tuple[str, str], ...]  # attributes
_Values = dict[str, dict[_Key, float]]  # by the metric's name


class MetricSink:
    """Counts the events of one runtime."""

    def __init__(self, provider: MeterProvider | None, reader: MetricReader) -> None:
        self._provider = provider
        self._meter = _meter_of(provider)
        self._source = _Source(reader)
        self._counts = _Recorded(self._meter, reader)
        self._meter.add(self._source)

    def write(self, batch: Sequence[Event], /) -> None:
        """Record the durations in a batch."""
        if not _is_api_alone(self._provider):
            for event in batch:
                self._counts.take_event(event)

    def close(self) -> None:
        """Read the runtime for the last time."""
        self._meter.remove(self._source)


class _Recorded(EventCounts):
    """Counts events with OpenTelemetry's instruments."""

    def __init__(self, meter: _Meter, reader: MetricReader) -> None:
        super().__init__(reader.label)
        self._meter = meter
        self._code: str | None = None  # error code of the failed call

    def take_event(self, event: Event) -> None:
        left = Code.DEADLINE_EXCEEDED.value if event.event_type == events.CALL_LEFT else None
        self._code = event.fields.get("code") if event.event_type == events.CALL_FAILED else left
        super().take_event(event)

    def add(self, metric: MetricDefinition, amount: float, *labels: str) -> None:
        self._meter.recorded[metric.name].add(max(0.0, amount), dict(_key(metric, labels)))

    def observe(self, metric: MetricDefinition, seconds: float, *labels: str) -> None:
        attributes = dict(_key(metric, labels))
        if metric is CALL_DURATION:
            attributes[names.OPERATION] = names.EXECUTE_TOOL
            if self._code is not None:
                attributes[names.ERROR_TYPE] = self._code
        self._meter.recorded[metric.name].record(max(0.0, seconds), attributes)


class _Source:
    """The metrics that a runtime counts itself, read at most once in ``FRESH`` seconds."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._values: _Values = {}
        self._read_at = float("-inf")

    def read(self) -> _Values:
        with self._lock:
            if monotonic() - self._read_at > FRESH:
                self._values = self._read()
                self._read_at = monotonic()
            return self._values

    def read_now(self) -> _Values:
        self._read_at = float("-inf")
        return self.read()

    def _read(self) -> _Values:
        found: _Values = {}
        for sample in self._reader.read():
            definition = _OBSERVED.get(sample.name)
            if definition is not None:
                key = _key(definition, tuple(sample.labels.values()))
                found.setdefault(sample.name, {})[key] = float(sample.value)  # exporters refuse a bool
        return found


class _Meter:
    """The instruments of one provider."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter(names.SCOPE, __version__, provider)
        self._sources: list[_Source] = []
        self._past: _Values = {}  # counters of runtimes that were closed
        self.recorded: dict[str, Any] = {}
        for one in DEFINITIONS:
            described = {"unit": one.unit, "description": one.description}
            if one.name in _OBSERVED:
                create = meter.create_observable_counter if one.kind == "counter" else meter.create_observable_gauge
                create(one.name, [partial(self._observe, one)], **described)
            elif one.kind == "histogram":
                name = names.DURATION if one is CALL_DURATION else one.name
                self.recorded[one.name] = meter.create_histogram(
                    name, explicit_bucket_boundaries_advisory=BUCKETS, **described
                )
            else:
                self.recorded[one.name] = meter.create_counter(one.name, **described)

    def add(self, source: _Source) -> None:
        self._sources = [*self._sources, source]

    def remove(self, source: _Source) -> None:
        self._sources = [each for each in self._sources if each is not source]
        for name, values in source.read_now().items():
            if _OBSERVED[name].kind == "counter":
                past = self._past.setdefault(name, {})
                for key, value in values.items():
                    past[key] = past.get(key, 0.0) + value

    def _observe(self, definition: MetricDefinition, options: CallbackOptions) -> Iterable[Observation]:  # noqa: ARG002
        found = dict(self._past.get(definition.name, {}))
        for source in self._sources:
            for key, value in source.read().get(definition.name, {}).items():
                found[key] = _combined(definition, found.get(key), value)
        return [Observation(value, dict(key)) for key, value in found.items()]


def _combined(definition: MetricDefinition, before: float | None, value: float) -> float:
    """The value for several runtimes with a tool of the same id."""
    if before is None or definition in _MEANS:
        return value
    chosen = _CHOSEN.get(definition.name)
    return before + value if chosen is None else chosen(before, value)


_MEANS = tuple(one for one in SPECIFIED if one.kind == "gauge")
_CHOSEN: dict[str, Callable[[float, float], float]] = {
    BUDGET.name: min,
    AVAILABLE.name: min,
    BREAKER_STATE.name: max,
}
_OBSERVED = {one.name: one for one in DEFINITIONS if one.source == "runtime"}
_METERS: WeakKeyDictionary[MeterProvider, _Meter] = WeakKeyDictionary()
_GLOBAL: list[_Meter] = []  # of the global provider
_LOCK = threading.Lock()


def _meter_of(provider: MeterProvider | None) -> _Meter:
    with _LOCK:
        if provider is None:
            if not _GLOBAL:
                _GLOBAL.append(_Meter(None))
            return _GLOBAL[0]
        try:
            found = _METERS.get(provider)
            if found is None:
                found = _METERS[provider] = _Meter(provider)
        except TypeError:  # a provider of another SDK that allows no weak references
            found = _Meter(provider)
        return found


def _key(definition: MetricDefinition, labels: Sequence[str]) -> _Key:
    return tuple((label.attribute, value) for label, value in zip(definition.labels, labels, strict=True))


def _is_api_alone(provider: MeterProvider | None) -> bool:
    """True if no SDK is set up: the API alone counts nothing."""
    given = metrics.get_meter_provider() if provider is None else provider
    return type(given).__module__.startswith("opentelemetry.metrics")
