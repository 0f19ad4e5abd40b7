"""T15: some callables were silently unprotected. Here each is protected in its own shape, or refused in words."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import real, virtual
from tests.runtime.call.test_streams import Source
from tests.runtime.fastpath.test_guarded import ASYNC, BLOCKING

from failsoft import CallFailed, ManifestError, Runtime


@pytest.mark.parametrize("make", ASYNC.values(), ids=ASYNC.keys())
@virtual
async def test_t15_async_callables_are_protected(make: Callable[[], tuple[Any, str]]) -> None:
    tool, expected = make()
    rt = Runtime()
    assert await rt.add(tool, id="hotels")("PAR") == expected
    assert rt.metrics("hotels")["retry_count"] == 1


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@pytest.mark.parametrize("make", BLOCKING.values(), ids=BLOCKING.keys())
def test_t15_blocking_callables_are_protected(make: Callable[[], tuple[Any, str]], limit: str | None) -> None:
    tool, expected = make()
    rt = Runtime()
    assert rt.add(tool, id="hotels", timeout=limit)("PAR") == expected
    assert rt.metrics("hotels")["retry_count"] == 1


@virtual
async def test_t15_streams_are_protected_and_never_replayed() -> None:
    rt = Runtime()
    flaky, broken = Source(before=2), Source(after=2)
    stream = rt.add(flaky.asynchronous, id="flaky")
    assert [item async for item in stream(3)] == [0, 1, 2]
    assert rt.metrics("flaky")["retry_count"] == 2
    seen = []
    with pytest.raises(ConnectionResetError):
        async for item in rt.add(functools.partial(broken.asynchronous, 5), id="broken")():
            seen.append(item)
    assert (seen, broken.begun) == ([0, 1], 1)
    blocking = Source(before=2)
    assert [*rt.add(blocking.blocking, id="blocking", timeout=None)(3)] == [0, 1, 2]


async def lookup() -> str:
    return "flights"


HANDED_BACK: dict[str, Callable[[], Any]] = {
    "async generator": lambda: Source().asynchronous(3),
    "future": lambda: asyncio.get_running_loop().create_future(),
    "task": lambda: asyncio.get_running_loop().create_task(asyncio.sleep(0)),
}


@pytest.mark.parametrize("way", HANDED_BACK.values(), ids=HANDED_BACK.keys())
@real
async def test_t15_a_function_that_hands_back_an_awaitable_is_refused(way: Callable[[], Any]) -> None:
    rt = Runtime()

    def search() -> Any:
        return way()

    guarded = rt.add(search, timeout=None)
    outcome = await rt.call("search")
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert outcome.fault is not None
    assert outcome.fault.category == "internal_contract_bug"
    assert "async def" in outcome.fault.message
    with pytest.raises(CallFailed, match="async def"):
        guarded()
    await asyncio.sleep(0)


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@real
async def test_t15_a_coroutine_that_is_handed_back_is_protected(limit: str | None) -> None:
    rt = Runtime()
    failures = [ConnectionResetError("Connection reset by peer")]

    async def search() -> str:
        if failures:
            raise failures.pop()
        return await lookup()

    guarded = rt.add(lambda: search(), id="search", timeout=limit, read_only=True)
    outcome = await rt.call("search")
    assert (outcome.value, outcome.attempts) == ("flights", 2)
    with pytest.raises(CallFailed, match="async def"):  # it is told at once: nobody awaits what a plain call returns
        guarded()


@pytest.mark.parametrize("wrong", [staticmethod(lookup), classmethod(lookup), "search", 3, None])
def test_t15_objects_that_cannot_be_called_are_rejected_at_decoration(wrong: Any) -> None:
    with pytest.raises(ManifestError):
        Runtime().add(wrong, id="search")
