"""HTTP/1.1 of the daemon: httptools' parser behind limits on connections, sizes and times.

Rules
-----
- The head of each request must come within ``HEAD_SECONDS``. It is held back until it is complete, so its size is known
  before it is parsed. Bytes that cannot begin a head, such as TLS, are refused at once.
- A request that two readers could read differently is refused, and nothing after it is read. The requests before it, on
  the same connection, are answered first: no answer is sent for another request.
- An absolute address in the place of a path is refused, though RFC 9112 wants servers to accept it: its host could differ
  from the header Host, and no client needs it.
- Beyond ``MOST_CONNECTIONS``, a connection that has not shown a valid token is closed: the oldest one of the address that has
  most of them. If all have shown one, the new connection is closed.
- When a connection ends, all its requests are told, not just the latest.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any, ClassVar, Final

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS: Final = 10.0
MOST_CONNECTIONS: Final = 1_000
MOST_PIPELINED: Final = 64  # requests of one connection that wait for their answers
LARGEST_HEAD: Final = 32_768  # bytes
TOO_LARGE: Final = "The request is too large."
NO_HTTP: Final = "Invalid HTTP request received."
LARGEST_REQUEST: Final = 10_000_000  # bytes, as sent: chunks of one byte take six

_END: Final = b"\r\n\r\n"
_NO_HEAD: Final = re.compile(rb"(?<!\r)\n")  # a head with this never becomes complete
_UPGRADE: Final = re.compile(rb"(?i)\r\nupgrade:")


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    most: ClassVar[int] = MOST_CONNECTIONS
    strangers: ClassVar[dict[LimitedProtocol, None]] = {}  # connections that have shown no valid token, oldest first
    _cycles: tuple[RequestResponseCycle, ...] = ()  # requests without an answer
    _head_timer: asyncio.TimerHandle | None = None
    _turned_away = False
    _refused = False  # nothing more is read
    _between = True  # the parser is between two requests
    _in_head = False  # the parser is in a head that came together with the request before it
    _held: bytes | bytearray = b""  # the beginning of a head
    _received = 0  # bytes of the request that is being parsed

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, or close it if there are too many."""
        if len(self.connections) >= self.most and not self._make_room():
            self._turned_away = self._refused = True
            transport.abort()
            return
        super().connection_made(transport)
        self.strangers[self] = None
        self._await_head()

    def _make_room(self) -> bool:
        """Close a connection without a valid token; False if there is none."""
        for each in [each for each in self.strangers if any("grant" in cycle.scope for cycle in each._cycles)]:
            del self.strangers[each]
        if not self.strangers:
            return False
        ((most, _),) = Counter(each._address for each in self.strangers).most_common(1)
        oldest = next(each for each in self.strangers if each._address == most)
        del self.strangers[oldest]
        oldest.transport.abort()
        return True

    @property
    def _address(self) -> str:
        return "" if self.client is None else self.client[0]

    def data_received(self, data: bytes) -> None:
        """Take in data; the time for the head ends with the head."""
        if self._refused or self.transport.is_closing():
            return
        if self._between:
            head = self._hold(data)
            if head is None:
                return
            data = head
        self._received += len(data)
        super().data_received(data)
        if not self._between and self._received > (LARGEST_HEAD if self._in_head else LARGEST_REQUEST):
            self.send_400_response(TOO_LARGE)
        if not self._cycles:
            self._await_head()
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hold(self, data: bytes) -> bytes | None:
        """Add to the head; return what is to be parsed once the head is complete."""
        searched = max(0, len(self._held) - len(_END) + 1)
        if self._held:
            self._held += data
        else:
            self._held = bytearray(data.lstrip(b"\r\n"))
        end = self._held.find(_END, searched)
        if (len(self._held) if end < 0 else end) > LARGEST_HEAD:
            self.send_400_response(TOO_LARGE)
            return None
        if end < 0:
            if _NO_HEAD.search(self._held, searched) or (self._held and not self._held[:1].isalpha()):
                self.send_400_response(NO_HTTP)
            self._await_head()
            return None
        head, self._held = bytes(self._held), b""
        return _without_upgrade(head, end)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._between, self._in_head = False, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of the head. Those that follow a body in chunks could contradict it, and are left out."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer a request."""
        if self.parser.should_upgrade():  # the parser would take the rest for another protocol
            raise HttpParserError("no upgrade in a request that came together with the one before it")
        if not self.url.startswith(b"/"):  # its host could differ from the one that is checked
            raise HttpParserError("only the path of an address is accepted")
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise HttpParserError("only HTTP/1.1 and HTTP/1.0 are spoken")
        if self._cycles:
            self._check_pipelined()
        super().on_headers_complete()
        self._in_head = False
        self._cycles += (self.cycle,)

    def _check_pipelined(self) -> None:
        """Refuse a request beyond the limits of those that came together with the one before."""
        if len(self._cycles) >= MOST_PIPELINED:
            raise HttpParserError("too many requests wait for their answers")
        size = len(self.url) + sum(len(name) + len(value) + len(_END) for name, value in self.headers)
        if size > LARGEST_HEAD:
            raise HttpParserError(TOO_LARGE)

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._between, self._received = True, 0

    def on_response_complete(self) -> None:
        """End an answer. What has come of the next request must be completed in time."""
        done, *waiting = self._cycles
        self._cycles = tuple(waiting)
        if "grant" in done.scope:
            self.strangers.pop(self, None)
        super().on_response_complete()
        if not self._cycles and (self._held or not self._between) and not self.transport.is_closing():
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse the request that is being parsed, and read no more. Requests before it are answered first."""
        if self._refused:
            return
        self._refused = True
        before = self._cycles
        if before and not self._between and not self._in_head:  # the mistake is in the body of the latest one
            *earlier, broken = before
            before = tuple(earlier)
            _disconnect(broken)
            if broken.response_started:
                self.transport.close()
                return
        if before:
            before[-1].keep_alive = False
        else:
            super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self.strangers.pop(self, None)
        if self._head_timer is not None:
            self._head_timer.cancel()
        for cycle in self._cycles:
            _disconnect(cycle)
        if not self._turned_away:
            super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close_headless)

    def _close_headless(self) -> None:
        self._head_timer = None
        if not self._cycles:
            self.transport.close()


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()


def _without_upgrade(data: bytes, end: int) -> bytes:
    """Rename the header Upgrade of a head that ends at ``end``: HTTP/1.1 is all that the daemon speaks.

    The parser would take the body for another protocol. Clients that prefer HTTP/2 send the header with every request.
    """
    if b"pgrade" not in data[:end].lower():
        return data
    return _UPGRADE.sub(b"\r\nx-ignored:", data[:end]) + data[end:]
