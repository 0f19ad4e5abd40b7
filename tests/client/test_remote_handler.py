"""A runtime that asks a daemon: it follows safe answers, and never depends on it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Any

import pytest
from tests.client.conftest import ScriptedDaemon
from tests.fakes import DOWN, real, records

from failsoft import ManifestError, Outcome, Runtime
from failsoft.client import RemoteHandler
from failsoft.client.remote_handler import FAILURES

QUICK = {"max_attempts": 2, "initial_delay": "1ms", "jitter_percent": 0}


def runtime(url: str, timeout: str = "5s") -> tuple[Runtime, list[int]]:
    """A runtime with a handler that is patient, since the machine may be busy."""
    rt, ran = Runtime(error_handler=RemoteHandler(url, timeout=timeout)), []

    @rt.tool(read_only=True, retry=QUICK, breaker={"failure_threshold": 1000})
    async def search() -> str:
        ran.append(1)
        raise DOWN

    return rt, ran


def failures_of(rt: Runtime) -> list[str]:
    return [record["error"] for record in records(rt, "HandlerFailed")]


async def call(rt: Runtime, tool: str = "search") -> Outcome[Any]:
    return await rt.call(tool)


@real
async def test_the_daemon_gets_the_report_and_its_decision_is_followed(daemon: ScriptedDaemon) -> None:
    daemon.reply = lambda path, body: (200, {"strategy": "fail_gracefully", "reason": "the index is being rebuilt"})
    rt, ran = runtime(daemon.url)
    outcome = await call(rt)
    (path, body) = daemon.asked[0]
    assert path == "/v1/errors"
    assert body["report"]["tool_id"] == "search"
    assert body["report"]["fault"]["code"] == "UNAVAILABLE"
    assert daemon.headers[0]["authorization"] == "Bearer fsd_secret-of-this-test"
    assert outcome.decision is not None
    assert outcome.decision.strategy == "fail_gracefully"
    assert outcome.decision.reason == f"the index is being rebuilt (decided by {daemon.url.removeprefix('http://')})"
    assert len(ran) == 1
    assert failures_of(rt) == []


LIES = {
    "no JSON": (200, b"<html>"),
    "no object": (200, [1]),
    "nothing": (200, b""),
    "no strategy": (200, {"reason": "because"}),
    "an unknown strategy": (200, {"strategy": "explode", "reason": "because"}),
    "an alternative that does not exist": (200, {"strategy": "alternative_tool", "reason": "", "tool": "rm"}),
    "a partial result that does not exist": (200, {"strategy": "partial_success", "reason": ""}),
    "a delay of text": (200, {"strategy": "retry", "reason": "", "delay": "soon"}),
    "a delay without end": (200, b'{"strategy": "retry", "reason": "", "delay": Infinity}'),
    "an error": (500, {"title": "Internal Server Error"}),
    "a refusal": (401, {"title": "Unauthorized", "detail": "no such token"}),
    "a redirect": (307, {}),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@real
async def test_an_answer_that_makes_no_sense_is_turned_down(daemon: ScriptedDaemon, lie: tuple[int, Any]) -> None:
    daemon.reply = lambda path, body: lie
    rt, ran = runtime(daemon.url)
    outcome = await call(rt)
    assert len(ran) == 2  # the built-in handler has retried
    assert outcome.decision is not None
    assert outcome.decision.strategy == "escalate"
    assert failures_of(rt)
    assert not any("secret" in failure for failure in failures_of(rt))
    assert {path for path, _ in daemon.asked} == {"/v1/errors"}  # a redirect would take the token along


@real
async def test_a_daemon_that_wants_a_write_repeated_is_not_obeyed(daemon: ScriptedDaemon) -> None:
    daemon.reply = lambda path, body: (200, {"strategy": "retry", "reason": "again", "delay": 0})
    rt, paid = Runtime(error_handler=RemoteHandler(daemon.url, timeout="5s")), []

    @rt.tool(idempotent=False, retry=QUICK)
    async def pay() -> None:
        paid.append(1)
        raise ConnectionResetError("connection reset by peer")

    assert (await call(rt, "pay")).status == "failed"
    assert paid == [1]
    (why,) = failures_of(rt)
    assert "answered retry, which is impossible or unsafe here" in why


@real
async def test_a_daemon_that_hangs_costs_a_tenth_of_a_second_three_times(daemon: ScriptedDaemon) -> None:
    release = threading.Event()

    def hang(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        release.wait(20)
        return 200, {"strategy": "retry", "reason": ""}

    daemon.reply = hang
    rt, ran = runtime(daemon.url, "100ms")
    try:
        for _ in range(10):
            await call(rt)
        assert len(ran) == 20
        assert len(daemon.asked) == FAILURES
        assert all("no answer" in why for why in failures_of(rt)[:FAILURES])
        assert all("is not asked for another" in why for why in failures_of(rt)[FAILURES:])
    finally:
        release.set()


@real
async def test_a_daemon_that_is_away_changes_no_decision() -> None:
    rt, ran = runtime("http://127.0.0.1:9")
    outcome = await call(rt)
    assert len(ran) == 2
    assert outcome.decision is not None
    assert outcome.decision.strategy == "escalate"


@real
async def test_a_daemon_is_asked_again_after_a_pause(daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.reply = lambda path, body: (500, {})
    rt, _ = runtime(daemon.url)
    await call(rt)
    await call(rt)
    asked = len(daemon.asked)
    assert asked == FAILURES
    daemon.reply = lambda path, body: (200, {"strategy": "escalate", "reason": "back again"})
    now = time.monotonic
    monkeypatch.setattr("failsoft.client.remote_handler.time.monotonic", lambda: now() + 60)
    outcome = await call(rt)
    assert len(daemon.asked) == asked + 1
    assert outcome.decision is not None
    assert outcome.decision.reason.startswith("back again")


@real
async def test_one_handler_serves_many_event_loops(daemon: ScriptedDaemon) -> None:
    daemon.reply = lambda path, body: (200, {"strategy": "escalate", "reason": "told"})
    rt, _ = runtime(daemon.url)
    reasons: list[str] = []

    def run() -> None:
        decision = asyncio.run(call(rt)).decision
        assert decision is not None
        reasons.append(decision.reason)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert len(reasons) == 4
    assert all(reason.startswith("told") for reason in reasons)


def test_a_blocking_program_can_ask_too(daemon: ScriptedDaemon) -> None:
    daemon.reply = lambda path, body: (200, {"strategy": "escalate", "reason": "told"})
    rt, _ = runtime(daemon.url)
    decision = rt.call_sync("search").decision
    assert decision is not None
    assert decision.reason.startswith("told")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("daemon:8585", "does not start with https:// or http://"),
        ("https://", "does not start with https:// or http://"),
        ("https://me:pw-geheim@host", "ends up in logs"),
        ("https://host/?token=x", "has a query"),
        ("https://host:port", "is not an address"),
    ],
)
def test_a_wrong_address_is_refused_at_once(url: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message) as refused:
        Runtime(error_handler=url)
    assert "pw-geheim" not in str(refused.value)


def test_a_missing_token_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAILSOFT_TOKEN")
    with pytest.raises(ManifestError, match="FAILSOFT_TOKEN"):
        Runtime(error_handler="https://daemon.example")


@real
async def test_an_address_makes_a_handler_that_waits_a_tenth_of_a_second(daemon: ScriptedDaemon) -> None:
    daemon.reply = lambda path, body: (200, {"strategy": "escalate", "reason": "told"})
    async with Runtime(error_handler=daemon.url) as rt:
        handler = rt._connected
        assert handler is not None
        assert handler.timeout == 0.1

        @rt.tool(read_only=True, retry=QUICK)
        async def search() -> None:
            raise DOWN

        await rt.call("search")
    assert daemon.headers[0]["authorization"] == "Bearer fsd_secret-of-this-test"
    assert handler._client.is_closed


@real
async def test_failures_after_the_handler_was_closed_are_decided_here(daemon: ScriptedDaemon) -> None:
    rt, ran = runtime(daemon.url)
    handler = rt._engine.judgement.handler
    assert isinstance(handler, RemoteHandler)
    handler.close()
    await call(rt)
    assert len(ran) == 2
    assert daemon.asked == []


def test_a_forked_child_asks_although_another_thread_held_the_lock(daemon: ScriptedDaemon) -> None:
    daemon.reply = lambda path, body: (200, {"strategy": "escalate", "reason": "told"})
    rt, _ = runtime(daemon.url)
    handler = rt._engine.judgement.handler
    assert isinstance(handler, RemoteHandler)
    with handler._lock:
        child = os.fork()
        if not child:
            decision = rt.call_sync("search").decision
            os._exit(0 if decision is not None and decision.reason.startswith("told") else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)
