"""One connection of the daemon, without sockets: pipelined requests, mistakes, limits, the end."""

from __future__ import annotations

import asyncio
import json
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
        self.writes = 0
        self.closed = self.aborted = False

    def write(self, data: Any) -> None:
        if not self.closed:
            self.written += data
            self.writes += 1

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


def connecter(app: Any, most: int = 10) -> Connect:
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
    assert len(protocol._requests) == MOST_PIPELINED
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


@real
async def test_an_idle_connection_of_the_token_with_most_of_them_makes_room() -> None:
    grants = iter(["one", "many", "many", "many"])
    app = App(grant=False)
    app.may_answer.set()

    async def granting(scope: Any, receive: Any, send: Any) -> None:
        scope["grant"] = next(grants)
        await app(scope, receive, send)

    connect = connecter(granting, most=4)
    known = [connect() for _ in range(4)]
    for protocol, _ in known:
        protocol.data_received(GET % 1)
        await turn_over()
    newest = [connect()[1] for _ in range(3)]
    assert [transport.closed for _, transport in known] == [False, True, False, False]
    assert [transport.aborted for transport in newest] == [True, True, False]  # strangers, from then on


@real
async def test_connections_with_a_request_are_kept_and_new_ones_are_closed_beyond_the_limit() -> None:
    app = App()
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


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://A.example:80/v1/tools?x=1", "/v1/tools"),
        (b"HTTP://a.example:80", "/"),
        (b"https://a.example:80?x=1", "/"),
    ],
)
@real
async def test_an_absolute_address_of_the_same_host_is_accepted(target: bytes, path: str) -> None:
    app = App()
    app.may_answer.set()
    protocol, transport = connecter(app)()
    protocol.data_received(b"GET " + target + b" HTTP/1.1\r\nhost: a.example:80\r\n\r\n")
    await turn_over()
    assert transport.statuses == [b"200"]
    assert app.seen == [path]


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://a@b/ HTTP/1.1\r\nhost: b",
        b"GET http://b/ HTTP/1.1\r\nhost: b:80",
        b"GET http://b/ HTTP/1.1\r\nhost: b\r\nhost: b",
        b"GET ftp://b/ HTTP/1.1\r\nhost: b",
        b"GET http:/b HTTP/1.1\r\nhost: b",
        b"GET http://b\\@c/ HTTP/1.1\r\nhost: c",
    ],
)
@real
async def test_an_absolute_address_that_does_not_name_the_host_is_refused(head: bytes) -> None:
    app = App()
    protocol, transport = connecter(app)()
    protocol.data_received(head + b"\r\n\r\n")
    await turn_over()
    assert transport.statuses == [b"400"]
    assert not app.seen


Answer = Callable[[Any, Any, Any], Any]


async def ask(app: Answer, request: bytes) -> Transport:
    protocol, transport = connecter(app)()
    protocol.data_received(request)
    await turn_over()
    return transport


def answers(*messages: dict[str, Any]) -> Answer:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        for message in messages:
            await send(message)

    return app


def begins(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": headers}


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


@real
async def test_a_short_answer_is_written_at_once() -> None:
    transport = await ask(answers(begins((b"content-length", b"2")), part(b"ok")), GET % 1)
    assert transport.writes == 1
    assert transport.written.endswith(b"content-length: 2\r\n\r\nok")


REASONS = {
    b"GET http://b/ HTTP/1.1\r\nhost: c": "the address and the header Host name different hosts",
    b"GET ftp://b/ HTTP/1.1\r\nhost: b": "the address is not of this protocol",
    b"GET /a#b HTTP/1.1\r\nhost: b": "the address has a fragment",
    b"POST / HTTP/1.0\r\ntransfer-encoding: chunked": "HTTP/1.0 has no Transfer-Encoding",
    b"POST / HTTP/1.1\r\nhost: b\r\ncontent-length: 1\r\ntransfer-encoding: chunked": "Transfer-Encoding can't be present",
    b"GET / HTTP/1.2\r\nhost: b": "Invalid HTTP version",
    b"GET / HTTP/1.1\r\nhost: " + b"x" * LARGEST_HEAD: "the request is too large",
}


@pytest.mark.parametrize(("head", "reason"), REASONS.items(), ids=range(len(REASONS)))
@real
async def test_a_refusal_says_what_is_wrong(head: bytes, reason: str) -> None:
    app = App()
    protocol, transport = connecter(app)()
    protocol.data_received(head + b"\r\n\r\n")
    await turn_over()
    answer, _, body = transport.written.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in answer
    problem = json.loads(body)
    assert (problem["status"], problem["type"]) == (400, "urn:failsoft:problem:bad-request")
    assert reason in problem["detail"]
    assert not app.seen


@real
async def test_an_answer_without_a_length_comes_in_chunks() -> None:
    transport = await ask(answers(begins(), part(b"a" * 20, more=True), part(b"")), GET % 1)
    assert transport.written.endswith(b"transfer-encoding: chunked\r\n\r\n14\r\n" + b"a" * 20 + b"\r\n0\r\n\r\n")
    assert not transport.closed


@real
async def test_an_answer_without_a_length_ends_with_the_connection_of_http_1_0() -> None:
    transport = await ask(answers(begins(), part(b"abc", more=True), part(b"d")), b"GET / HTTP/1.0\r\n\r\n")
    assert transport.written.endswith(b"connection: close\r\n\r\nabcd")
    assert transport.closed


@real
async def test_an_answer_to_head_has_no_body() -> None:
    transport = await ask(
        answers(begins((b"content-length", b"2")), part(b"ok")), b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n"
    )
    assert transport.written.endswith(b"content-length: 2\r\n\r\n")
    assert not transport.closed


@pytest.mark.parametrize(
    "messages",
    [
        (begins((b"content-length", b"3")), part(b"ok")),
        (begins((b"content-length", b"1")), part(b"ok")),
        (begins(), part(b"ok", more=True)),
        (begins(), part(b"ok", more=True), begins()),
    ],
)
@real
async def test_an_answer_that_is_not_complete_ends_the_connection(messages: Any) -> None:
    transport = await ask(answers(*messages), GET % 1)
    assert transport.aborted


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb"])
@real
async def test_a_header_of_several_lines_is_never_written(value: bytes) -> None:
    transport = await ask(answers(begins((b"allow", value)), part(b"")), GET % 1)
    assert transport.written == b""
    assert transport.aborted


@real
async def test_an_application_that_fails_is_answered_for() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            raise SystemExit("from a tool")

    transport = await ask(app, GET % 1)
    assert transport.statuses == [b"500"]
    assert b"tool" not in transport.written
    assert transport.closed


@real
async def test_an_answer_waits_until_the_client_takes_more() -> None:
    app = answers(begins(), part(b"ok"))
    protocol, transport = connecter(app)()
    protocol.pause_writing()
    protocol.data_received(GET % 1)
    await turn_over()
    assert not transport.written
    protocol.resume_writing()
    await turn_over()
    assert transport.statuses == [b"200"]


@real
async def test_a_client_that_asks_whether_to_send_its_body_is_told_once_somebody_reads_it() -> None:
    app = App()
    protocol, transport = connecter(app)()
    head = b"POST /1 HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\ncontent-length: 2\r\n\r\n"
    protocol.data_received(head)
    await turn_over()
    assert transport.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    app.may_answer.set()
    protocol.data_received(b"ab")
    await turn_over()
    assert transport.statuses == [b"100", b"200"]


@real
async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.surfaces.daemon.protocol.HEAD_SECONDS", 0.05)
    app = App()
    protocol, transport = connecter(app)()
    protocol._idle_seconds = 0.1
    protocol.data_received(GET % 1)
    await asyncio.sleep(0.2)
    assert not transport.closed
    app.may_answer.set()
    await turn_over()
    assert transport.statuses == [b"200"]
    assert not transport.closed
    for _ in range(100):
        await asyncio.sleep(0.02)
        if transport.closed:
            break
    assert transport.closed


@real
async def test_a_head_in_drops_gets_no_more_time_with_each_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.surfaces.daemon.protocol.HEAD_SECONDS", 0.1)
    app = App()
    app.may_answer.set()
    protocol, transport = connecter(app)()
    protocol.data_received(GET % 1)
    await turn_over()
    for _ in range(100):
        protocol.data_received(b"G")
        await asyncio.sleep(0.01)
        if transport.closed:
            break
    assert transport.closed
    assert len(protocol._held) < 100


@real
async def test_the_rest_of_a_body_must_come_in_time_after_its_request_was_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("failsoft.surfaces.daemon.protocol.HEAD_SECONDS", 0.1)
    refusal = answers(begins((b"content-length", b"0")), part(b""))
    protocol, transport = connecter(refusal)()
    protocol.data_received(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n")
    await turn_over()
    assert transport.statuses == [b"200"]
    for _ in range(100):
        protocol.data_received(b"a")
        await asyncio.sleep(0.01)
        if transport.closed:
            break
    assert transport.closed


@real
async def test_a_client_that_takes_nothing_is_closed_and_its_request_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.surfaces.daemon.http_request.SEND_SECONDS", 0.02)
    told: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await receive()
            await send(begins())
            await send(part(b"a", more=True))
            protocol.pause_writing()
            await send(part(b"b", more=True))
            told.append((await receive())["type"])

    protocol, transport = connecter(app)()
    protocol.data_received(GET % 1)
    for _ in range(100):
        await asyncio.sleep(0.01)
        if told:
            break
    assert told == ["http.disconnect"]
    assert transport.aborted
    assert transport.written.endswith(b"\r\n\r\n1\r\na\r\n")


@real
async def test_a_connection_is_not_kept_for_a_client_that_does_not_take_its_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("failsoft.surfaces.daemon.protocol.HEAD_SECONDS", 0.02)
    protocol, transport = connecter(answers(begins((b"connection", b"close")), part(b"ok")))()
    protocol.data_received(GET % 1)
    await turn_over()
    assert transport.closed
    assert not transport.aborted  # the client may still take it
    for _ in range(100):
        await asyncio.sleep(0.01)
        if transport.aborted:
            break
    assert transport.aborted
