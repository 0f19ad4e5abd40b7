"""Events in the store: after a restart, after a crash, and with a store that fails."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, RESET, Scripted, real, virtual

from failsoft import Runtime, TurnReport
from failsoft.errors import ManifestError
from failsoft.runtime.persistence import event_writer
from failsoft.stores.memory import MemoryStore
from failsoft.stores.sqlite import writer as sqlite
from failsoft.stores.sqlite.store import SqliteStore

THREE = {"failure_threshold": 3, "timeout": "30s"}


def kept(store: MemoryStore | SqliteStore, turn_id: str | None = None) -> list[dict[str, Any]]:
    return [event for _, event in store.read(limit=1_000_000, turn_id=turn_id)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer than turns wait."""
    monkeypatch.setattr(event_writer, "PATIENCE", 20.0)


# --- addresses ---------------------------------------------------------------------------------------------------------


@real
async def test_an_address_is_opened_and_closed_with_the_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with Runtime(store="sqlite:///kept/failsoft.db") as rt:
        rt.add(Scripted("fine"), id="search")
        await rt.call("search")
        assert await rt.flush()
    assert [event["event_type"] for event in kept(SqliteStore("kept/failsoft.db"))] == ["CallSucceeded"]
    absolute = Runtime(store=f"sqlite:///{tmp_path}/other.db?synchronous=full")
    assert await absolute.flush()
    await absolute.close()


@pytest.mark.parametrize(
    "address",
    [
        "redis:",
        "sqlite:",
        "sqlite:///",
        "sqlite://host/a.db",
        "sqlite:///a.db?x=1",
        "sqlite:///a.db?max_age=1",
        "sqlite:///a.db?synchronous=off",
        "",
    ],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ManifestError, match="store"):
        Runtime(store=address)


@real
async def test_a_store_object_stays_its_owners() -> None:
    store = MemoryStore()
    async with Runtime(store=store) as rt:
        rt.add(Scripted("fine"), id="search")
        await rt.call("search")
    assert len(kept(store)) == 1
    store.put("memory", "k", 1)
    assert store.get("memory", "k") == 1  # still open


# --- events ------------------------------------------------------------------------------------------------------------


@virtual
async def test_the_store_has_what_the_trace_has() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    rt.add(Scripted(RESET, "fine"), id="search", retry={"initial_delay": "1s"})
    rt.add(Scripted("fine"), id="plain")
    async with rt.turn() as turn:
        turn.call("search")
        for _ in range(10):
            turn.call("plain")
    for _ in range(10):
        await rt.call("plain")
    assert await rt.flush()
    shown = json.loads(json.dumps([event.to_dict() for event in rt.events()]))
    assert kept(store) == shown
    assert kept(store, turn.report.turn_id) == [event for event in shown if event["turn_id"]]


@real
async def test_events_reach_the_store_soon_without_a_flush() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    rt.add(Scripted("fine"), id="search")
    await rt.call("search")
    for _ in range(40):
        await asyncio.sleep(0.1)
        if kept(store):
            break
    assert len(kept(store)) == 1
    await rt.close()


@pytest.mark.slow
def test_a_program_that_just_ends_loses_nothing(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom failsoft import Runtime\nrt = Runtime(store='sqlite:///' + sys.argv[1])\n"
        "@rt.tool\nasync def search(): return 1\nasyncio.run(search())\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.db")], check=True)
    assert [event["event_type"] for event in kept(SqliteStore(tmp_path / "a.db"))] == ["CallSucceeded"]


@real
async def test_the_end_of_a_turn_is_durable(tmp_path: Path, patient: None) -> None:
    rt = Runtime(store=f"sqlite:///{tmp_path}/a.db")
    rt.add(Scripted("fine"), id="search")
    async with rt.turn() as turn:
        turn.call("search")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        rows = connection.execute("SELECT total(count) FROM event").fetchone()
    assert (turn.acknowledged, rows) == (True, (3.0,))  # its start, the call, its end
    await rt.close()


@real
async def test_turns_of_one_id_side_by_side_are_both_acknowledged(patient: None) -> None:
    rt = Runtime(store=MemoryStore())
    rt.add(Scripted("fine", "fine"), id="search")
    async with rt.turn(id="same") as first:
        first.call("search")
        async with asyncio.TaskGroup() as group:
            group.create_task(_begin_and_end(second := rt.turn(id="same")))
    assert (first.acknowledged, second.acknowledged) == (True, True)
    await rt.close()


async def _begin_and_end(turn: Any) -> None:
    async with turn:
        turn.call("search")


@real
async def test_a_turn_that_breaks_off_is_durable_too(tmp_path: Path, patient: None) -> None:
    rt = Runtime(store=f"sqlite:///{tmp_path}/a.db")
    with pytest.raises(RuntimeError, match="body"):
        async with rt.turn() as turn:
            raise RuntimeError("body")
    assert turn.acknowledged
    await rt.close()


class Stuck(MemoryStore):
    """Takes everything, and never says that it is safe."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def flush(self, timeout: float) -> bool:
        self.waits += 1
        time.sleep(timeout)
        return False


@real
async def test_a_store_in_trouble_delays_one_turn_a_little_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Stuck()
    rt = Runtime(store=store)
    rt.add(Scripted("fine"), id="search")
    reports: list[TurnReport] = []
    began = time.monotonic()
    for _ in range(20):
        async with rt.turn() as turn:
            turn.call("search")
        assert not turn.acknowledged
        reports.append(turn.report)
    assert time.monotonic() - began < 2 * event_writer.PATIENCE
    assert store.waits == 1
    assert all(report.results for report in reports)
    monkeypatch.setattr(event_writer, "PAUSE", 0.0)
    rt._engine.books.writer._paused_until = 0.0  # type: ignore[union-attr]  # the pause is over
    async with rt.turn():
        pass
    assert store.waits == 2
    assert not await rt.flush("10ms")


class Losing(MemoryStore):
    """Loses the next batches of events."""

    lose = 0

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        if self.lose:
            self.lose -= 1
            raise OSError("the disk is gone")
        super().append(events)


@real
async def test_no_turn_is_acknowledged_that_has_lost_something(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "PAUSE", 0.0)
    store = Losing()
    rt = Runtime(store=store)
    first, second = rt.turn(), rt.turn()
    await first.__aenter__()
    await second.__aenter__()
    store.lose = 1
    await asyncio.to_thread(rt._engine.books.writer.flush, time.monotonic() + 20)  # type: ignore[union-attr]
    for turn in (first, second):  # both have lost their first events, whichever flush reported it
        await turn.__aexit__(None, None, None)
        assert not turn.acknowledged
        assert kept(store, turn.id)[0]["event_type"] == "TurnEnded"
    async with rt.turn() as later:
        pass
    assert later.acknowledged
    await rt.close()


@real
async def test_a_loss_noticed_by_a_turn_is_reported_to_the_next_flush(patient: None) -> None:
    store = Losing()
    rt = Runtime(store=store)
    store.lose = 1
    async with rt.turn() as turn:
        pass
    assert not turn.acknowledged
    assert not await rt.flush()
    assert await rt.flush()
    await rt.close()


@real
async def test_a_turn_is_not_acknowledged_if_the_store_dropped_events(
    patient: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(event_writer, "PAUSE", 0.0)
    store = SqliteStore(tmp_path / "a.db")
    rt = Runtime(store=store)
    async with rt.turn() as outer:
        async with rt.turn() as inner:
            with monkeypatch.context() as patched:
                patched.setattr(sqlite, "MOST_WAITING", 0)
                await asyncio.to_thread(rt._engine.log.trace.flush, time.monotonic() + 20)
        assert not inner.acknowledged
    assert not outer.acknowledged
    assert store.troubles.dropped == 2
    assert not await rt.flush()
    assert await rt.flush()
    await rt.close()
    store.close()


@real
async def test_events_delayed_by_a_locked_file_are_not_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(event_writer, "PAUSE", 0.0)
    store = SqliteStore(tmp_path / "a.db")
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    rt = Runtime(store=store)
    async with rt.turn() as outer:
        async with rt.turn() as inner:
            pass
        assert not inner.acknowledged  # it takes too long
        holder.close()
        assert await rt.flush("20s")
        monkeypatch.setattr(event_writer, "PATIENCE", 20.0)
    assert outer.acknowledged
    await rt.close()
    store.close()


@real
async def test_a_subscriber_in_trouble_is_no_loss_of_the_store(patient: None) -> None:
    rt = Runtime(store=MemoryStore())

    def broken(event: Any) -> None:
        raise RuntimeError("cannot listen")

    rt.subscribe(broken)
    async with rt.turn() as turn:
        pass
    assert turn.acknowledged
    await rt.close()


@real
async def test_busy_threads_keep_no_turn_from_being_kept(patient: None) -> None:
    rt = Runtime(store=MemoryStore())
    held = threading.Event()
    loop = asyncio.get_running_loop()
    busy = [loop.run_in_executor(None, held.wait) for _ in range(100)]
    async with rt.turn() as turn:
        pass
    assert turn.acknowledged
    held.set()
    await asyncio.gather(*busy)


@real
async def test_an_unwritable_store_does_not_affect_callers(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    rt = Runtime(store=f"sqlite:///{tmp_path}/file/a.db")
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1})
    async with rt.turn(thread="chat") as turn:
        turn.call("search")
    assert turn.report.failures["search-1"].fault is not None
    assert rt.threads["chat"].offers
    assert not await rt.flush("10ms")


# --- crashes (T25) -----------------------------------------------------------------------------------------------------

LOAD = """
import asyncio, sys
from failsoft import Runtime

async def main():
    rt = Runtime(store="sqlite:///" + sys.argv[1])
    numbers = iter(range(10**9))

    @rt.tool(read_only=True, retry={"initial_delay": "1ms"}, breaker={"failure_threshold": 10**6})
    async def search(n):
        if next(numbers) % 5 == 0:
            raise ConnectionResetError("reset")
        await asyncio.sleep(0)
        return n

    @rt.tool
    async def plain(n):
        return n

    async def turns(name):
        number = 0
        while True:
            number += 1
            async with rt.turn(id=f"{name}-{number}", thread=name) as turn:
                for n in range(5):
                    turn.call("search", {"n": n})
                    turn.call("plain", {"n": n})
            if turn.acknowledged:
                print(turn.id, len(turn.report.trace), flush=True)

    async def calls():
        done = 0
        while True:
            for n in range(300):
                await plain(n)
            done += 300
            if await rt.flush():
                print("calls", done, flush=True)

    await asyncio.gather(turns("a"), turns("b"), calls())

asyncio.run(main())
"""


@pytest.mark.slow
def test_T25_kill_minus_nine_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    draw = random.Random(25)
    for number in range(int(os.environ.get("FAILSOFT_KILLS", "5"))):
        path = tmp_path / f"{number}.db"
        program = subprocess.Popen([sys.executable, "-c", LOAD, str(path)], stdout=subprocess.PIPE, text=True)
        with program:
            assert program.stdout is not None
            first = program.stdout.readline()
            time.sleep(draw.uniform(0.0, 0.15))
            program.send_signal(signal.SIGKILL)
            lines = [line.split() for line in (first + program.stdout.read()).splitlines(keepends=True) if "\n" in line]
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found: dict[str | None, int] = {}
        for event in kept(SqliteStore(path)):
            key = event["turn_id"] or ("calls" if event["tool_id"] == "plain" else None)
            found[key] = found.get(key, 0) + 1
        lost = {name: (int(size), found.get(name, 0)) for name, size in lines if found.get(name, 0) < int(size)}
        assert not lost
        assert lines
