"""Put load on a daemon: ``python -m tools.daemon_load --rate 1000 --seconds 60 --streams 200``.

It starts ``failsoft serve`` with a store of its own, attaches clients to the event stream in another process, and sends
``POST /v1/errors`` at a fixed rate, whether or not answers come. The time of a request counts from the moment at which it
was due. At the end it counts the events in the store: every acknowledged report must be there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CONNECTIONS = 256


class Connection(asyncio.Protocol):
    """One HTTP connection, for one request at a time."""

    def __init__(self) -> None:
        self.buffer = b""
        self.answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Collect one answer."""
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(body) >= length and self.answer is not None:
            self.buffer = b""
            status = int(head[9:12])
            answer, self.answer = self.answer, None
            if not answer.done():
                answer.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request under way."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(exc or ConnectionError("closed"))


def request(path: str, token: str, body: Any) -> bytes:
    """Write a request."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def send(port: int, token: str, rate: float, seconds: float) -> tuple[list[float], dict[int, int], int]:
    """Send reports at a fixed rate; return the times, the answers by status, and how many had no answer."""
    loop = asyncio.get_running_loop()
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        _, made = await loop.create_connection(Connection, "127.0.0.1", port)
        free.put_nowait(made)
    times: list[float] = []
    statuses: dict[int, int] = {}
    lost = 0

    async def one(number: int, due: float) -> None:
        nonlocal lost
        connection = await free.get()
        body = {
            "tool": f"get_{number % 20}", "call_id": f"c{number}", "turn_id": f"t{number // 10}", "thread": "chat",
            "error": {"message": "Service unavailable", "status": 503}, "turn_left": 60.0, "duration": 0.2,
        }  # fmt: skip
        connection.answer = answer = loop.create_future()
        connection.transport.write(request("/v1/errors", token, body))
        try:
            status = await answer
        except OSError:
            lost += 1
            return
        times.append(time.perf_counter() - due)
        statuses[status] = statuses.get(status, 0) + 1
        free.put_nowait(connection)

    begun, number, tasks = time.perf_counter(), 0, set()
    while (now := time.perf_counter()) < begun + seconds:
        while begun + number / rate <= now:
            task = asyncio.create_task(one(number, begun + number / rate))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
        await asyncio.sleep(0.001)
    if tasks:
        await asyncio.wait(tasks, timeout=10)
    return times, statuses, lost + len(tasks)


def follow(port: int, token: str, clients: int, encoding: str) -> None:
    """Read the event stream with many clients until standard input ends; print what they got."""
    selector = selectors.DefaultSelector()
    head = (
        f"GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\naccept-encoding: {encoding}\r\n"
        f"authorization: Bearer {token}\r\n\r\n"
    )
    counts: dict[socket.socket, list[int]] = {}
    for _ in range(clients):
        made = socket.create_connection(("127.0.0.1", port))
        made.sendall(head.encode())
        made.setblocking(False)
        counts[made] = [0, 0, 0]  # bytes, reads, whether it was ended
        selector.register(made, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print("attached", flush=True)
    buffer = bytearray(1 << 20)
    open_ = True
    while open_:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                open_ = False
                break
            stream: Any = key.fileobj
            size = stream.recv_into(buffer)
            if not size:
                counts[stream][2] = 1
                selector.unregister(stream)
                continue
            counts[stream][0] += size
            counts[stream][1] += 1
    got = [*counts.values()]
    print(
        json.dumps(
            {
                "bytes": sum(one[0] for one in got),
                "least_bytes": min((one[0] for one in got), default=0),
                "reads": sum(one[1] for one in got),
                "ended": sum(one[2] for one in got),
            }
        )
    )


def percentile(times: list[float], part: float) -> float:
    """Return a percentile in milliseconds."""
    return 1000 * sorted(times)[min(len(times) - 1, int(len(times) * part))]


def count_stored(store: Path) -> int:
    """Count the reports in the store."""
    from failsoft.stores.sqlite.store import SqliteStore

    opened = SqliteStore(str(store), wall=time.time)
    found, after = 0, 0
    while rows := opened.read(after=after, limit=10_000):
        after = rows[-1][0]
        found += sum(event["event_type"] == "ToolError" for _, event in rows)
    opened.close()
    return found


def main() -> None:
    """Run the load and print one JSON document."""
    options = argparse.ArgumentParser()
    options.add_argument("--rate", type=float, default=1000.0)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--streams", type=int, default=200)
    options.add_argument("--encoding", choices=["gzip", "identity"], default="gzip", help="of the streams")
    options.add_argument("--end", choices=["term", "kill"], default="term", help="how the daemon is ended")
    options.add_argument("--follow", nargs=2, metavar=("PORT", "TOKEN"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.follow:
        follow(int(given.follow[0]), given.follow[1], given.streams, given.encoding)
        return
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(measure(Path(directory), given), indent=2))


def measure(directory: Path, given: Any) -> dict[str, Any]:
    """Start a daemon, put load on it, end it, and count."""
    environment = {**os.environ, "FAILSOFT_STATE": str(directory)}
    command = [sys.executable, "-m", "failsoft", "serve", "--port", "0", "--json", "--rate", "100000"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True, cwd=directory)
    assert daemon.stdout is not None
    port = int(json.loads(daemon.stdout.readline())["url"].rpartition(":")[2])
    token = json.loads((directory / "tokens.json").read_text())["tokens"][0]["token"]
    followers = subprocess.Popen(
        [sys.executable, "-m", "tools.daemon_load", "--follow", str(port), token, "--streams", str(given.streams),
         "--encoding", given.encoding],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert followers.stdout is not None
    followers.stdout.readline()
    asyncio.run(send(port, token, 50, 2))  # warm up
    before, own = _processor_seconds(daemon.pid), time.process_time()
    times, statuses, lost = asyncio.run(send(port, token, given.rate, given.seconds))
    used, own = _processor_seconds(daemon.pid) - before, time.process_time() - own
    time.sleep(0.5)
    ended = time.perf_counter()
    daemon.send_signal(signal.SIGTERM if given.end == "term" else signal.SIGKILL)
    code = daemon.wait(10)
    ended = time.perf_counter() - ended
    streams = json.loads(followers.communicate("")[0])
    acknowledged = statuses.get(200, 0)
    return {
        "rate": given.rate, "seconds": given.seconds, "streams": given.streams, "python": platform.python_version(),
        "answers": statuses, "without_answer": lost, "per_second": round(len(times) / given.seconds, 1),
        "ms": {f"p{round(part * 100, 1):g}": round(percentile(times, part), 1) for part in (0.5, 0.9, 0.99, 0.999, 1.0)},
        "processor_ms_per_request": {"daemon": round(1000 * used / len(times), 3), "generator": round(1000 * own / len(times), 3)},
        "streamed": streams, "exit_code": code, "end_seconds": round(ended, 2),
        "stored": count_stored(directory / "daemon.db"), "acknowledged": acknowledged + 100,
    }  # fmt: skip


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
