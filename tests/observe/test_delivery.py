"""Subscribers that raise, hang or are slow do no harm (T27)."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest
from tests.fakes import INVALID, RESET, Scripted, real

from failsoft import Runtime
from failsoft.observe import delivery
from failsoft.observe.delivery import Delivery


@real
async def test_a_subscriber_hears_of_a_call_before_its_caller_goes_on() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, "fine"), id="search", retry={"initial_delay": "1ms"})
    heard: list[str] = []
    end = rt.subscribe(lambda event: heard.append(event.event_type))
    await rt.call("search")
    assert heard == ["ToolError", "RetrySucceeded", "CallSucceeded"]
    end()
    await rt.call("search")
    assert len(heard) == 3


@real
async def test_one_that_raises_is_logged_once_and_the_others_still_hear(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search")
    heard: list[Any] = []

    def broken(event: Any) -> None:
        raise RuntimeError("cannot listen")

    rt.subscribe(broken)
    rt.subscribe(heard.append)
    with caplog.at_level(logging.WARNING, "failsoft"):
        for _ in range(5):
            assert (await rt.call("search")).value == "fine"
    assert len(heard) == 5
    assert sum("calls go on without it" in record.getMessage() for record in caplog.records) == 1


@real
async def test_one_that_hangs_delays_one_call_a_little_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="search")
    held = threading.Event()
    heard: list[Any] = []
    rt.subscribe(lambda event: held.wait(20))  # type: ignore[arg-type,return-value]
    rt.subscribe(heard.append)
    with caplog.at_level(logging.WARNING, "failsoft"):
        began = time.monotonic()
        for _ in range(20):
            assert (await rt.call("search")).value == "fine"
        assert time.monotonic() - began < 1.0
    assert len(heard) == 20
    assert sum("is slow: calls do not wait" in record.getMessage() for record in caplog.records) == 1
    held.set()


@real
async def test_a_subscriber_may_call_tools_itself() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search")
    rt.add(lambda: "noted", id="note", timeout=None)
    notes: list[Any] = []

    def note(event: Any) -> None:
        if event.tool_id == "search":
            notes.append(rt.call_sync("note").value)

    rt.subscribe(note)
    await rt.call("search")
    assert await rt.flush()
    assert set(notes) == {"noted"}


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    held = threading.Event()
    taken: list[Any] = []

    def consume(batch: Any) -> None:
        held.wait(20)
        taken.extend(batch)

    line = Delivery(consume, name="slow sink", wait=False, capacity=10)
    line.put([0])
    while line._size:  # the first batch has been taken up
        time.sleep(0.001)
    for number in range(1, 21):
        line.put([number])
    assert line.dropped == 10
    held.set()
    assert not line.flush(5.0)  # some was lost
    assert line.flush(5.0)  # nothing since then
    assert taken == list(range(11))


def test_nothing_is_taken_after_closing() -> None:
    taken: list[Any] = []
    line = Delivery(taken.extend, name="sink", wait=True)
    line.put([1])
    line.close(1.0)
    line.put([2])
    assert (taken, line.dropped) == ([1], 1)


def test_a_busy_machine_is_not_held_against_a_subscriber(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE", 0.02)
    begins = threading.Event()
    heard: list[int] = []
    late = Delivery(heard.extend, name="subscriber", wait=True)
    run = late._run
    monkeypatch.setattr(late, "_run", lambda: (begins.wait(20), run()))  # its thread does not come to run
    late.put([1])
    assert heard == []
    begins.set()
    late.put([2])
    assert late.flush(20)
    late.put([3])
    assert heard == [1, 2, 3]
    assert caplog.records == []
    late.close(1)


def test_many_small_delays_are(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(delivery, "PATIENCE", 0.05)
    slow = Delivery(lambda _: time.sleep(0.02), name="subscriber", wait=False)
    for number in range(10):
        slow.put([number])
    slow._wait = True
    slow.put([10])
    assert [record.getMessage() for record in caplog.records] == [
        "subscriber is slow: calls do not wait for it any more"
    ]
    slow.close(1)


def test_a_loss_is_told_to_all_who_ask_while_it_is_news() -> None:
    held = threading.Event()

    def consume(batch: Any) -> None:
        held.wait(20)
        raise RuntimeError("lost")

    line = Delivery(consume, name="sink", wait=False)
    line.put([1])
    told: list[bool] = []
    waiting = [threading.Thread(target=lambda: told.append(line.flush(20.0))) for _ in range(2)]
    for each in waiting:
        each.start()
    time.sleep(0.05)  # both wait
    held.set()
    for each in waiting:
        each.join(20)
    assert told == [False, False]
    assert line.flush(20.0)
    assert line.losses == 1


def test_running_out_of_time_tells_of_no_loss() -> None:
    held = threading.Event()
    line = Delivery(lambda _: held.wait(20), name="sink", wait=False, capacity=1)
    line.put([1])
    line.put([2, 3])
    assert not line.flush(0.01)  # it has not been taken
    held.set()
    assert not line.flush(20.0)  # some never will be
    assert line.flush(20.0)


def test_one_that_is_in_no_hurry_is_woken_for_a_lot_for_those_who_wait_and_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "LOT", 3)
    monkeypatch.setattr(delivery, "IDLE", 60.0)
    taken: list[int] = []
    asked = threading.Event()
    came = threading.Event()

    def consume(batch: list[int]) -> None:
        taken.extend(batch)
        came.set()

    line = Delivery(consume, name="store", wait=False, ask=asked.set)
    line.put([1])
    line.put([2])
    assert not came.wait(0.05)
    line.put([3])  # a lot
    assert came.wait(20)
    assert line.flush(20)
    line.put([4])
    assert line.flush(20)  # somebody waits
    assert taken == [1, 2, 3, 4]
    line.close(1)
    monkeypatch.setattr(delivery, "IDLE", 0.01)
    came.clear()
    lazy = Delivery(consume, name="store", wait=False, ask=asked.set)
    lazy.put([5])
    assert came.wait(20)
    assert asked.is_set()
    lazy.close(1)
