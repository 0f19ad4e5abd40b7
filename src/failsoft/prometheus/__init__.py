"""Prometheus: a collector for your registry, and the text of ``/metrics``. Needs the extra ``prometheus``.

``REGISTRY.register(PrometheusCollector(rt))`` is all that is needed. ``collector`` reads the runtime's own counters
at the scrape; ``runtime.event_counts`` counts durations, error codes and turns from events. May import ``runtime`` and
what is below it. Tested in ``tests/prometheus``.
"""

from failsoft.prometheus.collector import PrometheusCollector, exposition

__all__ = ["PrometheusCollector", "exposition"]
