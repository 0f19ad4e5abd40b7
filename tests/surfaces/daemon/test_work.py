"""Calls and turns through HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import real

HERE = "tests.surfaces.daemon.tools_of_tests"
MANIFEST = {
    "tools": {
        name: {"entrypoint": {"function": f"{HERE}:{name}"}, "timeout": "60s", "retry": {"max_attempts": 1}}
        for name in ("get_weather", "get_slowly", "get_nothing", "get_out", "get_interrupted")
    }
}
PLAN = {"calls": [{"id": "sky", "tool": "get_weather", "args": {"city": "Bern"}}, {"tool": "get_nothing", "id": "no"}]}


@real
async def test_a_call_returns_its_outcome_and_is_audited(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        answer = await asked.post("/v1/calls", {"tool": "get_weather", "args": {"city": "Bern"}, "id": "c1"})
        assert answer.status_code == 200
        data = answer.json()
        assert (data["state"], data["outcome"]["value"]["sky"]) == ("finished", "clear")
        assert (await asked.get("/v1/calls/c1")).json()["outcome"] == data["outcome"]
        (done,) = [event for event in asked.daemon.rt.events() if event.event_type == "OperatorActed"]
        assert (done.fields["actor"], done.fields["action"], done.fields["target"]) == (
            "operator",
            "call",
            "get_weather",
        )
        assert "Bern" not in str(done.fields)


@real
async def test_only_tools_of_the_manifest_can_be_called(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        for tool in ("os.system", "nowhere", "tests.fakes:records"):
            assert (await asked.post("/v1/calls", {"tool": tool})).status_code == 404
        body = {"tool": "get_weather", "entrypoint": {"function": "os:system"}}
        assert (await asked.post("/v1/calls", body)).status_code == 422
        plan = {"plan": {"calls": [{"tool": "evil", "entrypoint": {"function": "os:system"}}]}}
        assert (await asked.post("/v1/turns", plan)).status_code == 422


@real
async def test_a_plan_goes_in_and_a_report_comes_out(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        answer = await asked.post("/v1/turns", {"plan": PLAN, "id": "t1"})
        assert answer.status_code == 200
        report = answer.json()["report"]
        assert report["results"]["sky"] == {"city": "Bern", "sky": "clear"}
        assert report["failures"] == ["no"]
        turn = (await asked.get("/v1/turns/t1", "reader")).json()
        assert (turn["state"], turn["report"]["failures"]) == ("finished", ["no"])
        assert {"TurnStarted", "TurnEnded", "ToolError"} <= {event["event_type"] for event in turn["trace"]}
        assert {row["id"] for row in turn["waterfall"]["rows"]} == {"sky", "no"}
        assert turn["why"]["waterfall"]["turn_id"] == "t1"
        assert [each["id"] for each in (await asked.get("/v1/turns")).json()["turns"]] == ["t1"]


@real
async def test_a_turn_id_is_used_once(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        statuses = [(await asked.post("/v1/turns", {"plan": PLAN, "id": "t1"})).status_code for _ in range(2)]
        assert statuses == [200, 409]


@real
async def test_a_long_turn_is_accepted_polled_and_cancelled(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        body = {"plan": {"calls": [{"id": "slow", "tool": "get_slowly"}]}, "id": "t1", "wait": 0}
        answer = await asked.post("/v1/turns", body)
        assert (answer.status_code, answer.headers["location"]) == (202, "/v1/turns/t1")
        await asyncio.sleep(0.05)
        (call,) = (await asked.get("/v1/running")).json()["running"]
        assert (call["tool"], call["turn_id"]) == ("get_slowly", "t1")
        assert (await asked.get("/v1/turns/t1")).json()["state"] == "running"
        gone = (await asked.delete("/v1/turns/t1")).json()
        assert (gone["state"], gone["cancelled"]) == ("cancelled", True)
        assert (await asked.get("/v1/running")).json()["running"] == []
        assert (await asked.delete("/v1/turns/t1")).json()["cancelled"] is False


@real
async def test_a_plan_with_mistakes_is_refused_with_all_of_them(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        plan = {"calls": [{"tool": "a", "args": {"x": {"$ref": "nowhere"}}}, {"toll": "b"}]}
        answer = await asked.post("/v1/turns", {"plan": plan})
        assert answer.status_code == 422
        assert answer.json()["errors"]


@real
async def test_work_of_one_tenant_is_invisible_to_others(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        assert (await asked.post("/v1/turns", {"plan": PLAN, "id": "t1"}, "acme")).json()["id"] == "@acme:t1"
        await asked.post("/v1/calls", {"tool": "get_slowly", "id": "c1", "wait": 0}, "acme")
        await asyncio.sleep(0.05)
        for path in ("/v1/turns/t1", "/v1/turns/@acme:t1", "/v1/calls/c1", "/v1/calls/@acme:c1"):
            assert (await asked.get(path, "bolt")).status_code == 404, path
            assert (await asked.get(path, "acme")).status_code == 200, path
        assert (await asked.delete("/v1/calls/@acme:c1", "bolt")).status_code == 404
        for path, name in (("/v1/turns", "turns"), ("/v1/running", "running")):
            assert (await asked.get(path, "bolt")).json()[name] == []
            assert len((await asked.get(path, "acme")).json()[name]) == 1
            assert (await asked.get(f"{path}?tenant=acme", "bolt")).status_code == 403
        assert (await asked.get("/v1/events", "bolt")).json()["events"] == []
        seen = (await asked.get("/v1/events?limit=1000", "acme")).json()["events"]
        assert {"TurnStarted", "ToolError", "CallSucceeded", "OperatorActed"} <= {e["event_type"] for e in seen}
        assert "get_weather" not in (await asked.get("/v1/events", "bolt")).text
        for path in ("/v1/status", "/metrics"):
            assert (await asked.get(path, "acme")).status_code == 403


@real
async def test_a_client_that_waits_is_answered_when_the_daemon_stops(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        body = {"plan": {"calls": [{"tool": "get_slowly"}]}, "wait": 60}
        waiting = asyncio.create_task(asked.post("/v1/turns", body))
        await asyncio.sleep(0.1)
        asked.daemon.stop()
        answer = await asyncio.wait_for(waiting, 5)
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert (await asked.post("/v1/errors", {"tool": "get_x", "error": "503"})).status_code == 503


@pytest.mark.parametrize("tool", ["get_out", "get_interrupted"])
@real
async def test_a_call_of_a_tool_that_exits_does_not_end_the_daemon(open_daemon: Any, tool: str) -> None:
    async with open_daemon(MANIFEST) as asked:
        answer = await asked.post("/v1/calls", {"tool": tool})
        assert (answer.status_code, answer.json()["state"]) == (200, "failed"), answer.text
        assert (await asked.get("/readyz")).status_code == 200


@real
async def test_the_list_of_turns_says_how_each_went(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/turns", {"plan": PLAN, "id": "t1", "thread": "chat"})
        await asked.post(
            "/v1/errors", {"tool": "get_x", "error": "down", "turn_id": "t2", "call_id": "c", "thread": "chat"}
        )
        reported, own = (await asked.get("/v1/turns")).json()["turns"]
    assert (own["id"], own["state"], own["thread"]) == ("t1", "finished", "chat")
    assert own["calls"] >= own["succeeded"] > 0
    assert own["duration_ms"] >= 0
    assert (reported["id"], reported["state"], reported["thread"], reported["calls"]) == (
        "t2",
        "reported",
        "chat",
        None,
    )
    assert reported["began"] >= own["began"]


@real
async def test_a_call_that_cannot_run_says_why(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        body = {"tool": "get_weather", "args": {"city": "x"}, "idempotency_key": "k"}
        answer = (await asked.post("/v1/calls", body)).json()
    assert answer["state"] == "failed"
    assert "takes no idempotency key" in answer["error"]
