"""T1: half-open let everybody in (1,000 of 1,000). Here exactly one: of tasks, of threads, on a cold start too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import CallFailed, Runtime
from failsoft.runtime.execution import clock as clocks
from failsoft.stores.memory import MemoryStore

TASKS = 1_000
THREADS = 100
BREAKER = {"failure_threshold": 1, "timeout": "10s"}


async def by_name(rt: Runtime, guarded: Any) -> bool:
    return (await rt.call("search")).status == "succeeded"


async def by_function(rt: Runtime, guarded: Any) -> bool:
    try:
        await guarded()
    except CallFailed:
        return False
    return True


async def in_a_turn(rt: Runtime, guarded: Any) -> bool:
    async with rt.turn() as turn:
        handle = turn.call("search")
    return turn.report.outcomes[handle.id].status == "succeeded"


@pytest.mark.parametrize("way", [by_name, by_function, in_a_turn])
@virtual
async def test_t01_a_half_open_circuit_admits_one_of_1000_tasks(way: Callable[[Runtime, Any], Awaitable[bool]]) -> None:
    rt = Runtime()
    search = Scripted(DOWN, Takes(5, "flights"))
    guarded = rt.add(search, id="search", retry=ONCE, breaker=BREAKER)
    await rt.call("search")
    await asyncio.sleep(10)
    answers = await asyncio.gather(*(way(rt, guarded) for _ in range(TASKS)))
    assert search.attempts - 1 == 1
    assert sum(answers) == 1
    assert rt.health("search").state == "closed"


def test_t01_a_half_open_circuit_admits_one_of_100_threads() -> None:
    now = [0.0]
    rt = Runtime(clock=clocks.Clock(lambda: now[0], lambda: now[0], lambda _: None))
    others_are_done, together = threading.Event(), threading.Barrier(THREADS)
    refused: list[Any] = []
    entered: list[int] = []

    def search() -> str:
        if not entered:
            entered.append(0)
            raise DOWN
        entered.append(threading.get_ident())
        others_are_done.wait(20)
        return "flights"

    def ask() -> str:
        together.wait(20)
        outcome = rt.call_sync("search")
        if outcome.status == "failed":
            refused.append(outcome)
            if len(refused) == THREADS - 1:
                others_are_done.set()
        return outcome.status

    rt.add(search, timeout=None, retry=ONCE, breaker=BREAKER)
    rt.call_sync("search")
    now[0] = 10.0
    with ThreadPoolExecutor(THREADS) as pool:
        statuses = [ended.result() for ended in [pool.submit(ask) for _ in range(THREADS)]]
    assert len(entered) - 1 == 1
    assert statuses.count("succeeded") == 1
    assert {outcome.attempts for outcome in refused} == {0}


@virtual
async def test_t01_a_restored_circuit_admits_one_of_1000_calls() -> None:
    store = MemoryStore(wall=clocks.current().wall)
    before = Runtime(store=store)
    before.add(Scripted(DOWN), id="search", retry=ONCE, breaker=BREAKER)
    await before.call("search")
    await asyncio.sleep(10)
    rt = Runtime(store=store)  # as after a restart
    search = Scripted(Takes(5, "flights"))
    rt.add(search, id="search", retry=ONCE, breaker=BREAKER)
    outcomes = await asyncio.gather(*(rt.call("search") for _ in range(TASKS)))
    assert search.attempts == 1
    assert sum(outcome.status == "succeeded" for outcome in outcomes) == 1
