"""Spans collected in memory, and a view of them as a tree."""

from __future__ import annotations

from collections import Counter
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from failsoft import Runtime
from failsoft.otel import OpenTelemetry


class Collected:
    """A tracer provider whose spans are kept."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("tests")

    def instrument(self, **options: Any) -> OpenTelemetry:
        return OpenTelemetry(tracer_provider=self.provider, **options)

    def runtime(self, **options: Any) -> Runtime:
        return Runtime(instruments=[self.instrument(**options)])

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        """The ended spans in the order of their starts; with ``name``, those of that name."""
        found = sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        return [span for span in found if name is None or span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def tree(self) -> list[str]:
        """Each span as ``parent > name``; ``-`` for one without a parent. Fails if a parent is missing."""
        spans = self.spans()
        by_id = {span.context.span_id: span for span in spans}
        lines = []
        for span in spans:
            if span.parent is None:
                lines.append(f"- > {span.name}")
            else:
                around = by_id[span.parent.span_id]  # else an orphan
                assert around.context.trace_id == span.context.trace_id
                lines.append(f"{around.name} > {span.name}")
        return lines

    def executed(self) -> dict[str, int]:
        """How many ``execute_tool`` spans there are of each tool, by name and by operation."""
        named = Counter(span.name for span in self.spans() if span.name.startswith("execute_tool "))
        told = Counter(
            f"execute_tool {attributes(span)['gen_ai.tool.name']}"
            for span in self.spans()
            if attributes(span).get("gen_ai.operation.name") == "execute_tool"
        )
        assert named == told
        return dict(named)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def events(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]
