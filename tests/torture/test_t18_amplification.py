"""T18: an outage was made 3, 9, 10 times worse by retries. Here by a tenth at most, and it ends soon after it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.fakes import DOWN, OFTEN, Scripted, virtual

from failsoft import Runtime

CALLS = 1_000
MOST = 1.10


async def one_by_one(call: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(CALLS):
        await call()


async def side_by_side(call: Callable[[], Awaitable[Any]]) -> None:
    await asyncio.gather(*(call() for _ in range(CALLS)))


@pytest.mark.parametrize("order", [one_by_one, side_by_side])
@virtual
async def test_t18_1000_calls_of_a_dead_tool_are_1100_attempts(order: Callable[..., Awaitable[None]]) -> None:
    rt = Runtime()
    dead = Scripted(DOWN)
    rt.add(dead, id="dead", breaker=OFTEN)  # the budget alone must do it
    await order(lambda: rt.call("dead"))
    assert CALLS < dead.attempts <= MOST * CALLS


@pytest.mark.parametrize("order", [one_by_one, side_by_side])
@pytest.mark.parametrize("wrapped", [False, True])
@virtual
async def test_t18_nested_tools_do_not_multiply(order: Callable[..., Awaitable[None]], wrapped: bool) -> None:
    rt = Runtime()
    dead = Scripted(DOWN)
    inner = rt.add(dead, id="inner", breaker=OFTEN)

    async def middle() -> Any:
        try:
            return await inner()
        except Exception as error:
            if wrapped:
                raise ConnectionError("Service unavailable (503)") from error
            raise

    guarded = rt.add(middle, breaker=OFTEN)

    async def outer() -> Any:
        return await guarded()

    rt.add(outer, breaker=OFTEN)
    await order(lambda: rt.call("outer"))
    assert CALLS < dead.attempts <= MOST * CALLS


@virtual
async def test_t18_recovered_within_twice_the_open_window() -> None:
    rt = Runtime()
    loop = asyncio.get_running_loop()
    ends, attempts = 600.0, 0

    async def search() -> str:
        nonlocal attempts
        attempts += 1
        if loop.time() < ends:
            raise DOWN
        return "flights"

    rt.add(search, breaker={"timeout": "30s"})
    calls = 0
    while (await rt.call("search")).status == "failed":
        calls += 1
        await asyncio.sleep(0.5)
    assert ends <= loop.time() <= ends + 2 * 30
    assert attempts <= MOST * calls
    outcomes = [await rt.call("search") for _ in range(100)]
    assert {outcome.attempts for outcome in outcomes} == {1}
