"""Circuits in the store: after a restart, shared with other processes, and with a store that fails."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, real, virtual

from failsoft import Runtime
from failsoft.errors import ManifestError
from failsoft.runtime.persistence import circuits
from failsoft.stores.memory import MemoryBreakers, MemoryStore
from failsoft.stores.ports import KeptCircuit, Watcher
from failsoft.stores.sqlite.breakers import SqliteBreakers

THREE = {"failure_threshold": 3, "timeout": "30s"}


async def kept_failures(rt: Runtime, store: MemoryStore) -> int:
    assert await rt.flush()
    found = store.breakers.load("search")
    assert found is not None
    return found[0].state.failures


# --- across restarts ---------------------------------------------------------------------------------------------------


async def open_circuit(store: MemoryStore, **more: Any) -> Runtime:
    rt = Runtime(store=store)
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=THREE, **more)
    for _ in range(3):
        await rt.call("search")
    assert rt.health("search").state == "open"
    assert await rt.flush()
    return rt


def restart(store: MemoryStore, *steps: Any) -> tuple[Runtime, Scripted]:
    rt, tool = Runtime(store=store), Scripted(*steps or ("fine",))
    rt.add(tool, id="search", retry=ONCE, breaker=THREE)
    return rt, tool


@virtual
async def test_an_open_circuit_stays_open_for_the_rest_of_its_time() -> None:
    store = MemoryStore()
    await open_circuit(store)
    await asyncio.sleep(20)
    rt, tool = restart(store)
    assert rt.health("search").state == "open"
    assert rt.health("search").retry_after == pytest.approx(10)
    outcome = await rt.call("search")
    assert (outcome.attempts, outcome.fault.retry_after) == (0, pytest.approx(10))  # type: ignore[union-attr]
    assert "UNAVAILABLE" in outcome.fault.message  # type: ignore[union-attr]  # what opened it is known
    await asyncio.sleep(10.001)
    assert rt.health("search").state == "half_open"
    assert (await rt.call("search")).value == "fine"
    assert rt.health("search").state == "closed"
    assert tool.attempts == 1
    assert await rt.flush()
    again, _ = restart(store)
    assert again.health("search").state == "closed"


@virtual
async def test_a_restored_circuit_whose_open_time_is_over_admits_one_probe() -> None:
    store = MemoryStore()
    await open_circuit(store)
    await asyncio.sleep(3600)
    rt, tool = restart(store, DOWN)
    assert rt.health("search").state == "half_open"
    await asyncio.gather(*(rt.call("search") for _ in range(5)))
    assert tool.attempts == 1
    assert rt.health("search").retry_after == pytest.approx(30)
    assert await rt.flush()
    await asyncio.sleep(29)
    assert restart(store)[0].health("search").retry_after == pytest.approx(1)


@virtual
async def test_failures_below_the_threshold_are_counted_across_processes() -> None:
    store = MemoryStore()
    for count in (1, 2):
        rt, tool = restart(store, DOWN)
        await rt.call("search")
        assert (rt.health("search").state, rt.health("search").failure_count) == ("closed", count)
        assert await rt.flush()
    rt, tool = restart(store, DOWN)
    await rt.call("search")
    assert rt.health("search").state == "open"
    assert await rt.flush()
    rt, tool = restart(store, DOWN)
    assert (await rt.call("search")).attempts == tool.attempts == 0


@virtual
async def test_a_success_in_another_process_resets_the_count() -> None:
    store = MemoryStore()
    rt, _ = restart(store, DOWN)
    await rt.call("search")
    assert await kept_failures(rt, store) == 1
    rt, _ = restart(store, "fine")
    assert (await rt.call("search")).value == "fine"
    assert await kept_failures(rt, store) == 0
    assert restart(store)[0].health("search").failure_count == 0


@virtual
async def test_plain_retries_are_counted_alike() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    script = Scripted(*[DOWN, Takes(5, "fine")] * 3)
    rt.add(script, id="search", breaker=THREE, retry={"initial_delay": "1s", "max_total_time": "60s"})
    for _ in range(3):  # from the second time on they take the short way
        task = asyncio.ensure_future(rt.call("search"))
        await asyncio.sleep(3)
        assert await kept_failures(rt, store) == 1
        assert (await task).value == "fine"
        assert await kept_failures(rt, store) == 0


@pytest.mark.parametrize(("threshold", "counted"), [(1, 0), (2, 1), (5, 2)])
@virtual
async def test_a_count_that_was_kept_opens_no_circuit_by_itself(threshold: int, counted: int) -> None:
    store = MemoryStore()
    store.put("breaker", "search", {"failures": 2})
    rt = Runtime(store=store)
    rt.add(Scripted("fine"), id="search", breaker={"failure_threshold": threshold}, retry=ONCE)
    assert (rt.health("search").state, rt.health("search").failure_count) == ("closed", counted)
    assert (await rt.call("search")).value == "fine"


@virtual
async def test_a_clock_set_back_keeps_no_circuit_open_for_longer_than_its_timeout() -> None:
    store = MemoryStore()
    await open_circuit(store)
    [(key, record)] = store.find("breaker")
    store.put("breaker", key, {**record, "since": record["since"] + 1e6})
    assert restart(store)[0].health("search").retry_after == pytest.approx(30)


@virtual
async def test_an_unreadable_record_is_ignored() -> None:
    store = MemoryStore()
    store.put("breaker", "search", {"until": "late"})
    rt, _ = restart(store)
    assert (await rt.call("search")).value == "fine"


@virtual
async def test_a_cooldown_for_one_primary_outlives_the_process_as_well() -> None:
    store = MemoryStore()

    def make(backup: Scripted) -> Runtime:
        rt = Runtime(store=store)
        cooldown = {"min_consecutive_failures": 1, "cooldown_duration": "30s"}
        rt.add(Scripted(INVALID), id="search", fallbacks=[{"tool": "backup", "cooldown": cooldown}])
        rt.add(backup, id="backup", retry=ONCE)
        return rt

    before = make(Scripted(DOWN))
    await before.call("search")
    assert await before.flush()
    after = Scripted("fine")
    rt = make(after)
    assert (await rt.call("search")).status == "failed"
    assert after.attempts == 0
    assert (await rt.call("backup")).value == "fine"  # only as a stand-in it is left alone
    await asyncio.sleep(31)
    assert (await rt.call("search")).via == "backup"


# --- shared by running processes ----------------------------------------------------------------------------------------


def share(store: MemoryStore, *steps: Any, **more: Any) -> tuple[Runtime, Scripted]:
    rt, tool = Runtime(store=store), Scripted(*steps)
    rt.add(tool, id="search", retry=ONCE, breaker=THREE, **more)
    return rt, tool


async def fail(rt: Runtime, times: int = 3) -> None:
    for _ in range(times):
        await rt.call("search")
    assert await rt.flush()


@virtual
async def test_a_circuit_opened_by_one_runtime_is_open_in_the_other() -> None:
    store = MemoryStore()
    (one, _), (other, tool) = share(store, DOWN), share(store, "fine")
    assert (await other.call("search")).value == "fine"
    await fail(one)
    assert other.health("search").state == "open"
    assert other.health("search").retry_after == pytest.approx(30)
    outcome = await other.call("search")
    assert (outcome.attempts, tool.attempts) == (0, 1)
    assert "UNAVAILABLE" in outcome.fault.message  # type: ignore[union-attr]  # the error that opened it is known


@virtual
async def test_a_circuit_closed_by_one_runtime_is_closed_in_the_other_and_admits_at_once() -> None:
    store = MemoryStore()
    (one, _), (other, _) = share(store, DOWN, DOWN, DOWN, "fine"), share(store, "fine")
    await fail(one)
    assert (await other.call("search")).attempts == 0  # the refusal that callers share has been made
    await asyncio.sleep(30.001)
    assert (await one.call("search")).value == "fine"
    assert await one.flush()
    assert other.health("search") == ("closed", 0, True, None, None)
    assert (await other.call("search")).value == "fine"


@virtual
async def test_a_call_admitted_before_another_runtime_opened_the_circuit_ends_without_closing_it() -> None:
    store = MemoryStore()
    (one, _), (other, _) = share(store, DOWN), share(store, Takes(10, "fine"))
    running = asyncio.ensure_future(other.call("search"))
    await asyncio.sleep(1)
    await fail(one)
    assert (await running).value == "fine"
    assert other.health("search").state == "open"


@virtual
async def test_running_processes_do_not_add_up_their_failures() -> None:
    store = MemoryStore()
    (one, _), (other, _) = share(store, DOWN), share(store, DOWN)
    await fail(one, 2)
    await fail(other, 2)
    assert [rt.health("search")[:2] for rt in (one, other)] == [("closed", 2), ("closed", 2)]


@virtual
async def test_two_runtimes_that_open_a_circuit_at_once_agree_on_one_opening() -> None:
    store = MemoryStore()
    (one, _), (other, _) = share(store, DOWN), share(store, DOWN)
    await asyncio.gather(*(rt.call("search") for rt in (one, other) for _ in range(3)))
    assert await one.flush()
    assert await other.flush()
    circuit, _ = store.breakers.load("search") or (None, 0)
    assert circuit is not None
    assert circuit.state.generation == 1
    assert one.health("search").retry_after == other.health("search").retry_after == pytest.approx(30)


@virtual
async def test_a_tool_registered_again_begins_with_a_closed_circuit() -> None:
    store = MemoryStore()
    (one, _), (other, _) = share(store, DOWN), share(store, DOWN)
    await fail(one)
    one.add(Scripted("fine"), id="search", retry=ONCE, breaker=THREE, replace=True)
    assert (await one.call("search")).value == "fine"
    assert other.health("search").state == "open"


@virtual
async def test_circuits_can_be_shared_by_another_store_than_the_events(tmp_path: Path) -> None:
    shared = MemoryStore().breakers
    one, other = Runtime(breakers=shared), Runtime(breakers=shared, store=f"sqlite:///{tmp_path}/a.db")
    for rt in (one, other):
        rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=THREE)
    await fail(one)
    assert other.health("search").state == "open"
    await one.close()
    await other.close()


@virtual
async def test_circuits_in_memory_are_neither_shared_nor_kept() -> None:
    store = MemoryStore()
    rt = Runtime(store=store, breakers="memory:")
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=THREE)
    await fail(rt)
    assert store.find("breaker") == []


@pytest.mark.parametrize("given", [object(), MemoryStore(), 3])
def test_an_object_that_is_no_breaker_store_is_refused(given: Any) -> None:
    with pytest.raises(ManifestError, match=r"breakers: expected an address, or an object .* which has no load"):
        Runtime(breakers=given)


# --- a breaker store in trouble -----------------------------------------------------------------------------------------


class Away(MemoryBreakers):
    """Fails, or hangs, until it is back."""

    def __init__(self, *, hangs: bool = False) -> None:
        super().__init__(MemoryStore())
        self.back = threading.Event()
        self.hangs = hangs

    def _fail(self) -> None:
        if self.hangs:
            self.back.wait(20)
        elif not self.back.is_set():
            raise ConnectionRefusedError("password=hunter2")

    def load(self, key: str) -> tuple[KeptCircuit, int] | None:
        self._fail()
        return super().load(key)

    def swap(self, key: str, version: int, circuit: KeptCircuit, *, ttl: float) -> int:
        self._fail()
        return super().swap(key, version, circuit, ttl=ttl)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        self._fail()
        return super().watch(watcher)


@pytest.mark.parametrize("hangs", [False, True])
@virtual
async def test_a_store_that_is_away_is_not_the_callers_problem(
    hangs: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuits, "START_PATIENCE", 0.05)
    monkeypatch.setattr(circuits, "FLUSH_PATIENCE", 0.05)
    monkeypatch.setattr(circuits, "RETRY_SECONDS", 0.01)
    store = Away(hangs=hangs)
    rt = Runtime(breakers=store)
    tool = Scripted(DOWN, DOWN, DOWN, "fine")
    rt.add(tool, id="search", retry=ONCE, breaker=THREE)
    began = time.monotonic()
    for _ in range(5):
        outcome = await rt.call("search")
        assert outcome.fault is not None
        assert "hunter2" not in outcome.fault.message
    assert tool.attempts == 3  # the circuit here has opened
    await asyncio.sleep(30.001)
    assert (await rt.call("search")).value == "fine"
    assert time.monotonic() - began < 2
    assert not await rt.flush("50ms")
    assert len([record for record in caplog.records if "cannot be shared" in record.message]) == (0 if hangs else 1)
    assert "hunter2" not in caplog.text
    monkeypatch.setattr(circuits, "FLUSH_PATIENCE", 10)
    store.back.set()
    assert await rt.flush("10s")
    circuit, _ = store.load("search") or (None, 0)
    assert circuit is not None
    assert circuit.state.state == "closed"


def test_a_call_that_fails_after_the_end_does_not_ask_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed SQLite store answers no request: the program waited for it at its exit, and logged a traceback."""
    rt = Runtime(store=f"sqlite:///{tmp_path}/a.db")
    begun, ended = threading.Event(), threading.Event()

    def fails() -> None:
        begun.set()
        ended.wait(20)
        raise ConnectionRefusedError("down")

    rt.add(fails, id="search", retry=ONCE, timeout="1m")
    calling = threading.Thread(target=rt.call_sync, args=("search",))
    calling.start()
    assert begun.wait(20)
    asyncio.run(rt.close(0))
    asked: list[str] = []
    monkeypatch.setattr(SqliteBreakers, "swap", lambda self, key, *_, **__: asked.append(key) or 1)
    ended.set()
    calling.join(20)
    circuits._flush_all()
    assert rt.health("search").failure_count == 1
    assert asked == []


@virtual
async def test_a_store_of_ones_own_without_breakers_keeps_circuits_as_records() -> None:
    class Plain(MemoryStore):
        breakers = property(lambda self: None, lambda self, value: None)  # type: ignore[assignment]

    store = Plain()
    rt, _ = share(store, DOWN)
    await fail(rt)
    assert restart(store)[0].health("search").state == "open"


# --- several processes --------------------------------------------------------------------------------------------------

OPENS = """
import asyncio, sys
from failsoft import Runtime

async def main():
    async with Runtime(store=sys.argv[1]) as rt:
        @rt.tool(id="search", retry={"max_attempts": 1}, breaker={"failure_threshold": 2, "timeout": "30s"})
        async def search(): raise ConnectionError("down")
        for _ in range(2):
            await rt.call("search")

asyncio.run(main())
"""


@real
async def test_a_circuit_opened_by_another_process_is_known_here_within_a_second(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/shared.db"
    async with Runtime(store=address) as rt:
        tool = Scripted("fine")
        rt.add(tool, id="search", retry=ONCE, breaker=THREE)
        assert (await rt.call("search")).value == "fine"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", OPENS, address)
        assert await process.wait() == 0
        until = time.monotonic() + 10
        while rt.health("search").state == "closed" and time.monotonic() < until:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        assert rt.health("search").state == "open"
        assert (await rt.call("search")).attempts == 0
        assert tool.attempts == 1
