"""Clients that wish the daemon ill: floods, void tokens, crowds of streams, odd token files."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes import real
from tests.surfaces.daemon.conftest import SECRETS, Served, write_all_tokens
from tests.surfaces.daemon.test_feed import ALL, event, take

from failsoft.stores.memory import MemoryStore
from failsoft.surfaces.daemon import feed as feeds
from failsoft.surfaces.daemon.access import AccessOptions
from failsoft.surfaces.daemon.feed import Feed
from failsoft.surfaces.daemon.tokens import Grant, Token, TokenBook, TokenError, read_tokens, write_tokens

STREAM = {"accept": "text/event-stream"}


@real
async def test_requests_without_a_token_never_keep_out_those_with_one(open_daemon: Any) -> None:
    async with open_daemon() as asked, asked.client(None) as stranger:
        statuses = [(await stranger.get("/v1/tools")).status_code for _ in range(60)]
        assert statuses[-1] == 429
        assert (await asked.get("/v1/tools")).status_code == 200


@real
async def test_an_allowed_origin_beside_another_one_is_refused(open_daemon: Any) -> None:
    async with open_daemon(options=AccessOptions(origins=frozenset({"https://good"}))) as asked:
        headers = [("authorization", f"Bearer {SECRETS['operator']}"), ("origin", "https://evil")]
        async with httpx.AsyncClient(transport=asked.transport, base_url="http://127.0.0.1") as client:
            both = await client.get("/v1/tools", headers=[*headers, ("origin", "https://good")])
        assert both.status_code == 403


@pytest.mark.parametrize("text", ['{"tokens": ["x"]}', '{"tokens": [[]]}', "[" * 100_000, "", "7"])
def test_a_token_file_that_was_broken_admits_nobody(tmp_path: Path, text: str) -> None:
    path, now = tmp_path / "tokens.json", [0.0]
    write_all_tokens(path)
    book = TokenBook(path, lambda: now[0])
    path.write_text(text)
    now[0] = 2.0
    assert book.find(SECRETS["operator"]) is None
    with pytest.raises(TokenError, match="is not a token file"):
        read_tokens(path)


def test_a_pipe_as_token_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokens.json", 0o600)
    with pytest.raises(TokenError, match="not a regular file"):
        read_tokens(tmp_path / "tokens.json")


def test_a_token_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all_tokens(tmp_path / "tokens.json")
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100600, 0, 0, 1, 4711, 0, 9, 0, 0, 0)))
    with pytest.raises(TokenError, match="belongs to another user"):
        read_tokens(tmp_path / "tokens.json")


# --- streams ----------------------------------------------------------------------------------------------------------


@real
async def test_clients_that_come_together_all_start_from_now() -> None:
    store = MemoryStore()
    store.append([event(number) for number in range(1, 11)])
    feed = Feed(store, interval=0.01)
    streams = [feed.stream(ALL, None) for _ in range(20)]
    opened = await asyncio.gather(*(take(stream, 1) for stream in streams))
    assert [one[0] for one in opened] == [(10, "open", {})] * 20
    store.append([event(11)])
    got = await asyncio.gather(*(take(stream, 1) for stream in streams))
    assert {(last, name) for ((last, name, _),) in got} == {(11, "batch")}
    for stream in streams:
        await stream.aclose()


@real
async def test_the_limit_on_streams_holds_for_clients_that_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_CLIENTS", 3)
    feed = Feed(MemoryStore(), interval=0.01)
    streams = [feed.stream(ALL, None) for _ in range(5)]
    opened = await asyncio.gather(*(take(stream, 1) for stream in streams))
    assert [one[0][1] for one in opened] == ["open"] * 3 + ["dropped"] * 2
    for stream in streams:
        await stream.aclose()
    assert feed.clients == 0


@real
async def test_a_full_feed_takes_a_stream_from_the_owner_that_has_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_CLIENTS", 4)
    feed = Feed(MemoryStore(), interval=0.01)

    async def follow(owner: str) -> Any:
        assert feed.make_room(owner)
        stream = feed.stream(ALL, None, owner=owner)
        assert (await take(stream, 1))[0][1] == "open"
        return stream

    greedy = [await follow("acme") for _ in range(4)]
    assert not feed.make_room("acme")
    waiting = [asyncio.ensure_future(take(stream, 1)) for stream in greedy]
    await asyncio.sleep(0)
    others = [await follow("bolt"), await follow("bolt")]
    assert not feed.make_room("bolt")
    await asyncio.sleep(0.05)
    ended = [one.result()[0][1] for one in waiting if one.done()]
    assert ended == ["dropped", "dropped"]
    others.append(await follow("third"))
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for stream in [*greedy, *others]:
        await stream.aclose()
    assert (feed.clients, feed._ending, +feed._owners, +feed._to_end) == (0, 0, {}, {})


@real
async def test_an_id_of_another_store_does_not_silence_a_stream() -> None:
    store = MemoryStore()
    store.append([event(1)])
    feed = Feed(store, interval=0.01)
    stream = feed.stream(ALL, 9_999_999)
    assert await take(stream, 1) == [(1, "open", {})]
    store.append([event(2)])
    assert (await take(stream, 1))[0][:2] == (2, "batch")
    await stream.aclose()


@real
async def test_a_stream_of_a_store_that_fails_ends_with_an_id_to_resume_after(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    feed = Feed(store, interval=0.01)

    def fail(**_: Any) -> Any:
        raise OSError("disk I/O error")

    monkeypatch.setattr(store, "read", fail)
    assert [one async for one in feed.stream(ALL, 7)] == [feeds.encode("dropped", 7, "{}")]
    monkeypatch.undo()
    stream = feed.stream(ALL, None)
    assert await take(stream, 1) == [(0, "open", {})]
    await stream.aclose()


def test_a_stream_ends_with_its_token(serve: Any, tmp_path: Path) -> None:
    served: Served = serve()
    with (
        served.client("reader") as reader,
        served.client() as operator,
        reader.stream("GET", "/v1/events", headers=STREAM) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith("id:")
        write_tokens(tmp_path / "tokens.json", [Token(SECRETS["operator"], Grant("operator", frozenset({"operate"})))])
        time.sleep(1.1)
        operator.post("/v1/errors", json={"tool": "hidden", "error": "503"})
        assert "hidden" not in "".join(lines)


@pytest.mark.parametrize("after", [None, 0])
@real
async def test_a_silent_stream_ends_when_its_token_is_void(monkeypatch: pytest.MonkeyPatch, after: int | None) -> None:
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.02)
    store, granted = MemoryStore(), [True]
    feed = Feed(store, interval=0.01)
    stream = feed.stream(ALL, after, lambda: granted[0])
    assert await take(stream, 1) == [(0, "open", {})]
    rest = asyncio.create_task(anext(stream, None))
    await asyncio.sleep(0.1)
    assert not rest.done()
    granted[0] = False
    async with asyncio.timeout(5):
        assert await rest is None
    assert feed.clients == 0


@real
async def test_a_void_token_gets_no_event_that_is_there_already() -> None:
    store = MemoryStore()
    store.append([event(1), event(2)])
    feed = Feed(store, interval=0.01)
    granted = [True]
    stream = feed.stream(ALL, 0, lambda: granted[0])
    assert (await take(stream, 1))[0][1] == "open"
    granted[0] = False
    assert await anext(stream, None) is None


def test_a_token_file_that_cannot_be_read_for_a_moment_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now = tmp_path / "tokens.json", [0.0]
    write_all_tokens(path)
    book = TokenBook(path, lambda: now[0])
    write_all_tokens(path)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(24, "Too many open files")

    now[0] += 1.0
    monkeypatch.setattr(os, "open", fail)
    assert book.find(SECRETS["operator"]) is None
    monkeypatch.undo()
    now[0] += 1.0
    assert book.find(SECRETS["operator"]) is not None


def test_a_token_file_that_is_a_directory_voids_the_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = tmp_path / "tokens.json", [0.0]
    write_all_tokens(path)
    book = TokenBook(path, lambda: now[0])
    path.unlink()
    path.mkdir(mode=0o700)
    now[0] += 1.0
    assert book.find(SECRETS["operator"]) is None
    path.rmdir()
    write_all_tokens(path)
    now[0] += 1.0
    assert book.find(SECRETS["operator"]) is not None
