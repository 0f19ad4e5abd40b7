"""Addresses of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from failsoft.errors import ManifestError
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.stores.url import open_store


def wall() -> float:
    return 0.0


def opened(address: str) -> SqliteStore:
    store = open_store(address, wall=wall)
    assert isinstance(store, SqliteStore)
    return store


def test_three_slashes_are_relative_and_four_absolute() -> None:
    assert opened("sqlite:///a/b.db").path == Path("a/b.db")
    assert opened("sqlite:////a/b.db").path == Path("/a/b.db")
    assert opened("sqlite:///my%20own.db").path == Path("my own.db")
    assert open_store("memory:", wall=wall) is None


def test_options() -> None:
    store = opened("sqlite:///a.db?synchronous=full&max_age=1h30m&max_size=2MB")
    assert (store._synchronous, store._max_age, store._max_size) == ("full", 5400.0, 2_000_000)
    plain = opened("sqlite:///a.db")
    assert (plain._synchronous, plain._max_age, plain._max_size) == ("normal", None, None)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("failsoft.db", 'write "memory:" or "sqlite:///path/to/file.db"'),
        ("redis://cache:6379/0", "Redis as a store comes with the next release: for now write"),
        ("postgresql+asyncpg://me:hunter2@db/x", "PostgreSQL as a store comes with the next release: for now write"),
        ("sqlite:///a.db?sync=full", "'sync' is not an option; known options are synchronous, max_age, max_size"),
        ("sqlite:///a.db?synchronous=", "synchronous is normal or full"),
        ("sqlite:///a.db?max_age=30", "30"),
        ("sqlite:///a.db?max_size=lots", "is not a size"),
    ],
)
def test_mistakes_are_told(address: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        open_store(address, wall=wall)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)
