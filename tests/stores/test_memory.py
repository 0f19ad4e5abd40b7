from __future__ import annotations

import pytest

from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import Store, key_of


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_memory_store_is_a_store() -> None:
    store: Store = MemoryStore()
    assert store.flush(0)


def test_stored_values_are_equal_copies() -> None:
    store = MemoryStore()
    value = {"tallies": {"retry": [1, 0.5]}, "none": None}
    store.put("memory", "k", value)
    value["none"] = "changed"
    found = store.get("memory", "k")
    assert found == {"tallies": {"retry": [1, 0.5]}, "none": None}
    found["none"] = 1
    assert store.get("memory", "k")["none"] is None


def test_putting_replaces_and_deleting_drops() -> None:
    store = MemoryStore()
    store.put("pending", "k", 1)
    store.put("pending", "k", 2)
    assert store.get("pending", "k") == 2
    assert store.get("memory", "k") is None  # another kind
    store.delete("pending", "k")
    store.delete("pending", "k")
    assert store.get("pending", "k") is None


def test_put_rejects_values_that_are_not_json() -> None:
    with pytest.raises(TypeError):
        MemoryStore().put("memory", "k", object())


def test_the_time_of_a_record_passes_by_the_wall_clock() -> None:
    clock = Clock()
    store = MemoryStore(wall=clock)
    store.put("availability", "short", 1, ttl=600)
    store.put("availability", "long", 1)
    clock.now += 599
    assert store.get("availability", "short") == 1
    clock.now += 1
    assert store.get("availability", "short") is None
    assert store.find("availability") == [("long", 1)]


def test_listing_is_by_whole_parts_of_the_key() -> None:
    store = MemoryStore()
    for tenant, thread in (("acme", "1"), ("acme", "2"), ("acme2", "1"), (None, "1")):
        store.put("pending", key_of(tenant, thread), thread)
    assert [key for key, _ in store.find("pending", key_of("acme"))] == ["acme/1", "acme/2"]
    assert [key for key, _ in store.find("pending", key_of(None))] == ["%/1"]
    assert len(store.find("pending")) == 4
    assert store.find("pending", key_of("acme", "2")) == [("acme/2", "2")]


def test_events_are_read_in_order_from_a_position_and_by_turn() -> None:
    store = MemoryStore()
    store.append([{"seq": 1, "turn_id": "a"}, {"seq": 2, "turn_id": "b"}])
    store.append([{"seq": 3, "turn_id": "a"}])
    assert [event["seq"] for _, event in store.read()] == [1, 2, 3]
    (first, _), *_ = store.read(limit=1)
    assert [event["seq"] for _, event in store.read(after=first)] == [2, 3]
    assert [event["seq"] for _, event in store.read(turn_id="a")] == [1, 3]
    assert [event["seq"] for _, event in store.read(turn_id="a", limit=1)] == [1]


def test_events_are_bounded() -> None:
    store = MemoryStore(events=10)
    store.append([{"seq": number} for number in range(25)])
    assert [event["seq"] for _, event in store.read()] == [*range(15, 25)]


def test_a_closed_store_ignores_writes() -> None:
    store = MemoryStore()
    store.put("memory", "k", 1)
    store.close()
    store.close()
    store.put("memory", "k", 2)
    store.append([{"seq": 1}])
    assert (store.get("memory", "k"), store.read()) == (1, [])
