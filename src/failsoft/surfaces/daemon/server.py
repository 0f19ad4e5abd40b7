"""Run the daemon under uvicorn: addresses, TLS, and a shutdown within two seconds.

Rules
-----
- A connection may be idle for ``IDLE_SECONDS``; the other limits on connections are in ``protocol``.
- After SIGTERM or SIGINT, streams end, requests under way get ``GRACE`` seconds, then the runtime is closed. Everything
  that was acknowledged is in the store already. The process ends within ``END_SECONDS``, even if something in it hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

import uvicorn
from starlette.types import ASGIApp

from failsoft.errors import FailsoftError
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.protocol import MOST_CONNECTIONS, LimitedProtocol

T = TypeVar("T")
log = logging.getLogger("failsoft")

IDLE_SECONDS: Final = 60
GRACE: Final = 1  # seconds
END_SECONDS: Final = 1.8
SWITCH_SECONDS: Final = 0.001  # after which a busy thread lets the event loop's thread run


class ServerOptions(NamedTuple):
    """Address, TLS and limits of the daemon."""

    host: str = "127.0.0.1"
    port: int = 8585
    allow_remote: bool = False  # listen on an address that other machines reach
    certificate: str | None = None  # files for TLS
    key: str | None = None
    most_connections: int = MOST_CONNECTIONS


def refuse_exposure(options: ServerOptions) -> None:
    """Raise if the host is not valid, or if other machines could reach the daemon without ``allow_remote``."""
    host = options.host
    if not host.strip() or "/" in host or host.isdecimal() or host.count(":") == 1:
        raise FailsoftError(
            f"--host {options.host}: expected a name or an IP address, without http:// and port; --port names the port"
        )
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then set ``ready``."""
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
        """Shut down in order at the first signal, at once at the second.

        The process then exits normally, not by the signal.
        """
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
        """Make the process end soon after a signal, even if a store, a tool or the event loop hangs."""
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
    """Run the daemon to its end, regardless of what its tools raise.

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
        access_log=False, log_config=None, log_level="error", server_header=False, proxy_headers=False, timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE, backlog=2048,
        ssl_certfile=options.certificate, ssl_keyfile=options.key,
    )  # fmt: skip
    return DaemonServer(config, daemon)


def _limited(most: int) -> type[asyncio.Protocol]:
    """Make the protocol class for a limit on connections."""
    return type("Limited", (LimitedProtocol,), {"most": most, "strangers": {}})
