"""T9: unknown tools and bad arguments were retried for 5.5 s, and two of them opened a healthy tool's circuit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import INVALID, Scripted, virtual

from failsoft import Runtime

BAD = 1_000


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("serach", {}),
        ("search", {"place": "PAR"}),
        ("search", {}),
        ("search", {"city": "PAR", "planet": "Mars"}),
        ("search", ["PAR"]),
        ("search", "PAR"),
        ("validates", {}),
    ],
)
@virtual
async def test_t09_one_attempt_permanent_breaker_untouched(tool: str, arguments: Any) -> None:
    rt = Runtime()
    ran: list[str] = []

    async def search(city: str) -> str:
        ran.append(city)
        return "flights"

    validates = Scripted(INVALID)
    rt.add(search, breaker={"failure_threshold": 1})
    rt.add(validates, id="validates", breaker={"failure_threshold": 1})
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(BAD):
        outcome = await rt.call(tool, arguments)
        assert outcome.fault is not None
        assert (outcome.status, outcome.fault.classification) == ("failed", "permanent")
        assert outcome.attempts <= 1
    assert loop.time() == began  # nothing was waited for
    assert ran == []
    assert validates.attempts in (0, BAD)
    for healthy in ("search", "validates"):
        assert (rt.health(healthy).state, rt.health(healthy).failure_count) == ("closed", 0)
        assert rt.metrics(healthy)["retry_count"] == 0
    assert (await rt.call("search", {"city": "PAR"})).value == "flights"
