"""OpenTelemetry: spans and metrics for turns, calls and attempts. Needs the extra ``otel``.

``Runtime(instruments=[OpenTelemetry()])`` is all that failsoft needs; the application sets up the SDK and its
exporters. ``names`` has every name of the conventions, ``metrics`` the metrics, ``spans`` the spans of one call.
``framework_spans`` finds the span that a framework has made for the same call. ``sdk`` has everything that depends on
private names of the SDK, ``worker`` runs in worker processes. May import ``runtime`` and what is below it. Tested in
``tests/otel``.
"""

from __future__ import annotations

try:
    from failsoft.otel.instrument import OpenTelemetry
except ImportError as missing:
    if (missing.name or "").partition(".")[0] == "failsoft":
        raise
    raise ImportError(f"{missing}: install failsoft[otel]", name=missing.name) from missing

__all__ = ["OpenTelemetry"]
