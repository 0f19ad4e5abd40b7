"""Generators as tools: protected up to their first item, never replayed after it (T15)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.fakes import INVALID, ONCE, RESET, real, virtual

from failsoft import CallFailed, Runtime


class Source:
    """A stream that fails a given number of times: before its first item, or after it."""

    def __init__(self, *, before: int = 0, after: int = 0, first_takes: float = 0.0) -> None:
        self.before = before
        self.after = after
        self.first_takes = first_takes
        self.begun = 0
        self.closed = 0

    def _begin(self) -> None:
        self.begun += 1
        if self.begun <= self.before:
            raise RESET

    async def asynchronous(self, most: int) -> AsyncIterator[int]:
        try:
            await asyncio.sleep(self.first_takes if self.begun == 0 else 0)
            self._begin()
            for number in range(most):
                yield number
                if self.after and number + 1 == self.after:
                    raise RESET
        finally:
            self.closed += 1

    def blocking(self, most: int) -> Iterator[int]:
        try:
            self._begin()
            for number in range(most):
                yield number
                if self.after and number + 1 == self.after:
                    raise RESET
        finally:
            self.closed += 1


@virtual
async def test_a_stream_is_retried_until_its_first_item() -> None:
    rt = Runtime()
    source = Source(before=2)
    stream = rt.add(source.asynchronous, id="stream")
    assert [item async for item in stream(3)] == [0, 1, 2]
    assert source.begun == 3
    assert rt.metrics("stream")["retry_count"] == 2


@virtual
async def test_a_stream_that_has_begun_is_not_replayed() -> None:
    rt = Runtime()
    source = Source(after=2)
    stream = rt.add(source.asynchronous, id="stream")
    seen = []
    with pytest.raises(ConnectionResetError):
        async for item in stream(5):
            seen.append(item)
    assert (seen, source.begun) == ([0, 1], 1)


@virtual
async def test_a_stream_that_never_begins_raises_like_a_call() -> None:
    rt = Runtime()
    source = Source(before=100)
    stream = rt.add(source.asynchronous, id="stream", retry={"max_attempts": 2})
    with pytest.raises(CallFailed, match="Connection reset"):
        async for _ in stream(3):
            pytest.fail("there is no item")
    assert source.begun == 2


@virtual
async def test_the_deadline_is_the_first_items() -> None:
    rt = Runtime()

    async def slow() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(4)
            yield number

    generous = rt.add(slow, id="generous", timeout="5s")
    strict = rt.add(slow, id="strict", timeout="3s", retry=ONCE)
    assert [item async for item in generous()] == [0, 1, 2]
    with pytest.raises(CallFailed, match="Tool timeout after 3s"):
        async for _ in strict():
            pytest.fail("there is no item")


@virtual
async def test_a_reader_that_leaves_closes_the_stream() -> None:
    rt = Runtime()
    source = Source()
    stream = rt.add(source.asynchronous, id="stream")(10)
    async for item in stream:
        if item == 1:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert source.closed == 1


@virtual
async def test_an_empty_stream_is_no_failure() -> None:
    rt = Runtime()
    stream = rt.add(Source().asynchronous, id="stream")
    assert [item async for item in stream(0)] == []
    assert [item async for item in (await rt.call("stream", {"most": 0})).value] == []


@virtual
async def test_a_stream_by_name_is_the_value() -> None:
    rt = Runtime()
    rt.add(Source(before=1).asynchronous, id="stream")
    outcome = await rt.call("stream", {"most": 3})
    assert outcome.attempts == 2
    assert [item async for item in outcome.value] == [0, 1, 2]


@virtual
async def test_wrong_arguments_of_a_stream_are_found_first() -> None:
    rt = Runtime()
    source = Source()
    rt.add(source.asynchronous, id="stream")
    outcome = await rt.call("stream", {"least": 3})
    assert (outcome.attempts, source.begun) == (0, 0)


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
def test_blocking_streams_are_protected_the_same_way(limit: str | None) -> None:
    rt = Runtime()
    source, broken = Source(before=2), Source(after=2)
    stream = rt.add(source.blocking, id="stream", timeout=limit)
    assert list(stream(3)) == [0, 1, 2]
    assert source.begun == 3
    seen = []
    with pytest.raises(ConnectionResetError):
        for item in rt.add(broken.blocking, id="broken", timeout=limit)(5):
            seen.append(item)
    assert (seen, broken.begun) == ([0, 1], 1)
    assert list(stream(0)) == []


@real
async def test_a_blocking_stream_can_be_called_by_name() -> None:
    rt = Runtime()
    rt.add(Source(before=1).blocking, id="stream")
    outcome = await rt.call("stream", {"most": 3})
    assert (list(outcome.value), outcome.attempts) == ([0, 1, 2], 2)


@virtual
async def test_a_permanent_failure_of_a_stream_is_not_retried() -> None:
    rt = Runtime()
    begun: list[int] = []

    async def invalid() -> AsyncIterator[Any]:
        begun.append(1)
        raise INVALID
        yield

    rt.add(invalid)
    assert (await rt.call("invalid")).attempts == len(begun) == 1
