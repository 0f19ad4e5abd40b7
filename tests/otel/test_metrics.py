"""Metrics by the definitions that all exporters share: recorded off the calls, with bounded attributes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.fakes import DOWN, INVALID, ONCE, RESET, Scripted

from failsoft import Runtime
from failsoft.errors import ManifestError
from failsoft.observe.metric_definitions import BUCKETS, DEFINITIONS
from failsoft.otel import OpenTelemetry
from failsoft.otel.metrics import FRESH


class Measured:
    """A meter provider that is read on request."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def runtime(self, *args: Any) -> Runtime:
        return Runtime(*args, instruments=[OpenTelemetry(meter_provider=self.provider)])

    def read(self) -> dict[str, Any]:
        data: Any = self.reader.get_metrics_data()
        return (
            {}
            if data is None
            else {
                metric.name: metric
                for resource in data.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
            }
        )

    def values(self, name: str) -> dict[tuple[Any, ...], float]:
        """The values of a counter or a gauge by the values of its attributes; zeros are left out."""
        points = self.read()[name].data.data_points
        return {tuple(point.attributes.values()): point.value for point in points if point.value}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the runtime anew for each collection."""
    assert FRESH == 0.5
    monkeypatch.setattr("failsoft.otel.metrics.FRESH", -1.0)


def test_durations_have_the_name_the_unit_and_the_buckets_of_the_conventions() -> None:
    measured = Measured()
    rt = measured.runtime()
    rt.add(Scripted("found", INVALID), id="search", read_only=True, retry=ONCE)

    async def play() -> None:
        await rt.call("search")
        await rt.call("search")
        await rt.flush("5s")

    asyncio.run(play())
    metric = measured.read()["gen_ai.execute_tool.duration"]
    assert metric.unit == "s"
    points = {point.attributes.get("error.type"): point for point in metric.data.data_points}
    assert points.keys() == {None, "INVALID_ARGUMENT"}
    for point in points.values():
        assert point.count == 1
        assert tuple(point.explicit_bounds) == BUCKETS
        assert point.attributes["gen_ai.operation.name"] == "execute_tool"
        assert point.attributes["gen_ai.tool.name"] == "search"


def test_a_call_that_its_turn_leaves_has_the_error_type_of_its_span() -> None:
    measured = Measured()
    rt = measured.runtime()

    async def slow() -> None:
        await asyncio.sleep(60)

    async def play() -> None:
        rt.add(slow, id="search", read_only=True)
        async with rt.turn(timeout="10ms") as turn:
            turn.call("search")
        await rt.close()

    asyncio.run(play())
    (point,) = measured.read()["gen_ai.execute_tool.duration"].data.data_points
    assert point.attributes["error.type"] == "DEADLINE_EXCEEDED"
    assert point.count == 1


def test_counters_and_gauges_are_those_of_the_runtime() -> None:
    measured = Measured()
    rt = measured.runtime()
    rt.add(
        Scripted(RESET, "found", DOWN),
        id="search",
        read_only=True,
        retry={"max_attempts": 2, "initial_delay": "1ms"},
        fallbacks=["cache"],
    )
    rt.add(Scripted("cached"), id="cache", read_only=True)

    async def play() -> None:
        await rt.call("search")
        await rt.call("search")
        await rt.flush("5s")

    asyncio.run(play())
    assert measured.values("failsoft.tool.calls") == {("search", "succeeded", "none"): 2}
    assert measured.values("failsoft.tool.attempts") == {
        ("search", "failed_with_retry"): 2,
        ("search", "successful_with_retry"): 1,
        ("search", "failed_without_retry"): 1,
        ("cache", "successful_without_retry"): 1,
    }
    assert measured.values("failsoft.fallback") == {("search", "cache"): 1}
    assert measured.values("failsoft.breaker.state") == {("search", "closed"): 1, ("cache", "closed"): 1}
    assert measured.values("failsoft.tool.errors") == {("search", "UNAVAILABLE"): 3}
    assert {each.value for each in measured.read()["failsoft.error_count"].data.data_points} == {0, 3}


def test_every_definition_is_an_instrument_and_has_no_other_attributes() -> None:
    measured = Measured()
    rt = measured.runtime()
    rt.add(Scripted(RESET, "found", INVALID), id="search", read_only=True, fallbacks=["cache"])
    rt.add(Scripted("cached"), id="cache", read_only=True, breaker={"failure_threshold": 1})

    async def play() -> None:
        async with rt.turn() as turn:
            turn.call("search")
            turn.call("search")
        await rt.flush("5s")

    asyncio.run(play())
    defined = {one.name: {label.attribute for label in one.labels} for one in DEFINITIONS}
    defined["gen_ai.execute_tool.duration"] = defined.pop("failsoft.tool.call.duration") | {
        "gen_ai.operation.name",
        "error.type",
    }
    found = measured.read()
    assert found.keys() <= defined.keys()
    assert {"failsoft.turn.duration", "failsoft.turn.time", "failsoft.tool.recovery.duration"} <= found.keys()
    for name, metric in found.items():
        for point in metric.data.data_points:
            assert set(point.attributes) <= defined[name], name


def test_names_tenants_and_threads_add_no_series() -> None:
    measured = Measured()
    rt = measured.runtime()
    rt.add(Scripted("found"), id="search", read_only=True)

    async def play(first: int, last: int) -> int:
        for number in range(first, last):
            await rt.call("search", tenant=f"tenant {number}", thread=f"thread {number}")
            await rt.call(f"invented {number}")
            async with rt.turn(thread=f"thread {number}") as turn:
                turn.call(f"invented {number}")
        await rt.flush("10s")
        return sum(len(metric.data.data_points) for metric in measured.read().values())

    few = asyncio.run(play(0, 3))
    many = asyncio.run(play(3, 100))
    assert many == few
    tools = {
        point.attributes["gen_ai.tool.name"]
        for metric in measured.read().values()
        for point in metric.data.data_points
        if "gen_ai.tool.name" in point.attributes
    }
    assert tools == {"search", "_unknown"}


def test_runtimes_of_one_provider_are_added_up_also_when_one_was_closed() -> None:
    measured = Measured()
    first, second = measured.runtime(), measured.runtime()
    for rt in (first, second):
        rt.add(Scripted("found"), id="search", read_only=True)

    async def play() -> None:
        for rt in (first, second):
            await rt.call("search")
            await rt.flush("5s")

    asyncio.run(play())
    assert measured.values("failsoft.tool.calls") == {("search", "succeeded", "none"): 2}
    asyncio.run(first.close())
    assert measured.values("failsoft.tool.calls") == {("search", "succeeded", "none"): 2}
    assert measured.values("failsoft.breaker.state") == {("search", "closed"): 1}
    asyncio.run(second.close())
    assert measured.values("failsoft.tool.calls") == {("search", "succeeded", "none"): 2}


def test_a_gauge_of_several_runtimes_is_the_one_that_needs_attention() -> None:
    measured = Measured()
    broken, disabled, well = measured.runtime(), measured.runtime(), measured.runtime()
    for rt, step in ((broken, DOWN), (disabled, "found"), (well, "found")):
        rt.add(Scripted(step), id="search", read_only=True, retry=ONCE, breaker={"failure_threshold": 1})
    broken.call_sync("search")
    disabled.disable("search", "maintenance")
    assert ("search", "open") in measured.values("failsoft.breaker.state")
    assert ("search",) not in measured.values("failsoft.tool.available")
    inside: list[Any] = []

    async def count() -> None:
        inside.append(measured.values("failsoft.tool.running"))

    async def outer() -> None:
        await well.call("count")

    broken.add(outer, id="count", read_only=True)
    well.add(count, read_only=True)
    asyncio.run(broken.call("count"))  # type: ignore[arg-type]
    assert inside == [{("count",): 2.0}]


def test_a_meter_provider_of_another_type_is_refused() -> None:
    with pytest.raises(ManifestError, match="meter_provider: expected a MeterProvider of OpenTelemetry, got 3"):
        OpenTelemetry(meter_provider=3)  # type: ignore[arg-type]
