"""A daemon whose answers a test scripts: a real HTTP server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Reply = Callable[[str, dict[str, Any]], tuple[int, Any]]


class ScriptedDaemon:
    """Answers every POST by ``reply(path, body)``, which returns a status and a body (bytes are sent as they are)."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Reply = lambda path, body: (200, {})
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                daemon.asked.append((self.path, body))
                daemon.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, answer = daemon.reply(self.path, body)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                if status in (301, 302, 307, 308):
                    self.send_header("location", "/elsewhere")
                with suppress(ConnectionError):  # the client has given up
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def daemon() -> Iterator[ScriptedDaemon]:
    made = ScriptedDaemon()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_TOKEN", "fsd_secret-of-this-test")
