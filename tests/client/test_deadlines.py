"""Daemons that answer without end: a request has one deadline and limits for all of it, and nothing is decompressed."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import pytest
from tests.fakes import real

from failsoft.client import AsyncClient, Client, DaemonError, DaemonUnavailable, event_stream
from failsoft.client.connection import Request, find_token, http_options, read_address, send_until
from failsoft.client.deadlines import LARGEST_HEAD, _AsyncBackend, _Backend, limit_async_requests, limit_requests

TOKEN = "fsd_secret-of-this-test"
Serve = Callable[[Callable[[socket.socket], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Give a function that starts a server with one way to answer; it ends with its client."""
    listeners: list[socket.socket] = []

    def start(respond: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        respond(connection)

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def trickle_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    while True:  # until the client closes
        connection.sendall(b"y")
        time.sleep(0.02)


def send_interim_answers(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(0.02)


def flood_with_interim_answers(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)


def flood_with_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"a: b\r\n" * 1000)


def send_many_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * LARGEST_HEAD + b"content-length: 2\r\n\r\n{}")
    connection.recv(1)


def read_slowly(connection: socket.socket) -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end and connection.recv(65_536):
        time.sleep(0.02)
    connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"accepted": 1}')


def stream(body: bytes, head: str = "", status: str = "200 OK", times: int = 1) -> Callable[[socket.socket], None]:
    def respond(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 {status}\r\n{head}transfer-encoding: chunked\r\n\r\n".encode())
        for _ in range(times):
            connection.sendall(b"%x\r\n%b\r\n" % (len(body), body))
        connection.sendall(b"0\r\n\r\n")

    return respond


def batch(*events: object) -> bytes:
    return b"event: batch\r\ndata: " + json.dumps(events, ensure_ascii=False).encode() + b"\r\n\r\n"


def send_compressed(connection: socket.socket) -> None:
    body = gzip.compress(json.dumps({"tools": []}).encode())
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


@pytest.mark.parametrize("respond", [trickle_head, send_interim_answers])
def test_an_answer_without_end_is_given_up_by_a_blocking_client(
    serve: Serve, respond: Callable[[socket.socket], None]
) -> None:
    with Client(serve(respond), token=TOKEN, timeout="300ms") as client, pytest.raises(DaemonUnavailable):
        client.tools()


@pytest.mark.parametrize("respond", [trickle_head, send_interim_answers])
@real
async def test_an_answer_without_end_is_given_up_by_an_async_client(
    serve: Serve, respond: Callable[[socket.socket], None]
) -> None:
    async with AsyncClient(serve(respond), token=TOKEN, timeout="300ms") as client:
        with pytest.raises(DaemonUnavailable):
            await client.tools()


def test_a_compressed_answer_is_not_decompressed(serve: Serve) -> None:
    with Client(serve(send_compressed), token=TOKEN) as client, pytest.raises(DaemonError, match="not JSON"):
        client.tools()


def test_the_installed_httpx_has_the_names_that_deadlines_need() -> None:
    with limit_requests(httpx.Client()) as client:
        assert isinstance(client._transport._pool._network_backend, _Backend)  # type: ignore[attr-defined]


FLOODS = [flood_with_interim_answers, flood_with_headers, send_many_headers]


@pytest.mark.parametrize("respond", FLOODS)
def test_the_head_of_an_answer_is_limited(serve: Serve, respond: Callable[[socket.socket], None]) -> None:
    with Client(serve(respond), token=TOKEN, timeout="30s") as client:
        for ask in (client.tools, lambda: next(client.follow_events())):
            with pytest.raises(DaemonUnavailable, match="the head of the answer is larger"):
                ask()


@pytest.mark.parametrize("respond", FLOODS)
@real
async def test_the_head_of_an_answer_is_limited_for_an_async_client(
    serve: Serve, respond: Callable[[socket.socket], None]
) -> None:
    async with AsyncClient(serve(respond), token=TOKEN, timeout="30s") as client:
        for ask in (client.tools, lambda: anext(client.follow_events())):
            with pytest.raises(DaemonUnavailable, match="the head of the answer is larger"):
                await ask()


@pytest.mark.parametrize("respond", [trickle_head, send_interim_answers])
@real
async def test_a_stream_must_begin_in_time(serve: Serve, respond: Callable[[socket.socket], None]) -> None:
    url = serve(respond)
    with Client(url, token=TOKEN, timeout="300ms") as client, pytest.raises(DaemonUnavailable):
        next(client.follow_events())
    async with AsyncClient(url, token=TOKEN, timeout="300ms") as other:
        with pytest.raises(DaemonUnavailable):
            await anext(other.follow_events())


def test_a_large_body_has_limits_of_its_own(serve: Serve) -> None:
    tools = [{"id": "x" * 100}] * 1000
    with Client(serve(stream(json.dumps({"tools": tools}).encode())), token=TOKEN) as client:
        assert client.tools() == tools


def test_a_daemon_that_reads_slowly_does_not_prolong_a_request(serve: Serve) -> None:
    with Client(serve(read_slowly), token=TOKEN, timeout="500ms") as client, pytest.raises(DaemonUnavailable):
        client.send_events("a", [{"text": "x" * 40_000_000}])


def test_a_request_whose_time_is_up_is_not_sent(serve: Serve) -> None:
    connected: list[socket.socket] = []
    address = read_address(serve(connected.append), "test")
    with (
        limit_requests(httpx.Client(**http_options(address, find_token(TOKEN), 5.0))) as client,
        pytest.raises(DaemonUnavailable),
    ):
        send_until(client, Request("GET", "/v1/tools"), time.monotonic() - 1)
    assert connected == []


def test_no_cookies_are_kept(serve: Serve) -> None:
    answered = stream(b'{"tools": []}', "set-cookie: a=b\r\n")
    with Client(serve(answered), token=TOKEN) as client:
        client.tools()
        assert not client._http.cookies


STREAMS = {
    "a message that is compressed": (stream(gzip.compress(batch({"id": 1})), "content-encoding: gzip\r\n"), "ended"),
    "a line without end": (stream(b"data: " + b"x" * 1000, times=200), "too large"),
    "a message without end": (stream(b"data: " + b"x" * 1000 + b"\n", times=200), "too large"),
    "a message that is nested deeply": (stream(b"event: batch\ndata: " + b"[" * 90_000 + b"\n\n"), "not a list"),
    "a refusal": (stream(b'{"detail": "too many streams"}', status="503 Service Unavailable"), "too many streams"),
    "a refusal that is compressed": (
        stream(gzip.compress(b"x" * 1_000_000), "content-encoding: gzip\r\n", "503 Service Unavailable"),
        "503: (?!xx)",
    ),
}


@pytest.mark.parametrize(("respond", "said"), STREAMS.values(), ids=STREAMS)
@real
async def test_a_stream_is_limited_and_not_decompressed(
    serve: Serve, respond: Callable[[socket.socket], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LARGEST_MESSAGE", 100_000)
    url = serve(respond)
    with Client(url, token=TOKEN) as client, pytest.raises(DaemonError, match=said):
        next(client.follow_events())
    async with AsyncClient(url, token=TOKEN) as other:
        with pytest.raises(DaemonError, match=said):
            await anext(other.follow_events())


def test_only_a_line_feed_ends_a_line_of_a_stream(serve: Serve) -> None:
    events = [{"id": 1, "text": "a\u2028b\x85c"}, {"id": 2}]
    sent = b": a comment\n\n" + batch(events[0]) + batch(events[1])
    for parts in ([sent], [sent[at : at + 1] for at in range(len(sent))]):
        messages = event_stream.EventMessages("daemon")
        assert [event for part in parts for event in messages.feed(part)] == events


def test_the_installed_httpx_has_the_names_that_async_limits_need() -> None:
    client = limit_async_requests(httpx.AsyncClient())
    assert isinstance(client._transport._pool._network_backend, _AsyncBackend)  # type: ignore[attr-defined]
