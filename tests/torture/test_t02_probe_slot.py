"""T2: a cancelled probe closed the circuit, or kept its slot for an hour. Here it says nothing and gives the slot back."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import Runtime
from failsoft.runtime.tools.health import LEASE, LONGEST_PROBE

PROBES = 200


async def half_open(limit: str | None) -> tuple[Runtime, Scripted]:
    rt = Runtime()
    search = Scripted(DOWN, Takes(20, "flights"))
    rt.add(search, id="search", timeout=limit, retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("search")
    await asyncio.sleep(30)
    assert rt.health("search").state == "half_open"
    return rt, search


@virtual
async def test_t02_a_cancelled_probe_returns_its_slot_at_once() -> None:
    rt, search = await half_open("30s")
    for _ in range(PROBES):
        probe = asyncio.create_task(rt.call("search"))  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        assert (await rt.call("search")).attempts == 0  # the slot is taken
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert rt.health("search").state == "half_open"
    assert search.attempts == 1 + PROBES  # each of them got the slot in the moment after


@virtual
async def test_t02_the_slot_of_a_dead_owner_is_free_within_a_lease() -> None:
    """A dead owner: its coroutine is never resumed."""
    rt, search = await half_open(None)
    lease = LONGEST_PROBE + LEASE
    dead = []
    for _ in range(PROBES):
        owner, context = rt.call("search"), copy_context()
        context.run(owner.send, None)
        dead.append((owner, context))
        await asyncio.sleep(lease - 1)
        assert (await rt.call("search")).attempts == 0
        await asyncio.sleep(1)
    assert search.attempts == 1 + PROBES
    assert (await rt.call("search")).value == "flights"
    for owner, context in dead:
        context.run(owner.close)
    assert rt.health("search").state == "closed"  # whatever they still report is ignored
