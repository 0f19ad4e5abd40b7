"""Limits of one request to the daemon: its time, and the size of its answer.

httpx limits the time of each read, so an answer that arrives in small pieces never times out. It sets no limit to interim
answers and headers: a daemon could send them without end, and parsing them would hold up every other thread.

Rules
-----
- A request has one deadline for connecting, sending and reading together.
- Everything before the body counts as the head: headers, and interim answers (1xx). It has at most ``LARGEST_HEAD`` bytes.
- A request that takes more fails, and its connection is closed.

This is the only module that uses private names of httpx. Without them, its own limits remain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx

LARGEST_HEAD: Final = 16_384  # bytes; a head that is all interim answers takes 20 ms to parse
_PIECE: Final = 4_096  # bytes that are read at once while the head is read


class Allowance:
    """The remaining time and size of one request."""

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self._head: int | None = LARGEST_HEAD  # bytes that are left for the head; None after it

    def begin_body(self) -> None:
        """Note that the head has been read."""
        self._head = None

    def remaining(self, timeout: float | None) -> float | None:
        """Return how long an operation may wait; raise if the request has no time left."""
        if self._deadline is None:
            return timeout
        left = self._deadline - time.monotonic()
        if left <= 0:
            import httpcore

            raise httpcore.ReadTimeout("the whole request took too long")
        return left if timeout is None else min(timeout, left)

    def readable(self, most: int) -> int:
        """Return how many bytes may be read at once."""
        return most if self._head is None else min(most, _PIECE)

    def count(self, data: bytes) -> bytes:
        """Count what was read, and return it; raise if the head is too large."""
        if self._head is not None:
            self._head -= len(data)
            if self._head < 0:
                import httpcore

                raise httpcore.RemoteProtocolError(f"the head of the answer is larger than {LARGEST_HEAD} bytes")
        return data


_UNLIMITED: Final = Allowance(None)
_UNLIMITED.begin_body()
_current: ContextVar[Allowance] = ContextVar("failsoft_request", default=_UNLIMITED)


@contextmanager
def within(deadline: float | None) -> Iterator[Allowance]:
    """Limit the request of this context; it ends at ``deadline`` by the monotonic clock."""
    made = Allowance(deadline)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


class _Stream:
    """A connection (``httpcore.NetworkStream``) whose operations keep to the request's allowance."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._socket = stream.get_extra_info("socket")
        self.close = stream.close
        self.get_extra_info = stream.get_extra_info

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        allowed = _current.get()
        return allowed.count(self._stream.read(allowed.readable(max_bytes), allowed.remaining(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything within the request's time. httpcore would allow the full time again for each piece."""
        import httpcore

        allowed = _current.get()
        rest = memoryview(buffer)
        try:
            while rest:
                self._socket.settimeout(allowed.remaining(timeout))
                rest = rest[self._socket.send(rest) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from None
        except OSError as error:
            raise httpcore.WriteError(str(error)) from None

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:
        allowed = _current.get()
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, allowed.remaining(timeout)))


class _Backend:
    """Makes connections (``httpcore.NetworkBackend``)."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.connect_unix_socket = backend.connect_unix_socket
        self.sleep = backend.sleep

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> _Stream:
        allowed = _current.get()
        return _Stream(self._backend.connect_tcp(host, port, timeout=allowed.remaining(timeout), **options))


class _AsyncStream:
    """A connection of an event loop. The caller ends the request at its deadline."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.write = stream.write
        self.aclose = stream.aclose
        self.get_extra_info = stream.get_extra_info

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        allowed = _current.get()
        return allowed.count(await self._stream.read(allowed.readable(max_bytes), allowed.remaining(timeout)))

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> _AsyncStream:
        return _AsyncStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))


class _AsyncBackend:
    """Makes connections of an event loop (``httpcore.AsyncNetworkBackend``)."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.connect_unix_socket = backend.connect_unix_socket
        self.sleep = backend.sleep

    async def connect_tcp(self, host: str, port: int, **options: Any) -> _AsyncStream:
        return _AsyncStream(await self._backend.connect_tcp(host, port, **options))


def limit_requests(client: httpx.Client) -> httpx.Client:
    """Make a client keep the limits of ``within``; return it."""
    _wrap(client, _Backend)
    return client


def limit_async_requests(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """``limit_requests`` for an event loop."""
    _wrap(client, _AsyncBackend)
    return client


def _wrap(client: Any, wrapper: type[_Backend | _AsyncBackend]) -> None:
    pool = getattr(getattr(client, "_transport", None), "_pool", None)
    backend = getattr(pool, "_network_backend", None)
    if pool is not None and backend is not None:
        pool._network_backend = wrapper(backend)
