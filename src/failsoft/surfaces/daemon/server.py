"""Run the daemon under uvicorn: addresses, TLS, connection limits, and an end within two seconds.

Rules
-----
- A connection must send the head of each request within ``HEAD_SECONDS``, and may be idle for ``IDLE_SECONDS``.
- Beyond ``MOST_CONNECTIONS``, connections are closed at once.
- After SIGTERM or SIGINT, streams end, requests under way get ``GRACE`` seconds, then the runtime is closed. Everything
  that was acknowledged is in the store already. The process ends within ``END_SECONDS``, whatever hangs in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

import uvicorn
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from failsoft.errors import FailsoftError
from failsoft.surfaces.daemon.daemon import Daemon

T = TypeVar("T")
log = logging.getLogger("failsoft")

HEAD_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 60
MOST_CONNECTIONS: Final = 1_000
LARGEST_HEAD: Final = 32_768  # bytes
TOO_LARGE: Final = "The request is too large."
LARGEST_REQUEST: Final = 10_000_000  # bytes, as sent: chunks of one byte take six
GRACE: Final = 1  # seconds
END_SECONDS: Final = 1.8
SWITCH_SECONDS: Final = 0.001  # after which a thread that computes lets the event loop's thread run

_UPGRADE: Final = re.compile(rb"(?i)\r\nupgrade:")


class ServerOptions(NamedTuple):
    """Address, TLS and limits of the daemon."""

    host: str = "127.0.0.1"
    port: int = 8585
    allow_remote: bool = False  # listen on an address that other machines reach
    certificate: str | None = None  # files for TLS
    key: str | None = None
    most_connections: int = MOST_CONNECTIONS


def refuse_exposure(options: ServerOptions) -> None:
    """Raise if other machines could reach the daemon without ``allow_remote``."""
    if options.allow_remote or options.host == "localhost":
        return
    try:
        local = ipaddress.ip_address(options.host.strip("[]")).is_loopback
    except ValueError:
        local = False
    if not local:
        raise FailsoftError(
            f"--host {options.host}: other machines could reach the daemon; give --allow-remote as well if that is wanted, "
            "with --tls-certificate and --tls-key or behind a proxy that speaks TLS"
        )


class DaemonServer(uvicorn.Server):
    """A uvicorn server that ends the daemon's streams before it waits for connections."""

    def __init__(self, config: uvicorn.Config, daemon: Daemon) -> None:
        super().__init__(config)
        self._daemon = daemon
        self.ready = asyncio.Event()  # set once it listens
        self._signalled = threading.Event()
        AppStatus.enable_automatic_graceful_drain = False  # it cuts streams off before they are told of the end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        try:
            await super().startup(sockets)
        except SystemExit:  # uvicorn has logged the reason, and would exit
            raise FailsoftError(
                f"cannot listen on {self.config.host} port {self.config.port}: if it is in use, give another --port"
            ) from None
        if self.started:
            self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order at the first signal, at once at the second. The process then exits normally, not by the signal."""
        if threading.current_thread() is not threading.main_thread():  # others get no signals
            yield
            return
        known = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in known}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take note of a signal."""
        self._signalled.set()
        super().handle_exit(sig, frame)

    def end_in_time(self) -> None:
        """Have the process end soon after a signal, though a store, a tool or the event loop hangs."""
        threading.Thread(target=self._end_process, name="failsoft end", daemon=True).start()

    def _end_process(self) -> None:
        self._signalled.wait()
        time.sleep(END_SECONDS)
        log.error("the daemon did not end within %g s: what was not acknowledged may be lost", END_SECONDS)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop taking reports, end the streams, then end the rest."""
        self._daemon.stop()
        await super().shutdown(sockets)


def run_server(main: Coroutine[Any, Any, T], is_listening: Callable[[], bool]) -> T:
    """Run the daemon to its end, whatever its tools raise.

    ``SystemExit`` and ``KeyboardInterrupt`` in any task stop the event loop. Once the daemon listens, neither comes from a
    signal (``capture_signals``), only from a tool: its task has ended with it, and the loop goes on.
    """
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        while True:
            try:
                return loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt) as error:
                if task.done() or not is_listening():
                    raise
                log.warning("a tool raised %s: the daemon goes on", type(error).__name__)


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes uvloop's event loop; None (asyncio's own) where uvloop does not run."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def shorten_pauses() -> None:
    """Tune the interpreter for many short requests.

    - The garbage collector looks through new objects only, until millions of them have been made. With the usual thresholds
      all objects of the process are looked through every second or so under load, which stops every request for 100 ms and
      more. Modules are never garbage, and reports are freed without the collector.
    - A request gives up the interpreter's lock with each system call. The threads that write events compute for longer than
      the usual 5 ms, so each system call could cost that much.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 5, 1_000)


def make_server(app: ASGIApp, daemon: Daemon, options: ServerOptions) -> DaemonServer:
    """Make the server; ``await server.serve()`` runs it."""
    refuse_exposure(options)
    if (options.certificate is None) != (options.key is None):
        raise FailsoftError("TLS needs both --tls-certificate and --tls-key")
    config = uvicorn.Config(
        app, host=options.host, port=options.port, http=_limited(options.most_connections), ws="none", lifespan="on",
        access_log=False, log_config=None, server_header=False, proxy_headers=False, timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE, backlog=2048,
        ssl_certfile=options.certificate, ssl_keyfile=options.key,
    )  # fmt: skip
    return DaemonServer(config, daemon)


def _limited(most: int) -> type[asyncio.Protocol]:
    """Make the protocol class for a limit on connections."""
    return type("Limited", (LimitedProtocol,), {"most": most})


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits on connections, on the size of a request, and on the time for its head.

    The head of a request is held back until it is complete, so its size is known before it is parsed.
    """

    most = MOST_CONNECTIONS
    _head_timer: asyncio.TimerHandle | None = None
    _refused = False
    _between = True  # the parser is between two requests
    _in_head = False  # the parser is in a head: one that came together with the request before it
    _held = b""  # the beginning of a head
    _received = 0  # bytes of the request that is being parsed

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, or close it if there are too many."""
        if len(self.connections) >= self.most:
            self._refused = True
            transport.abort()
            return
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take in data; the time for the head ends with the head."""
        if self._refused or self.transport.is_closing():
            return
        if self._between:
            self._held = (self._held + data).lstrip(b"\r\n")
            end = self._held.find(b"\r\n\r\n")
            if max(end, len(self._held) if end < 0 else 0) > LARGEST_HEAD:
                self.send_400_response(TOO_LARGE)
                return
            if end < 0:
                self._await_head()
                return
            data, self._held = _without_upgrade(self._held, end), b""
        self._received += len(data)
        super().data_received(data)
        if not self._between and self._received > (LARGEST_HEAD if self._in_head else LARGEST_REQUEST):
            self.send_400_response(TOO_LARGE)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

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
        self._in_head = False
        if self.parser.should_upgrade():  # the parser would take the rest for another protocol
            raise ValueError("no upgrade in a request that came together with the one before it")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._between, self._received = True, 0

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        if not self._refused:
            super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close_headless)

    def _close_headless(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def _without_upgrade(data: bytes, end: int) -> bytes:
    """Rename the header Upgrade of a head that ends at ``end``: HTTP/1.1 is all that the daemon speaks.

    The parser would take the body for another protocol. Clients that prefer HTTP/2 send the header with every request.
    """
    if b"pgrade" not in data[:end].lower():
        return data
    return _UPGRADE.sub(b"\r\nx-ignored:", data[:end]) + data[end:]
