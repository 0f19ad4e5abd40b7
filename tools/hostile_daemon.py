"""Measure what a bad daemon costs a runtime that asks it: ``python -m tools.hostile_daemon --calls 300``.

Each daemon misbehaves in one way. A runtime with ``error_handler="http://…"`` makes calls that fail, once with the handler's
own breaker and once without it, so that every call meets the daemon. For both the time of a call beyond that of a runtime
without a remote handler is printed, with the decisions that were taken and the attempts of a write that must not be repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from failsoft import Runtime
from failsoft.client import RemoteHandler
from failsoft.core.resilience import circuit_breaker

TOKEN = "token-0123456789-0123456789"
LIMIT_MS = 120.0

Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes, *, status: str = "200 OK", head: str = "") -> Respond:
    """Answer each request with the same body."""

    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{head}content-length: {len(body)}\r\n\r\n"
        writer.write(lines.encode() + body)

    return respond


def decision(**fields: Any) -> bytes:
    """Write a decision as the daemon does."""
    made = {"strategy": "retry", "reason": "because", "delay": 0.0, "tool": None, **fields}
    return json.dumps(made).encode()


async def hang(*_: object) -> None:
    """Never answer."""
    await asyncio.sleep(3600)


async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a byte every 20 ms."""
    for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b" " * 100_000:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.02)


async def send_heads(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"x: " + b"y" * 1_000 + b"\r\n")
        await writer.drain()


async def send_interim(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send interim answers without end."""
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()


async def send_much(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close the connection without an answer."""
    writer.close()


async def old(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer in HTTP/1.0, without a length."""
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + decision(strategy="escalate", delay=None))
    writer.close()


BEHAVIOURS: dict[str, Respond] = {
    "hangs": hang,
    "trickles": trickle,
    "closes": close,
    "speaks HTTP/1.0": old,
    "sends heads without end": send_heads,
    "sends interim answers without end": send_interim,
    "sends a body without end": send_much,
    "sends a gzip bomb": answer(gzip.compress(b" " * 50_000_000), head="content-encoding: gzip\r\n"),
    "refuses the token": answer(b"{}", status="401 Unauthorized"),
    "redirects": answer(b"", status="307 Temporary Redirect", head="location: /elsewhere\r\n"),
    "is stopping": answer(b"{}", status="503 Service Unavailable", head="retry-after: 1\r\n"),
    "answers HTML": answer(b"<html>hello</html>"),
    "wants writes repeated": answer(decision()),
    "wants an endless wait": answer(decision(delay=1e9)),
    "wants a wait of NaN": answer(decision().replace(b'"delay": 0.0', b'"delay": NaN')),
    "wants an unknown tool": answer(decision(strategy="alternative_tool", tool="rm")),
    "wants an unknown strategy": answer(decision(strategy="pray")),
    "nests deeply": answer(b"[" * 100_000),
}


async def serve(name: str) -> None:
    """Be a daemon that behaves in one way; print the port."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                await BEHAVIOURS[name](reader, writer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def make_runtime(handler: RemoteHandler | None, paid: list[int]) -> Runtime:
    """Make a runtime with a read that is down and a write whose answer is lost."""
    rt = Runtime(error_handler=handler) if handler is not None else Runtime()

    async def get_nothing() -> None:
        raise ValueError("bad airport")

    async def pay() -> None:
        paid.append(1)
        raise ConnectionResetError("Connection reset by peer")

    rt.add(get_nothing, id="get_nothing")
    rt.add(pay, id="pay", idempotent=False, breaker={"failure_threshold": 1_000_000})
    return rt


async def time_calls(rt: Runtime, calls: int, handler: RemoteHandler | None) -> tuple[list[float], Counter[str]]:
    """Make calls; return their times and the decisions. With a handler, its breaker is reset before each call."""
    times: list[float] = []
    decisions: Counter[str] = Counter()
    for number in range(calls):
        if handler is not None:
            handler._state = circuit_breaker.INITIAL
        begun = time.perf_counter()
        outcome = await rt.call("pay" if number % 2 else "get_nothing")
        times.append(1000 * (time.perf_counter() - begun))
        decisions[outcome.decision.strategy if outcome.decision is not None else "none"] += 1
    return times, decisions


def percentile(times: list[float], part: float) -> float:
    """Return a percentile."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


async def measure(name: str, calls: int, usual: float) -> dict[str, Any]:
    """Measure one behaviour."""
    command = [sys.executable, "-m", "tools.hostile_daemon", "--serve", name]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - nothing else runs
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    paid: list[int] = []
    guarded = RemoteHandler(url, token=TOKEN)
    with_breaker, decisions = await time_calls(make_runtime(guarded, paid), calls, None)
    bare = RemoteHandler(url, token=TOKEN)
    without, more = await time_calls(make_runtime(bare, paid), max(20, calls // 10), bare)
    for handler in (guarded, bare):
        handler.close()
    server.kill()
    server.wait()
    writes = calls // 2 + max(20, calls // 10) // 2
    return {
        "daemon": name,
        "added_ms": {
            "p50": round(percentile(with_breaker, 0.5) - usual, 1),
            "p99": round(percentile(with_breaker, 0.99) - usual, 1),
            "every_call_asks_p99": round(percentile(without, 0.99) - usual, 1),
        },
        "decisions": dict(decisions + more),
        "writes_repeated": len(paid) - writes,
    }


async def run(calls: int) -> list[dict[str, Any]]:
    """Measure every behaviour."""
    rt = make_runtime(None, [])
    usual = statistics.median((await time_calls(rt, calls, None))[0])
    return [await measure(name, calls, usual) for name in BEHAVIOURS]


def main() -> None:
    """Print one JSON document."""
    options = argparse.ArgumentParser()
    options.add_argument("--calls", type=int, default=300)
    options.add_argument("--serve", choices=BEHAVIOURS, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve))
        return
    found = asyncio.run(run(given.calls))
    worst = max(each["added_ms"]["every_call_asks_p99"] for each in found)
    print(json.dumps({"limit_ms": LIMIT_MS, "worst_p99_ms": worst, "daemons": found}, indent=2))


if __name__ == "__main__":
    main()
