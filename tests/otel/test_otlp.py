"""Spans and metrics sent by OTLP over HTTP to a collector on the loopback device, and decoded there."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from failsoft import Runtime
from failsoft.otel import OpenTelemetry

REQUESTS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


class Collector(ThreadingHTTPServer):
    """Decodes what it receives."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: dict[str, list[Any]] = {path: [] for path in REQUESTS}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert isinstance(self.server, Collector)
        self.server.received[self.path].append(REQUESTS[self.path].FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def test_spans_and_metrics_survive_the_way_to_a_collector(collector: Collector) -> None:
    resource = Resource({"service.name": "travel"})
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector.url}/v1/metrics"), 3_600_000)
    meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    rt = Runtime(instruments=[OpenTelemetry(tracer_provider=tracers, meter_provider=meters)])
    answers = [ConnectionError("503 Service Unavailable"), "AF 1234"]

    @rt.tool(read_only=True)
    async def flight_search() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def play() -> None:
        async with rt.turn() as turn:
            turn.call(flight_search)
        await rt.flush("5s")

    asyncio.run(play())
    assert tracers.force_flush()
    assert meters.force_flush()

    (traced,) = collector.received["/v1/traces"][0].resource_spans
    assert values(traced.resource.attributes)["service.name"] == "travel"
    (scope,) = traced.scope_spans
    assert scope.scope.name == "failsoft"
    spans = {span.span_id: span for span in scope.spans}
    lines = [(spans[s.parent_span_id].name if s.parent_span_id else "-", s.name) for s in scope.spans]
    assert sorted(lines) == [
        ("-", "failsoft.turn"),
        ("execute_tool flight_search", "attempt flight_search"),
        ("execute_tool flight_search", "attempt flight_search"),
        ("failsoft.turn", "execute_tool flight_search"),
    ]
    call = next(span for span in scope.spans if span.name == "execute_tool flight_search")
    assert values(call.attributes)["gen_ai.operation.name"] == "execute_tool"
    assert values(call.attributes)["failsoft.attempts"] == 2
    failed = next(span for span in scope.spans if [event.name for event in span.events])
    assert [event.name for event in failed.events] == ["gen_ai.execute_tool.exception"]

    (measured,) = collector.received["/v1/metrics"][0].resource_metrics
    (meter,) = measured.scope_metrics
    metrics = {metric.name: metric for metric in meter.metrics}
    duration = metrics["gen_ai.execute_tool.duration"]
    assert duration.unit == "s"
    (point,) = duration.histogram.data_points
    assert point.count == 1
    assert [*point.explicit_bounds] == pytest.approx([0.01 * 2**power for power in range(14)])
    assert values(point.attributes)["gen_ai.tool.name"] == "flight_search"
    attempts = [
        (values(point.attributes), point.as_double) for point in metrics["failsoft.tool.attempts"].sum.data_points
    ]
    assert {told["failsoft.attempt.kind"]: value for told, value in attempts if value} == {
        "failed_with_retry": 1,
        "successful_with_retry": 1,
    }
    asyncio.run(rt.close())
    tracers.shutdown()
    meters.shutdown()
