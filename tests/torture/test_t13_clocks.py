"""T13: the clock was set back an hour, or the time zone changed, and the circuit stayed open. Here it opens on time."""

from __future__ import annotations

import time

import pytest
from tests.fakes import DOWN, ONCE

from failsoft import Runtime
from failsoft.runtime.execution.clock import Clock
from failsoft.stores.memory import MemoryStore

WINDOW = 30.0
BREAKER = {"failure_threshold": 1, "timeout": "30s"}
HOUR = 3600.0


class Times:
    """Two clocks: one that only goes forward, and one that people set."""

    def __init__(self) -> None:
        self.monotonic = 1000.0
        self.wall = 1.7e9
        self.clock = Clock(lambda: self.monotonic, lambda: self.wall, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


def broken() -> None:
    raise DOWN


def window(rt: Runtime, times: Times) -> float:
    """For how long calls are turned away."""
    began = times.monotonic
    while rt.health("search").state == "open":
        assert rt.call_sync("search").attempts == 0
        times.sleep(0.1)
        assert times.monotonic - began < 3 * WINDOW
    return times.monotonic - began


@pytest.mark.parametrize("step", [-HOUR, +HOUR, -365 * 24 * HOUR, -1.0])
def test_t13_setting_the_clock_does_not_move_the_open_window(step: float) -> None:
    times = Times()
    rt = Runtime(clock=times.clock)
    rt.add(broken, id="search", timeout=None, retry=ONCE, breaker=BREAKER)
    rt.call_sync("search")
    times.wall += step
    assert window(rt, times) == pytest.approx(WINDOW, rel=0.01)
    assert rt.call_sync("search").attempts == 1


@pytest.mark.parametrize("step", [-HOUR, +HOUR])
def test_t13_setting_the_clock_does_not_keep_a_circuit_open_over_a_restart(step: float) -> None:
    times = Times()
    store = MemoryStore(wall=lambda: times.wall)
    before = Runtime(store=store, clock=times.clock)
    before.add(broken, id="search", timeout=None, retry=ONCE, breaker=BREAKER)
    before.call_sync("search")
    times.wall += step
    rt = Runtime(store=store, clock=times.clock)
    rt.add(broken, id="search", timeout=None, retry=ONCE, breaker=BREAKER)
    assert window(rt, times) <= WINDOW * 1.01


def test_t13_changing_the_time_zone_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times()
    rt = Runtime(clock=times.clock)
    rt.add(broken, id="search", timeout=None, retry=ONCE, breaker=BREAKER)
    rt.call_sync("search")
    try:
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        assert window(rt, times) == pytest.approx(WINDOW, rel=0.01)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_t13_the_systems_clock_is_the_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rt = Runtime()
    rt.add(broken, id="search", timeout=None, retry=ONCE, breaker={"failure_threshold": 1, "timeout": "200ms"})
    rt.call_sync("search")
    hour_ago = time.time() - HOUR
    monkeypatch.setattr(time, "time", lambda: hour_ago)
    began = time.monotonic()
    while rt.health("search").state == "open":
        time.sleep(0.001)
    assert time.monotonic() - began < 5
