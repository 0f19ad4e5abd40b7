"""Every store passes the same suite."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from failsoft.stores.circuit_record import RecordBreakers
from failsoft.stores.memory import MemoryBreakers, MemoryStore
from failsoft.stores.ports import KeptCircuit, Kind, Watcher
from failsoft.stores.sqlite.breakers import SqliteBreakers
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.testing import check_breaker_store, check_store


def test_the_memory_store_passes_the_suite() -> None:
    check_store(lambda wall: MemoryStore(wall=wall))


def test_the_sqlite_store_passes_the_suite(tmp_path: Path) -> None:
    numbers = count()
    check_store(lambda wall: SqliteStore(tmp_path / f"{next(numbers)}.db", wall=wall))


def test_a_store_that_does_not_delete_fails_the_suite() -> None:
    class Forgets(MemoryStore):
        def delete(self, kind: object, key: object) -> None:
            pass

    with pytest.raises(AssertionError, match="deleting removes"):
        check_store(lambda wall: Forgets(wall=wall))


def test_a_store_that_raises_fails_the_suite_with_the_rule() -> None:
    class Misses(MemoryStore):
        def get(self, kind: Kind, key: str) -> object:
            return dict(self.find(kind))[key]

    with pytest.raises(AssertionError, match=r"^Putting replaces, .*: KeyError: 'k'$"):
        check_store(lambda wall: Misses(wall=wall))


def test_a_store_that_cannot_be_closed_twice_fails_the_suite() -> None:
    class Once(MemoryStore):
        closed = False

        def close(self) -> None:
            if self.closed:
                raise RuntimeError("closed already")
            self.closed = True

    with pytest.raises(AssertionError, match="RuntimeError: closed already"):
        check_store(lambda wall: Once(wall=wall))


# --- circuits ---------------------------------------------------------------------------------------------------------


def test_the_memory_stores_circuits_can_be_shared() -> None:
    check_breaker_store(lambda wall: MemoryStore(wall=wall).breakers)


def test_the_sqlite_stores_circuits_can_be_shared(tmp_path: Path) -> None:
    stores: list[SqliteStore] = []

    def make(wall: Callable[[], float]) -> SqliteBreakers:
        stores.append(SqliteStore(tmp_path / f"{len(stores)}.db", wall=wall))
        return stores[-1].breakers

    check_breaker_store(make)
    for store in stores:
        store.close()


def test_circuits_kept_as_records_cannot_be_shared() -> None:
    with pytest.raises(AssertionError, match=r"exactly one does|told of every circuit"):
        check_breaker_store(lambda wall: RecordBreakers(MemoryStore(wall=wall), wall))


def test_a_breaker_store_that_swaps_any_version_fails_the_suite() -> None:
    class Careless(MemoryBreakers):
        def swap(self, key: str, version: int, circuit: KeptCircuit, *, ttl: float) -> int:
            found = self.load(key)
            return super().swap(key, 0 if found is None else found[1], circuit, ttl=ttl)

    with pytest.raises(AssertionError, match="only if its version is current"):
        check_breaker_store(lambda wall: Careless(MemoryStore(wall=wall)))


def test_a_breaker_store_that_reports_only_later_changes_fails_the_suite() -> None:
    class Lazy(MemoryBreakers):
        def watch(self, watcher: Watcher) -> Callable[[], None]:
            self._watchers.append(watcher)
            return lambda: None

    with pytest.raises(AssertionError, match="told of every circuit at once"):
        check_breaker_store(lambda wall: Lazy(MemoryStore(wall=wall)))
