"""Every store passes the same suite."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import Kind
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.testing import check_store


def test_the_memory_store_is_one() -> None:
    check_store(lambda wall: MemoryStore(wall=wall))


def test_the_sqlite_store_is_one(tmp_path: Path) -> None:
    numbers = count()
    check_store(lambda wall: SqliteStore(tmp_path / f"{next(numbers)}.db", wall=wall))


def test_a_store_that_forgets_is_none() -> None:
    class Forgets(MemoryStore):
        def delete(self, kind: object, key: object) -> None:
            pass

    with pytest.raises(AssertionError, match="deleting removes"):
        check_store(lambda wall: Forgets(wall=wall))


def test_a_store_that_raises_is_none_and_the_rule_is_named() -> None:
    class Misses(MemoryStore):
        def get(self, kind: Kind, key: str) -> object:
            return dict(self.find(kind))[key]

    with pytest.raises(AssertionError, match=r"^Putting replaces, .*: KeyError: 'k'$"):
        check_store(lambda wall: Misses(wall=wall))


def test_a_store_that_cannot_be_closed_twice_is_none() -> None:
    class Once(MemoryStore):
        closed = False

        def close(self) -> None:
            if self.closed:
                raise RuntimeError("closed already")
            self.closed = True

    with pytest.raises(AssertionError, match="RuntimeError: closed already"):
        check_store(lambda wall: Once(wall=wall))
