"""The answer that a client of the event stream gets: server-sent events, compressed if the client accepts that.

Rules
-----
- The stream ends with its messages, or when the client goes. If a client reads nothing, its connection is closed
  (``http_request``).
- Compressed messages are blocks of one gzip file without an end, each compressed on its own: so one block serves all
  clients. Events repeat their names: they shrink to a tenth.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

MEDIA_TYPE: Final = "text/event-stream"
GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LEVEL: Final = 1  # the fastest


def compress(message: bytes) -> bytes:
    """Compress a message into blocks that may follow any other blocks."""
    made = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)
    return made.compress(message) + made.flush(zlib.Z_SYNC_FLUSH)


def accepts_gzip(header: str) -> bool:
    """True if a header Accept-Encoding allows gzip by name."""
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "").rstrip("0") not in ("q=", "q=0.")
    return False


class EventStream(Response):
    """Sends messages as they come. With ``gzip`` they are compressed already."""

    def __init__(self, messages: AsyncGenerator[bytes, None], *, gzip: bool) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no", "vary": "accept-encoding"}
        super().__init__(headers=headers | ({"content-encoding": "gzip"} if gzip else {}), media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._messages = messages
        self._first = GZIP_HEAD if gzip else b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send everything until one side ends."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        tasks = [asyncio.create_task(each) for each in (self._send(send), _wait_until_gone(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._messages.aclose()

    async def _send(self, send: Send) -> None:
        first = self._first
        async for message in self._messages:
            await send({"type": "http.response.body", "body": first + message if first else message, "more_body": True})
            first = b""
        await send({"type": "http.response.body", "body": b""})


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
