"""A real daemon on loopback: its end, crashes, slow connections, streams, TLS, the command."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest
from tests.surfaces.daemon.conftest import SECRETS, Served

from failsoft.surfaces.daemon.server import ServerOptions, refuse_exposure

Start = Callable[..., Served]
BODY = {"tool": "get_x", "error": "503"}


def connect(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), timeout=10)


def attach(served: Served, **headers: str) -> socket.socket:
    """Open a stream of events."""
    made = connect(served)
    lines = [
        "GET /v1/events HTTP/1.1", "host: 127.0.0.1", "accept: text/event-stream",
        f"authorization: Bearer {SECRETS['operator']}", *[f"{name}: {value}" for name, value in headers.items()],
    ]  # fmt: skip
    made.sendall("\r\n".join([*lines, "", ""]).encode())
    return made


def read_until(stream: socket.socket, wanted: bytes) -> bytes:
    got = b""
    while wanted not in got:
        part = stream.recv(65536)
        assert part, got
        got += part
    return got


class Load:
    """Threads that report errors until they are stopped."""

    def __init__(self, served: Served, threads: int = 4) -> None:
        self.acknowledged: list[str] = []
        self._stop = threading.Event()
        self._served = served
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, thread: int) -> None:
        with self._served.client("reporter") as client:
            number = 0
            while not self._stop.is_set():
                number += 1
                id = f"c-{thread}-{number}"
                try:
                    answer = client.post("/v1/errors", json={**BODY, "call_id": id})
                except httpx.HTTPError:
                    return
                if answer.status_code == 200:
                    self.acknowledged.append(id)

    def wait_for(self, many: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.acknowledged) < many and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(self.acknowledged) >= many

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(20)


def stored_ids(served: Served) -> set[str]:
    """Read all call ids from a daemon's events."""
    found: set[str] = set()
    with served.client("reader") as client:
        after, more = 0, True
        while more:
            page = client.get("/v1/events", params={"after": after, "limit": 1000, "type": "ToolError"}).json()
            found |= {event["call_id"] for event in page["events"]}
            after, more = page["next"], page["more"]
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_nothing_acknowledged_is_lost_when_the_daemon_ends_under_load(serve: Start, how: int) -> None:
    served = serve()
    streams = [attach(served) for _ in range(10)]
    for stream in streams:
        read_until(stream, b"event: open")
    load = Load(served)
    load.wait_for(50)
    begun = time.monotonic()
    code = served.end(how)
    took = time.monotonic() - begun
    load.stop()
    for stream in streams:
        stream.close()
    if how == signal.SIGTERM:
        assert (code, took < 2 * slowness()) == (0, True), took
    again = serve()
    assert {*load.acknowledged} <= stored_ids(again)


def slowness() -> float:
    """How much slower than usual this machine is at the moment."""
    begun = time.perf_counter()
    sum(range(1_000_000))
    return max(1.0, (time.perf_counter() - begun) / 0.03)


def test_streams_get_batches_survive_a_restart_and_are_told_of_the_end(serve: Start) -> None:
    served = serve()
    stream = attach(served)
    read_until(stream, b"event: open")
    with served.client("reporter") as client:
        client.post("/v1/errors", json={**BODY, "call_id": "first"})
    got = read_until(stream, b"first")
    last = got.rpartition(b"id: ")[2].split()[0].decode()
    served.end()
    assert b"event: end" in read_until(stream, b"event: end")
    again = serve()
    with again.client("reporter") as client:
        client.post("/v1/errors", json={**BODY, "call_id": "second"})
    resumed = attach(again, **{"last-event-id": last})
    got = read_until(resumed, b"second")
    assert b"first" not in got
    for each in (stream, resumed):
        each.close()


def test_a_disabled_tool_and_an_open_circuit_survive_a_crash(serve: Start, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("tools:\n  get_x:\n    breaker: {failure_threshold: 1, timeout: 10m}\n")
    served = serve("--manifest", "m.yaml")
    with served.client() as client:
        assert client.post("/v1/errors", json=BODY).json()["circuit"]["state"] == "open"
        assert client.post("/v1/tools/get_x/disable", json={"reason": "moved"}).status_code == 200
    served.end(signal.SIGKILL)
    served = serve("--manifest", "m.yaml")
    with served.client() as client:
        tool = client.get("/v1/tools/get_x").json()
        assert tool["circuit"]["state"] == "open"
        assert tool["available"] is False
        assert client.post("/v1/tools/get_x/enable", json={}).status_code == 200
    served.end(signal.SIGKILL)
    with serve("--manifest", "m.yaml").client() as client:
        assert client.get("/v1/tools/get_x").json()["available"] is True


def test_a_turn_that_a_crash_interrupted_can_be_found(serve: Start, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import time\ndef get_slowly(): time.sleep(60)\n")
    (tmp_path / "m.yaml").write_text("tools:\n  get_slowly:\n    entrypoint: {function: 'mine:get_slowly'}\n")
    served = serve("--manifest", "m.yaml")
    with served.client() as client:
        body = {"plan": {"calls": [{"tool": "get_slowly"}]}, "id": "t1", "wait": 0}
        assert client.post("/v1/turns", json=body).status_code == 202
    served.end(signal.SIGKILL)
    with serve("--manifest", "m.yaml").client() as client:
        assert client.get("/v1/turns/t1").json()["state"] == "interrupted"


def test_a_turn_that_hangs_does_not_delay_the_end(serve: Start, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import time\ndef get_slowly(): time.sleep(60)\n")
    (tmp_path / "m.yaml").write_text("tools:\n  get_slowly:\n    entrypoint: {function: 'mine:get_slowly'}\n")
    served = serve("--manifest", "m.yaml")
    with served.client() as client:
        client.post("/v1/turns", json={"plan": {"calls": [{"tool": "get_slowly"}]}, "wait": 0})
    begun = time.monotonic()
    assert served.end() == 0
    assert time.monotonic() - begun < 2 * slowness()


def test_a_tool_that_blocks_the_event_loop_does_not_delay_the_end(serve: Start, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import time\nasync def get_stuck(): print('in', flush=True); time.sleep(600)\n")
    (tmp_path / "m.yaml").write_text("tools:\n  get_stuck:\n    entrypoint: {function: 'mine:get_stuck'}\n")
    served = serve("--manifest", "m.yaml")
    with served.client() as client, suppress(httpx.ReadTimeout):
        client.post("/v1/calls", json={"tool": "get_stuck", "wait": 0}, timeout=0.5)
    assert served.process.stdout is not None
    assert served.process.stdout.readline() == "in\n"
    assert served.end() == 1
    assert "did not end within" in (tmp_path / "stderr.txt").read_text()


def test_a_store_that_another_process_holds_does_not_delay_the_end(serve: Start, tmp_path: Path) -> None:
    served = serve()
    with served.client() as client, closing(sqlite3.connect(tmp_path / "daemon.db", isolation_level=None)) as holder:
        assert client.post("/v1/errors", json={"tool": "get_x", "error": "down"}).status_code == 200
        holder.execute("BEGIN EXCLUSIVE")
        assert client.post("/v1/errors", json={"tool": "get_x", "error": "down"}).status_code == 503
        begun = time.monotonic()
        assert served.end() in (0, 1)
        assert time.monotonic() - begun < 2 * slowness()


def test_a_request_whose_head_never_comes_is_ended(serve: Start) -> None:
    served = serve()
    slow = connect(served)
    slow.settimeout(15)
    slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-")
    assert slow.recv(1) == b""
    slow.close()


def test_a_body_with_two_lengths_is_refused_and_the_connection_closed(serve: Start) -> None:
    made = connect(serve())
    head = f"host: 127.0.0.1\r\nauthorization: Bearer {SECRETS['operator']}\r\n"
    smuggled = f"0\r\n\r\nGET /v1/tools HTTP/1.1\r\n{head}\r\n"
    lengths = f"content-length: {len(smuggled)}\r\ntransfer-encoding: chunked\r\n"
    made.sendall(
        f"POST /v1/errors HTTP/1.1\r\n{head}content-type: application/json\r\n{lengths}\r\n{smuggled}".encode()
    )
    answers = b""
    while more := made.recv(65536):
        answers += more
    assert answers.startswith(b"HTTP/1.1 400")
    assert answers.count(b"HTTP/1.1 ") == 1
    made.close()


def exchange(served: Served, *parts: str, until: bytes = b"") -> bytes:
    """Send the parts of requests, one after the other, and read until the connection is closed or ``until`` is there."""
    made = connect(served)
    got = b""
    with closing(made), suppress(ConnectionError):
        for part in parts:
            made.sendall(part.encode())
            time.sleep(0.01)
        while (not until or until not in got) and (more := made.recv(65536)):
            got += more
    return got


HEAD = f"host: 127.0.0.1\r\nauthorization: Bearer {SECRETS['operator']}\r\n"
REPORT = json.dumps(BODY)
POST = f"POST /v1/errors HTTP/1.1\r\n{HEAD}content-type: application/json\r\n"
CHUNKED = f"transfer-encoding: chunked\r\n\r\n{len(REPORT):x}\r\n{REPORT}\r\n0\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        ("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + "a" * 200_000,),
        (f"GET /v1/tools HTTP/1.1\r\n{HEAD}x: {'a' * 40_000}\r\n\r\n",),
        (f"GET /v1/tools HTTP/1.1\r\n{HEAD}x: ", *["a" * 5_000] * 7),
        (f"GET /v1/tools?{'a' * 40_000} HTTP/1.1\r\n{HEAD}\r\n",),
        (f"GET /v1/tools HTTP/1.1\r\n{HEAD}" + "a: b\r\n" * 10_000 + "\r\n",),
    ],
    ids=["endless", "one header", "in parts", "path", "many headers"],
)
def test_a_large_head_is_refused(serve: Start, parts: tuple[str, ...]) -> None:
    assert exchange(serve(), *parts).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_head_may_come_in_any_parts(serve: Start, size: int) -> None:
    text = f"{POST}content-length: {len(REPORT)}\r\n\r\n{REPORT}"
    answer = exchange(serve(), *[text[at : at + size] for at in range(0, len(text), size)], until=b'"strategy"')
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_client_that_prefers_another_protocol_is_answered(serve: Start) -> None:
    upgrade = "connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    text = f"{POST}{upgrade}content-length: {len(REPORT)}\r\n\r\n{REPORT}"
    assert exchange(serve(), text, until=b'"strategy"').startswith(b"HTTP/1.1 200")


def test_a_token_after_the_body_admits_nobody(serve: Start) -> None:
    open_head = "POST /v1/errors HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    token = f"authorization: Bearer {SECRETS['operator']}\r\n"
    assert exchange(serve(), f"{open_head}{CHUNKED}{token}\r\n", until=b"}").startswith(b"HTTP/1.1 401")


def test_what_follows_a_body_does_not_grow_without_limit(serve: Start) -> None:
    answer = exchange(serve(), f"{POST}{CHUNKED}x: ", *["a" * 1_000_000] * 14)
    assert b"HTTP/1.1 200" not in answer  # the connection may be gone before the answer could be read


@pytest.mark.parametrize(
    "head",
    [
        "content-length: 5\r\ncontent-length: 31\r\n",
        "content-length: 31, 31\r\n",
        "content-length: +31\r\n",
        "transfer-encoding : chunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "x: a\r\n b\r\ncontent-length: 31\r\n",
    ],
)
def test_a_request_that_readers_could_read_differently_is_refused(serve: Start, head: str) -> None:
    assert exchange(serve(), f"{POST}{head}\r\n0\r\n\r\n{REPORT}").startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_other_machines_are_let_in_only_on_purpose(host: str) -> None:
    with pytest.raises(Exception, match="--allow-remote"):
        refuse_exposure(ServerOptions(host=host))
    refuse_exposure(ServerOptions(host=host, allow_remote=True))


@pytest.mark.parametrize("host", ["", "http://example.org", "127.0.0.1:80"])
def test_an_address_with_a_scheme_a_port_or_nothing_in_it_is_refused(host: str) -> None:
    with pytest.raises(Exception, match="expected a name or an IP address"):
        refuse_exposure(ServerOptions(host=host, allow_remote=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_flag(host: str) -> None:
    refuse_exposure(ServerOptions(host=host))


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "failsoft", *args], capture_output=True, text=True, env=env, timeout=60, check=False
    )


def test_the_document_can_be_printed_without_a_daemon(tmp_path: Path) -> None:
    done = run("serve", "--openapi", HOME=str(tmp_path))
    assert json.loads(done.stdout)["openapi"] == "3.1.0"
    assert not list(tmp_path.iterdir())


def test_tokens_are_added_rotated_listed_and_removed(tmp_path: Path) -> None:
    state = {"FAILSOFT_STATE": str(tmp_path)}
    added = run("token", "add", "acme", "--role", "read", "--tenant", "acme", **state).stdout.strip()
    rotated = run("token", "rotate", "acme", **state).stdout.strip()
    assert added.startswith("fsd_")
    assert rotated != added
    listed = run("token", "list", "--json", **state).stdout
    assert [each["name"] for each in json.loads(listed)["tokens"]] == ["operator", "acme"]
    assert rotated not in listed
    assert run("token", "add", "acme", "--role", "read", **state).returncode == 2
    assert run("token", "remove", "acme", **state).returncode == 0
    assert run("token", "remove", "acme", **state).returncode == 1


def test_a_port_in_use_is_named(serve: Start, tmp_path: Path) -> None:
    port = serve().url.rpartition(":")[2]
    done = run("serve", "--port", port, FAILSOFT_STATE=str(tmp_path / "other"))
    assert done.returncode == 1
    assert f"port {port}" in done.stderr


def test_tls_is_spoken_with_a_certificate(serve: Start, tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    served = serve("--tls-certificate", "cert.pem", "--tls-key", "key.pem")
    assert served.url.startswith("https://")
    with served.client(verify=ssl.create_default_context(cafile=tmp_path / "cert.pem")) as client:
        assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize("tool", ["get_out", "get_interrupted"])
def test_a_turn_whose_tool_exits_does_not_end_the_daemon(serve: Start, tmp_path: Path, tool: str) -> None:
    manifest = tmp_path / "failsoft.yaml"
    manifest.write_text(
        f"tools:\n  {tool}: {{entrypoint: {{function: 'tests.surfaces.daemon.tools_of_tests:{tool}'}}}}\n"
    )
    served = serve("--manifest", str(manifest))
    with served.client() as client:
        answer = client.post("/v1/turns", json={"id": "t1", "plan": {"calls": [{"tool": tool}]}})
        assert answer.status_code == 200
        report = answer.json()["report"]
        assert report["results"] == {}, report
        assert client.get("/v1/status").status_code == 200
        assert client.post("/v1/errors", json=BODY).status_code == 200
    assert served.end() == 0


def test_a_second_daemon_on_one_store_is_refused_until_the_first_one_is_gone(serve: Start, tmp_path: Path) -> None:
    first = serve()
    (tmp_path / "same.db").symlink_to(tmp_path / "daemon.db")
    for more in ([], ["--store", f"sqlite:///{tmp_path}/same.db"]):
        second = subprocess.run(
            [sys.executable, "-m", "failsoft", "serve", "--port", "0", *more], check=False,
            env={**os.environ, "FAILSOFT_STATE": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert second.returncode == 1
        assert not second.stdout
        assert f"another daemon uses this store (process {first.process.pid})" in " ".join(second.stderr.split())
    with first.client() as client:
        assert client.get("/readyz").status_code == 200
    first.end(signal.SIGKILL)
    with serve().client() as client:
        assert client.get("/readyz").status_code == 200


def test_a_daemon_waits_for_the_one_that_it_replaces(serve: Start, tmp_path: Path) -> None:
    first = serve()
    first.process.send_signal(signal.SIGTERM)
    with serve().client() as client:
        assert client.get("/readyz").status_code == 200
    assert first.process.wait(10) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux only")
def test_a_daemon_whose_disk_is_full_says_so_and_goes_on_once_there_is_room(serve: Start) -> None:
    resource = pytest.importorskip("resource")
    served = serve()
    acknowledged: list[str] = []

    def report(client: httpx.Client, id: str) -> int:
        status = client.post("/v1/errors", json={**BODY, "call_id": id}).status_code
        if status == 200:
            acknowledged.append(id)
        return status

    with served.client() as client:
        assert report(client, "before") == 200
        limits = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (1, limits[1]))  # no file can grow
        assert report(client, "full") == 503
        assert client.get("/readyz").status_code == 503
        assert client.get("/v1/events").status_code == 200
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, limits)
        deadline = time.monotonic() + 30
        while report(client, "after") != 200:
            assert time.monotonic() < deadline
        assert client.get("/readyz").status_code == 200
    served.end(signal.SIGKILL)
    with serve().client() as client:
        found = {event["call_id"] for event in client.get("/v1/events?limit=1000").json()["events"]}
    assert {"before", "after"} == {*acknowledged}
    assert found >= {*acknowledged}
