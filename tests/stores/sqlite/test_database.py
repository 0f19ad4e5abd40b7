"""Files of other versions: one that 0.1.0 wrote is used as it is, one that a newer failsoft wrote is refused."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from failsoft import Runtime
from failsoft.errors import ManifestError
from failsoft.stores.ports import key_of
from failsoft.stores.sqlite import database as sqlite_file
from failsoft.stores.sqlite.store import SqliteStore

# Written by 0.1.0, which was killed in the middle of a turn; only the times at which its records end were changed.
WRITTEN = Path(__file__).with_name("written_by_0_1_0.db")
AT = 1_794_953_900.0  # a minute and a half after that


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(WRITTEN, tmp_path / "failsoft.db"))


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_file_of_0_1_0_keeps_what_it_has(old: Path) -> None:
    assert version(old) == 1
    store = SqliteStore(old, wall=lambda: AT)
    assert len(store.read()) == 13
    assert store.turns() == ["turn-1"] or set(store.turns()) == {"turn-1", "turn-2"}
    assert store.get("breaker", "search")["failures"] == 2
    assert [key for key, _ in store.find("availability")] == [key_of(None, "chat-42", "gone")]
    assert store.get("pending", key_of(None, "chat-42", "offer", "search"))["arguments"] == {"city": "Bern"}
    store.append([{"seq": 14}])
    assert store.flush(5)
    assert store.troubles.failures == 0
    store.close()
    assert version(old) == len(sqlite_file.MIGRATIONS)
    assert SqliteStore(old).read()[-1][1] == {"seq": 14}


def test_a_write_that_0_1_0_had_begun_has_a_record_of_its_own(old: Path) -> None:
    store = SqliteStore(old, wall=lambda: AT)
    ((key, value),) = store.find("pending", key_of("acme", "chat-42", "begun"))
    same = "7ed7f536387cf9c2d8061d0165c46b4c66a4d30020179062c08ea883fc33cb17"
    assert key == key_of("acme", "chat-42", "begun", "pay", "call_1", same)
    assert value == {"run": "224c2430a8878cc1882b7c78b65ce0e1", "turn": "turn-2"}
    store.close()


def test_an_older_file_can_be_read_if_it_cannot_be_written(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN  # type: ignore[misc]  # as SQLite sets it
        raise error

    monkeypatch.setattr(sqlite_file, "connect", refuse)
    store = SqliteStore(old, wall=lambda: AT)
    assert len(store.read()) == 13
    assert version(old) == 1


def test_a_newer_file_is_refused_in_clear_words(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    store = SqliteStore(path)
    store.put("memory", "k", 1)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(ManifestError) as raised:
        Runtime(store=f"sqlite:///{path}")
    known = len(sqlite_file.MIGRATIONS)
    assert str(raised.value) == (
        f"store: {path}: a newer failsoft has written it (its schema has version 99, this failsoft reads up to {known}): "
        "upgrade failsoft, or name another file"
    )
    late = SqliteStore(path)  # as if it had become newer meanwhile
    late.put("memory", "k", 2)
    assert not late.flush(0.2)
    assert late.troubles.last.startswith("a newer failsoft has written it")
    late.close()
    assert path.read_bytes() == before
