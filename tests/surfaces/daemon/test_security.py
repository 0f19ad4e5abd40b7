"""Points of the security notes that no other test of the daemon covers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.fakes import real
from tests.surfaces.daemon.conftest import Served
from uvicorn.server import ServerState

from failsoft.surfaces.daemon.app import ROUTES, build_app
from failsoft.surfaces.daemon.protocol import LimitedProtocol

HOSTILE = ["' OR 1=1 --", "x'; DROP TABLE events; --", '"; DELETE FROM records; --', "%", "_", "\\", "*"]


@real
async def test_looking_changes_nothing(open_daemon: Any) -> None:
    async with open_daemon({"tools": {"get_x": {}}}) as asked:
        await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "turn_id": "x"})
        before = (len(asked.daemon.rt.events()), await asked.daemon.feed.latest())
        for route in ROUTES:
            if route.method == "GET":
                await asked.get(route.path.replace("{id:path}", "x"))
        assert (len(asked.daemon.rt.events()), await asked.daemon.feed.latest()) == before


@pytest.mark.parametrize("text", HOSTILE)
@real
async def test_text_of_requests_is_never_part_of_a_query(open_daemon: Any, tmp_path: Path, text: str) -> None:
    async with open_daemon(store=f"sqlite:///{tmp_path}/daemon.db") as asked:
        await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "turn_id": "mine", "call_id": "mine"})
        said = {"tool": text, "error": text, "turn_id": text, "call_id": text, "thread": text, "tenant": text}
        assert (await asked.post("/v1/errors", said)).status_code == 200
        async with asked.client() as client:
            for name in ("turn_id", "call_id", "tool", "type", "runtime", "tenant"):
                page = await client.get("/v1/events", params={name: text})
                assert page.status_code == 200
                assert "mine" not in page.text
            assert (await client.get("/v1/memory", params={"tool": text})).json()["families"] == []
        kept = (await asked.get("/v1/events?turn_id=mine")).json()["events"]
        assert [event["call_id"] for event in kept] == ["mine"]


@real
async def test_the_memory_keeps_no_secret_and_no_text_of_another_tenant(open_daemon: Any) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    async with open_daemon() as asked:
        await asked.post("/v1/errors", {"tool": "get_x", "error": f"503 for {secret}"}, "acme")
        assert secret not in (await asked.get("/v1/memory", "acme")).text
        assert "503" not in (await asked.get("/v1/memory", "bolt")).text


def test_connections_beyond_the_limit_are_closed() -> None:
    class Transport(asyncio.Transport):
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    async def connect() -> Transport:
        class Limited(LimitedProtocol):
            most = 0

        transport = Transport()
        config = uvicorn.Config(build_app, http=Limited, ws="none", log_config=None)
        protocol = Limited(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(transport)
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        protocol.connection_lost(None)
        return transport

    assert asyncio.run(connect()).aborted


def test_a_daemon_listens_on_loopback_only(serve: Callable[..., Served]) -> None:
    port = int(serve().url.rpartition(":")[2])
    own = socket.gethostbyname(socket.gethostname())
    if own.startswith("127."):
        own = "127.0.0.2"
    with socket.socket() as probe, pytest.raises(OSError):
        probe.settimeout(2)
        probe.connect((own, port))
