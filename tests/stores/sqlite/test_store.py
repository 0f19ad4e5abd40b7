"""The SQLite file: crashes, sharing, pruning, migration and damage."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.torture.interrupting import At

from failsoft.observe.success_runs import Run
from failsoft.stores.sqlite import database as sqlite_file
from failsoft.stores.sqlite import fork
from failsoft.stores.sqlite import location as sqlite_place
from failsoft.stores.sqlite import reader as sqlite_reader
from failsoft.stores.sqlite import writer as sqlite
from failsoft.stores.sqlite.store import SqliteStore

WRITER = """
import sys, time
from failsoft.stores.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
n = 0
while True:
    store.append([{"seq": n + i, "turn_id": sys.argv[2]} for i in range(20)])
    n += 20
    if store.flush(10):
        print(n, flush=True)
"""


def start_writer(path: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True)


def test_stored_values_survive_a_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.put("memory", "k", {"a": 1})
    store.append([{"seq": 1}])
    assert store.flush(5)
    other = SqliteStore(tmp_path / "a.db")
    assert other.get("memory", "k") == {"a": 1}
    assert [event for _, event in other.read()] == [{"seq": 1}]
    store.close()
    other.close()


def test_a_damaged_record_does_not_hide_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(SqliteStore(tmp_path / "a.db")) as store:
        for key in "abc":
            store.put("pending", key, {"is": key})
        assert store.flush(5)
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            connection.execute("UPDATE record SET value = '{half' WHERE key = 'b'")
        assert store.find("pending") == [("a", {"is": "a"}), ("c", {"is": "c"})]
        assert "a damaged record (pending) is left out" in caplog.text


@pytest.mark.slow
def test_kill_minus_nine_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kills = int(os.environ.get("FAILSOFT_KILLS", "10"))
    for number in range(kills):
        path = tmp_path / f"{number}.db"
        writer = start_writer(path, "t")
        with writer:
            assert writer.stdout is not None
            acknowledged = int(writer.stdout.readline())
            time.sleep(0.002 * (number % 10))
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        store = SqliteStore(path)
        seqs = [event["seq"] for _, event in store.read(limit=10_000_000)]
        assert seqs[:acknowledged] == list(range(acknowledged))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        store.close()


def test_two_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    writers = {name: start_writer(path, name) for name in ("one", "two")}
    acknowledged = {}
    for writer in writers.values():
        assert writer.stdout is not None
        for _ in range(20):  # both are at work
            assert int(writer.stdout.readline())
    for name, writer in writers.items():
        with writer:
            writer.send_signal(signal.SIGKILL)
            assert writer.stdout is not None
            acknowledged[name] = max(map(int, writer.stdout.read().split()), default=400)
    store = SqliteStore(path)
    for name, least in acknowledged.items():
        assert [event["seq"] for _, event in store.read(turn_id=name, limit=10_000_000)][:least] == list(range(least))
    store.close()


def damaged(text: bytes) -> bytes:
    """A store of ours of which nothing is left but its mark."""
    mark = sqlite_place.MARK.to_bytes(4, "big")
    return (text * 68)[:68] + mark + text * 1000


def test_a_damaged_store_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "broken.db"
    path.write_bytes(damaged(b"this was a database"))
    store = SqliteStore(path)
    with caplog.at_level(logging.WARNING, "failsoft"):
        store.put("memory", "k", 1)
        assert store.flush(10)
    assert store.get("memory", "k") == 1
    [aside] = tmp_path.glob("broken.db.damaged-*")
    assert aside.read_bytes().startswith(b"this was a database")
    assert "it was moved to" in caplog.text
    store.close()


@pytest.fixture
def untraced() -> Iterator[None]:
    yield
    sys.settrace(None)


@pytest.mark.usefixtures("untraced")
def test_an_interrupted_checkpoint_does_not_count_as_damage(tmp_path: Path) -> None:
    """As a full disk leaves it, or a kill: its head tells of pages that only the WAL has."""
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"event_type": "Told", "number": number} for number in range(100)])
    assert store.flush(5)
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / f"a.db{suffix}", tmp_path / f"b.db{suffix}")
    store.close()
    with (tmp_path / "b.db").open("r+b") as file:
        file.seek(28)
        file.write((1000).to_bytes(4, "big"))  # pages
    left = SqliteStore(tmp_path / "b.db")
    left.append([{"event_type": "Told", "number": 100}])
    assert left.flush(5)
    assert [event["number"] for _, event in left.read()] == list(range(101))
    left.close()
    assert not list(tmp_path.glob("*damaged*"))


def test_an_unwritable_path_is_reported_once_and_values_stay_readable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 0.01)
    (tmp_path / "file").write_text("in the way")
    store = SqliteStore(tmp_path / "file" / "a.db")  # a file where a directory should be
    with caplog.at_level(logging.WARNING, "failsoft"):
        store.put("memory", "k", 1)
        store.append([{"seq": 1}])
        assert not store.flush(0.1)
    assert store.get("memory", "k") == 1, "what waits is seen"
    assert store.troubles.failures > 1
    assert len([record for record in caplog.records if "cannot be used" in record.message]) == 1
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.1)
    store.close()
    wait_for(lambda: store.lost == store.troubles.dropped == 2)


def test_a_locked_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 0.01)
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    store.put("memory", "k", 1)
    assert store.flush(5)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        store.put("memory", "k", 2)
        assert not store.flush(0.2)
        holder.execute("COMMIT")
    assert store.flush(5)
    assert SqliteStore(path).get("memory", "k") == 2
    store.close()


def test_readers_do_not_wait_for_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": 1, "turn_id": "t"}])
    assert store.flush(5)
    monkeypatch.setattr(sqlite, "write", refuse_write)
    store.append([{"seq": 2}])
    wait_for(lambda: store._stuck)
    monkeypatch.setattr(store, "_is_written", lambda timeout: pytest.fail(f"waited for up to {timeout} s"))
    assert [event["seq"] for _, event in store.read()] == [1]
    assert store.turns() == ["t"]


def test_a_file_that_cannot_be_written_gets_one_more_try_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 3600.0)
    store = SqliteStore(tmp_path / "a.db")
    with monkeypatch.context() as failing:
        failing.setattr(sqlite, "write", refuse_write)
        store.append([{"seq": 1}])
        wait_for(lambda: store._stuck)
    store.close()
    assert store.lost == 0
    assert [event["seq"] for _, event in SqliteStore(tmp_path / "a.db").read()] == [1]


def refuse_write(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_a_store_that_is_dropped_without_being_closed_closes_its_connections(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.put("memory", "k", 1)
    assert store.flush(5)
    reading = SqliteStore(tmp_path / "a.db")
    assert reading.get("memory", "k") == 1
    connection = reading._reader._connection
    assert connection is not None
    del reading
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    store.close()


def test_too_much_waiting_is_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MOST_WAITING", 10)
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": n} for n in range(11)])
    assert store.troubles.dropped == 11
    assert not store.flush(5), "what was dropped is not acknowledged"
    assert store.flush(5), "and that is told once"
    store.close()


def test_a_newer_file_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 0.01)
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        store = SqliteStore(path)
        store.put("memory", "k", 1)
        assert not store.flush(0.1)
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.1)
    store.close()


def test_an_older_file_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.db"
    store = SqliteStore(path)
    store.put("memory", "k", 1)
    store.close()
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", (*sqlite_file.MIGRATIONS, "CREATE TABLE extra (a)"))
    newer = SqliteStore(path)
    newer.put("memory", "l", 2)
    assert newer.flush(5)
    assert newer.find("memory") == [("k", 1), ("l", 2)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(sqlite_file.MIGRATIONS),)
    newer.close()


def test_pruning_by_age_and_by_number(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": n, "timestamp": f"2026-01-{n + 1:02}T00:00:00.000Z"} for n in range(10)])
    assert store.prune(before="2026-01-04T00:00:00.000Z") == 3
    assert store.prune(most=2) == 5
    assert [event["seq"] for _, event in store.read()] == [8, 9]
    store.close()


def test_pruning_counts_the_events_of_runs(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    for first, day in ((1, 0), (5, 86_400)):
        store.append(Run(first, 1.7e9 + day, None, ["a"] * 4, [None] * 4, [0.0] * 4, [0.5] * 4))
    assert store.prune(before="2023-11-15T00:00:00.000Z") == 4
    assert [event["seq"] for _, event in store.read()] == [5, 6, 7, 8]
    assert store.prune(most=2) == 0, "a run goes as a whole"
    assert store.prune(most=0) == 4
    store.close()


def test_pruning_by_size(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": n, "text": "x" * 1000} for n in range(1000)])
    assert store.prune(size=500_000) > 400
    kept = [event["seq"] for _, event in store.read(limit=1000)]
    assert kept == [*range(1000 - len(kept), 1000)], "the oldest go"
    assert 400_000 < (tmp_path / "a.db").stat().st_size < 800_000
    assert store.prune(size=1) >= len(kept) - 1
    store.close()


def test_the_writer_prunes_by_itself(tmp_path: Path) -> None:
    now = [1_767_225_600.0]  # 2026-01-01
    store = SqliteStore(tmp_path / "a.db", wall=lambda: now[0], max_age=3600)
    store.append(
        [{"seq": 1, "timestamp": "2025-12-31T22:59:59.000Z"}, {"seq": 2, "timestamp": "2025-12-31T23:00:01.000Z"}]
    )
    assert store.flush(5)
    wait_for(lambda: [event["seq"] for _, event in store.read()] == [2])
    store.append([{"seq": 3, "timestamp": "2025-12-31T22:59:59.000Z"}])
    assert len(store.read()) == 2  # not all the time
    now[0] += 601
    store.append([{"seq": 4}])
    wait_for(lambda: [event["seq"] for _, event in store.read()] == [4])
    store.close()


def test_the_file_keeps_to_its_size_however_fast_it_is_fed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db", max_size=400_000)
    largest = 0
    for number in range(60):
        store.append([{"seq": number * 50 + n, "text": "x" * 1000} for n in range(50)])
        assert store.flush(20)
        store._changed.acquire()  # the writer is past its pruning when it waits again
        store._changed.release()
        largest = max(largest, (tmp_path / "a.db").stat().st_size)
    kept = [event["seq"] for _, event in store.read(limit=10_000)]
    assert largest < 800_000
    assert 200 < len(kept) < 500
    assert kept == [*range(3000 - len(kept), 3000)]
    store.close()


def wait_for(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_lone_surrogates_are_stored_unchanged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": 1, "turn_id": "turn \ud800", "error": "\udfff"}])
    assert store.flush(5)
    assert [event for _, event in store.read(turn_id="turn \ud800")] == [
        {"seq": 1, "turn_id": "turn \ud800", "error": "\udfff"}
    ]
    store.close()


def test_only_events_that_can_never_be_written_are_dropped(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": 1, "timestamp": {"not": "a text"}}])
    wait_for(lambda: store.troubles.dropped == 1)
    assert not store.flush(5), "what was dropped is not acknowledged"
    store.append([{"seq": 2}])
    assert store.flush(5)
    assert [event["seq"] for _, event in store.read()] == [2]
    assert store.troubles.failures == 1
    store.close()


def test_a_forked_child_writes_for_itself(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": 1}])
    assert len(store.read()) == 1
    child = os.fork()
    if child == 0:
        store.append([{"seq": 2}])
        os._exit(0 if store.flush(10) and len(store.read()) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.append([{"seq": 3}])
    assert [event["seq"] for _, event in store.read()] == [1, 2, 3]
    store.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("patience", "found"), [(10.0, 0), (0.01, 1)], ids=["done with", "it takes too long"])
def test_a_fork_waits_briefly_for_a_running_write(
    patience: float, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[int] = []
    began = threading.Event()

    def write_slowly(*args: Any) -> None:
        inside.append(1)
        began.set()
        time.sleep(0.3)
        sqlite_file.write(*args)
        inside.pop()

    monkeypatch.setattr(sqlite, "write", write_slowly)
    monkeypatch.setattr(fork, "FORK_SECONDS", patience)
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"event_type": "Told"}])
    assert began.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(len(inside))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == found
    store.append([{"event_type": "Told"}])  # the parent goes on
    assert store.flush(10)
    assert len(store.read()) == 2
    store.close()


def test_records_whose_time_is_over_leave_the_file(tmp_path: Path) -> None:
    now = [1000.0]
    store = SqliteStore(tmp_path / "a.db", wall=lambda: now[0])
    store.put("pending", "old", 1, ttl=1)
    assert store.flush(5)
    now[0] += 2
    store.put("pending", "new", 1)
    assert store.flush(5)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        rows = connection.execute("SELECT key FROM record").fetchall()
    assert rows == [("new",)]
    store.close()


def test_the_latest_turns_come_first(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"turn_id": turn} for turn in ("a", "b", None, "a", "c")])
    assert store.turns() == ["c", "a", "b"]
    store.close()


@pytest.mark.parametrize("wrong", ["off", "", None])
def test_synchronous_is_normal_or_full(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(ValueError, match="synchronous"):
        SqliteStore(tmp_path / "a.db", synchronous=wrong)  # type: ignore[arg-type]
    store = SqliteStore(tmp_path / "a.db", synchronous="full")
    with closing(store._connect()) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


# --- how it waits --------------------------------------------------------------------------------------------------------


def transactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all batches that are written from now on."""
    sizes: list[int] = []

    def write(connection: sqlite3.Connection, operations: Sequence[Any], now: float) -> None:
        sizes.append(len(operations))
        sqlite_file.write(connection, operations, now)

    monkeypatch.setattr(sqlite, "write", write)
    return sizes


def test_events_in_quick_succession_share_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LINGER", 60.0)
    sizes = transactions(monkeypatch)
    store = SqliteStore(tmp_path / "a.db")
    for number in range(50):
        store.append([{"seq": number}])
    began = time.monotonic()
    assert store.flush(20)
    assert time.monotonic() - began < 10, "who waits for it is served at once"
    assert sizes == [50]
    monkeypatch.setattr(sqlite, "ENOUGH", 3)
    for number in range(3):
        store.append([{"seq": number}])
    wait_for(lambda: sizes == [50, 3])
    store.close()


def test_events_are_written_soon_without_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LINGER", 0.01)
    sizes = transactions(monkeypatch)
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": 1}])
    wait_for(lambda: sizes == [1])
    store.close()


def test_flush_waits_for_what_was_there_and_not_for_what_comes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "a.db")

    def write(connection: sqlite3.Connection, operations: Sequence[Any], now: float) -> None:
        sqlite_file.write(connection, operations, now)
        store.append([{"seq": 0}])  # there is always more

    monkeypatch.setattr(sqlite, "write", write)
    store.append([{"seq": 1}])
    assert store.flush(10)
    monkeypatch.setattr(sqlite, "write", sqlite_file.write)
    store.close()


def test_reading_does_not_hide_a_loss_from_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MOST_WAITING", 0)
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": 1}])
    assert store.read() == store.turns() == []
    assert not store.flush(5)
    store.close()


@pytest.mark.parametrize("made_before", [True, False])
def test_closing_a_locked_store_takes_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, made_before: bool
) -> None:
    monkeypatch.setattr(sqlite_reader, "PATIENCE", 0.05)
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.1)
    path = tmp_path / "a.db"
    if made_before:
        SqliteStore(path).put("memory", "k", 1)
        wait_for(path.exists)
    holder = sqlite3.connect(path, isolation_level=None, timeout=20)
    holder.execute("BEGIN EXCLUSIVE")
    store = SqliteStore(path)
    began = time.monotonic()
    for _ in range(10):
        store.find("memory")  # as a runtime does that begins
    store.append([{"seq": 1}])
    with caplog.at_level(logging.WARNING, "failsoft"):
        store.close()
    assert time.monotonic() - began < 2.0
    assert [record.getMessage() for record in caplog.records if "cannot be used" in record.message]
    holder.close()


def test_closing_continues_as_long_as_writes_make_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BATCH", 1)
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.2)

    def write(connection: sqlite3.Connection, operations: Sequence[Any], now: float) -> None:
        time.sleep(0.04)
        sqlite_file.write(connection, operations, now)

    monkeypatch.setattr(sqlite, "write", write)
    store = SqliteStore(tmp_path / "a.db")
    store.append([{"seq": number} for number in range(15)])
    store.close()
    monkeypatch.undo()
    assert len(SqliteStore(tmp_path / "a.db").read()) == 15


def test_a_damaged_file_is_moved_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(damaged(b"this was a database"))
    mine, other = SqliteStore(path), SqliteStore(path)
    mine._opened = sqlite_place.identity(path)
    other.put("memory", "k", 1)
    assert other.flush(20)
    mine._move_aside()  # it has seen the old one
    assert SqliteStore(path).get("memory", "k") == 1
    assert len([*tmp_path.glob("a.db.damaged-*")]) == 1
    mine.close()
    other.close()


def test_nothing_that_was_moved_aside_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "now")
    for text in (b"one", b"two", b"three"):
        path = tmp_path / "a.db"
        path.write_bytes(damaged(text))
        store = SqliteStore(path)
        store.put("memory", "k", 1)
        assert store.flush(20)
        store.close()
        for left in tmp_path.glob("a.db*"):
            if "damaged" not in left.name:
                left.unlink()
    assert {aside.read_bytes()[:3] for aside in tmp_path.glob("a.db.damaged-*")} == {b"one", b"two", b"thr"}


# --- where nothing can be written ------------------------------------------------------------------------------------------


@pytest.fixture
def unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in a place where SQLite may write nothing: not even for root."""
    store = SqliteStore(tmp_path / "a b#.db")
    store.append([{"seq": 1, "turn_id": "t"}])
    store.close()

    def refuse(*_: Any, **__: Any) -> sqlite3.Connection:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(sqlite_file, "connect", refuse)
    return tmp_path / "a b#.db"


def test_a_file_in_a_place_that_cannot_be_written_can_be_read(unwritable: Path) -> None:
    before = unwritable.read_bytes()
    store = SqliteStore(unwritable)
    assert [event["seq"] for _, event in store.read(turn_id="t")] == [1]
    assert store.turns() == ["t"]
    assert store.troubles.failures == 0
    store.close()
    assert unwritable.read_bytes() == before
    assert [each.name for each in unwritable.parent.iterdir()] == [unwritable.name]


def test_an_unwritable_file_with_a_pending_write_ahead_log_is_not_read(unwritable: Path) -> None:
    unwritable.with_name(f"{unwritable.name}-wal").write_bytes(b"something")
    store = SqliteStore(unwritable)
    assert store.read() == []
    assert "unable to open" in store.troubles.last
    store.close()


def test_a_read_only_file_that_needs_a_migration_is_not_read(unwritable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = len(sqlite_file.MIGRATIONS)
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", (*sqlite_file.MIGRATIONS, "CREATE TABLE extra (a)"))
    monkeypatch.setattr(sqlite_file, "READS", now + 1)
    store = SqliteStore(unwritable)
    assert store.read() == []
    assert store.troubles.last == f"its schema has version {now}: it has to be migrated, and it cannot be written"
    store.close()


def test_a_file_that_is_deleted_under_it_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    store.append([{"seq": 1}])
    assert len(store.read()) == 1
    for each in tmp_path.iterdir():
        each.unlink()
    assert store.read() == []
    store.append([{"seq": 2}])
    assert store.flush(20)
    assert [event["seq"] for _, event in SqliteStore(path).read()] == [2]
    assert [event["seq"] for _, event in store.read()] == [2]
    assert store.troubles == (0, 0, "")
    store.close()


def test_all_stores_on_a_damaged_file_move_to_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    one, two = SqliteStore(path), SqliteStore(path)
    for store in (one, two):
        store.append([{"seq": number, "text": "x" * 1000} for number in range(100)])
        assert store.flush(20)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    data = path.read_bytes()
    with path.open("r+b") as file:  # its pages, not its head
        file.seek(4096)
        file.write(b"\xff" * (len(data) - 4096))
    for number, store in enumerate((one, two), 1):
        store.append([{"seq": -number}])
        assert store.flush(20)
    assert [event["seq"] for _, event in SqliteStore(path).read()] == [-1, -2]
    assert len([*tmp_path.glob("a.db.damaged-*[0-9]")]) == 1
    one.close()
    two.close()


def test_an_extremely_large_max_age_drops_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db", max_age=1e13)
    for number in range(2):
        store.append([{"seq": number, "timestamp": "2026-01-01T00:00:00.000Z"}])
        assert store.flush(20)
    assert len(store.read()) == 2
    store.close()


def test_a_program_that_goes_elsewhere_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    store = SqliteStore("a.db")
    store.append([{"seq": 1}])
    assert store.flush(20)
    monkeypatch.chdir(tmp_path / "there")
    store.append([{"seq": 2}])
    assert [event["seq"] for _, event in store.read()] == [1, 2]
    store.close()
    assert [*(tmp_path / "there").iterdir()] == []
    assert str(store.path) == "a.db"


def test_flush_writes_by_itself_when_no_thread_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")  # as some versions of Python do at exit

    store = SqliteStore(tmp_path / "late.db")
    with monkeypatch.context() as ending:
        ending.setattr(threading.Thread, "start", refuse)
        store.put("memory", "k", 1)
        store.append([{"seq": 1}])
        assert store.claim("pending", {"c1": "begun"}, timeout=5) == {}
        assert store.take("memory", "k") == 1
        assert store.flush(5)
    assert store.troubles == sqlite.Troubles(0, 0)
    store.put("memory", "k", 2)  # a thread can be had again
    assert store.flush(5)
    store.close()
    kept = SqliteStore(tmp_path / "late.db")
    assert (kept.get("memory", "k"), kept.get("pending", "c1"), len(kept.read())) == (2, "begun", 1)


def test_requests_that_come_together_share_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write, at_work = sqlite.write, threading.Event()

    def slowly(connection: sqlite3.Connection, operations: list[sqlite_file.Operation], now: float) -> None:
        written.append(len(operations))
        at_work.wait()
        write(connection, operations, now)

    monkeypatch.setattr(sqlite, "write", slowly)
    store = SqliteStore(tmp_path / "many.db")
    claims = [
        threading.Thread(target=store.claim, args=("pending", {f"c{n}": n}), kwargs={"timeout": 5}) for n in range(50)
    ]
    for claim in claims:
        claim.start()
    at_work.set()
    for claim in claims:
        claim.join()
    assert sum(written) == 50
    assert len(written) <= 5
    store.close()


def test_a_request_that_timed_out_is_not_carried_out_later(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    store = SqliteStore(path)
    store.put("pending", "offer", 1)
    assert store.flush(5)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")  # nobody else can write
        with pytest.raises(TimeoutError):
            store.claim("pending", {"c1": 1}, timeout=0.1)
        store.put("memory", "k", 1)
        with pytest.raises(TimeoutError):
            store.claim("pending", {"c2": 1}, timeout=0.1)
        other.rollback()
    assert store.flush(10)
    assert store.get("pending", "c2") is None
    assert store.claim("pending", {"c2": 2}, timeout=5) == {}
    store.close()


def wait_for_writer(store: SqliteStore) -> None:
    """Wait until everything is written, without a flush."""
    until = time.monotonic() + 5
    while store._size > 0 and time.monotonic() < until:
        time.sleep(0.01)


def writers() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "failsoft sqlite" and one.is_alive()}


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("begun", [True, False], ids=["with a writer", "before there is a writer"])
def test_an_interrupted_append_neither_loses_count_nor_stops_the_writer(tmp_path: Path, begun: bool) -> None:
    """At each moment in turn at which a signal can be handled."""
    number, over, path = 1, False, tmp_path / "a.db"
    others = writers()
    store = SqliteStore(path)
    at = At(10**9, str(Path(sqlite.__file__).parent), "/threading.py")
    sys.settrace(at)  # on Python 3.12 the first run that is traced skips moments
    store.append([{"number": 0}])
    sys.settrace(at.rest())
    while not over:
        if not begun:
            store.close()
            store = SqliteStore(path)
        at = At(number, str(Path(sqlite.__file__).parent), "/threading.py")
        try:
            sys.settrace(at)
            store.append([{"number": number}, {"number": number}])
            over = at.left > 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(at.rest())
        store.append([{"after": number}])
        wait_for_writer(store)
        assert (store._size, store._waiting, store._waiters) == (0, [], []), at.where
        assert len(writers() - others) == 1, at.where
        number += 1
    assert number > 10
    assert store.flush(5)
    events = [event for _, event in store.read(limit=10 * number)]
    assert [event["after"] for event in events if "after" in event] == [*range(1, number)]
    assert {len([1 for event in events if event.get("number") == one]) for one in range(1, number)} <= {0, 2}
    store.close()


@pytest.mark.usefixtures("untraced")
def test_an_interrupted_flush_leaves_no_waiter(tmp_path: Path) -> None:
    number, over = 1, False
    store = SqliteStore(tmp_path / "a.db")
    while not over:
        store.append([{"number": number}])
        at = At(number, str(Path(sqlite.__file__).parent))
        try:
            sys.settrace(at)
            assert store.flush(5)
            over = at.left > 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(at.rest())
        wait_for_writer(store)
        assert store._waiters == [], at.where
        number += 1
    assert number > 5
    store.close()
