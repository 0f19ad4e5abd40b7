"""Conformance suite for breaker stores.

    from failsoft.testing import check_breaker_store
    check_breaker_store(lambda wall: MyStore("…", wall=wall).breakers)

``make`` is called with a wall clock and returns an empty breaker store. Every check gets its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from failsoft.core.model.fault import Code, Fault
from failsoft.core.resilience.circuit_breaker import BreakerState
from failsoft.stores.ports import BreakerStore, KeptCircuit
from failsoft.testing.conformance import Wall, broken_rule, run_at_once

MakeBreakerStore = Callable[[Callable[[], float]], BreakerStore]
SOON = 5.0  # seconds within which a change is reported, also on a busy machine

_FAULT = Fault(
    Code.UNAVAILABLE, "transient", "tool_transient", "none", "the service is down: ä \u2028", "it may recover", "http 503", 2.5
)  # fmt: skip
_OPEN = KeptCircuit(BreakerState("open", 5, 0, 3, 1_700_000_000.25), _FAULT)
_PROBING = KeptCircuit(BreakerState("half_open", 5, 1, 3, 1_700_000_030.5, 2, 35.0), _FAULT)
_CLOSED = KeptCircuit(BreakerState("closed", 2, 0, 3, recent="++-+--"))


def check_breaker_store(make: MakeBreakerStore) -> None:
    """Raise AssertionError with the broken rule unless ``make`` returns breaker stores that conform to ``stores.ports``."""
    for check in _CHECKS:
        wall = Wall()
        try:
            check(make(wall), wall)
        except Exception as error:
            raise broken_rule(check, error) from error


def _loading(store: BreakerStore, _: Wall) -> None:
    """A circuit is read as it was written"""
    assert store.load("search") is None
    version = 0
    for circuit in (_OPEN, _PROBING, _CLOSED):
        version = store.swap("search", version, circuit, ttl=60)
        assert version, "the version given was current"
        assert store.load("search") == (circuit, version), store.load("search")
    assert store.load("other") is None


def _swapping(store: BreakerStore, wall: Wall) -> None:
    """A circuit is replaced only if its version is current, and versions grow"""
    first = store.swap("search", 0, _OPEN, ttl=60)
    assert store.swap("search", 0, _CLOSED, ttl=60) == 0, "it is kept already"
    second = store.swap("search", first, _PROBING, ttl=60)
    assert second > first > 0, (first, second)
    assert store.swap("search", first, _CLOSED, ttl=60) == 0, "another version is current"
    assert store.load("search") == (_PROBING, second)
    wall.now += 60
    assert store.load("search") is None, "its ttl has expired"
    assert store.swap("search", second, _CLOSED, ttl=60) == 0, "an expired circuit has no version"
    third = store.swap("search", 0, _OPEN, ttl=60)
    assert third > second, "a version never comes back"


def _swapping_at_once(store: BreakerStore, _: Wall) -> None:
    """If several swap the same version at the same time, exactly one does"""
    for number in range(25):
        found = run_at_once(4, lambda who, key=str(number): store.swap(key, 0, _probe(who), ttl=60))  # type: ignore[misc]
        winners = [who for who, version in enumerate(found) if version]
        assert len(winners) == 1, found
        assert store.load(str(number)) == (_probe(winners[0]), found[winners[0]])


def _watching(store: BreakerStore, _: Wall) -> None:
    """A watcher is told of every circuit at once, then of every change, until it stops"""
    version = store.swap("kept", 0, _OPEN, ttl=60)
    seen: list[tuple[str, KeptCircuit, int]] = []
    stop = store.watch(lambda *change: seen.append(change))
    assert seen == [("kept", _OPEN, version)], seen
    closed = store.swap("kept", version, _CLOSED, ttl=60)
    opened = store.swap("new", 0, _OPEN, ttl=60)
    wanted = [("kept", _CLOSED, closed), ("new", _OPEN, opened)]
    _wait(lambda: all(change in seen for change in wanted))
    assert all(change in seen for change in wanted), seen
    stop()
    stop()
    seen_before = len(seen)
    store.swap("new", opened, _CLOSED, ttl=60)
    _wait(lambda: len(seen) > seen_before, 0.5)
    assert len(seen) == seen_before, "a watcher that has stopped is told nothing"


def _probe(number: int) -> KeptCircuit:
    return KeptCircuit(BreakerState("half_open", 5, 0, 3, 1_700_000_030.0, number, 35.0), _FAULT)


def _wait(condition: Callable[[], bool], longest: float = SOON) -> None:
    until = time.monotonic() + longest
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)


_CHECKS = (_loading, _swapping, _swapping_at_once, _watching)
