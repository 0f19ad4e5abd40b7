"""Every store passes the same suite."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from failsoft.stores.memory import MemoryStore
from failsoft.stores.sqlite import SqliteStore
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

    with pytest.raises(AssertionError, match="deleting drops"):
        check_store(lambda wall: Forgets(wall=wall))
