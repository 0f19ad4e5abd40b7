"""Prometheus: a collector for your registry, and the text of ``/metrics``. Needs ``failsoft[prometheus]``.

Rules
-----
- ``REGISTRY.register(PrometheusCollector(rt))`` is all that is needed. Several runtimes get names:
  ``PrometheusCollector(search=a, pay=b)`` adds the label ``runtime``.
- Counters are read from the runtime at the scrape. Durations, error codes and turns come from the event stream, on a delivery
  thread, and are counted from the moment that the collector is made.
- A scrape never raises and never makes a call wait. It waits up to ``PATIENCE`` seconds for the events so far. A
  runtime that cannot be read is skipped, and counted in ``failsoft_scrape_errors_total``.
- The number of series is bounded by the metric definitions, even if a model invents tools.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from failsoft.observe.delivery import Delivery
from failsoft.observe.exception_text import exception_text
from failsoft.observe.metric_definitions import BUCKETS, DEFINITIONS, MetricDefinition
from failsoft.runtime.event_counts import EventCounts, HistogramValue
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.samples import SampleReader, label_of

PATIENCE = 0.2  # seconds
IDLE = 5.0  # seconds between batches if there are few events
RUNTIME = "runtime"  # the label of a named runtime
SCRAPE_ERRORS = "failsoft_scrape_errors_total"

log = logging.getLogger("failsoft")

Values = dict[str, dict[tuple[str, ...], float | HistogramValue]]  # by the metric's name and its labels
_BOUNDS = (*map(floatToGoString, BUCKETS), "+Inf")


class PrometheusCollector(Collector):
    """The metrics of one runtime, or of several with names.

    ``REGISTRY.register(PrometheusCollector(rt))``. Make it before the first call: durations are counted from then on.
    """

    def __init__(self, runtime: Runtime | None = None, /, **named: Runtime) -> None:
        """Take one runtime, or several by the values of their label ``runtime``."""
        for each in (*named.values(), *(() if runtime is None else (runtime,))):
            if not isinstance(each, Runtime):
                raise TypeError(f"PrometheusCollector: expected a Runtime, got {type(each).__name__}")
        if (runtime is None) == (not named):
            raise TypeError(
                "PrometheusCollector: give one runtime, PrometheusCollector(rt), or several with names, "
                "PrometheusCollector(search=rt1, billing=rt2)"
            )
        if len({id(each) for each in named.values()}) < len(named):
            raise TypeError("PrometheusCollector: one runtime has two names, so sums would count it twice: keep one")
        self._sources = {name: _Source(each) for name, each in named.items()}
        if runtime is not None:
            self._sources[""] = _Source(runtime)
        self._labels = (RUNTIME,) if named else ()
        self._errors = dict.fromkeys(self._sources, 0)
        self._complained = False

    def describe(self) -> Iterable[Metric]:
        """The families without values, so that a registry can refuse a second collector."""
        return [*(_family(definition, self._labels) for definition in DEFINITIONS), self._error_family()]

    def collect(self) -> Iterator[Metric]:
        """Read all metrics."""
        families = [_family(definition, self._labels) for definition in DEFINITIONS]
        for name, source in self._sources.items():
            more = (label_of(name),) if self._labels else ()
            try:
                values = source.read()
            except Exception as error:
                self._complain(name, error)
                continue
            for definition, family in zip(DEFINITIONS, families, strict=True):
                for labels, value in values.get(definition.name, {}).items():
                    _add(family, [*labels, *more], value)
        yield from families
        yield self._error_family()

    def _error_family(self) -> Metric:
        family = CounterMetricFamily(
            SCRAPE_ERRORS, "Scrapes in which the runtime could not be read.", labels=self._labels
        )
        for name, errors in self._errors.items():
            family.add_metric([label_of(name)] if self._labels else [], errors)
        return family

    def _complain(self, name: str, error: Exception) -> None:
        self._errors[name] += 1
        if not self._complained:
            self._complained = True
            log.error("a scrape could not read the runtime; others go on\n%s", exception_text(error))


def exposition(source: Runtime | PrometheusCollector, accept: str = "") -> tuple[bytes, str]:
    """The text of ``/metrics`` and its content type: OpenMetrics if the header ``Accept`` asks for it.

    For a runtime the collector is made at the first call and kept as long as the runtime: call it once when you start.
    """
    collector = source if isinstance(source, PrometheusCollector) else _collector_of(source)
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return encode(registry), content_type


def _collector_of(runtime: Runtime) -> PrometheusCollector:
    found = _COLLECTORS.get(runtime)
    if found is None:
        found = _COLLECTORS.setdefault(runtime, PrometheusCollector(runtime))
    return found


class _Source:
    """One runtime: its samples and the counts of its events."""

    def __init__(self, runtime: Runtime) -> None:
        services = runtime._engine
        trace = services.log.trace
        self._services = services
        self._reader = SampleReader(services)  # does not refer to the runtime, which may end
        self._counts = EventCounts(self._reader.label)
        self._delivery = Delivery(
            self._counts.take, name="Prometheus", wait=False, together=True, ask=trace.drain, idle=IDLE
        )
        trace.attach(self._delivery, prompt=False)
        _SOURCES.add(self)

    def read(self) -> Values:
        """The values of every metric by its labels."""
        self._services.log.trace.drain()
        self._delivery.flush(PATIENCE)
        values: Values = {}
        for sample in self._reader.read():
            values.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
        counted: Mapping[tuple[str, tuple[str, ...]], Any]
        for counted in (self._counts.counters(), self._counts.histograms()):
            for (name, labels), value in counted.items():
                values.setdefault(name, {})[labels] = value
        return values

    def renew_after_fork(self) -> None:
        self._counts.renew_after_fork()


def _family(definition: MetricDefinition, more: tuple[str, ...]) -> Metric:
    name, labels = definition.prometheus_name, [*definition.label_names, *more]
    if definition.kind == "histogram":
        return HistogramMetricFamily(name, definition.description, labels=labels)
    if definition.kind == "gauge":
        return GaugeMetricFamily(name, definition.description, labels=labels)
    if definition.own_name:  # OpenMetrics allows counters only with the suffix _total
        return UnknownMetricFamily(name, definition.description, labels=labels)
    return CounterMetricFamily(name, definition.description, labels=labels)


def _add(family: Any, labels: list[str], value: float | HistogramValue) -> None:
    if isinstance(value, HistogramValue):
        family.add_metric(labels, [*zip(_BOUNDS, value.buckets, strict=True)], value.total)
    else:
        family.add_metric(labels, float(value))


_COLLECTORS: WeakKeyDictionary[Runtime, PrometheusCollector] = WeakKeyDictionary()
_SOURCES: WeakSet[_Source] = WeakSet()


def _renew_all() -> None:
    for source in list(_SOURCES):
        source.renew_after_fork()


os.register_at_fork(after_in_child=_renew_all)
