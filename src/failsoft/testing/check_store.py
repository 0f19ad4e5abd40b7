"""Conformance suite for stores.

    from failsoft.testing import check_store
    check_store(lambda wall: MyStore("…", wall=wall))

``make`` is called with a wall clock and returns an empty store. Every check gets its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from failsoft.observe.success_runs import Run
from failsoft.stores.ports import Store, key_of
from failsoft.testing.conformance import Wall, broken_rule, run_at_once

MakeStore = Callable[[Callable[[], float]], Store]


def check_store(make: MakeStore) -> None:
    """Raise AssertionError with the broken rule unless ``make`` returns stores that conform to ``stores.ports``."""
    for check in _CHECKS:
        wall = Wall()
        store = make(wall)
        try:
            check(store, wall)
            store.close()
        except Exception as error:
            with suppress(Exception):
                store.close()
            raise broken_rule(check, error) from error


def _equal_and_apart(store: Store, _: Wall) -> None:
    """A value read back equals the value put, and is never the same object"""
    value = {"tallies": {"retry": [1, 0.5]}, "none": None, "text": "ä \u2028 \x00"}
    store.put("memory", "k", value)
    value["none"] = "changed"
    found = store.get("memory", "k")
    assert found == {"tallies": {"retry": [1, 0.5]}, "none": None, "text": "ä \u2028 \x00"}, found
    found["none"] = 1
    assert store.get("memory", "k")["none"] is None


def _replacing(store: Store, _: Wall) -> None:
    """Putting replaces, deleting removes, and kinds are separate"""
    store.put("pending", "k", 1)
    store.put("pending", "k", 2)
    assert store.get("pending", "k") == 2
    assert store.get("memory", "k") is None
    store.delete("pending", "k")
    store.delete("pending", "k")
    assert store.get("pending", "k") is None
    assert store.flush(5)
    assert store.get("pending", "k") is None


def _time(store: Store, wall: Wall) -> None:
    """A record with a ttl expires by the wall clock"""
    store.put("availability", "short", 1, ttl=600)
    store.put("availability", "long", 1)
    wall.now += 599
    assert store.get("availability", "short") == 1
    wall.now += 1
    assert store.get("availability", "short") is None
    assert store.find("availability") == [("long", 1)]
    store.put("availability", "short", 2)
    assert store.get("availability", "short") == 2, "putting again does not inherit the old time"


def _scopes(store: Store, _: Wall) -> None:
    """Listing goes by whole parts of the key, in the order of the keys"""
    for tenant, thread, tool in (("acme", "1", "b"), ("acme", "1", "a"), ("acme", "10", "a"), ("acm", "1", "a")):
        store.put("pending", key_of(tenant, thread, tool), tool)
    store.put("pending", key_of(None, "1", "a"), "nobody's")
    assert [value for _, value in store.find("pending", key_of("acme", "1"))] == ["a", "b"]
    assert len(store.find("pending", key_of("acme"))) == 3
    assert len(store.find("pending")) == 5
    assert store.find("pending", key_of(None)) == [(key_of(None, "1", "a"), "nobody's")]


def _taking(store: Store, wall: Wall) -> None:
    """A value is taken once, and taking sees earlier puts and deletes"""
    store.put("pending", "k", {"tool": "pay"})
    store.put("pending", "other", 1)
    assert store.take("pending", "k") == {"tool": "pay"}
    assert store.take("pending", "k") is None
    assert store.get("pending", "k") is None
    assert store.take("memory", "other") is None, "kinds are separate"
    assert store.get("pending", "other") == 1
    store.delete("pending", "other")
    assert store.take("pending", "other") is None, "a deleted value cannot be taken"
    store.put("pending", "short", 1, ttl=10)
    wall.now += 10
    assert store.take("pending", "short") is None, "its ttl has expired"


def _taking_at_once(store: Store, _: Wall) -> None:
    """If several take one value at the same time, exactly one gets it"""
    for number in range(50):
        key = key_of("acme", str(number))
        store.put("pending", key, number)
        found = run_at_once(4, lambda _, key=key: store.take("pending", key))  # type: ignore[misc]  # binds key
        assert sorted(found, key=str) == sorted([number, None, None, None], key=str), found


def _claiming(store: Store, wall: Wall) -> None:
    """A claim stores values under free keys, and returns the values of the others"""
    assert store.claim("pending", {"a": 1, "b": {"run": "x"}}, timeout=5) == {}
    assert store.claim("pending", {"a": 2, "c": 3}, timeout=5) == {"a": 1}
    assert (store.get("pending", "a"), store.get("pending", "c")) == (1, 3)
    assert store.claim("memory", {"a": 2}, timeout=5) == {}, "kinds are separate"
    store.delete("pending", "a")
    assert store.claim("pending", {"a": 4}, ttl=10, timeout=5) == {}, "a deleted key is free"
    wall.now += 10
    assert store.claim("pending", {"a": 5}, timeout=5) == {}, "its ttl has expired"
    store.put("pending", "p", 1)
    assert store.claim("pending", {"p": 2}, timeout=5) == {"p": 1}, "a key that was put is not free"


def _claiming_at_once(store: Store, _: Wall) -> None:
    """If several claim one key at the same time, exactly one gets it"""
    for number in range(50):
        key = key_of("acme", str(number))
        found = run_at_once(4, lambda who, key=key: store.claim("pending", {key: who}, timeout=5))  # type: ignore[misc]
        owner = store.get("pending", key)
        assert [*found].count({}) == 1, found
        assert all(taken in ({}, {key: owner}) for taken in found), found


def _swapping(store: Store, wall: Wall) -> None:
    """A swap changes all values if all are as expected, and none otherwise"""
    store.put("pending", "a", {"state": "unknown"})
    changes: dict[str, tuple[Any, Any]] = {"a": ({"state": "unknown"}, {"state": "none"}), "b": (None, 1)}
    assert store.swap("pending", changes, timeout=5) is True
    assert (store.get("pending", "a"), store.get("pending", "b")) == ({"state": "none"}, 1)
    assert store.swap("pending", changes, timeout=5) is False
    assert store.swap("pending", {"b": (1, 2), "c": (1, 2)}, timeout=5) is False
    assert (store.get("pending", "b"), store.get("pending", "c")) == (1, None), "nothing changes if one value differs"
    assert store.swap("memory", {"b": (None, 3)}, timeout=5) is True, "kinds are separate"
    assert store.swap("pending", {"b": (1, None)}, timeout=5) is True
    assert store.get("pending", "b") is None, "None deletes"
    assert store.swap("pending", {"b": (None, 4)}, ttl=10, timeout=5) is True
    wall.now += 10
    assert store.swap("pending", {"b": (4, 5)}, timeout=5) is False, "its ttl has expired"


def _swapping_at_once(store: Store, _: Wall) -> None:
    """If several swap one value at the same time, exactly one does"""
    for number in range(50):
        key = key_of("acme", str(number))
        store.put("pending", key, "open")
        found = run_at_once(4, lambda who, key=key: store.swap("pending", {key: ("open", who)}, timeout=5))  # type: ignore[misc]
        assert sorted(found) == [False, False, False, True], found
        assert found[store.get("pending", key)]


def _events(store: Store, _: Wall) -> None:
    """Events are read in the order in which they were appended, after a position, and by turn"""
    store.append([{"seq": n, "turn_id": "t" if n % 2 else None, "event_type": "X"} for n in range(10)])
    store.append([{"seq": 10, "turn_id": "u", "event_type": "X"}])
    everything = store.read()
    assert [event["seq"] for _, event in everything] == list(range(11))
    positions = [position for position, _ in everything]
    assert positions == sorted(set(positions)), positions
    assert [event["seq"] for _, event in store.read(after=positions[3], limit=2)] == [4, 5]
    assert [event["seq"] for _, event in store.read(turn_id="t", limit=3)] == [1, 3, 5]
    assert store.read(turn_id="nobody's") == []


def _runs(store: Store, _: Wall) -> None:
    """A run of plain successes is read as its events, also from the middle and among others"""
    run = Run(2, 1.7e9, "t", ["a", "b"] * 3, [None] * 6, [0.0] * 6, [0.5] * 6)
    store.append([{"seq": 1, "turn_id": "u"}])
    store.append(run)
    store.append([{"seq": 8, "turn_id": "t"}])
    everything = store.read()
    assert [event["seq"] for _, event in everything] == list(range(1, 9))
    assert [event for _, event in everything[1:7]] == [*run]
    positions = [position for position, _ in everything]
    assert positions == sorted(set(positions)), positions
    assert [event["seq"] for _, event in store.read(after=positions[3], limit=2)] == [5, 6]
    assert [event["seq"] for _, event in store.read(turn_id="t", limit=100)] == list(range(2, 9))


def _turns(store: Store, _: Wall) -> None:
    """Turns are listed by their latest event, the latest first; calls outside turns are not listed"""
    store.append([{"turn_id": turn} for turn in ("a", "b", None, "a", "c")])
    assert store.turns() == ["c", "a", "b"], store.turns()
    assert store.turns(1) == ["c"]


def _pruning(store: Store, _: Wall) -> None:
    """Events are deleted by age and by number, and positions are never reused"""
    store.append([{"seq": n, "timestamp": f"2026-01-{n + 1:02}T00:00:00.000Z"} for n in range(10)])
    last = store.read()[-1][0]
    assert store.prune(before="2026-01-04T00:00:00.000Z") == 3
    assert store.prune(most=2) == 5
    assert [event["seq"] for _, event in store.read()] == [8, 9]
    assert store.prune(most=0) == 2
    store.append([{"seq": 10}])
    assert store.read(after=last) != []


def _threads(store: Store, _: Wall) -> None:
    """All methods may be called from any thread"""

    def work(name: str) -> None:
        for n in range(200):
            store.put("memory", key_of(name, str(n)), n)
            store.append([{"seq": n, "turn_id": name}])
            if n % 50 == 0:
                store.find("memory", key_of(name))

    workers = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(store.find("memory")) == 800
    for n in range(4):
        assert [event["seq"] for _, event in store.read(turn_id=f"w{n}")] == list(range(200))


def _closing(store: Store, _: Wall) -> None:
    """After closing, writes are refused and counted as lost; closing twice is harmless"""
    store.put("memory", "k", 1)
    assert store.flush(5)
    assert store.lost == 0
    store.close()
    store.close()
    store.put("memory", "late", 1)
    store.append([{"seq": 1}])
    assert store.lost == 2
    store.delete("memory", "k")


_CHECKS = (
    _equal_and_apart,
    _replacing,
    _time,
    _scopes,
    _taking,
    _taking_at_once,
    _claiming,
    _claiming_at_once,
    _swapping,
    _swapping_at_once,
    _events,
    _runs,
    _turns,
    _pruning,
    _threads,
    _closing,
)
