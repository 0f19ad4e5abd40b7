"""The answer that clients of the event stream get: compression, comments, slow clients."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.fakes import real

from failsoft.stores.memory import MemoryStore
from failsoft.surfaces.daemon import feed
from failsoft.surfaces.daemon.event_stream import GZIP_HEAD, EventStream, accepts_gzip, compress
from failsoft.surfaces.daemon.feed import Feed, Wanted


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True), ("GZIP", True), ("br, gzip;q=0.5", True), ("gzip; q=1", True), ("deflate, gzip, br", True),
        ("", False), ("identity", False), ("*", False), ("gzip;q=0", False), ("br, gzip; q=0.000", False), ("x-gzip", False),
    ],
)  # fmt: skip
def test_gzip_is_used_for_clients_that_name_it(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) == accepted


def test_compressed_messages_are_read_as_they_come_whatever_came_before() -> None:
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert reader.decompress(GZIP_HEAD) == b""
    for message in (b"a" * 1_000, b"", b"b", b"a" * 100_000):
        assert reader.decompress(compress(message)) == message


@real
async def test_a_batch_is_compressed_once_for_all_clients_and_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, made = MemoryStore(), []
    monkeypatch.setattr(feed, "compress", lambda message: made.append(message) or compress(message))
    events = Feed(store, interval=0.01)
    streams = [events.stream(Wanted(), None, gzip=True) for _ in range(5)]
    plain = events.stream(Wanted(), None)
    async with asyncio.timeout(5):
        for each in (*streams, plain):
            await anext(each)
        made.clear()
        loop, on_loop = asyncio.get_running_loop(), []
        monkeypatch.setattr(feed, "_encode", lambda event: on_loop.append(is_here(loop)) or json.dumps(event))
        store.append([{"seq": 1, "event_type": "X", "turn_id": None, "call_id": None, "tool_id": "t"}])
        got = await asyncio.gather(*[anext(each) for each in streams])
        whole = await anext(plain)
    assert len(made) == 1
    assert on_loop == [False]
    assert {*got} == {compress(whole)}
    for each in (*streams, plain):
        await each.aclose()
    assert not events._following


def is_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


@real
async def test_a_client_without_events_gets_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(feed, "PING_SECONDS", 0.02)
    stream = Feed(MemoryStore(), interval=0.01).stream(Wanted(), None)
    async with asyncio.timeout(5):
        assert b"open" in await anext(stream)
        assert await anext(stream) == feed.PING
        assert await anext(stream) == feed.PING
    await stream.aclose()


async def messages(*parts: bytes, closed: list[bool]) -> AsyncGenerator[bytes, None]:
    try:
        for part in parts:
            yield part
    finally:
        closed.append(True)


async def never() -> Any:
    await asyncio.Event().wait()


@real
async def test_a_stream_ends_with_its_client() -> None:
    closed: list[bool] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body"):
            await never()

    async with asyncio.timeout(5):
        await EventStream(messages(b"a", closed=closed), gzip=False)({}, receive, send)
    assert closed == [True]


@pytest.mark.parametrize("gzip", [True, False])
@real
async def test_the_answer_says_whether_it_is_compressed(gzip: bool) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    message = compress(b"data: 1") if gzip else b"data: 1"
    async with asyncio.timeout(5):
        await EventStream(messages(message, closed=[]), gzip=gzip)({}, never, send)
    headers = dict(sent[0]["headers"])
    assert headers.get(b"content-encoding") == (b"gzip" if gzip else None)
    assert headers[b"vary"] == b"accept-encoding"
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert b"content-length" not in headers
    whole = b"".join(each.get("body", b"") for each in sent)
    assert (zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(whole) if gzip else whole) == b"data: 1"
    assert sent[-1] == {"type": "http.response.body", "body": b""}
