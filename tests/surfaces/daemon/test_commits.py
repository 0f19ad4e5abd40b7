"""Answers wait for the store together."""

from __future__ import annotations

import asyncio
import time

from tests.fakes import real

from failsoft.surfaces.daemon import commits
from failsoft.surfaces.daemon.commits import Commits


class Store:
    """Knows when commits began."""

    def __init__(self) -> None:
        self.begun: list[float] = []

    def commit(self, deadline: float) -> bool:
        self.begun.append(time.monotonic())
        return True


@real
async def test_the_first_commit_begins_at_once_and_later_ones_are_paced() -> None:
    store = Store()
    shared = Commits(store.commit)
    before = time.monotonic()
    assert await shared.wait()
    assert store.begun[0] - before < 1.0
    for _ in range(20):
        assert await shared.wait()
    shared.close()
    gaps = [later - earlier for earlier, later in zip(store.begun, store.begun[1:], strict=False)]
    assert len(gaps) == 20
    assert sum(gaps) / len(gaps) >= commits.PACE * 0.9


@real
async def test_answers_that_wait_at_the_same_time_share_a_commit() -> None:
    store = Store()
    shared = Commits(store.commit)
    assert all(await asyncio.gather(*(shared.wait() for _ in range(50))))
    shared.close()
    assert len(store.begun) == 1


@real
async def test_a_commit_begins_after_what_it_confirms() -> None:
    recorded, confirmed = [0], [0]

    def commit(deadline: float) -> bool:
        confirmed[0] = recorded[0]
        return True

    shared = Commits(commit)

    async def record(number: int) -> bool:
        await asyncio.sleep(number / 10_000)
        recorded[0] = mine = recorded[0] + 1
        await shared.wait()
        return confirmed[0] >= mine

    assert all(await asyncio.gather(*(record(number) for number in range(200))))
    shared.close()
