"""A store that is slow to read: the event loop goes on, and no read is made on its thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, real

from failsoft import Runtime
from failsoft.adapters.plain import close_tool_calls
from failsoft.integration import explain_unanswered_async
from failsoft.runtime.persistence import store_reads
from failsoft.stores import failsafe
from failsoft.stores.memory import MemoryStore

READS = ("get", "find", "take", "claim", "read", "turns", "flush")


class Slow(MemoryStore):
    """Every read lasts until the event loop has gone round, and is counted as blocking if it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: asyncio.AbstractEventLoop | None = None  # None: reads are quick
        self.thread = threading.current_thread()  # the loop's
        self.asked: list[str] = []
        self.on_loop: list[str] = []
        self.blocking: list[str] = []
        for name in READS:
            setattr(self, name, self._watched(name, getattr(self, name)))
        for name in ("load", "swap", "watch"):
            setattr(self.breakers, name, self._watched(name, getattr(self.breakers, name)))

    def _watched(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **more: Any) -> Any:
            self.asked.append(name)
            if threading.current_thread() is self.thread:
                self.on_loop.append(name)
            elif self.loop is not None:
                gone_round = threading.Event()
                self.loop.call_soon_threadsafe(gone_round.set)
                if not gone_round.wait(1.0):
                    self.blocking.append(name)
            return read(*args, **more)

        return watched


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer than calls wait."""
    monkeypatch.setattr(store_reads, "PATIENCE", 20.0)


async def made() -> tuple[Runtime, Slow]:
    store = Slow()
    rt = Runtime(store=store)
    rt.add(
        Scripted(DOWN, "fine"),
        id="search",
        retry=ONCE,
        read_only=True,
        breaker={"failure_threshold": 1, "timeout": "10ms"},
    )
    rt.add(Scripted("paid"), id="pay", idempotent=False)
    store.loop = asyncio.get_running_loop()
    return rt, store


@real
async def test_calls_turns_retries_and_writes_neither_read_on_the_loop_nor_block_it() -> None:
    rt, store = await made()
    before = len(store.asked)
    await rt.call("search", thread="chat")
    await asyncio.sleep(0.02)
    assert (await rt.threads["chat"].retry("search")).value == "fine"
    async with rt.turn(thread="chat") as turn:
        turn.call("pay", id="c1")
    assert turn.report.outcomes["c1"].value == "paid"
    assert await rt.flush()
    assert {"find", "take", "claim", "swap", "flush"} <= {*store.asked[before:]}
    assert (store.on_loop, store.blocking) == ([], [])
    await rt.close()


@real
async def test_interrupted_calls_are_explained_without_reading_on_the_loop_or_blocking_it() -> None:
    rt, store = await made()
    running = asyncio.ensure_future(_cancelled(rt))
    await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    before = len(store.asked)
    [outcome] = await explain_unanswered_async(rt, [("c9", "slow")], thread="chat")
    assert outcome.status == "cancelled"
    assert "find" in store.asked[before:]
    assert (store.on_loop, store.blocking) == ([], [])
    await rt.close()


async def _cancelled(rt: Runtime) -> None:
    rt.add(lambda: asyncio.sleep(20), id="slow", idempotent=False)
    async with rt.turn(thread="chat") as turn:
        await turn.call("slow", id="c9")


@real
async def test_synchronous_queries_read_the_store_on_another_thread() -> None:
    rt, store = await made()
    store.loop = None  # the loop waits here, but not for ever
    await rt.call("search", thread="chat")
    thread = rt.threads["chat"]
    assert [offer.tool for offer in thread.offers] == ["search"]
    assert thread.dangling == []
    assert close_tool_calls(rt, [{"id": "a", "name": "pay", "input": {}, "type": "tool_use"}], thread="chat")
    thread.clear()
    assert {*store.asked} >= {"find", "watch"}
    assert store.on_loop == []
    await rt.close()


@real
async def test_a_store_that_hangs_stops_neither_a_new_runtime_nor_a_look_at_a_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(failsafe, "PATIENCE", 0.05)
    monkeypatch.setattr("failsoft.runtime.persistence.circuits.START_PATIENCE", 0.05)
    back = threading.Event()

    class Hangs(MemoryStore):
        def find(self, kind: Any, scope: str = "") -> list[tuple[str, Any]]:
            back.wait(20)
            return super().find(kind, scope)

    rt = Runtime(store=Hangs())
    rt.add(Scripted("fine"), id="search")
    assert (await rt.call("search", thread="chat")).value == "fine"
    assert rt.threads["chat"].offers == []
    assert [record.message for record in caplog.records if "failed; calls go on without it" in record.message]
    back.set()
    await rt.close()
