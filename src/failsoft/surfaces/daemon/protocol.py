"""HTTP/1.1 of the daemon: httptools' parser behind limits on connections, sizes and times.

Rules
-----
- The head of each request must come within ``HEAD_SECONDS``. It is held back until it is complete, so its size is known
  before it is parsed. Bytes that cannot begin a head, such as TLS, are refused at once.
- An ambiguous request, which a proxy could parse differently, is refused, and nothing after it is read. Earlier
  requests of the connection are answered first, so that each answer belongs to its request.
- An absolute address instead of a path must name the same host as the header Host. Only its path and query are used.
- Beyond ``MOST_CONNECTIONS``, one connection is closed. The first choice is a connection without a valid token: the
  oldest one of the address that has most of them. The second choice is an idle connection: the longest idle one of the
  token that has most of them. If there is neither, the new connection is closed.
- If a client does not read its last answer within ``HEAD_SECONDS``, the connection is closed.
- When a connection ends, all its open requests are notified, not just the latest.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

from httptools import HttpParserError, HttpRequestParser, parse_url
from starlette.types import Scope

from failsoft.surfaces.daemon.http_request import Header, HttpRequest
from failsoft.surfaces.daemon.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

HEAD_SECONDS: Final = 10.0
MOST_CONNECTIONS: Final = 1_000
MOST_PIPELINED: Final = 64  # requests of one connection that wait for their answers
LARGEST_HEAD: Final = 32_768  # bytes
TOO_LARGE: Final = "the request is too large"
NO_HTTP: Final = "this is not HTTP"
LARGEST_REQUEST: Final = 10_000_000  # bytes as sent: a chunk of one byte takes six

_END: Final = b"\r\n\r\n"
_NO_HEAD: Final = re.compile(rb"(?<!\r)\n")  # a head with this never becomes complete
_UPGRADE: Final = re.compile(rb"(?i)\r\nupgrade:")
_END_OF_HOST: Final = re.compile(rb"[/?#]")
_REFUSAL: Final = b"HTTP/1.1 400 Bad Request\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"


class LimitedProtocol(asyncio.Protocol):
    """One connection. uvicorn makes one for each, and tells it about the end of the server (``shutdown``)."""

    most: ClassVar[int] = MOST_CONNECTIONS
    strangers: ClassVar[dict[LimitedProtocol, None]] = {}  # connections that have shown no valid token, oldest first
    transport: asyncio.Transport

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: object,  # noqa: ARG002 - uvicorn passes it
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self.loop = _loop or asyncio.get_running_loop()
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # for the requests before ``close``
        self.writable = asyncio.Event()
        self.writable.set()
        self._app = config.loaded_app
        self._idle_seconds = config.timeout_keep_alive
        self._server = server_state
        self._address = ""
        self._origin: Scope = {}  # the part that all requests' scopes have in common
        self._requests: deque[HttpRequest] = deque()  # those without a complete answer; the first one is being answered
        self._latest: HttpRequest  # the request that is being read
        self._due: float | None = None  # when to close the connection; None: a request is being answered
        self._timer: asyncio.TimerHandle | None = None
        self._grant: object = None  # the grant of the latest valid token
        self._is_idle = False  # nothing has come since the latest answer
        self._paused = False  # True: reading is paused
        self._turned_away = False
        self._refused = False  # True: nothing more is read
        self._between = True  # the parser is between two requests
        self._in_head = False  # the parser is in a head that came together with the request before it
        self._held: bytes | bytearray = b""  # the beginning of a head
        self._received = 0  # bytes of the request that is being parsed
        self._url = b""
        self._headers: list[Header] = []

    # -- the connection ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, or close it if there are too many."""
        self.transport = transport
        if len(self._server.connections) >= self.most and not self._make_room():
            self._turned_away = self._refused = True
            transport.abort()
            return
        self._server.connections.add(self)  # type: ignore[arg-type]  # uvicorn knows its own protocols only
        client, server = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        self._address = client[0] if client else ""
        self._origin = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "root_path": "",
            "scheme": "http" if transport.get_extra_info("sslcontext") is None else "https",
            "client": client[:2] if client else None, "server": server[:2] if server else None,
        }  # fmt: skip
        self.strangers[self] = None
        self._close_after(HEAD_SECONDS)

    def _make_room(self) -> bool:
        """Close a connection without a valid token, else an idle one; False if there is none."""
        for each in [each for each in self.strangers if any("grant" in one.scope for one in each._requests)]:
            del self.strangers[each]
        if not self.strangers:
            return self._close_idle()
        ((most, _),) = Counter(each._address for each in self.strangers).most_common(1)
        oldest = next(each for each in self.strangers if each._address == most)
        del self.strangers[oldest]
        oldest.transport.abort()
        return True

    def _close_idle(self) -> bool:
        """Close the longest idle connection of the token that has most of them; False if none is idle."""
        idle = [each for each in self._server.connections if isinstance(each, LimitedProtocol) and each._is_idle]
        if not idle:
            return False
        ((most, _),) = Counter(each._grant for each in idle).most_common(1)
        oldest = min((each for each in idle if each._grant == most), key=lambda each: each._due or 0.0)
        self._server.connections.discard(oldest)
        oldest.transport.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a callback of asyncio
        """End a connection."""
        self.strangers.pop(self, None)
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        for request in self._requests:
            request.disconnect()
        self.writable.set()

    def shutdown(self) -> None:
        """Close the connection after the answers under way: the server ends."""
        if self._requests:
            self._requests[-1].keep_alive = False
        else:
            self._close()

    def pause_writing(self) -> None:
        """Write no more for now."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Write on."""
        self.writable.set()

    def _pause_reading(self) -> None:
        self._paused = True
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, if reading was paused."""
        if self._paused:
            self._paused = False
            self.transport.resume_reading()

    @property
    def default_headers(self) -> list[Header]:
        """Headers of every answer: the date."""
        return self._server.default_headers

    # -- limits of time ------------------------------------------------------------------------------------------------

    def _close_after(self, seconds: float) -> None:
        """Close the connection after some time. One timer serves all requests, because starting one takes a while."""
        self._due = due = self.loop.time() + seconds
        if self._timer is None or self._timer.when() > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(due, self._look_at_time)

    def _close(self) -> None:
        """Close the connection once the client has taken everything, or after some time."""
        self.transport.close()
        self._close_after(HEAD_SECONDS)

    def _look_at_time(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self.loop.time() < self._due:
            self._timer = self.loop.call_at(self._due, self._look_at_time)
        elif self.transport.is_closing():
            self.transport.abort()
        else:
            self._close()

    # -- what comes in -------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take in data."""
        if self._refused or self.transport.is_closing():
            return
        if self._is_idle:
            self._is_idle = False
            self._close_after(HEAD_SECONDS)
        if self._between:
            head = self._hold(data)
            if head is None:
                return
            data = head
        self._received += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserError as error:
            self._refuse(_reason(error))
        if not self._between and self._received > (LARGEST_HEAD if self._in_head else LARGEST_REQUEST):
            self._refuse(TOO_LARGE)

    def _hold(self, data: bytes) -> bytes | None:
        """Add to the head; return what is to be parsed once the head is complete."""
        searched = max(0, len(self._held) - len(_END) + 1)
        if self._held:
            self._held += data
        else:
            self._held = bytearray(data.lstrip(b"\r\n"))
        end = self._held.find(_END, searched)
        if (len(self._held) if end < 0 else end) > LARGEST_HEAD:
            self._refuse(TOO_LARGE)
            return None
        if end < 0:
            if _NO_HEAD.search(self._held, searched) or (self._held and not self._held[:1].isalpha()):
                self._refuse(NO_HTTP)
            return None
        head, self._held = bytes(self._held), b""
        return _without_upgrade(head, end)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._between, self._in_head = False, True
        self._url, self._headers = b"", []

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of the head. Headers after a chunked body are ignored: they could contradict the head."""
        if self._in_head:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begin to answer a request, unless another one is being answered."""
        parser = self.parser
        if parser.should_upgrade():  # the parser would take the rest for another protocol
            raise HttpParserError("no upgrade in a request that came together with the one before it")
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            raise HttpParserError("only HTTP/1.1 and HTTP/1.0 are spoken")
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self._headers):
            raise HttpParserError("HTTP/1.0 has no Transfer-Encoding")
        if self._requests:
            self._check_pipelined()
        raw_path, query = _path_of(self._url, self._headers)
        path = raw_path.decode("ascii")
        scope = {
            **self._origin, "http_version": version, "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path, "raw_path": raw_path, "query_string": query,
            "headers": self._headers,
        }  # fmt: skip
        self._latest = HttpRequest(
            self, scope,
            keep_alive=version == "1.1" and parser.should_keep_alive(),
            awaits_continue=version == "1.1" and any(_is_expectation(*header) for header in self._headers),
        )  # fmt: skip
        self._in_head = False
        self._due = None
        self._requests.append(self._latest)
        if len(self._requests) == 1:
            self._answer(self._latest)
        else:
            self._pause_reading()

    def _check_pipelined(self) -> None:
        """Refuse a pipelined request if too many wait, or if its head is too large."""
        if len(self._requests) >= MOST_PIPELINED:
            raise HttpParserError("too many requests wait for their answers")
        size = len(self._url) + sum(len(name) + len(value) + len(_END) for name, value in self._headers)
        if size > LARGEST_HEAD:
            raise HttpParserError("the head is too large")

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if not self._latest.finished and self._latest.add_body(body):
            self._pause_reading()

    def on_message_complete(self) -> None:
        """End a request."""
        self._latest.end_body()
        self._between, self._received = True, 0

    # -- what goes out -------------------------------------------------------------------------------------------------

    def _answer(self, request: HttpRequest) -> None:
        task = self.loop.create_task(request.run(self._app))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def finish(self, request: HttpRequest) -> None:
        """Go on after an answer. If the next request has begun, it must be completed in time."""
        self._requests.popleft()
        self._server.total_requests += 1
        if "grant" in request.scope:
            self._grant = request.scope["grant"]
            self.strangers.pop(self, None)
        if not request.keep_alive:
            self._close()
        if self.transport.is_closing():
            return
        self.resume_reading()
        if self._requests:
            self._answer(self._requests[0])
            return
        self._is_idle = self._between and not self._held
        self._close_after(self._idle_seconds if self._is_idle else HEAD_SECONDS)

    def _refuse(self, reason: str) -> None:
        """Refuse the request that is being parsed, and read no more. Requests before it are answered first."""
        if self._refused:
            return
        self._refused = True
        before = [*self._requests]
        if before and not self._between and not self._in_head:  # the mistake is in the body of the latest request
            broken = before.pop()
            broken.disconnect()
            if broken.started:
                self._close()
                return
        if before:
            before[-1].keep_alive = False
        else:
            body = Problem(400, reason).encode()
            self.transport.write(_REFUSAL % (MEDIA_TYPE.encode(), len(body), body))
            self._close()


def _reason(error: HttpParserError) -> str:
    """Describe what is wrong with a request. The parser's messages are safe to show: they quote nothing from it."""
    own = error.__context__
    return str(own if isinstance(own, HttpParserError) else error) or NO_HTTP


def _path_of(url: bytes, headers: list[Header]) -> tuple[bytes, bytes]:
    """Return the path and the query of an address; raise if it names another host than the header Host."""
    if b"#" in url:
        raise HttpParserError("the address has a fragment")
    parsed = parse_url(url)
    path: bytes = parsed.path or b"/"
    if not url.startswith(b"/"):
        scheme, _, rest = url.partition(b"://")
        if scheme.lower() not in (b"http", b"https"):
            raise HttpParserError("the address is not of this protocol")
        named = _END_OF_HOST.split(rest, maxsplit=1)[0].lower()
        if [value.lower() for name, value in headers if name == b"host"] != [named]:
            raise HttpParserError("the address and the header Host name different hosts")
    return path, parsed.query or b""


def _is_expectation(name: bytes, value: bytes) -> bool:
    return name == b"expect" and value.lower() == b"100-continue"


def _without_upgrade(data: bytes, end: int) -> bytes:
    """Rename the header Upgrade in a head that ends at ``end``.

    The daemon speaks HTTP/1.1 only, but clients that prefer HTTP/2 send Upgrade with every request. With this header,
    the parser would treat the body as data of another protocol.
    """
    if b"pgrade" not in data[:end].lower():
        return data
    return _UPGRADE.sub(b"\r\nx-ignored:", data[:end]) + data[end:]
