"""Addresses of stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import virtual

from failsoft import Runtime
from failsoft.errors import ManifestError
from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import Opener, Store, register_scheme
from failsoft.stores.sqlite.store import SqliteStore
from failsoft.stores.url import known_schemes, open_store


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


def test_an_address_may_have_options() -> None:
    store = opened("sqlite:///a.db?synchronous=full&max_age=1h30m&max_size=2MB")
    assert (store._synchronous, store._retention.max_age, store._retention.max_size) == ("full", 5400.0, 2_000_000)
    plain = opened("sqlite:///a.db")
    assert (plain._synchronous, plain._retention.max_age, plain._retention.max_size) == ("normal", None, None)


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
def test_invalid_addresses_are_rejected_with_advice(address: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        open_store(address, wall=wall)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


# --- schemes of other packages ----------------------------------------------------------------------------------------


@pytest.fixture
def schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.stores.ports.SCHEMES", found := dict[str, Opener]())
    monkeypatch.setattr("failsoft.stores.url.SCHEMES", found)


@pytest.mark.usefixtures("schemes")
def test_a_registered_scheme_is_opened_with_its_address_and_the_wall_clock() -> None:
    asked = []

    def opener(address: str, wall: Callable[[], float]) -> Store:
        asked.append((address, wall))
        return MemoryStore(wall=wall)

    register_scheme("vault", opener)
    assert isinstance(open_store("vault://host/7", wall=wall), MemoryStore)
    assert isinstance(open_store("vault+tls://host/7", wall=wall), MemoryStore)
    assert asked == [("vault://host/7", wall), ("vault+tls://host/7", wall)]


@pytest.mark.usefixtures("schemes")
@virtual
async def test_a_runtime_keeps_its_events_in_a_store_of_a_registered_scheme() -> None:
    made: list[MemoryStore] = []
    register_scheme("vault", lambda _, wall: made.append(MemoryStore(wall=wall)) or made[0])
    async with Runtime(store="vault://host") as rt:
        rt.add(lambda: 1, id="one")
        assert (await rt.call("one")).value == 1
    assert [event["tool_id"] for _, event in made[0].read() if event["event_type"] == "CallSucceeded"] == ["one"]


@pytest.mark.parametrize(
    ("name", "opener", "said"),
    [
        ("sqlite", MemoryStore, "'sqlite' is built in"),
        ("a b", MemoryStore, "'a b' is not a scheme"),
        ("Vault", MemoryStore, "'Vault' is not a scheme"),
        ("vault", "vault://", "expected a function"),
    ],
)
@pytest.mark.usefixtures("schemes")
def test_a_scheme_that_cannot_be_registered_is_refused(name: str, opener: Any, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        register_scheme(name, opener)


@pytest.mark.usefixtures("schemes")
def test_an_unknown_scheme_is_answered_with_the_known_ones_and_what_to_install() -> None:
    register_scheme("vault", lambda _, wall: MemoryStore(wall=wall))
    with pytest.raises(ManifestError) as caught:
        open_store("mongodb://me:hunter2@db/x", wall=wall)
    said = str(caught.value)
    assert '"memory:" or "sqlite:///path/to/file.db" or "vault://…"' in said
    assert "install a package that has an entry point 'mongodb' in the group 'failsoft.stores'" in said
    assert "hunter2" not in said


def installed(folder: Path, opener: str) -> None:
    """Lay out an installed package with an entry point for ``vault``."""
    about = folder / "vault_store-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: vault-store\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[failsoft.stores]\nvault = {opener}\n")
    (folder / "vault_store.py").write_text(
        "from failsoft.stores.memory import MemoryStore\n\n\ndef opener(address, wall):\n    return MemoryStore(wall=wall)\n"
    )


def test_an_installed_package_brings_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "vault_store:opener")
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(open_store("vault://host", wall=wall), MemoryStore)
    assert known_schemes() == ["memory", "sqlite", "vault"]


def test_a_package_whose_opener_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "vault_store:missing")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ManifestError, match="the opener for vault:// of vault-store cannot be loaded: AttributeError"):
        open_store("vault://host", wall=wall)
