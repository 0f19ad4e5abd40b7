"""One HTTP request and its answer: the ``scope``, ``receive`` and ``send`` that an ASGI application gets.

Rules
-----
- The head of an answer is written together with the beginning of its body: a short answer takes one system call.
- An answer that ends early, or differs in length from what its head says, ends the connection.
- An answer has a length, or comes in chunks; to a client of HTTP/1.0 it ends with the connection.
- A client that takes nothing for ``SEND_SECONDS`` is closed.
- The connection reads no more while ``HIGH_WATER`` bytes of a body wait to be received.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, Protocol

from starlette.types import ASGIApp, Message, Scope

from failsoft.core.redact.sanitise import sanitise

log = logging.getLogger("failsoft")

HIGH_WATER: Final = 65_536  # bytes
SEND_SECONDS: Final = 10.0
FAILED: Final = b"Internal Server Error"
_STATUS_LINES: Final = {each.value: b"HTTP/1.1 %d %b\r\n" % (each, each.phrase.encode()) for each in HTTPStatus}
_WITHOUT_BODY: Final = frozenset({204, 304})

Header = tuple[bytes, bytes]


class Connection(Protocol):
    """The connection of a request."""

    transport: asyncio.Transport
    writable: asyncio.Event  # cleared while the client does not take what was written

    @property
    def default_headers(self) -> list[Header]:
        """Headers of every answer."""
        ...

    def resume_reading(self) -> None:
        """Read on, if reading was paused."""

    def finish(self, request: HttpRequest) -> None:
        """Go on after an answer."""


class HttpRequest:
    """One request and its answer."""

    __slots__ = (
        "_awaits_continue", "_connection", "_has_no_body", "_head", "_in_chunks", "_left", "_news", "_received", "body",
        "disconnected", "finished", "keep_alive", "more_body", "scope", "started",
    )  # fmt: skip

    def __init__(self, connection: Connection, scope: Scope, *, keep_alive: bool, awaits_continue: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.body = bytearray()  # the bytes that the application has not received yet
        self.more_body = True
        self.disconnected = False
        self.started = False  # the answer has begun
        self.finished = False
        self._connection = connection
        self._awaits_continue = awaits_continue
        self._news: asyncio.Event | None = None
        self._received = False  # the end of the body was received
        self._head = b""  # the head of the answer, until it is written
        self._left: int | None = None  # bytes of the answer that are to come, if its head says how many
        self._in_chunks = self._has_no_body = False

    async def run(self, app: ASGIApp) -> None:
        """Let the application answer. Whatever it raises ends this request only."""
        try:
            await app(self.scope, self.receive, self.send)
        except BaseException as error:  # a handler's own errors are answered by ``app``
            if not self.disconnected and not isinstance(error, asyncio.CancelledError):
                log.error("the daemon failed to answer: %s", sanitise(f"{type(error).__name__}: {error}"))  # noqa: TRY400 - no frames
        if self.finished or self.disconnected:
            return
        if self.started:
            self._connection.transport.abort()  # a client that takes nothing would keep a closing connection
        else:
            await self._fail()

    async def _fail(self) -> None:
        headers = [
            (b"content-type", b"text/plain"),
            (b"content-length", b"%d" % len(FAILED)),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": FAILED})

    # -- the body ------------------------------------------------------------------------------------------------------

    def add_body(self, data: bytes) -> bool:
        """Add to the body; True if that is enough for now."""
        self.body += data
        self._wake()
        return len(self.body) > HIGH_WATER

    def end_body(self) -> None:
        """End the body."""
        self.more_body = False
        self._wake()

    def disconnect(self) -> None:
        """Tell the application that the client has gone."""
        self.disconnected = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()

    async def receive(self) -> Message:
        """Return the next part of the body, or a disconnect if the client has gone or has its answer."""
        if self._awaits_continue and not self.started:
            self._awaits_continue = False
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._connection.resume_reading()
        while not (self.disconnected or self.finished or self._has_body()):
            if self._news is None:
                self._news = asyncio.Event()
            self._news.clear()
            await self._news.wait()
        if self.disconnected or self.finished:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        self._received = not self.more_body
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def _has_body(self) -> bool:
        return not self._received and (bool(self.body) or not self.more_body)

    # -- the answer ----------------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Write the head or a part of the body, once the client takes more."""
        connection = self._connection
        if not (self.disconnected or connection.writable.is_set()):
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await connection.writable.wait()
            except TimeoutError:
                connection.transport.abort()
                self.disconnect()
        if self.disconnected:
            return
        kind = message["type"]
        if self.finished or kind != ("http.response.body" if self.started else "http.response.start"):
            raise RuntimeError(f"the message {kind} is out of place")
        if kind == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
            return
        more = message.get("more_body", False)
        self._write(message.get("body", b""), more=more)
        if not more:
            self.finished = True
            self._wake()
            connection.finish(self)

    def _begin(self, status: int, headers: Iterable[Header]) -> None:
        self.started = True
        length = None
        lines = [_STATUS_LINES[status]]
        for name, value in (*self._connection.default_headers, *headers):
            if name == b"content-length":
                length = int(value)
            elif name == b"connection":
                self.keep_alive = self.keep_alive and value.lower() != b"close"
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        self._has_no_body = status in _WITHOUT_BODY or self.scope["method"] == "HEAD"
        self._left = length
        if length is None and not self._has_no_body and self.scope["http_version"] != "1.0":
            self._in_chunks = True
            lines.append(b"transfer-encoding: chunked\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise RuntimeError("a header of the answer has several lines")
        self._head = head + b"\r\n"

    def _write(self, body: bytes, *, more: bool) -> None:
        parts = [self._head] if self._head else []
        self._head = b""
        if self._in_chunks:
            if body:
                parts += [b"%x\r\n" % len(body), body, b"\r\n"]
            if not more:
                parts.append(b"0\r\n\r\n")
        elif not self._has_no_body:
            if self._left is not None:
                self._left -= len(body)
                if self._left < 0 or (self._left and not more):
                    raise RuntimeError("the length of the answer is not what its head says")
            parts.append(body)
        self._connection.transport.writelines(parts)
