"""The stream of events: batches, filters, resumption, slow clients."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.fakes import real

from failsoft.analysis.source import EventFilter
from failsoft.stores.memory import MemoryStore
from failsoft.surfaces.daemon import feed as feeds
from failsoft.surfaces.daemon.feed import Feed, Wanted, bisect_positions, find_latest

ALL = Wanted()


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"seq": number, "event_type": "X", "turn_id": None, "call_id": None, "tool_id": None, **more}


def parse(message: bytes) -> tuple[int, str, Any]:
    lines = dict(line.split(": ", 1) for line in message.decode().strip().splitlines())
    return int(lines["id"]), lines["event"], json.loads(lines["data"])


async def take(stream: Any, many: int) -> list[tuple[int, str, Any]]:
    async with asyncio.timeout(5):
        return [parse(await anext(stream)) for _ in range(many)]


@real
async def test_a_client_gets_what_comes_after_it_connected_in_batches() -> None:
    store = MemoryStore()
    store.append([event(1)])
    feed = Feed(store, interval=0.01)
    stream = feed.stream(ALL, None)
    assert await take(stream, 1) == [(1, "open", {})]
    store.append([event(2), event(3)])
    ((last, name, batch),) = await take(stream, 1)
    assert (last, name, [one["id"] for one in batch]) == (3, "batch", [2, 3])
    await stream.aclose()
    assert feed.clients == 0


@real
async def test_a_client_resumes_after_its_last_id_and_misses_nothing() -> None:
    store = MemoryStore()
    store.append([event(number) for number in range(1, 11)])
    feed = Feed(store, interval=0.01)
    stream = feed.stream(ALL, 4)
    (_, (last, _, batch)) = await take(stream, 2)
    assert (last, [one["seq"] for one in batch]) == (10, [5, 6, 7, 8, 9, 10])
    store.append([event(11)])
    ((last, _, batch),) = await take(stream, 1)
    assert [one["seq"] for one in batch] == [11]
    await stream.aclose()


@real
async def test_a_batch_is_serialised_once_for_all_clients_of_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    store, made = MemoryStore(), []
    encode = feeds.encode
    monkeypatch.setattr(feeds, "encode", lambda *args: made.append(args) or encode(*args))
    feed = Feed(store, interval=0.01)
    streams = [feed.stream(ALL, None) for _ in range(5)]
    other = feed.stream(Wanted(EventFilter(tool_id="pay")), None)
    await asyncio.gather(*[take(each, 1) for each in (*streams, other)])
    made.clear()
    store.append([event(1, tool_id="search"), event(2, tool_id="pay")])
    got = await asyncio.gather(*[take(each, 1) for each in (*streams, other)])
    assert [len(messages[0][2]) for messages in got] == [2, 2, 2, 2, 2, 1]
    assert len(made) == 2
    for each in (*streams, other):
        await each.aclose()


@real
async def test_a_client_that_falls_behind_is_dropped_with_an_id_to_resume_after() -> None:
    store = MemoryStore()
    feed = Feed(store, interval=0.001)
    slow, fast = feed.stream(ALL, None), feed.stream(ALL, None)
    await take(slow, 1)
    await take(fast, 1)
    store.append([event(1)])
    ((last, _, _),) = await take(slow, 1)
    for number in range(2, feeds.KEPT + 10):
        store.append([event(number)])
        await take(fast, 1)
    ((position, name, _),) = await take(slow, 1)
    while name == "batch":
        last = position
        ((position, name, _),) = await take(slow, 1)
    assert (name, position) == ("dropped", last)
    again = feed.stream(ALL, position)
    (_, (_, _, batch)) = await take(again, 2)
    assert batch[0]["id"] == position + 1
    for each in (slow, fast, again):
        await each.aclose()


@real
async def test_streams_end_when_the_daemon_stops() -> None:
    feed = Feed(MemoryStore(), interval=0.01)
    stream = feed.stream(ALL, None)
    await take(stream, 1)
    feed.close()
    assert await take(stream, 1) == [(0, "end", {})]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@pytest.mark.parametrize("many", [0, 1, 2, 3, 100, 1023, 1024])
def test_the_latest_position_is_found_by_bisection(many: int) -> None:
    store = MemoryStore()
    store.append([event(number) for number in range(many)])
    assert find_latest(store) == many
    assert bisect_positions(lambda position: position >= 10**15 + many) == 10**15 + many


@real
async def test_pages_are_filtered_and_continue(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        for number in range(5):
            await asked.post("/v1/errors", {"tool": f"get_{number % 2}", "error": "503", "turn_id": "t"})
        first = (await asked.get("/v1/events?tool=get_0&limit=2&type=ToolError")).json()
        assert (len(first["events"]), first["more"]) == (2, True)
        rest = (await asked.get(f"/v1/events?tool=get_0&type=ToolError&after={first['next']}")).json()
        assert (len(rest["events"]), rest["more"]) == (1, False)
        assert (await asked.get("/v1/events?type=Nothing,TurnEnded")).json()["events"] == []
        assert len((await asked.get("/v1/events?last=2")).json()["events"]) == 2
        for query in ("after=-1", "after=x", "limit=0", "limit=1001", "after=99999999999999999999"):
            assert (await asked.get(f"/v1/events?{query}")).status_code == 400
        bad = await asked.get("/v1/events", accept="text/event-stream", **{"last-event-id": "abc"})
        assert bad.status_code == 400


@real
async def test_there_is_a_limit_on_streams(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        asked.daemon.feed.clients = feeds.MOST_CLIENTS
        assert (await asked.get("/v1/events", accept="text/event-stream")).status_code == 503


@pytest.mark.parametrize("after", [None, 0])
@real
async def test_events_are_not_encoded_by_the_thread_that_answers_requests(
    monkeypatch: pytest.MonkeyPatch, after: int | None
) -> None:
    threads: set[int] = set()
    encode = feeds._encode

    def noted(event: Any) -> str:
        threads.add(threading.get_ident())
        return encode(event)

    monkeypatch.setattr(feeds, "_encode", noted)
    store = MemoryStore()
    store.append([event(1)])
    feed = Feed(store, interval=0.01)
    stream = feed.stream(ALL, after)
    await take(stream, 1)
    store.append([event(2)])
    await take(stream, 1)
    await stream.aclose()
    assert threads
    assert threading.get_ident() not in threads
