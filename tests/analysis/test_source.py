"""Events are read the same way from a file, a store and a running runtime."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes import INVALID, RESET, Scripted, real

from failsoft import Runtime
from failsoft.analysis.source import EventFilter, FileSource, LiveSource, SourceError, StoreSource, TraceSource
from failsoft.stores.sqlite.store import SqliteStore

BARE = {"event_type": "TurnStarted", "timestamp": "2026-01-01T00:00:00.000Z", "turn_id": "t"}


def line(**fields: object) -> bytes:
    return json.dumps({**BARE, **fields}).encode() + b"\n"


def in_file(folder: Path, rt: Runtime) -> TraceSource:
    return FileSource("trace.jsonl", (folder / "trace.jsonl").read_bytes())


def in_store(folder: Path, rt: Runtime) -> TraceSource:
    return StoreSource("store.db", SqliteStore(folder / "store.db", wall=time.time))


def in_runtime(folder: Path, rt: Runtime) -> TraceSource:
    return LiveSource(rt)


@pytest.mark.parametrize("make", [in_file, in_store, in_runtime])
@real
async def test_every_source_answers_alike(make: Callable[[Path, Runtime], TraceSource], tmp_path: Path) -> None:
    rt = Runtime(store=f"sqlite:///{tmp_path}/store.db", trace=tmp_path / "trace.jsonl")
    rt.add(Scripted("found"), id="search")
    rt.add(Scripted(INVALID), id="bad")
    rt.add(Scripted(RESET, "fine"), id="flaky", read_only=True, retry={"initial_delay": "1ms"})
    await rt.call("flaky")
    for id in ("t1", "t2"):
        async with rt.turn(id=id) as turn:
            turn.call("search")
            turn.call("bad")
    await rt.call("search")
    assert await rt.flush()
    source = make(tmp_path, rt)
    recorded = [event.to_dict() for event in rt.events()]
    assert [event["seq"] for _, event in source.read()] == [event["seq"] for event in recorded]
    assert source.turns() == ["t2", "t1"]
    assert source.turns(1) == ["t2"]
    assert [event["event_type"] for event in source.events("t1")] == [
        event["event_type"] for event in recorded if event["turn_id"] == "t1"
    ]
    errors = EventFilter(tool_id="bad", event_types=frozenset({"ToolError"}))
    assert [event["turn_id"] for _, event in source.read(only=errors)] == ["t1", "t2"]
    assert [event["turn_id"] for _, event in source.read(only=errors, limit=1)] == ["t1"]
    assert [event["turn_id"] for _, event in source.tail(1, errors)] == ["t2"]
    everything = source.read()
    assert source.tail(3) == everything[-3:]
    assert source.tail(0) == []
    middle = everything[4][0]
    assert source.read(after=middle) == everything[5:]
    assert source.read(after=middle, limit=2) == everything[5:7]
    assert source.read(after=everything[-1][0]) == []
    await rt.close()
    assert [family["tool"] for family in make(tmp_path, rt).families()][:1] == ([] if make is in_file else ["flaky"])


class File:
    """A file that grows and is replaced."""

    def __init__(self) -> None:
        self.data = b""
        self.asked: list[int] = []

    def read_from(self, offset: int) -> bytes | None:
        self.asked.append(offset)
        return None if len(self.data) < offset else self.data[offset:]


def test_a_file_that_grows_is_read_from_where_the_last_read_ended() -> None:
    file = File()
    source = FileSource("trace.jsonl", b"", file.read_from)
    file.data = line(seq=1)
    ((at, _),) = source.read()
    file.data += line(seq=2)
    assert [event["seq"] for _, event in source.read(after=at)] == [2]
    assert file.asked == [0, len(line(seq=1))]


def test_a_line_that_is_being_written_is_read_when_it_is_complete() -> None:
    file = File()
    source = FileSource("trace.jsonl", b"", file.read_from)
    whole = line(seq=1)
    file.data = whole[:20]
    assert source.read() == []
    file.data = whole[:-1]
    assert len(source.read()) == 1
    file.data = whole + b"{nonsense\n"
    with pytest.raises(SourceError, match="trace.jsonl:2: this line is not JSON"):
        source.read()


def test_positions_go_on_after_a_file_was_replaced() -> None:
    file = File()
    source = FileSource("trace.jsonl", b"", file.read_from)
    file.data = line(seq=1) + line(seq=2)
    at, _ = source.read()[-1]
    file.data = line(seq=7)
    assert [event["seq"] for _, event in source.read(after=at)] == [7]


@pytest.mark.parametrize(
    ("data", "problem", "said"),
    [
        (b"SQLite format 3\0", "store file", "x is a store, not a trace file"),
        (b"{\n{}\n", "not json", "x:1: this line is not JSON"),
        (b"\n" + line(seq="one"), "not an event", "x:2: this line is not an event: seq is not a number"),
        (b"12", "not an event", "x:1: this line is not an event: it is not an object"),
    ],
)
def test_a_file_that_is_no_trace_says_where(data: bytes, problem: str, said: str) -> None:
    with pytest.raises(SourceError) as raised:
        FileSource("x", data)
    assert (str(raised.value), raised.value.problem) == (said, problem)


class Broken:
    """A store that finds nothing, or nonsense."""

    def read(self, **_: object) -> list[tuple[int, dict[str, object]]]:
        return [(7, {"event_type": 3})]

    def turns(self, limit: int = 100) -> list[str]:
        return []

    def find(self, kind: str, scope: str = "") -> list[tuple[str, object]]:
        return []


def test_a_store_with_records_that_are_no_events_says_which() -> None:
    with pytest.raises(SourceError, match="db: record 7 is not an event: event_type is not text"):
        StoreSource("db", Broken()).read()  # type: ignore[arg-type]


def test_a_store_that_cannot_be_read_says_why() -> None:
    source = StoreSource("db", Broken(), lambda: "it is locked")  # type: ignore[arg-type]
    for read in (source.turns, source.families, source.read):
        with pytest.raises(SourceError, match="db cannot be read as a store: it is locked"):
            read()
