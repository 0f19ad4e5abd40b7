"""One connection of the daemon, without sockets: pipelined requests, mistakes, limits, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from tests.fakes import real
from uvicorn.server import ServerState

from failsoft.surfaces.daemon.protocol import LARGEST_HEAD, MOST_PIPELINED, LimitedProtocol

GET = b"GET /%d HTTP/1.1\r\nhost: a\r\n\r\n"


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 50_000)})
        self.written = b""
        self.closed = self.aborted = False

    def write(self, data: Any) -> None:
        if not self.closed:
            self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    @property
    def statuses(self) -> list[bytes]:
        return [part[:3] for part in self.written.split(b"HTTP/1.1 ")[1:]]


class App:
    """Answers with the path once it may; notes who has gone."""

    def __init__(self, grant: bool = True) -> None:
        self.may_answer = asyncio.Event()
        self.seen: list[str] = []
        self.gone: list[str] = []
        self.grant = grant

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.seen.append(path)
        if self.grant:
            scope["grant"] = object()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.append(path)
                return
            if not message["more_body"]:
                break
        if path == "/stream":
            while (await receive())["type"] != "http.disconnect":
                pass
            self.gone.append(path)
            return
        await self.may_answer.wait()
        body = path.encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


Connect = Callable[..., tuple[LimitedProtocol, Transport]]


def connecter(app: App, most: int = 10) -> Connect:
    state = ServerState()
    made = type("Limited", (LimitedProtocol,), {"most": most, "strangers": {}})
    config = uvicorn.Config(app, http=made, ws="none", log_config=None, access_log=False)

    def connect(address: str = "127.0.0.1") -> tuple[LimitedProtocol, Transport]:
        protocol = made(config=config, server_state=state, app_state={})
        transport = Transport(address)
        protocol.connection_made(transport)
        return protocol, transport

    return connect


async def turn_over(times: int = 50) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


@real
async def test_pipelined_requests_are_answered_in_order() -> None:
    app = App()
    protocol, transport = connecter(app)()
    app.may_answer.set()
    protocol.data_received(b"".join(GET % number for number in range(20)))
    await turn_over(400)
    assert transport.statuses == [b"200"] * 20
    assert app.seen == [f"/{number}" for number in range(20)]
    assert not transport.closed


@real
async def test_requests_that_wait_on_one_connection_are_limited() -> None:
    app = App()
    protocol, transport = connecter(app)()
    protocol.data_received(b"".join(GET % number for number in range(5_000)))
    await turn_over()
    assert len(protocol.pipeline) < MOST_PIPELINED
    app.may_answer.set()
    await turn_over(2_000)
    assert transport.statuses == [b"200"] * MOST_PIPELINED
    assert transport.closed


@pytest.mark.parametrize("first", [b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n", GET % 1])
@real
async def test_every_request_of_a_connection_learns_of_its_end(first: bytes) -> None:
    app = App()
    protocol, _ = connecter(app)()
    protocol.data_received(first)
    await turn_over()
    protocol.data_received(GET % 2)
    protocol.connection_lost(None)
    await turn_over()
    app.may_answer.set()
    await turn_over()
    assert "/2" not in app.seen
    if b"stream" in first:
        assert app.gone == ["/stream"]


BAD = [
    b"GARBAGE\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * LARGEST_HEAD + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
@real
async def test_a_bad_request_is_not_answered_in_place_of_the_one_before(bad: bytes, together: bool) -> None:
    app = App()
    protocol, transport = connecter(app)()
    for data in [GET % 1 + bad] if together else [GET % 1, bad]:
        protocol.data_received(data)
        await turn_over()
    protocol.data_received(GET % 3)
    app.may_answer.set()
    await turn_over()
    assert transport.statuses == [b"200"]
    assert transport.written.endswith(b"/1")
    assert transport.closed
    assert "/3" not in app.seen


NO_HEADS = [b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\nhost: a\n\n", b"GET / HTTP/1.1\r\nhost: a\n", b"{}"]


@pytest.mark.parametrize("bad", [*BAD, *NO_HEADS], ids=range(len(BAD) + len(NO_HEADS)))
@real
async def test_a_bad_request_alone_is_refused_at_once(bad: bytes) -> None:
    app = App()
    protocol, transport = connecter(app)()
    protocol.data_received(bad)
    await turn_over()
    assert transport.statuses == [b"400"]
    assert transport.closed


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://evil.example/v1/tools HTTP/1.1\r\nhost: a",
        b"GET http://evil.example HTTP/1.1\r\nhost: a",
        b"GET evil.example:80 HTTP/1.1\r\nhost: a",
        b"OPTIONS * HTTP/1.1\r\nhost: a",
        b"CONNECT evil.example:80 HTTP/1.1\r\nhost: a",
        b"PRI * HTTP/2.0\r\n\r\nSM",
        b"GET / HTTP/2.0\r\nhost: a",
        b"GET /",
        b"get / HTTP/1.1\r\nhost: a",
        b"GET / HTTP/1.1\nhost: a",
        b"GET / HTTP/1.1\r\nhost: a\nx: b",
        b"GET / HTTP/1.1\r\nhost: a\rx: b",
        b"GET / HTTP/1.1\r\nhost: a\x00b",
        b"GET / HTTP/1.1\r\nho st: a",
        b"GET / HTTP/1.1\r\nhost : a",
        b"GET / HTTP/1.1\r\n host: a",
        b"GET / HTTP/1.1\r\nhost: a\r\n b",
        b"GET / HTTP/1.1\r\nhost",
    ],
)
@pytest.mark.parametrize("place", ["alone", "second"])
@real
async def test_a_head_that_readers_could_read_differently_reaches_no_route(head: bytes, place: str) -> None:
    app = App()
    app.may_answer.set()
    protocol, transport = connecter(app)()
    protocol.data_received((b"" if place == "alone" else GET % 1) + head + b"\r\n\r\n")
    await turn_over()
    assert app.seen == ([] if place == "alone" else ["/1"])
    assert transport.closed


@real
async def test_a_head_in_single_bytes_is_taken_in_without_copying_it_each_time() -> None:
    app = App()
    protocol, _ = connecter(app)()
    sizes: list[int] = []

    class Counted(bytearray):
        def find(self, wanted: Any, start: Any = 0, *end: Any) -> int:
            sizes.append(len(self) - start)
            return super().find(wanted, start, *end)

    protocol.data_received(b"G")
    protocol._held = held = Counted(protocol._held)
    for byte in b"ET / HTTP/1.1\r\nx: " + b"a" * 10_000:
        protocol.data_received(bytes([byte]))
    assert protocol._held is held
    assert max(sizes) <= 4


@real
async def test_a_body_can_be_followed_by_the_next_request_in_single_bytes() -> None:
    app = App()
    app.may_answer.set()
    protocol, transport = connecter(app)()
    post = b"POST /1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nt: u\r\n\r\n"
    for byte in post + b"\r\n\r\n" + GET % 2:
        protocol.data_received(bytes([byte]))
        await turn_over(2)
    await turn_over()
    assert transport.statuses == [b"200", b"200"]


@real
async def test_connections_without_a_token_make_room_for_new_ones() -> None:
    app = App(grant=False)
    app.may_answer.set()
    connect = connecter(app, most=3)
    strangers = [connect() for _ in range(3)]
    strangers[0][0].data_received(GET % 1)
    await turn_over()
    _, newest = connect()
    assert [transport.aborted for _, transport in strangers] == [True, False, False]
    assert not newest.aborted


@real
async def test_the_address_with_most_connections_without_a_token_makes_room() -> None:
    connect = connecter(App(grant=False), most=4)
    _, other = connect("10.0.0.1")
    crowd = [connect("10.0.0.2")[1] for _ in range(20)]
    assert not other.aborted
    assert [transport.aborted for transport in crowd] == [True] * 17 + [False] * 3


@pytest.mark.parametrize("answered", [True, False])
@real
async def test_connections_with_a_token_are_kept_and_new_ones_are_closed_beyond_the_limit(answered: bool) -> None:
    app = App()
    if answered:
        app.may_answer.set()
    connect = connecter(app, most=3)
    known = [connect() for _ in range(3)]
    for protocol, _ in known:
        protocol.data_received(GET % 1)
    await turn_over()
    _, newest = connect()
    assert newest.aborted
    assert not any(transport.aborted for _, transport in known)


@real
async def test_the_rest_of_a_head_must_come_in_time_after_the_answer_to_the_request_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("failsoft.surfaces.daemon.protocol.HEAD_SECONDS", 0.0)
    app = App()
    protocol, transport = connecter(app)()
    protocol.data_received(GET % 1)
    protocol.data_received(b"GET / HTTP/1.1\r\nx: ")
    await turn_over()
    assert not transport.closed
    app.may_answer.set()
    await asyncio.sleep(0.01)
    assert transport.statuses == [b"200"]
    assert transport.closed
