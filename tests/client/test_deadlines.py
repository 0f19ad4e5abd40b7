"""Daemons that answer without end: a request has one deadline for all of it, and an answer is not decompressed."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import pytest
from tests.fakes import real

from failsoft.client import AsyncClient, Client, DaemonError, DaemonUnavailable
from failsoft.client.deadlines import _Backend, limit_requests

TOKEN = "fsd_secret-of-this-test"
Serve = Callable[[Callable[[socket.socket], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Give a function that starts a server with one way to answer; it ends with its client."""
    listeners: list[socket.socket] = []

    def start(respond: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        respond(connection)

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def trickle_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    while True:  # until the client closes
        connection.sendall(b"y")
        time.sleep(0.02)


def send_interim_answers(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(0.02)


def send_compressed(connection: socket.socket) -> None:
    body = gzip.compress(json.dumps({"tools": []}).encode())
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


@pytest.mark.parametrize("respond", [trickle_head, send_interim_answers])
def test_an_answer_without_end_is_given_up_by_a_blocking_client(
    serve: Serve, respond: Callable[[socket.socket], None]
) -> None:
    with Client(serve(respond), token=TOKEN, timeout="300ms") as client, pytest.raises(DaemonUnavailable):
        client.tools()


@pytest.mark.parametrize("respond", [trickle_head, send_interim_answers])
@real
async def test_an_answer_without_end_is_given_up_by_an_async_client(
    serve: Serve, respond: Callable[[socket.socket], None]
) -> None:
    async with AsyncClient(serve(respond), token=TOKEN, timeout="300ms") as client:
        with pytest.raises(DaemonUnavailable):
            await client.tools()


def test_a_compressed_answer_is_not_decompressed(serve: Serve) -> None:
    with Client(serve(send_compressed), token=TOKEN) as client, pytest.raises(DaemonError, match="not JSON"):
        client.tools()


def test_the_installed_httpx_has_the_names_that_deadlines_need() -> None:
    with limit_requests(httpx.Client()) as client:
        assert isinstance(client._transport._pool._network_backend, _Backend)  # type: ignore[attr-defined]
