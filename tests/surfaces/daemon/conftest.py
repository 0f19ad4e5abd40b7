"""A daemon in this process, asked through ASGI, and a real one on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from failsoft.surfaces.daemon.access import AccessOptions
from failsoft.surfaces.daemon.app import build_app
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.tokens import Grant, Role, Token, TokenBook, write_tokens

SECRETS = {
    "operator": "operator-token-0123456789",
    "reporter": "reporter-token-0123456789",
    "reader": "reader-token-0123456789",
    "acme": "acme-token-0123456789",
    "bolt": "bolt-token-0123456789",
}
_GRANTS: dict[str, tuple[set[Role], str | None]] = {
    "operator": ({"operate"}, None),
    "reporter": ({"report"}, None),
    "reader": ({"read"}, None),
    "acme": ({"operate"}, "acme"),
    "bolt": ({"operate"}, "bolt"),
}
BASE = "http://127.0.0.1:8585"


def write_all_tokens(path: Path) -> None:
    write_tokens(
        path,
        [Token(SECRETS[name], Grant(name, frozenset(roles), tenant)) for name, (roles, tenant) in _GRANTS.items()],
    )


class Asked:
    """A daemon and clients for it."""

    def __init__(self, daemon: Daemon, app: Any) -> None:
        self.daemon = daemon
        self.app = app
        self.transport = httpx.ASGITransport(app=app)

    def client(self, name: str | None = "operator", **headers: str) -> httpx.AsyncClient:
        token = {} if name is None else {"authorization": f"Bearer {SECRETS[name]}"}
        return httpx.AsyncClient(transport=self.transport, base_url=BASE, headers={**token, **headers})

    async def post(self, path: str, body: Any = None, who: str = "operator", **headers: str) -> httpx.Response:
        async with self.client(who, **headers) as client:
            return await client.post(path, json={} if body is None else body)

    async def get(self, path: str, who: str = "operator", **headers: str) -> httpx.Response:
        async with self.client(who, **headers) as client:
            return await client.get(path)

    async def delete(self, path: str, who: str = "operator") -> httpx.Response:
        async with self.client(who) as client:
            return await client.delete(path)


Open = Callable[..., Any]


@pytest.fixture
def open_daemon(tmp_path: Path) -> Open:
    """Give a function that opens a daemon for an ``async with``."""
    write_all_tokens(tmp_path / "tokens.json")

    @asynccontextmanager
    async def opened(
        manifest: Any = None, *, options: AccessOptions | None = None, **more: Any
    ) -> AsyncIterator[Asked]:
        daemon = Daemon(manifest, **more)
        app = build_app(daemon, TokenBook(tmp_path / "tokens.json"), options)
        try:
            yield Asked(daemon, app)
        finally:
            await daemon.close()

    return opened


class Served:
    """A daemon in a process of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        if not (directory / "tokens.json").exists():
            write_all_tokens(directory / "tokens.json")
        with (directory / "stderr.txt").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "failsoft", "serve", "--port", "0", "--json", *options],
                stdout=subprocess.PIPE, stderr=errors, text=True, cwd=directory,
                env={**os.environ, "FAILSOFT_STATE": str(directory)},
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (directory / "stderr.txt").read_text()
        self.url: str = json.loads(line)["url"]

    def client(self, name: str = "operator", **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {SECRETS[name]}"}, timeout=10, **more)

    def end(self, how: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(10)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start a daemon in a process of its own; it ends with the test."""
    made: list[Served] = []

    def start(*options: str) -> Served:
        made.append(Served(tmp_path, *options))
        return made[-1]

    yield start
    for each in made:
        each.end(signal.SIGKILL)
        assert each.process.stdout is not None
        each.process.stdout.close()
