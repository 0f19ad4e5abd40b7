"""Subscribers and sinks get every event in order, on threads of their own, and calls do not wait for them (T27)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import INVALID, RESET, Scripted, real, virtual

from failsoft import Runtime
from failsoft.errors import ManifestError
from failsoft.observe.events import Event
from failsoft.observe.recorder import Recorder
from failsoft.observe.subscriptions import EventSink, add_sink, flat_records, subscribe


class Sink:
    """Keeps the events it receives."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []
        self.closed = 0
        self.threads: set[int] = set()

    def write(self, batch: Sequence[Event], /) -> None:
        self.threads.add(threading.get_ident())
        self.batches.append([*batch])

    def close(self) -> None:
        self.closed += 1

    @property
    def seqs(self) -> list[int]:
        return [event.seq for batch in self.batches for event in batch]


def runtime() -> Runtime:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search", timeout=None)
    return rt


# --- listeners -----------------------------------------------------------------------------------------------------------


@real
async def test_calls_do_not_wait_for_a_subscriber() -> None:
    rt = runtime()
    held = threading.Event()
    heard: list[int] = []

    def slow(event: Event) -> None:
        held.wait(20)
        heard.append(event.seq)

    rt.subscribe(slow)
    for _ in range(20):
        assert (await rt.call("search")).value == "fine"
    assert heard == []  # the calls are done, and it has not finished its first event
    held.set()
    assert await rt.flush()
    assert heard == list(range(1, 21))


@real
async def test_a_subscriber_runs_outside_of_the_callers_thread() -> None:
    rt = runtime()
    threads: set[int] = set()
    rt.subscribe(lambda event: threads.add(threading.get_ident()))
    await rt.call("search")
    assert await rt.flush()
    assert threading.get_ident() not in threads
    assert len(threads) == 1


@real
async def test_with_wait_a_subscriber_hears_of_a_call_before_its_caller_goes_on() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, "fine"), id="search", retry={"initial_delay": "1ms"})
    heard: list[str] = []
    end = rt.subscribe(lambda event: heard.append(event.event_type), inline=True)
    await rt.call("search")
    assert heard == ["ToolError", "RetrySucceeded", "CallSucceeded"]
    end()
    await rt.call("search")
    assert len(heard) == 3


@virtual
async def test_in_virtual_time_a_subscriber_hears_of_a_call_before_its_caller_goes_on() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, "fine"), id="search")
    heard: list[str] = []

    def listen(event: Event) -> None:
        time.sleep(0.001)
        heard.append(event.event_type)

    rt.subscribe(listen)
    for _ in range(20):
        heard.clear()
        await rt.call("search")
        assert heard[-1] == "CallSucceeded"


@real
async def test_a_subscriber_that_raises_is_logged_once_and_still_gets_every_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rt = runtime()
    asked: list[int] = []
    heard: list[Any] = []

    def broken(event: Event) -> None:
        asked.append(event.seq)
        raise RuntimeError("cannot listen")

    rt.subscribe(broken)
    rt.subscribe(heard.append)
    with caplog.at_level(logging.WARNING, "failsoft"):
        for _ in range(5):
            assert (await rt.call("search")).value == "fine"
        assert not await rt.flush()
    assert (asked, len(heard)) == ([1, 2, 3, 4, 5], 5)
    assert sum("calls go on without it" in record.getMessage() for record in caplog.records) == 1


def test_after_an_exception_the_rest_of_the_batch_is_delivered() -> None:
    stream = Recorder(lambda: 0.0, lambda: 0.0)
    asked: list[int] = []

    def broken(event: Event) -> None:
        asked.append(event.seq)
        raise RuntimeError("cannot listen")

    stop = subscribe(stream, broken)
    for _ in range(3):
        stream.record(("TurnStarted", 1.0, None, None, None, {}))
    stream.drain()
    stop()
    assert asked == [1, 2, 3]


@real
async def test_a_subscriber_that_hangs_delays_only_one_call_briefly(caplog: pytest.LogCaptureFixture) -> None:
    rt = runtime()
    held = threading.Event()
    heard: list[Any] = []
    rt.subscribe(lambda event: held.wait(20), inline=True)  # type: ignore[arg-type,return-value]
    rt.subscribe(heard.append, inline=True)
    with caplog.at_level(logging.WARNING, "failsoft"):
        began = time.monotonic()
        for _ in range(20):
            assert (await rt.call("search")).value == "fine"
        assert time.monotonic() - began < 1.0
    assert len(heard) == 20
    assert sum("is slow: calls do not wait" in record.getMessage() for record in caplog.records) == 1
    held.set()


@pytest.mark.parametrize("wait", [False, True])
@real
async def test_a_subscriber_may_call_tools_itself(wait: bool) -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search")
    rt.add(lambda: "noted", id="note", timeout=None)
    notes: list[Any] = []

    def note(event: Event) -> None:
        if event.tool_id == "search":
            notes.append((rt.call_sync("note").value, rt.metrics("note")["success_count"] > 0, len(rt.events()) > 0))

    for _ in range(2):  # both listen to the calls of the other
        rt.subscribe(note, inline=wait)
    began = time.monotonic()
    await rt.call("search")
    assert await rt.flush()
    assert time.monotonic() - began < 2.0
    assert set(notes) == {("noted", True, True)}


@real
async def test_a_subscriber_may_end_its_own_subscription() -> None:
    rt = runtime()
    heard: list[int] = []
    stop: list[Callable[[], None]] = []

    def once(event: Event) -> None:
        heard.append(event.seq)
        stop[0]()

    stop.append(rt.subscribe(once))
    began = time.monotonic()
    for _ in range(5):
        await rt.call("search")
    assert await rt.flush()
    assert time.monotonic() - began < 0.9  # it does not wait for itself
    assert heard == [1]


@real
async def test_a_subscriber_that_is_too_slow_misses_the_oldest_events_and_the_stream_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rt = runtime()
    held, begun = threading.Event(), threading.Event()
    heard: list[int] = []

    def listen(event: Event) -> None:
        begun.set()
        held.wait(20)
        heard.append(event.seq)

    rt.subscribe(listen, capacity=3)
    await rt.call("search")
    assert begun.wait(20)
    with caplog.at_level(logging.WARNING, "failsoft"):
        for _ in range(10):
            await rt.call("search")
        held.set()
        assert not await rt.flush()
    (dropped,) = [event for event in rt.events() if event.event_type == "EventsDropped"]
    assert dropped.fields["dropped"] == 1
    assert "listen" in dropped.fields["consumer"]
    assert heard[0] == 1
    assert heard[1:] == list(range(heard[1], len(rt.events()) + 1))  # the latest, without a gap
    assert sum("is too slow" in record.getMessage() for record in caplog.records) == 1


@real
async def test_closing_the_runtime_delivers_the_last_events() -> None:
    rt = runtime()
    heard: list[int] = []

    def listen(event: Event) -> None:
        time.sleep(0.01)
        heard.append(event.seq)

    rt.subscribe(listen)
    for _ in range(10):
        await rt.call("search")
    await rt.close()
    assert len(heard) == 10


PROGRAM = """
import asyncio, sys, time
from failsoft import Runtime

rt = Runtime()
rt.add(lambda: "fine", id="search", timeout=None)

class Sink:
    def write(self, batch): print("sink", len(batch), flush=True)
    def close(self): pass

def listen(event):
    time.sleep({delay})
    print("heard", event.seq, flush=True)

rt.subscribe(listen)
rt.subscribe_batches(Sink())
for _ in range(3):
    rt.call_sync("search")
"""


def test_the_end_of_the_program_delivers_the_last_events() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(delay=0.02)], capture_output=True, text=True, check=True)
    assert sorted(ran.stdout.splitlines()) == ["heard 1", "heard 2", "heard 3", "sink 3"]
    assert ran.stderr == ""


def test_a_subscriber_that_hangs_holds_the_end_of_the_program_up_for_a_second_or_two() -> None:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", PROGRAM.format(delay=60)], capture_output=True, text=True, check=True)
    assert time.monotonic() - began < 10


def test_a_forked_child_delivers_its_own_events(tmp_path: Path) -> None:
    rt = runtime()
    heard: list[int] = []
    sink = Sink()
    rt.subscribe(lambda event: heard.append(event.seq))
    rt.subscribe_batches(sink)
    rt.call_sync("search")
    assert rt._engine.log.trace.flush(time.monotonic() + 20)
    child = os.fork()
    if not child:
        try:
            rt.call_sync("search")
            rt.call_sync("search")
            flushed = rt._engine.log.trace.flush(time.monotonic() + 20)
            (tmp_path / "child").write_text(repr((flushed, heard, sink.seqs)))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "child").read_text() == repr((True, [1, 2, 3], [1, 2, 3]))
    assert (heard, sink.seqs) == ([1], [1])


# --- sinks ---------------------------------------------------------------------------------------------------------------


@real
async def test_a_sink_gets_every_event_in_order_in_few_batches_on_one_thread() -> None:
    rt = runtime()
    rt.add(Scripted(INVALID), id="bad")
    sink = Sink()
    rt.subscribe_batches(sink, every="60s")
    for _ in range(100):
        await rt.call("search")
    await rt.call("bad")
    assert await rt.flush()
    assert sink.batches[0] == rt.events()[: len(sink.batches[0])]
    assert [event for batch in sink.batches for event in batch] == rt.events()
    assert len(sink.batches) <= 2
    assert threading.get_ident() not in sink.threads
    assert len(sink.threads) == 1


@real
async def test_a_sink_gets_what_there_is_every_so_often() -> None:
    written = threading.Event()

    class Signals(Sink):
        def write(self, batch: Sequence[Event], /) -> None:
            super().write(batch)
            written.set()

    rt = runtime()
    sink = Signals()
    rt.subscribe_batches(sink, every="10ms")
    await rt.call("search")
    assert written.wait(20)
    assert sink.seqs == [1]


@real
async def test_a_sink_gets_large_batches_beside_a_subscriber_that_gets_single_events() -> None:
    rt = runtime()
    sink = Sink()
    rt.subscribe(lambda event: None)
    rt.subscribe_batches(sink, every="60s")
    for _ in range(100):
        await rt.call("search")
    assert await rt.flush()
    assert [len(batch) for batch in sink.batches] == [100]


@real
async def test_a_sink_is_closed_once_after_its_last_batch() -> None:
    rt = runtime()
    first, second = Sink(), Sink()
    stop = rt.subscribe_batches(first)
    rt.subscribe_batches(second)
    await rt.call("search")
    stop()
    stop()
    assert (first.seqs, first.closed) == ([1], 1)
    await rt.call("search")
    await rt.close()
    await rt.close()
    assert (first.seqs, first.closed) == ([1], 1)
    assert (second.seqs, second.closed) == ([1, 2], 1)


@real
async def test_a_batch_that_a_sink_refuses_is_lost_and_the_next_one_is_tried(caplog: pytest.LogCaptureFixture) -> None:
    class Flaky(Sink):
        def write(self, batch: Sequence[Event], /) -> None:
            super().write(batch)
            raise OSError("disk full")

    rt = runtime()
    sink = Flaky()
    rt.subscribe_batches(sink, every="60s")
    with caplog.at_level(logging.WARNING, "failsoft"):
        for _ in range(2):
            await rt.call("search")
            assert not await rt.flush()
    assert sink.seqs == [1, 2]
    assert sum("disk full" in record.getMessage() for record in caplog.records) == 1


def test_a_batch_is_a_sequence_whichever_way_it_is_stored() -> None:
    stream = Recorder(lambda: 10.0, lambda: 1_000_010.0)
    got: list[Sequence[Event]] = []

    class Keeps(Sink):
        def write(self, batch: Sequence[Event], /) -> None:
            got.append(batch)

    stop = add_sink(stream, Keeps(), name="keeps")
    for number in range(5):
        stream.record(("CallSucceeded", 10.5, "search", number + 1, "t", 10.0))
    stream.drain()
    stream.record(("CallSucceeded", 10.5, "search", 7, None, 10.0))
    stream.record(("TurnEnded", 11.0, None, None, "t", {"message": "x"}))
    stream.drain()
    stop()
    assert isinstance(Keeps(), EventSink)
    (batch,) = got
    assert len(batch) == 7
    assert [*batch] == stream.events()
    assert batch[0] == batch[-7]
    assert (batch[1].call_id, batch[1].turn_id, batch[1].fields["duration_ms"]) == ("search-2", "t", 500.0)
    assert [event.event_type for event in batch[5:]] == ["CallSucceeded", "TurnEnded"]
    for batch in (*got, stream.events()):
        flat = [record for stretch in flat_records(batch) for record in stretch]
        assert flat == [event.to_dict() for event in batch]


@pytest.mark.parametrize(
    ("sink", "why"), [(print, "has no method write and no close"), (Sink, "is a class: give an instance")]
)
def test_an_object_that_is_no_sink_is_refused(sink: Any, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        Runtime().subscribe_batches(sink)


@real
async def test_a_sink_with_a_short_queue_is_woken_before_it_is_full() -> None:
    written = threading.Event()

    class Signals(Sink):
        def write(self, batch: Sequence[Event], /) -> None:
            super().write(batch)
            written.set()

    rt = runtime()
    rt.subscribe(lambda event: None)  # every event is a batch
    rt.subscribe_batches(Signals(), every="60s", capacity=10)
    for _ in range(5):
        await rt.call("search")
    assert written.wait(20)


@pytest.mark.parametrize("capacity", [0, True, "many"])
def test_a_capacity_is_a_positive_number(capacity: Any) -> None:
    with pytest.raises(ManifestError, match="is not a positive number of events"):
        Runtime().subscribe(print, capacity=capacity)
    with pytest.raises(ManifestError, match="is not a positive number of events"):
        Runtime().subscribe_batches(Sink(), capacity=capacity)
