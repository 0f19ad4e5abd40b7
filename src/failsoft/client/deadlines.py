"""One deadline for a whole blocking request. httpx limits each read, so an answer that trickles in never times out.

This is the only module that uses private names of httpx. Without them, its own limits remain.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_current = threading.local()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give the requests of this thread ``seconds`` in all."""
    _current.deadline = time.monotonic() + seconds
    try:
        yield
    finally:
        _current.deadline = None


def _remaining(timeout: float | None) -> float | None:
    """Return how long an operation may wait; raise if the request has no time left."""
    deadline = getattr(_current, "deadline", None)
    if deadline is None:
        return timeout
    left: float = deadline - time.monotonic()
    if left <= 0:
        import httpcore

        raise httpcore.ReadTimeout("the whole request took too long")
    return left if timeout is None else min(timeout, left)


class _Stream:
    """A connection (``httpcore.NetworkStream``) whose operations end with the request's deadline."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.close = stream.close
        self.get_extra_info = stream.get_extra_info

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._stream.read(max_bytes, _remaining(timeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _remaining(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _remaining(timeout)))


class _Backend:
    """Makes connections (``httpcore.NetworkBackend``)."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.connect_unix_socket = backend.connect_unix_socket
        self.sleep = backend.sleep

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> _Stream:
        return _Stream(self._backend.connect_tcp(host, port, timeout=_remaining(timeout), **options))


def limit_requests(client: httpx.Client) -> httpx.Client:
    """Make a client keep the deadlines of ``within``; return it."""
    pool = getattr(getattr(client, "_transport", None), "_pool", None)
    backend = getattr(pool, "_network_backend", None)
    if pool is not None and backend is not None:
        pool._network_backend = _Backend(backend)
    return client
