"""The clients against a real daemon: every method, blocking and async."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.fakes import DOWN, real

from failsoft import Runtime
from failsoft.client import Advice, AsyncClient, Client, DaemonError, DaemonUnavailable, EventReporter, RemoteHandler
from failsoft.surfaces.daemon.access import AccessOptions
from failsoft.surfaces.daemon.app import ROUTES, build_app
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.server import ServerOptions, make_server
from failsoft.surfaces.daemon.tokens import Grant, Token, TokenBook, write_tokens

TOKEN = "operator-token-0123456789"
MANIFEST: dict[str, Any] = {
    "tools": {
        "search": {"entrypoint": {"function": "tests.client.tools_of_clients:search"}, "read_only": True},
        "slow": {"entrypoint": {"function": "tests.client.tools_of_clients:slow"}, "read_only": True},
        "pay": {"entrypoint": {"function": "tests.client.tools_of_clients:pay"}, "idempotent": False},
        "flights": {"read_only": True, "fallbacks": ["search"]},
    }
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a daemon that runs in a thread of its own."""
    tokens = tmp_path / "tokens.json"
    write_tokens(tokens, [Token(TOKEN, Grant("operator", frozenset({"operate"})))])
    ready = threading.Event()
    running: dict[str, Any] = {}

    async def serve() -> None:
        daemon = Daemon(MANIFEST, store=f"sqlite:///{tmp_path}/daemon.db")
        server = make_server(build_app(daemon, TokenBook(tokens), AccessOptions()), daemon, ServerOptions(port=0))
        running["server"] = server
        serving = asyncio.create_task(server.serve())
        await server.ready.wait()
        running["port"] = server.servers[0].sockets[0].getsockname()[1]
        ready.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    yield f"http://127.0.0.1:{running['port']}"
    server: uvicorn.Server = running["server"]
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def test_an_error_is_reported_and_advice_comes_back(url: str) -> None:
    with Client(url, token=TOKEN) as client:
        advice = client.report_error("flights", {"message": "Service Unavailable", "status": 503}, call_id="a1")
        assert isinstance(advice, Advice)
        assert advice.decision.strategy == "retry"
        assert advice.fault["code"] == "UNAVAILABLE"
        assert (advice.attempt, advice.circuit["state"]) == (1, "closed")
        assert client.report_error("flights", ValueError("no such city"), call_id="a2").decision.strategy != "retry"
        assert client.report_outcome("flights", "succeeded", call_id="a1")["failure_count"] == 0


def test_calls_turns_and_tools_can_be_steered(url: str) -> None:
    with Client(url, token=TOKEN) as client:
        done = client.call("search", {"city": "Oslo"}, id="c/1?x")
        assert done["state"] == "finished"
        assert client.get_call("c/1?x")["id"] == "c/1?x"
        turn = client.run_turn({"calls": [{"id": "s", "tool": "search", "args": {"city": "Rome"}}]}, id="t1")
        assert turn["state"] == "finished"
        assert client.get_turn("t1")["id"] == "t1"
        assert [one["id"] for one in client.turns()] == ["t1"]
        slow = client.run_turn({"calls": [{"id": "s", "tool": "slow"}]}, id="t2", wait=0)
        assert slow["state"] == "running"
        assert "slow" in {one["tool"] for one in client.running()}
        assert client.cancel_turn("t2")["id"] == "t2"
        client.call("slow", id="c2", wait=0)
        assert client.cancel_call("c2")["id"] == "c2"
        assert {one["id"] for one in client.tools()} >= {"search", "slow", "pay", "flights"}
        client.disable("search", "maintenance")
        assert client.get_tool("search")["available"] is False
        client.enable("search")
        client.reset("search")
        assert client.get_tool("search")["available"] is True


def test_a_write_of_unknown_effect_can_be_resolved(url: str) -> None:
    with Client(url, token=TOKEN) as client:
        client.call("pay", {"amount": 40}, id="p1")
        (case,) = client.ledger()
        assert client.ledger(tool="search") == []
        client.resolve(case["id"], "happened", {"receipt": 7})
        assert client.ledger() == []


def test_escalations_can_be_listed_and_acknowledged_and_reported_tools_steered(url: str) -> None:
    with Client(url, token=TOKEN) as client:
        client.report_error("far", "Authentication failed (401)", tenant="acme")
        (entry,) = client.escalations(tenant="acme", tool="far")
        assert client.escalations(tenant="bolt") == []
        assert client.acknowledge(entry["id"], "known")["acknowledged"]["note"] == "known"
        assert client.escalations() == []
        assert [one["id"] for one in client.escalations(state="all")] == [entry["id"]]
        assert client.disable("far", "broken", tenant="acme")["available"] is False
        assert client.enable("far", tenant="acme")["available"] is True
        assert client.reset("far", tenant="acme")["circuit"]["state"] == "closed"


def test_the_rest_can_be_read(url: str) -> None:
    with Client(url, token=TOKEN) as client:
        client.call("search", {"city": "Oslo"}, thread="chat")
        assert client.thread("chat")
        assert "families" in client.memory()
        assert client.runtimes() == []
        assert client.status()["versions"]["failsoft"]
        page = client.events(limit=1)
        assert len(page["events"]) == 1
        assert client.events(after=page["next"])["events"]


def test_a_refusal_carries_the_problem_document(url: str) -> None:
    with Client(url, token=TOKEN) as client, pytest.raises(DaemonError) as refused:
        client.get_tool("no such tool")
    assert refused.value.status == 404
    assert refused.value.problem["status"] == 404
    with Client(url, token="wrong-token-0123456789") as client, pytest.raises(DaemonError) as refused:
        client.status()
    assert refused.value.status == 401
    assert "wrong-token" not in str(refused.value)


def test_a_daemon_that_is_away_is_named_so() -> None:
    with Client("http://127.0.0.1:9", token=TOKEN) as client, pytest.raises(DaemonUnavailable):
        client.status()


@real
async def test_events_can_be_followed_and_resumed(url: str) -> None:
    async with AsyncClient(url, token=TOKEN) as client:
        await client.call("search", {"city": "Oslo"})
        seen = []
        async for event in client.follow_events(after=0, type="CallSucceeded"):
            seen.append(event)
            break
        assert seen[0]["event_type"] == "CallSucceeded"
        await client.call("search", {"city": "Rome"})
        async for event in client.follow_events(after=seen[0]["id"], type="CallSucceeded"):
            assert event["id"] > seen[0]["id"]
            break


def test_events_can_be_followed_without_an_event_loop(url: str) -> None:
    with Client(url, token=TOKEN) as client:
        client.call("search", {"city": "Oslo"})
        event = next(client.follow_events(after=0))
        assert event["id"] >= 1


def test_both_clients_have_the_same_methods_and_one_for_each_route() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        found = {name: one for name, one in vars(kind).items() if inspect.isfunction(one) and not name.startswith("_")}
        return {name: [*inspect.signature(one).parameters] for name, one in found.items()}

    assert methods(Client) == methods(AsyncClient)
    apart = {"/metrics", "/readyz", "/openapi.json", "/healthz"}  # for scrapers, probes and generators
    assert len(methods(Client)) >= len([spec for spec in ROUTES if spec.path not in apart]) - 3


@real
async def test_a_runtime_joins_a_real_daemon(url: str) -> None:
    handler = RemoteHandler(url, token=TOKEN, timeout="5s")
    async with Runtime(error_handler=handler) as rt:
        stop = rt.subscribe_batches(EventReporter(url, token=TOKEN, source="web-1"))

        @rt.tool(read_only=True, retry={"max_attempts": 2, "initial_delay": "1ms"})
        async def flaky() -> None:
            raise DOWN

        outcome = await rt.call("flaky")
        assert outcome.decision is not None
        assert outcome.decision.reason.endswith(f"(decided by {url.removeprefix('http://')})")
        assert outcome.attempts == 2
        await rt.flush()
        await asyncio.to_thread(stop)
    async with AsyncClient(url, token=TOKEN) as client:
        assert [one["name"] for one in await client.runtimes()] == ["web-1"]
        assert (await client.events(runtime="web-1", limit=100))["events"]
