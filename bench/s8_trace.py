"""S8: what one trace event costs, × `json.dumps` and a buffered write.

For failsoft it is what a guarded call costs more when its event goes to a file or a subscriber, the writing thread and
the flush included; the ring that every runtime has is part of S1.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import Peer, Plan, Table, compare

EVENTS = 1000  # per measured call
PLACE = tempfile.TemporaryDirectory(prefix="bench_")


def event(x: Any) -> dict[str, Any]:
    return {
        "seq": x, "event_type": "CallSucceeded", "turn_id": "turn-000123", "call_id": "search-1", "tool_id": "search",
        "timestamp": "2026-01-01T00:00:00.000Z", "duration_ms": 1.234,
    }  # fmt: skip


def repeated(one: Callable[[Any], Any], end: Callable[[], Any] = lambda: None) -> Callable[..., Any]:
    async def many(x: Any) -> None:
        for _ in range(EVENTS):
            one(x)
        end()

    return many


def path(name: str) -> Path:
    return Path(PLACE.name, name)


def json_buffered() -> Callable[..., Any]:
    file = path("buffered.jsonl").open("a", buffering=1 << 16)
    return repeated(lambda x: file.write(json.dumps(event(x)) + "\n"), file.flush)


def json_flushed() -> Callable[..., Any]:
    file = path("flushed.jsonl").open("a")

    def one(x: Any) -> None:
        file.write(json.dumps(event(x)) + "\n")
        file.flush()

    return repeated(one)


def ring() -> Callable[..., Any]:
    kept: deque[Any] = deque(maxlen=4096)
    return repeated(lambda x: kept.append(event(x)))


def logging_to_file() -> Callable[..., Any]:
    log = logging.getLogger("bench.s8")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers = [logging.FileHandler(path("log.txt"))]
    return repeated(lambda x: log.info("%s", event(x)))


def sqlite_each() -> Callable[..., Any]:
    base = sqlite3.connect(path("events.db"), isolation_level=None)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=normal")
    base.execute("create table if not exists events (data text)")
    return repeated(lambda x: base.execute("insert into events values (?)", (json.dumps(event(x)),)))


def opentelemetry() -> Callable[..., Any]:
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("bench")

    def one(_: Any) -> None:
        with tracer.start_as_current_span("execute_tool search", attributes={"gen_ai.tool.name": "search"}):
            pass

    return repeated(one)


def structlog_json() -> Callable[..., Any]:
    import structlog

    file = path("structlog.jsonl").open("a", buffering=1 << 16)
    log = structlog.wrap_logger(
        structlog.PrintLogger(file), processors=[structlog.processors.JSONRenderer()], cache_logger_on_first_use=True
    )
    return repeated(lambda x: log.info("call", **event(x)))


def calls(*, to_file: bool = False, subscriber: bool = False) -> Callable[..., Any]:
    from failsoft import Runtime

    rt = Runtime(trace=path("failsoft.jsonl") if to_file else None)
    if subscriber:
        rt.subscribe(lambda _: None)

    @rt.tool
    async def tool(x: Any) -> Any:
        return x

    async def many(x: Any) -> None:
        for number in range(EVENTS):
            await tool(x)
            if not number % 100:
                await asyncio.sleep(0)  # yields, like calls that wait for something
        await rt.flush()

    return many


CALLS = "failsoft calls, ring only"
PEERS = [
    Peer("json.dumps, buffered file", json_buffered),
    Peer(CALLS, calls),
    Peer("failsoft to a JSONL file", lambda: calls(to_file=True)),
    Peer("failsoft to a subscriber", lambda: calls(subscriber=True)),
    Peer("dict into a deque", ring),
    Peer("json.dumps, flushed each time", json_flushed),
    Peer("logging to a file", logging_to_file),
    Peer("structlog JSON, buffered file", structlog_json),
    Peer("sqlite (WAL), one transaction each", sqlite_each),
    Peer("OpenTelemetry span, no exporter", opentelemetry),
]


def run(plan: Plan) -> list[Table]:
    rows, skipped = compare(PEERS, plan, divide=EVENTS)
    costs = {row["peer"]: row["ns"] for row in rows}
    for row in rows:
        if row["peer"].startswith("failsoft to"):  # only the cost on top of the call itself
            row["ns"] -= costs[CALLS]
            row["ratio"] = row["ns"] / rows[0]["ns"]
    rows = [row for row in rows if row["peer"] != CALLS]
    return [Table("S8", "One trace event, × json.dumps and a buffered write", ["peer", "ns", "ratio"], rows, skipped)]
