"""Circuits in a SQLite file, shared by the processes that use it.

Rules
-----
- ``swap`` is a request to the store's writer. It returns when the circuit is in the file, and is atomic between
  processes.
- A thread looks for changes every ``POLL`` seconds while there is a watcher. The thread does not keep the store alive.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from weakref import ref

from failsoft.stores.circuit_record import next_version, pack, unpack, version_of
from failsoft.stores.ports import KeptCircuit, Kind, Watcher
from failsoft.stores.sqlite.database import Request, find_record, put_record

POLL = 0.25  # seconds
PATIENCE = 5.0  # seconds that a swap waits for its transaction


class Host(Protocol):
    """The parts of a store that its circuits need."""

    @property
    def file(self) -> Path: ...
    def get(self, kind: Kind, key: str) -> Any: ...
    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]: ...
    def ask(self, request: Request, timeout: float) -> bool: ...


class Swap(Request):
    """Replace a circuit if its version is still the same."""

    def __init__(self, key: str, version: int, circuit: KeptCircuit, ttl: float) -> None:
        super().__init__()
        self._key = key
        self._version = version
        self._circuit = circuit
        self._ttl = ttl
        self.following = 0  # the new version

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        self.following = 0  # discard an earlier try that was rolled back
        found = find_record(connection, "breaker", self._key, now)
        if version_of(None if found is None else json.loads(found)) == self._version:
            self.following = next_version(self._version, now)
            text = json.dumps(pack(self._circuit, self.following))
            put_record(connection, "breaker", self._key, text, now + self._ttl)


class SqliteBreakers:
    """The circuits of a store."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._watchers: list[Watcher] = []
        self._seen: dict[str, int] = {}  # versions by key
        self._stopped = threading.Event()
        self._poller: threading.Thread | None = None

    def load(self, key: str) -> tuple[KeptCircuit, int] | None:
        return unpack(self._host.get("breaker", key))

    def swap(self, key: str, version: int, circuit: KeptCircuit, *, ttl: float) -> int:
        request = Swap(key, version, circuit, ttl)
        if not self._host.ask(request, PATIENCE):
            raise TimeoutError("the circuit could not be written")
        return request.following

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        for key, record in self._host.find("breaker"):
            found = unpack(record)
            if found is not None:
                watcher(key, *found)
                self._seen.setdefault(key, found[1])
        self._watchers.append(watcher)
        self._start()

        def stop() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return stop

    def look(self) -> bool:
        """Report what has changed; False if there is no watcher any more."""
        if not self._host.file.exists():
            return bool(self._watchers)
        for key, record in self._host.find("breaker"):
            found = unpack(record)
            if found is not None and self._seen.get(key) != found[1]:
                self._seen[key] = found[1]
                for watcher in list(self._watchers):
                    watcher(key, *found)
        return bool(self._watchers)

    def close(self) -> None:
        """Stop looking for changes."""
        self._stopped.set()
        self._watchers.clear()

    def renew_after_fork(self) -> None:
        """Start a new thread in a forked child, which has none of its parent's threads."""
        self._poller = None
        if self._watchers:
            self._start()

    def _start(self) -> None:
        if self._poller is not None and self._poller.is_alive():
            return
        self._stopped = threading.Event()
        poller = threading.Thread(target=_poll, args=(ref(self), self._stopped), name="failsoft circuits", daemon=True)
        try:
            poller.start()
        except RuntimeError:  # the interpreter is about to end
            return
        self._poller = poller


def _poll(breakers: ref[SqliteBreakers], stopped: threading.Event) -> None:
    while not stopped.wait(POLL):
        found = breakers()
        if found is None or not found.look():
            return
        del found
