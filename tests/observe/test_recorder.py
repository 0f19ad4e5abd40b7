"""The event stream: its order, its records, its ring, its file."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import time
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, RESET, Scripted, Takes, records, virtual

from failsoft import Outcome, Runtime
from failsoft.observe.events import Event, iso
from failsoft.observe.raw_records import cut
from failsoft.observe.recorder import BATCH, Recorder
from failsoft.observe.subscriptions import subscribe
from failsoft.observe.success_runs import Run

KEYS = {"seq", "event_type", "turn_id", "call_id", "tool_id", "timestamp"}


def still() -> Recorder:
    return Recorder(lambda: 10.0, lambda: 1_000_010.0, capacity=5)


def test_an_event_is_one_flat_record() -> None:
    event = Event(
        7, "ToolError", 1_762_338_645.123, "search", "search-1", "turn-1", {"message": "gone", "retry_count": 2}
    )
    assert event.to_dict() == {
        "seq": 7,
        "event_type": "ToolError",
        "turn_id": "turn-1",
        "call_id": "search-1",
        "tool_id": "search",
        "timestamp": "2025-11-05T10:30:45.123Z",
        "message": "gone",
        "retry_count": 2,
    }
    assert event.message == "gone"
    assert iso(0.0) == "1970-01-01T00:00:00.000Z"


def test_the_ring_keeps_the_latest_and_goes_on_counting() -> None:
    trace = still()
    for number in range(12):
        trace.record(("CallFailed", 1.0 + number, "search", f"c{number}", None, {}))
    kept = trace.events()
    assert [event.seq for event in kept] == [8, 9, 10, 11, 12]
    assert [event.call_id for event in kept] == ["c7", "c8", "c9", "c10", "c11"]
    assert kept[-1].timestamp == 1_000_012.0  # monotonic 12 s, at the wall clock's pace


def test_event_fields_are_built_from_the_raw_record_on_first_read() -> None:
    trace = still()
    made: list[str] = []

    def tell(raw: Any) -> dict[str, Any]:
        made.append(raw[0])
        return {"attempt": raw[6], "seconds": raw[1] - raw[7]}

    trace.record(("RetrySucceeded", 5.0, "search", 3, None, tell, 2, 4.5))
    trace.drain()
    assert made == []
    event = trace.events()[0]
    assert (event.call_id, event.fields) == ("search-3", {"attempt": 2, "seconds": 0.5})
    assert made == ["RetrySucceeded"]


def test_plain_successes_are_counted_in_any_company() -> None:
    trace = still()
    plain = ("CallSucceeded", 2.0, "search", None, None, 1.0)
    trace.record(plain)
    assert trace.metrics("search").successes == 1
    for other in (Outcome(0, "search", "failed"), {}, lambda raw: {}):
        trace.record(plain)
        trace.record(("CallRefused", 2.0, "search", None, None, other))
    figures = trace.metrics("search").as_dict()
    assert (figures["success_count"], figures["refused_count"]) == (4, 1)  # a bare name is no tool


def test_raw_consumers_get_plain_successes_of_one_turn_as_runs() -> None:
    trace = still()
    taken: list[Any] = []
    trace.attach_raw(taken.append, name="store")
    alone = ("CallSucceeded", 2.0, "search", None, None, 1.5)
    within = ("CallSucceeded", 2.0, "search", 3, "t", 1.5)
    other = ("Escalated", 2.0, None, "c", None, {"message": "x"})
    for batch in ([alone] * 2, [within] * 2, [alone, within], [alone, other]):
        for raw in batch:
            trace.record(raw)
        trace.drain()
    assert trace.flush(time.monotonic() + 20)
    first, second, *mixed = taken
    assert isinstance(first, Run)
    assert isinstance(second, Run)
    seen = [event.to_dict() for event in trace.events()]
    assert [*first, *second][-1:] == seen[:-4]  # the ring is smaller
    assert [(event["seq"], event["turn_id"], event["duration_ms"]) for event in [*first, *second]] == [
        (1, None, 500.0),
        (2, None, 500.0),
        (3, "t", 500.0),
        (4, "t", 500.0),
    ]
    assert mixed == [([alone, within], 1_000_000.0, 5), ([alone, other], 1_000_000.0, 7)]
    assert copy.deepcopy([*first]) == [*copy.deepcopy(first)]  # a store may do as it likes with it
    trace.close(time.monotonic() + 20)


def test_records_of_many_threads_are_all_there_once() -> None:
    trace = Recorder(lambda: 0.0, lambda: 0.0)
    seen: list[int] = []
    end = subscribe(trace, lambda event: seen.append(event.seq))

    def write() -> None:
        for _ in range(500):
            trace.record(("CallFailed", 1.0, "search", "c", None, {}))
            trace.drain()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end()
    assert sorted(seen) == list(range(1, 2001))


@virtual
async def test_every_record_has_the_common_fields_and_an_order() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, "fine"), id="search")
    rt.add(Scripted(INVALID), id="bad")
    async with rt.turn() as turn:
        turn.call("search")
        turn.call("bad")
        turn.call("nowhere")
    flat = records(turn.report)
    assert all(record.keys() >= KEYS for record in flat)
    assert [record["seq"] for record in flat] == sorted({record["seq"] for record in flat})
    assert [record["timestamp"] for record in flat] == sorted(record["timestamp"] for record in flat)
    assert flat[0]["event_type"] == "TurnStarted"
    assert flat[-1]["event_type"] == "TurnEnded"
    assert json.loads(json.dumps(flat)) == flat


@virtual
async def test_a_failing_call_tells_its_whole_story_in_order() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(100), DOWN), id="search", timeout="2s", retry={"max_attempts": 2}, fallbacks=["backup"])
    rt.add(Scripted("spare"), id="backup")
    await rt.call("search", id="mine")
    assert [(record["event_type"], record["tool_id"]) for record in records(rt)] == [
        ("CallRunning", "search"),
        ("ToolTimeout", "search"),
        ("ToolError", "search"),
        ("ToolError", "search"),
        ("FallbackUsed", "search"),
        ("CallSucceeded", "backup"),
    ]
    assert {record["call_id"] for record in records(rt)} == {"mine"}
    errors = records(rt, "ToolError")
    assert [error["attempt"] for error in errors] == [1, 2]
    assert errors[0]["delay_ms"] == pytest.approx(100, rel=0.1)
    assert errors[0]["duration_ms"] == pytest.approx(2000)


@virtual
async def test_every_transition_of_a_breaker_is_recorded() -> None:
    import asyncio

    rt = Runtime()
    states: list[str] = []
    rt.add(Scripted(DOWN, DOWN, "fine"), id="search", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10s"})
    for _ in range(3):
        await rt.call("search")
        await asyncio.sleep(10)
    states = [record["event_type"] for record in records(rt) if record["event_type"].startswith("Circuit")]
    assert states == [
        "CircuitOpened", "CircuitHalfOpened", "CircuitOpened", "CircuitHalfOpened", "CircuitClosed",
    ]  # fmt: skip


def test_flush_waits_for_events_that_another_thread_is_delivering() -> None:
    drains, goes_on = threading.Event(), threading.Event()

    def wall() -> float:
        drains.set()
        goes_on.wait(20)
        return 1_000_010.0

    stream = Recorder(lambda: 10.0, wall)
    taken: list[Event] = []
    subscribe(stream, taken.append)
    stream.record(("TurnStarted", 10.0, None, None, None, {}))
    first = threading.Thread(target=stream.drain)
    first.start()
    assert drains.wait(20)
    flushed: list[bool] = []
    second = threading.Thread(target=lambda: flushed.append(stream.flush(time.monotonic() + 20)))
    second.start()
    second.join(0.05)
    assert flushed == []
    goes_on.set()
    first.join(20)
    second.join(20)
    assert (flushed, len(taken)) == ([True], 1)


def test_the_ring_keeps_its_capacity_also_after_a_large_batch() -> None:
    trace = Recorder(lambda: 0.0, lambda: 0.0, capacity=100)
    for size in (5000, 10, 20):
        for _ in range(size):
            trace.record(("CallSucceeded", 1.0, "search", None, None, 0.5))
        trace.drain()
    assert [event.seq for event in trace.events()] == list(range(4931, 5031))


def test_batches_are_cut_where_runs_begin_and_end() -> None:
    def success(turn_id: str | None = None) -> tuple[Any, ...]:
        return ("CallSucceeded", 2.0, "search", None, turn_id, 1.0)

    other = ("Escalated", 2.0, None, "c", None, {"message": "x"})
    raws = [other, *[success()] * 5, other, *[success()] * 2, *[success("t")] * 4]
    stretches = [*cut((raws, 0.0, 1))]
    assert [(type(each).__name__, len(each)) for each in stretches] == [
        ("list", 1),
        ("Run", 5),
        ("list", 3),
        ("Run", 4),
    ]
    assert [event["seq"] for each in stretches for event in each] == [*range(1, 14)]
    assert [event["turn_id"] for event in stretches[-1]] == ["t"] * 4


def test_batching_resumes_after_the_last_subscriber_leaves() -> None:
    trace = still()
    before = trace.limit
    first, second = subscribe(trace, lambda event: None), subscribe(trace, lambda event: None)
    first()
    assert trace.limit == 0
    second()
    assert trace.limit == before > 0


def test_calls_that_succeed_at_once_keep_few_records_pending() -> None:
    rt = Runtime()

    async def search() -> int:
        return 1

    @rt.tool(timeout=None)
    def look() -> int:
        return 2

    guarded = rt.tool(search)
    trace = rt._engine.log.trace

    async def calls() -> int:
        most = 0
        for number in range(3 * BATCH):
            await (rt.call(guarded) if number % 3 else guarded())
            look()
            most = max(most, len(trace.pending))
            if number == BATCH // 2:
                trace.drain()  # by a reader, between two looks
        return most

    assert BATCH // 2 <= asyncio.run(calls()) <= BATCH + 2


def test_a_prompt_consumer_gets_each_event_although_many_may_be_pending() -> None:
    rt = Runtime()
    seen: list[Any] = []

    @rt.tool(timeout=None)
    def look() -> int:
        return 2

    for _ in range(3):
        look()  # the next look at the pending records is now a batch away
    leave = rt.subscribe(seen.append, inline=True)
    look()
    assert len(seen) == 1
    leave()
    look()
    assert len(seen) == 1


def test_a_prompt_consumer_that_comes_while_a_call_looks_is_not_forgotten() -> None:
    trace = still()
    seen: list[Any] = []

    class Interrupted(list[Any]):
        def __len__(self) -> int:
            if not seen:
                seen.append("attached")
                subscribe(trace, seen.append)
            return super().__len__()

    trace.pending = Interrupted()
    trace.drain_if_many(7)
    assert trace.limit == 0
    assert trace.due == 0


@pytest.mark.parametrize("others", [[], [("CallSucceeded", 4.0, "book", 9, None, 3.0)]])
def test_successes_that_carry_their_tool_are_counted_like_others(others: list[Any]) -> None:
    trace = still()
    success = ("CallSucceeded", "search")
    for number in range(3):
        trace.record((success, 5.0, "search", number, None, 4.5))
    for raw in others:
        trace.record(raw)
    assert trace.metrics("search").successes == 3
    assert trace.metrics("book").successes == len(others)
    assert {event.event_type for event in trace.events()} == {"CallSucceeded"}
    assert trace.events()[0].call_id == "search-0"
