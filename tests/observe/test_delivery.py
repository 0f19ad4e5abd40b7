"""Consumers that raise, hang or are slow do no harm (T27)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.torture.interrupting import At

from failsoft.observe import delivery
from failsoft.observe.delivery import Delivery


def test_when_the_queue_is_full_the_oldest_are_dropped_and_counted_and_the_first_loss_is_reported() -> None:
    held = threading.Event()
    taken: list[Any] = []
    reported: list[int] = []

    def consume(batch: Any) -> None:
        held.wait(20)
        taken.extend(batch)

    line = Delivery(consume, name="slow sink", wait=False, capacity=10, on_drop=reported.append)
    line.put([0])
    while line._size:  # the first batch has been taken up
        time.sleep(0.001)
    for number in range(1, 21):
        line.put([number])
    assert (line.dropped, reported) == (10, [1])
    held.set()
    assert not line.flush(5.0)  # some was lost
    assert line.flush(5.0)  # nothing since then
    assert taken == [0, *range(11, 21)]


def test_a_batch_larger_than_the_queue_is_taken_alone() -> None:
    held, begun = threading.Event(), threading.Event()
    taken: list[Any] = []

    def consume(batch: Any) -> None:
        begun.set()
        held.wait(20)
        taken.extend(batch)

    line = Delivery(consume, name="sink", wait=False, capacity=2)
    line.put([1])
    assert begun.wait(20)
    line.put([2])
    line.put([3, 4, 5])
    held.set()
    assert not line.flush(5.0)
    assert (taken, line.dropped) == ([1, 3, 4, 5], 1)


def test_a_flush_waits_for_the_batch_in_hand_even_if_later_ones_are_dropped() -> None:
    held, begun = threading.Event(), threading.Event()

    def consume(batch: Any) -> None:
        begun.set()
        held.wait(20)

    line = Delivery(consume, name="sink", wait=False, capacity=1)
    line.put([1])
    assert begun.wait(20)
    done: list[bool] = []
    waiting = threading.Thread(target=lambda: done.append(line._is_taken(20.0)))
    waiting.start()
    while not line._waiters:
        time.sleep(0.001)
    for number in range(5):
        line.put([number])
    waiting.join(0.05)
    assert done == []
    held.set()
    waiting.join(20)
    assert done == [True]


def test_a_consumer_that_exits_is_counted_and_kept() -> None:
    heard: list[int] = []

    def consume(batch: list[int]) -> None:
        heard.extend(batch)
        if batch == [1]:
            raise SystemExit

    line = Delivery(consume, name="sink", wait=False)
    line.put([1])
    line.put([2])
    assert not line.flush(5.0)
    assert (heard, line.failed) == ([1, 2], 1)


def test_without_a_thread_everything_counts_as_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    line = Delivery(lambda _: None, name="sink", wait=True)
    line.put([1, 2])
    assert line.dropped == 2


def test_closing_waits_for_the_consumers_own_end() -> None:
    ended: list[str] = []

    def end() -> None:
        time.sleep(0.02)
        ended.append("closed")

    line = Delivery(ended.extend, name="sink", wait=False, on_close=end)
    line.put(["last"])
    line.close(5.0)
    line.close(5.0)
    assert ended == ["last", "closed"]


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


def test_many_small_delays_make_a_subscriber_slow(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_every_flush_that_waits_during_a_loss_reports_it() -> None:
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
    for number in range(3):
        line.put([number])
    assert not line.flush(0.01)  # it has not been taken
    held.set()
    assert not line.flush(20.0)  # some never will be
    assert line.flush(20.0)


def test_a_lazy_consumer_wakes_for_a_full_batch_a_flush_or_the_idle_interval(
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
    assert line.flush(20)  # a flush waits
    assert taken == [1, 2, 3, 4]
    line.close(1)
    monkeypatch.setattr(delivery, "IDLE", 0.01)
    came.clear()
    lazy = Delivery(consume, name="store", wait=False, ask=asked.set)
    lazy.put([5])
    assert came.wait(20)
    assert asked.is_set()
    lazy.close(1)


@pytest.fixture
def untraced() -> Iterator[None]:
    yield
    sys.settrace(None)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("begun", [True, False], ids=["with a thread", "before there is a thread"])
def test_an_interrupted_offer_neither_loses_count_nor_stops_the_thread(begun: bool) -> None:
    """At each moment in turn at which a signal can be handled."""
    taken: list[Any] = []
    number, over = 1, False
    line = Delivery(taken.extend, name="sink", wait=False)
    at = At(10**9, delivery.__file__, "/threading.py")
    sys.settrace(at)  # from Python 3.12 on the first run that is traced skips moments
    line.offer([0])
    sys.settrace(at.rest())
    while not over:
        if not begun:
            line.close(5.0)
            line = Delivery(taken.extend, name="sink", wait=False)
        at = At(number, delivery.__file__, "/threading.py")
        try:
            sys.settrace(at)
            line.offer([number, number])
            over = at.left > 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(at.rest())
        line.offer([-number])
        until = time.monotonic() + 5
        while line._taken < line._given and time.monotonic() < until:
            time.sleep(0.001)  # nobody flushes
        assert (line.queued, line._taken, line.failed) == (0, line._given, 0), at.where
        number += 1
    line.close(5.0)
    assert number > 10
    assert [-one for one in taken if one < 0] == [*range(1, number)]
    assert {taken.count(one) for one in range(1, number)} <= {0, 2}
