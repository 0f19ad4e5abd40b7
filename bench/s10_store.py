"""S10: what it costs to keep everything. CPU of a call whose event is durable in the end, × the same with nothing kept.

A call of the benchmark is ten thousand calls and the flush that waits until all of them are on disk, with all threads
that have a part in it. In sixty rounds that is three million events.

A write that is recorded before it starts, × one that is not; alone, and a hundred at once.

And the store by itself: an event written, × aiosqlite with the same batches, the same columns and the same journal.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from array import array
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from bench.harness import Peer, Plan, Table, add_instructions, compare
from bench.s8_trace import event

CALLS = 10_000  # per measurement, flushed at its end; with twice as many it would count as slow and get 3 rounds
EVENTS = 1_000  # per batch
AT_ONCE = 100  # concurrent writes
PLACE = tempfile.TemporaryDirectory(prefix="bench_")


def calls(store: str = "memory:", *, trace: Path | None = None) -> Callable[..., Any]:
    from failsoft import Runtime

    rt = Runtime(store=store, trace=trace)

    @rt.tool
    async def tool(x: Any) -> Any:
        return x

    async def many(x: Any) -> None:
        for number in range(CALLS):
            await tool(x)
            if not number % 100:
                await asyncio.sleep(0)  # yields, like calls that wait for something
        assert await rt.flush()

    return many


def writes(store: str = "memory:") -> Callable[..., Any]:
    from failsoft import Runtime

    rt, ids = Runtime(store=store), count()

    @rt.tool(idempotent=False)
    async def pay(x: Any) -> Any:
        return x

    async def one(x: Any) -> None:
        await rt.call("pay", {"x": x}, id=f"order-{next(ids)}")

    return one


def many_writes(store: str) -> Callable[..., Any]:
    one = writes(store)

    async def many(x: Any) -> None:
        await asyncio.gather(*(one(x) for _ in range(AT_ONCE)))

    return many


def events(*, as_run: bool) -> Callable[..., Any]:
    from failsoft.observe.success_runs import Run
    from failsoft.stores.sqlite.store import SqliteStore

    store = SqliteStore(Path(PLACE.name, f"events-{as_run}.db"))
    times = array("d", [0.1] * EVENTS)

    async def many(x: Any) -> None:
        if as_run:
            store.append(Run(1, 1.7e9, "turn-000123", ["search"] * EVENTS, range(EVENTS), times, times))
        else:
            store.append([event(x) for _ in range(EVENTS)])
        assert store.flush(60)

    return many


def aiosqlite_batches() -> Callable[..., Any]:
    import aiosqlite

    database: aiosqlite.Connection | None = None
    insert = "insert into event (turn_id, timestamp, body) values (?, ?, ?)"

    async def many(x: Any) -> None:
        nonlocal database
        if database is None:
            connecting = aiosqlite.connect(Path(PLACE.name, "aiosqlite.db"))
            connecting.daemon = True  # type: ignore[attr-defined]  # a thread up to version 0.21
            database = await connecting
            await database.execute("pragma journal_mode = wal")
            await database.execute("pragma synchronous = normal")
            columns = "position integer primary key autoincrement, turn_id text, timestamp text, body text"
            await database.execute(f"create table event ({columns})")
            await database.execute("create index event_by_turn on event (turn_id, position)")
        made = [event(x) for _ in range(EVENTS)]
        await database.executemany(insert, [(e["turn_id"], e["timestamp"], json.dumps(e)) for e in made])
        await database.commit()

    return many


def place(name: str) -> str:
    return f"sqlite:///{PLACE.name}/{name}"


COUNTS = (2, 6)  # times CALLS, under valgrind
PEERS = [
    Peer("failsoft, nothing kept", calls, counted=True),
    Peer("failsoft with the SQLite store", lambda: calls(place("calls.db")), counted=True),
    Peer("failsoft to a JSONL file", lambda: calls(trace=Path(PLACE.name, "calls.jsonl"))),
]
WRITTEN = [
    Peer("failsoft store, any events", lambda: events(as_run=False)),
    Peer("failsoft store, plain successes", lambda: events(as_run=True)),
    Peer("aiosqlite, the same batches", aiosqlite_batches),
]
RECORDED = [
    Peer("failsoft, a write, nothing kept", writes),
    Peer("failsoft, a write, recorded", lambda: writes(place("writes.db"))),
]
RECORDED_AT_ONCE = [
    Peer("failsoft, 100 writes at once, nothing kept", lambda: many_writes("memory:")),
    Peer("failsoft, 100 writes at once, recorded", lambda: many_writes(place("many.db"))),
]
COLUMNS = ["peer", "ns", "ratio", "best", "instr", "instr_ratio"]


def run(plan: Plan) -> list[Table]:
    kept, missing = compare(PEERS, plan, divide=CALLS)
    if plan.instr:
        add_instructions(kept, __name__, PEERS, divide=CALLS)
    written, unwritten = compare(WRITTEN, plan, divide=EVENTS)
    recorded, _ = compare(RECORDED, plan)
    at_once, _ = compare(RECORDED_AT_ONCE, plan, divide=AT_ONCE)
    return [
        Table("S10", "A call whose event is kept, × with nothing kept", COLUMNS, kept, missing),
        Table("S10 writes", "A write that is recorded before it starts, × one that is not", COLUMNS, recorded, {}),
        Table("S10 writes at once", "One of 100 writes at once, × one that is not recorded", COLUMNS, at_once, {}),
        Table("S10 events", "One event written, × any event in our store", COLUMNS, written, unwritten),
    ]
