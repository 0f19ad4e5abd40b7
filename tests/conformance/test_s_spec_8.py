"""S-spec 8: the figures per tool and the printed record of an error."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from tests.fakes import INVALID, OFTEN, TIMEOUT, Scripted, Takes, records, virtual

from failsoft import Runtime
from failsoft.prometheus import PrometheusCollector

SEVEN = (
    "error_count",
    "transient_error_count",
    "permanent_error_count",
    "retry_count",
    "retry_success_rate",
    "circuit_breaker_opens",
    "timeout_count",
)


@virtual
async def test_8_1_error_metrics() -> None:
    rt = Runtime()
    search = Scripted(TIMEOUT, "flights", INVALID, Takes(10_000), *[TIMEOUT] * 4)
    rt.add(search, id="flight_search", timeout="30s", retry={"max_total_time": "2m"})
    assert [rt.metrics("flight_search")[name] for name in SEVEN] == [0, 0, 0, 0, None, 0, 0]
    await rt.call("flight_search")  # one error, one retry that succeeds
    assert rt.metrics("flight_search")["retry_success_rate"] == 100.0
    await rt.call("flight_search")  # one permanent error
    await rt.call("flight_search")  # a timeout and four more errors: the circuit opens
    await rt.call("flight_search")  # refused: no error
    figures = rt.metrics("flight_search")
    assert {name: figures[name] for name in SEVEN} == {
        "error_count": 7,
        "transient_error_count": 6,
        "permanent_error_count": 1,
        "retry_count": 5,
        "retry_success_rate": 20.0,
        "circuit_breaker_opens": 1,
        "timeout_count": 6,  # one of the tool's own, five of its client's
    }


@virtual
async def test_8_2_turn_trace_recording() -> None:
    printed = {
        "event_type": "ToolError",
        "tool_id": "flight_search",
        "error": "Connection timeout",
        "classification": "transient",
        "circuit_breaker_state": "closed",
        "retry_count": 2,
        "decision": "retry",
    }
    rt = Runtime()
    rt.add(Scripted(TimeoutError("Connection timeout")), id="flight_search", breaker=OFTEN)
    async with rt.turn() as turn:
        turn.call("flight_search")
    record = records(turn.report, "ToolError")[2]
    assert printed.items() <= record.items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", record["timestamp"])
    assert datetime.fromisoformat(record["timestamp"]).tzinfo == UTC


@virtual
async def test_8_1_the_metrics_keep_their_names_in_prometheus() -> None:
    rt = Runtime()
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(rt))
    rt.add(Scripted(TIMEOUT, "flights", INVALID, *[TIMEOUT] * 5), id="flight_search")
    for _ in range(4):
        await rt.call("flight_search")
    figures = rt.metrics("flight_search")
    exported = {name: registry.get_sample_value(f"failsoft_{name}", {"tool": "flight_search"}) for name in SEVEN}
    assert exported == {name: figures[name] for name in SEVEN}
    assert figures["circuit_breaker_opens"] == 1
    moved = {"tool": "flight_search", "from": "closed", "to": "open"}
    assert registry.get_sample_value("failsoft_breaker_transitions_total", moved) == 1
