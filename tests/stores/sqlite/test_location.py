"""Files that already exist at a store's path, and obstacles there."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from failsoft import Runtime
from failsoft.stores.sqlite import writer as sqlite
from failsoft.stores.sqlite.location import MARK, find_obstacle
from failsoft.stores.sqlite.store import SqliteStore


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.1)


@contextmanager
def text(path: Path) -> Iterator[None]:
    path.write_text("buy milk\n")
    yield


@contextmanager
def table(path: Path) -> Iterator[None]:
    path.write_text("name,amount\n" * 1000)
    yield


@contextmanager
def database(path: Path) -> Iterator[None]:
    """A database of another application that is not in use."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE record (a); CREATE TABLE customer (b); PRAGMA user_version = 1")
    yield


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Another application's, which has tables with our names, or none yet."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA application_id = 17; CREATE TABLE record (a); CREATE TABLE event (b)")
    yield


@contextmanager
def busy(path: Path) -> Iterator[None]:
    """Another application's in use: all that it has is in its WAL."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE customer (a)")
        yield


FOREIGN = [text, table, database, claimed, busy]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


@pytest.mark.parametrize("make", FOREIGN)
def test_a_file_of_another_program_is_not_touched(
    make: Callable[[Path], contextmanager[None]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "theirs"
    with make(path), caplog.at_level(logging.WARNING, "failsoft"):
        before = content(tmp_path)
        store = SqliteStore(path)
        assert store.find("memory") == []
        store.put("memory", "k", 1)
        assert not store.flush(0.1)
        store.close()
        assert content(tmp_path) == before
    (told,) = [record.getMessage() for record in caplog.records if "cannot be used" in record.getMessage()]
    assert "the file is not failsoft's and is left as it is: name another one" in told
    assert "theirs" in told


@pytest.mark.parametrize("statement", ["", "VACUUM"], ids=["empty file", "empty database"])
def test_an_empty_file_becomes_a_store(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    store = SqliteStore(path)
    store.put("memory", "k", 1)
    assert store.flush(20)
    store.close()
    assert SqliteStore(path).get("memory", "k") == 1


def test_a_store_without_a_mark_is_known_by_its_tables_and_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    store.put("memory", "k", 1)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (MARK,)
        connection.execute("PRAGMA application_id = 0")
    store = SqliteStore(path)
    assert store.get("memory", "k") == 1
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (MARK,)


def test_the_mark_is_there_before_anything_else(tmp_path: Path) -> None:
    """A process may be killed at any time, and its file must be known as ours."""
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    store.put("memory", "k", 1)
    assert store.flush(20)
    assert path.read_bytes()[68:72] == b"fsft"  # while the rest is still in the WAL
    store.close()


# --- what is in the way ----------------------------------------------------------------------------------------------------


def test_obstacles_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    assert find_obstacle(tmp_path / "a.db") == find_obstacle(tmp_path / "new" / "a.db") == ""
    assert find_obstacle(tmp_path) == "it is a directory: name a file in it"
    assert (
        find_obstacle(tmp_path / "file" / "deep" / "a.db")
        == f"{tmp_path}/file is a file, not a directory: name another place"
    )
    monkeypatch.setattr("os.access", lambda *_: False)
    assert f"may not write in {tmp_path}:" in find_obstacle(tmp_path / "new" / "a.db")
    assert "may not write it:" in find_obstacle(tmp_path / "file")


@pytest.mark.parametrize("place", ["file/a.db", "file"], ids=["no directory", "foreign"])
def test_an_unusable_store_is_reported_when_the_runtime_is_made_and_calls_go_on(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING, "failsoft"):
        rt = Runtime(store=f"sqlite:///{tmp_path}/{place}")
        (told,) = [record.getMessage() for record in caplog.records if not hasattr(record, "event_type")]
    assert "the store cannot be used now (" in told
    assert str(tmp_path / place) in told
    rt.add(lambda: 1, id="search", timeout=None)
    assert asyncio.run(rt.call("search")).value == 1  # type: ignore[arg-type]
    asyncio.run(rt.close())
    assert len([record for record in caplog.records if "cannot be used" in record.getMessage()]) == 1
    assert (tmp_path / "file").read_text() == "in the way"
