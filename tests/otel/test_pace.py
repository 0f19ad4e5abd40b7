"""A processor, a sampler or an exporter that hangs or raises never hurts a call."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider
from tests.otel.collected import Collected

from failsoft import Runtime
from failsoft.otel import OpenTelemetry
from failsoft.otel.sdk import ELSEWHERE, IN_PLACE, Pace, find_pace


class Exporter(SpanExporter):
    """Keeps spans, after doing something."""

    def __init__(self, do: Any = None) -> None:
        self.do = do
        self.names: list[str] = []

    def export(self, spans: Any) -> SpanExportResult:
        if self.do is not None:
            self.do()
        self.names += [span.name for span in spans]
        return SpanExportResult.SUCCESS


class Processor(SpanProcessor):
    """Does something when a span starts, or when it ends."""

    def __init__(self, at: str, do: Any) -> None:
        self.at, self.do = at, do

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.at == "start":
            self.do()

    def on_end(self, span: Any) -> None:
        if self.at == "end":
            self.do()


class Sampling(Sampler):
    """Does something before it decides."""

    def __init__(self, do: Any) -> None:
        self.do = do

    def should_sample(self, *args: Any, **options: Any) -> Any:
        self.do()
        return ALWAYS_ON.should_sample(*args, **options)

    def get_description(self) -> str:
        return "tests"


def provider_of(*processors: SpanProcessor, sampler: Sampler | None = None) -> TracerProvider:
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def runtime_of(provider: TracerProvider) -> Runtime:
    rt = Runtime(instruments=[OpenTelemetry(tracer_provider=provider)])

    @rt.tool(read_only=True)
    async def search() -> str:
        return "found"

    return rt


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What hangs waits for this."""
    event = threading.Event()
    yield event
    event.set()


HANGING = {
    "exporter": lambda do: provider_of(SimpleSpanProcessor(Exporter(do))),
    "exporter in batches": lambda do: provider_of(BatchSpanProcessor(Exporter(do), schedule_delay_millis=10)),
    "processor at the end": lambda do: provider_of(Processor("end", do)),
    "processor at the start": lambda do: provider_of(Processor("start", do)),
    "sampler": lambda do: provider_of(SimpleSpanProcessor(InMemorySpanExporter()), sampler=Sampling(do)),
}


@pytest.mark.parametrize("what", HANGING)
@pytest.mark.parametrize("blocking", [False, True])
def test_calls_go_on_while_the_sdk_hangs(held: threading.Event, what: str, blocking: bool) -> None:
    rt = runtime_of(HANGING[what](lambda: held.wait(30)))
    started = time.monotonic()

    async def play() -> list[Any]:
        async with rt.turn() as turn:
            for _ in range(20):
                turn.call("search")
        return [outcome.value for outcome in turn.report.outcomes.values()]

    values = [rt.call_sync("search").value for _ in range(20)] if blocking else asyncio.run(play())
    assert values == ["found"] * 20
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("what", HANGING)
def test_calls_go_on_while_the_sdk_raises(what: str) -> None:
    def fail() -> None:
        raise RuntimeError("broken SDK")

    rt = runtime_of(HANGING[what](fail))
    assert [rt.call_sync("search").value for _ in range(3)] == ["found"] * 3
    asyncio.run(rt.close())


def test_a_slow_exporter_is_logged_once_and_gets_its_spans_later(
    held: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = Exporter(lambda: held.wait(30))
    rt = runtime_of(provider_of(SimpleSpanProcessor(exporter)))
    with caplog.at_level(logging.WARNING, "failsoft"):
        for _ in range(5):
            rt.call_sync("search")
    slow = [record.getMessage() for record in caplog.records if "slow" in record.getMessage()]
    assert slow == ["OpenTelemetry's span processor is slow: calls do not wait for it any more"]
    held.set()
    until = time.monotonic() + 20
    while len(exporter.names) < 10 and time.monotonic() < until:
        time.sleep(0.001)
    assert sorted(exporter.names) == ["attempt search"] * 5 + ["execute_tool search"] * 5


def test_spans_come_back_when_a_start_that_hung_is_over(held: threading.Event) -> None:
    collected = Collected()
    collected.provider.add_span_processor(Processor("start", lambda: held.wait(30)))
    rt = runtime_of(collected.provider)
    rt.call_sync("search")
    rt.call_sync("search")
    assert collected.spans() == []
    held.set()
    until = time.monotonic() + 20
    while not collected.spans("execute_tool search") and time.monotonic() < until:
        rt.call_sync("search")
    assert collected.tree()[-2:] == ["- > execute_tool search", "execute_tool search > attempt search"]


@pytest.mark.parametrize("exporter", [Exporter(), InMemorySpanExporter()])
def test_a_span_has_been_exported_when_its_call_returns(exporter: Any) -> None:
    rt = runtime_of(provider_of(SimpleSpanProcessor(exporter)))
    rt.call_sync("search")
    names = exporter.names if isinstance(exporter, Exporter) else [s.name for s in exporter.get_finished_spans()]
    assert names == ["attempt search", "execute_tool search"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_exports_its_own_spans() -> None:
    exporter = Exporter()
    rt = runtime_of(provider_of(SimpleSpanProcessor(exporter)))
    rt.call_sync("search")
    pid = os.fork()
    if pid == 0:
        try:
            rt.call_sync("search")
            os._exit(0 if len(exporter.names) == 4 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


# --- private names of the SDK -----------------------------------------------------------------------------------------------


class Unknown:
    """A provider of another SDK."""


PACES: dict[str, tuple[Any, Pace]] = {
    "the API alone": (NoOpTracerProvider(), IN_PLACE),
    "the API alone, later": (ProxyTracerProvider(), IN_PLACE),
    "no processor": (provider_of(), IN_PLACE),
    "batches": (provider_of(BatchSpanProcessor(Exporter())), IN_PLACE),
    "in memory": (provider_of(SimpleSpanProcessor(InMemorySpanExporter())), IN_PLACE),
    "one by one": (provider_of(SimpleSpanProcessor(ConsoleSpanExporter())), Pace(True, False)),
    "two": (
        provider_of(BatchSpanProcessor(Exporter()), SimpleSpanProcessor(Exporter())),
        Pace(True, False),
    ),
    "another processor": (provider_of(Processor("end", print)), ELSEWHERE),
    "a sampler of the SDK": (provider_of(sampler=ParentBased(ALWAYS_ON)), IN_PLACE),
    "another sampler": (provider_of(sampler=Sampling(print)), ELSEWHERE),
    "another sampler inside": (provider_of(sampler=ParentBased(Sampling(print))), ELSEWHERE),
    "another SDK": (Unknown(), ELSEWHERE),
}


@pytest.mark.parametrize("provider", PACES)
def test_spans_start_and_end_in_place_only_if_nothing_can_block(provider: str) -> None:
    given, pace = PACES[provider]
    assert find_pace(given)[1] == pace


def test_a_processor_that_is_added_later_is_noticed(held: threading.Event) -> None:
    collected = Collected()
    rt = runtime_of(collected.provider)
    rt.call_sync("search")
    collected.provider.add_span_processor(Processor("end", lambda: held.wait(30)))
    started = time.monotonic()
    assert [rt.call_sync("search").value for _ in range(3)] == ["found"] * 3
    assert time.monotonic() - started < 10
