"""A store in process memory; the reference for the other stores."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from failsoft.stores.circuit_record import next_version, pack, unpack, version_of
from failsoft.stores.ports import KeptCircuit, Kind, Watcher

EVENTS = 100_000  # the oldest are dropped first


class MemoryStore:
    """Records and events in process memory, kept as JSON so that later changes to a value do not reach them."""

    def __init__(self, *, wall: Callable[[], float] = time.time, events: int = EVENTS) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._records: dict[tuple[Kind, str], tuple[str, float | None]] = {}
        self._events: deque[tuple[int, str]] = deque(maxlen=events)
        self._count = 0
        self._closed = False
        self.lost = 0  # records and events that came after close
        self.breakers = MemoryBreakers(self)

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        text = json.dumps(value)
        with self._lock:
            if self._closed:
                self.lost += 1
            else:
                self._records[kind, key] = (text, None if ttl is None else self._wall() + ttl)

    def get(self, kind: Kind, key: str) -> Any:
        with self._lock:
            self._drop_old()
            kept = self._records.get((kind, key))
        return None if kept is None else json.loads(kept[0])

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        with self._lock:
            self._drop_old()
            found = [
                (key, text)
                for (of_kind, key), (text, _) in self._records.items()
                if of_kind == kind and (not scope or key == scope or key.startswith(f"{scope}/"))
            ]
        return [(key, json.loads(text)) for key, text in sorted(found)]

    def delete(self, kind: Kind, key: str) -> None:
        with self._lock:
            self._records.pop((kind, key), None)

    def take(self, kind: Kind, key: str) -> Any:
        with self._lock:
            self._drop_old()
            kept = self._records.pop((kind, key), None)
        return None if kept is None else json.loads(kept[0])

    def claim(
        self, kind: Kind, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float
    ) -> Mapping[str, Any]:  # fmt: skip
        texts = {key: json.dumps(value) for key, value in values.items()}
        with self._lock:
            if self._closed:
                self.lost += len(texts)
                raise TimeoutError(f"the store is closed: nothing can be kept, not even within {timeout} s")
            self._drop_old()
            taken = {key: self._records[kind, key][0] for key in texts if (kind, key) in self._records}
            until = None if ttl is None else self._wall() + ttl
            self._records |= {(kind, key): (text, until) for key, text in texts.items() if key not in taken}
        return {key: json.loads(text) for key, text in taken.items()}

    def swap(
        self, kind: Kind, changes: Mapping[str, tuple[Any, Any]], *, ttl: float | None = None, timeout: float
    ) -> bool:  # fmt: skip
        texts = {key: json.dumps(new) for key, (_, new) in changes.items() if new is not None}
        with self._lock:
            if self._closed:
                self.lost += len(texts)
                raise TimeoutError(f"the store is closed: nothing can be changed, not even within {timeout} s")
            self._drop_old()
            for key, (expected, _) in changes.items():
                kept = self._records.get((kind, key))
                if (None if kept is None else json.loads(kept[0])) != expected:
                    return False
            until = None if ttl is None else self._wall() + ttl
            for key in changes:
                if key in texts:
                    self._records[kind, key] = (texts[key], until)
                else:
                    self._records.pop((kind, key), None)
        return True

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        texts = [json.dumps(event) for event in events]
        with self._lock:
            if self._closed:
                self.lost += len(texts)
            else:
                self._events.extend(enumerate(texts, self._count + 1))
                self._count += len(texts)

    def read(
        self, *, after: int = 0, limit: int = 1000, turn_id: str | None = None
    ) -> list[tuple[int, dict[str, Any]]]:
        with self._lock:
            kept = [(position, text) for position, text in self._events if position > after]
        made = ((position, json.loads(text)) for position, text in kept)
        return [*islice(((at, event) for at, event in made if turn_id in (None, event.get("turn_id"))), limit)]

    def turns(self, limit: int = 100) -> list[str]:
        with self._lock:
            kept = [text for _, text in reversed(self._events)]
        ids = (json.loads(text).get("turn_id") for text in kept)
        return [*islice(dict.fromkeys(id for id in ids if id is not None), limit)]

    def prune(self, *, before: str | None = None, most: int | None = None) -> int:
        with self._lock:
            kept = [*self._events]
            if before is not None:
                kept = [(at, text) for at, text in kept if (json.loads(text).get("timestamp") or before) >= before]
            if most is not None:
                kept = [(at, text) for at, text in kept if at > self._count - most]
            gone = len(self._events) - len(kept)
            self._events = deque(kept, maxlen=self._events.maxlen)
        return gone

    def flush(self, timeout: float) -> bool:  # noqa: ARG002 - nothing is queued
        return True

    def close(self) -> None:
        self._closed = True

    def _drop_old(self) -> None:
        now = self._wall()
        for place in [place for place, (_, until) in self._records.items() if until is not None and until <= now]:
            del self._records[place]

    def replace_circuit(self, key: str, version: int, circuit: KeptCircuit, ttl: float) -> int:
        """Replace a circuit's record if its version is ``version``; return the new version, or 0."""
        with self._lock:
            self._drop_old()
            kept = self._records.get(("breaker", key))
            if self._closed or version_of(None if kept is None else json.loads(kept[0])) != version:
                self.lost += self._closed
                return 0
            now = self._wall()
            following = next_version(version, now)
            self._records["breaker", key] = (json.dumps(pack(circuit, following)), now + ttl)
            return following


class MemoryBreakers:
    """The circuits in a memory store; runtimes of one process can share them."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._watchers: list[Watcher] = []

    def load(self, key: str) -> tuple[KeptCircuit, int] | None:
        return unpack(self._store.get("breaker", key))

    def swap(self, key: str, version: int, circuit: KeptCircuit, *, ttl: float) -> int:
        following = self._store.replace_circuit(key, version, circuit, ttl)
        if following:
            for watcher in list(self._watchers):
                watcher(key, circuit, following)
        return following

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        self._watchers.append(watcher)
        for key, record in self._store.find("breaker"):
            found = unpack(record)
            if found is not None:
                watcher(key, *found)

        def stop() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return stop
