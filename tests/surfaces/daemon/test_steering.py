"""Tools, threads, memory and metrics through HTTP."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes import real

from failsoft import Runtime

HERE = "tests.surfaces.daemon.tools_of_tests"
MANIFEST = {
    "tools": {
        "get_nothing": {
            "entrypoint": {"function": f"{HERE}:get_nothing"},
            "retry": {"max_attempts": 1},
            "breaker": {"failure_threshold": 1},
        },
        "elsewhere": {"read_only": True},
    }
}


@real
async def test_tools_are_shown_with_schema_health_and_metrics(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/calls", {"tool": "get_nothing"})
        await asked.post("/v1/errors", {"tool": "unlisted", "error": "503"})
        tools = {tool["id"]: tool for tool in (await asked.get("/v1/tools", "reader")).json()["tools"]}
        assert {id: tool["in_manifest"] for id, tool in tools.items()} == {
            "get_nothing": True, "elsewhere": True, "unlisted": False,
        }  # fmt: skip
        assert tools["get_nothing"]["circuit"]["state"] == "open"
        assert tools["get_nothing"]["metrics"]["error_count"] == 1
        assert tools["get_nothing"]["schema"]["type"] == "object"
        assert tools["unlisted"]["metrics"]["error_count"] == 1
        assert (await asked.get("/v1/tools/elsewhere")).json()["effect"] == "read"
        assert (await asked.get("/v1/tools/nowhere")).status_code == 404


@real
async def test_a_tool_is_disabled_enabled_and_reset_and_all_of_it_is_audited(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/calls", {"tool": "get_nothing"})
        assert (await asked.post("/v1/tools/get_nothing/reset")).json()["circuit"]["state"] == "closed"
        off = (await asked.post("/v1/tools/get_nothing/disable", {"reason": "maintenance"})).json()
        assert (off["available"], "maintenance" in off["unavailable_because"]) == (False, True)
        data = (await asked.post("/v1/errors", {"tool": "get_nothing", "error": "503"})).json()
        assert data["strategy"] != "retry"
        assert (await asked.post("/v1/tools/get_nothing/enable")).json()["available"] is True
        assert (await asked.post("/v1/tools/nowhere/disable")).status_code == 404
        acts = [event.fields["action"] for event in asked.daemon.rt.events() if event.event_type == "OperatorActed"]
        assert acts == ["call", "reset", "disable", "enable"]
        assert (await asked.post("/v1/tools/get_nothing/disable", None, "acme")).status_code == 403


@real
async def test_a_tenant_sees_its_own_health_and_metrics_only(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/errors", {"tool": "elsewhere", "error": "503 of acme"}, "acme")
        await asked.post("/v1/errors", {"tool": "secret_of_acme", "error": "503"}, "acme")
        await asked.post("/v1/calls", {"tool": "get_nothing"})
        mine = {tool["id"]: tool for tool in (await asked.get("/v1/tools", "acme")).json()["tools"]}
        assert mine["elsewhere"]["metrics"]["error_count"] == 1
        assert mine["get_nothing"]["metrics"] is None
        other = (await asked.get("/v1/tools", "bolt")).text
        assert "secret_of_acme" not in other
        assert "503" not in other
        assert (await asked.get("/v1/memory", "bolt")).json()["families"] == []
        assert len((await asked.get("/v1/memory", "acme")).json()["families"]) == 2


@real
async def test_the_memory_can_be_read_and_forgotten(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        await asked.post("/v1/errors", {"tool": "get_x", "error": "503"})
        assert [family["tool"] for family in (await asked.get("/v1/memory")).json()["families"]] == ["get_x"]
        assert (await asked.delete("/v1/memory?tool=get_x")).json() == {"forgotten": 1}
        assert (await asked.get("/v1/memory")).json()["families"] == []
        assert (await asked.delete("/v1/memory", "reader")).status_code == 403


@real
async def test_a_conversation_shows_its_offers_and_can_be_retried_and_cleared(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/calls", {"tool": "get_nothing", "thread": "chat/1"})
        data = (await asked.get("/v1/threads/chat/1")).json()
        assert [offer["tool"] for offer in data["offers"]] == ["get_nothing"]
        assert (await asked.get("/v1/threads/chat/1", "acme")).json()["offers"] == []
        await asked.post("/v1/tools/get_nothing/reset")
        assert (await asked.post("/v1/threads/chat/1/retry", {"tool": "get_nothing"})).json()["status"] == "failed"
        assert (await asked.delete("/v1/threads/chat/1")).json() == {"cleared": "chat/1"}
        assert (await asked.get("/v1/threads/chat/1")).json()["offers"] == []


@real
async def test_a_retried_call_may_return_text_that_is_not_valid_unicode(open_daemon: Any) -> None:
    returned = iter([ConnectionRefusedError("Connection refused"), "a\ud800b"])

    async def fetch() -> str:
        value = next(returned)
        if isinstance(value, Exception):
            raise value
        return value

    async with open_daemon() as asked:
        asked.daemon.rt.add(fetch, id="fetch", retry={"max_attempts": 1})
        await asked.post("/v1/calls", {"tool": "fetch", "thread": "chat"})
        answer = await asked.post("/v1/threads/chat/retry", {"tool": "fetch"})
        assert json.loads(answer.text)["value"] == "a\ud800b"


@real
async def test_events_of_a_runtime_elsewhere_are_stored_once_and_counted(open_daemon: Any) -> None:
    elsewhere = Runtime()

    @elsewhere.tool
    def get_flights() -> str:
        raise RuntimeError("Service unavailable (503)")

    await elsewhere.call("get_flights")
    events = [event.to_dict() for event in elsewhere.events()]
    async with open_daemon() as asked:
        for _ in range(2):
            answer = await asked.post("/v1/events", {"source": "host-1", "events": events}, "reporter")
            assert answer.json() == {"accepted": len(events)}
        stored = (await asked.get("/v1/events?runtime=host-1")).json()["events"]
        assert [event["event_type"] for event in stored] == [event["event_type"] for event in events]
        (known,) = (await asked.get("/v1/runtimes")).json()["runtimes"]
        assert (known["name"], known["events"]) == ("host-1", len(events))
        assert known["tools"]["get_flights"]["error_count"] == elsewhere.metrics("get_flights")["error_count"]
        assert (await asked.get("/v1/runtimes", "acme")).json()["runtimes"] == []


@real
async def test_a_batch_with_a_bad_event_is_refused_as_a_whole(open_daemon: Any) -> None:
    good = {
        "seq": 1,
        "event_type": "X",
        "turn_id": None,
        "call_id": None,
        "tool_id": None,
        "timestamp": "2025-01-01T00:00:00Z",
    }
    secret = "sk-proj-" + "a1B2" * 10
    async with open_daemon() as asked:
        for bad in ({}, {**good, "seq": "one"}, {**good, "turn_id": "@acme:t"}, {**good, "timestamp": "soon"}):
            answer = await asked.post("/v1/events", {"source": "h", "events": [good, bad]})
            assert answer.status_code == 422, bad
        other = {**good, "tenant": "bolt"}
        assert (await asked.post("/v1/events", {"source": "h", "events": [other]}, "acme")).status_code == 403
        assert (await asked.get("/v1/events")).json()["events"] == []
        await asked.post("/v1/events", {"source": "h", "events": [{**good, "deep": {"error": [secret]}}]})
        assert secret not in (await asked.get("/v1/events")).text


@real
async def test_metrics_and_status_are_for_operators(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/calls", {"tool": "get_nothing"})
        text = (await asked.get("/metrics", "reader")).text
        assert "failsoft" in text
        assert (await asked.get("/v1/status")).json()["versions"]["failsoft"]


@real
async def test_metrics_count_what_happened_before_the_first_scrape(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        await asked.post("/v1/calls", {"tool": "get_nothing"})
        await asked.daemon.rt.flush()
        lines = (await asked.get("/metrics")).text.splitlines()
    assert [line for line in lines if "duration" in line and "_count{" in line and "get_nothing" in line]


QUICK = {"defaults": {"breaker": {"failure_threshold": 1}}}


@real
async def test_a_tool_that_only_executors_report_is_reset_disabled_and_enabled(open_daemon: Any) -> None:
    async with open_daemon(QUICK) as asked:
        assert (await asked.post("/v1/tools/get_far/reset")).status_code == 404
        await asked.post("/v1/errors", {"tool": "get_far", "error": "503"})
        assert (await asked.get("/v1/tools/get_far")).json()["circuit"]["state"] == "open"
        assert (await asked.post("/v1/tools/get_far/reset")).json()["circuit"]["state"] == "closed"
        off = (await asked.post("/v1/tools/get_far/disable", {"reason": "maintenance"})).json()
        assert (off["available"], "maintenance" in off["unavailable_because"]) == (False, True)
        await asked.post("/v1/tools/get_far/reset")
        answer = (await asked.post("/v1/errors", {"tool": "get_far", "error": "timed out", "read_only": True})).json()
        assert answer["strategy"] != "retry"
        assert (await asked.post("/v1/tools/get_far/enable")).json()["available"] is True
        acts = [event.fields["action"] for event in asked.daemon.rt.events() if event.event_type == "OperatorActed"]
        assert acts == ["reset", "disable", "reset", "enable"]


@real
async def test_a_tenant_steers_its_own_reported_tools_only(open_daemon: Any) -> None:
    async with open_daemon(QUICK) as asked:
        for who in ("acme", "bolt", "operator"):
            await asked.post("/v1/errors", {"tool": "get_far", "error": "503"}, who)
        await asked.post("/v1/errors", {"tool": "of_acme", "error": "503"}, "acme")
        assert (await asked.post("/v1/tools/of_acme/reset", None, "bolt")).status_code == 404
        assert (await asked.post("/v1/tools/of_acme/reset")).status_code == 404
        assert (await asked.post("/v1/tools/get_far/reset?tenant=bolt", None, "acme")).status_code == 403
        assert (await asked.post("/v1/tools/get_far/disable", {}, "acme")).json()["available"] is False
        assert (await asked.post("/v1/tools/get_far/reset", None, "acme")).json()["circuit"]["state"] == "closed"
        for who in ("bolt", "operator"):
            other = (await asked.get("/v1/tools/get_far", who)).json()
            assert (other["available"], other["circuit"]["state"]) == (True, "open")
        named = await asked.post("/v1/tools/of_acme/reset?tenant=acme")
        assert named.json()["circuit"]["state"] == "closed"
        seen = (await asked.get("/v1/events?type=OperatorActed", "acme")).json()["events"]
        assert [event["action"] for event in seen] == ["disable", "reset", "reset"]
        assert (await asked.get("/v1/events?type=OperatorActed", "bolt")).json()["events"] == []


@real
async def test_a_reported_tool_stays_disabled_after_a_restart(open_daemon: Any, tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/daemon.db"
    async with open_daemon(store=store) as asked:
        await asked.post("/v1/errors", {"tool": "get_far", "error": "503"}, "acme")
        await asked.post("/v1/tools/get_far/disable", {"reason": "maintenance"}, "acme")
    async with open_daemon(store=store) as asked:
        assert (await asked.get("/v1/tools/get_far", "acme")).json()["available"] is False
        assert (await asked.get("/v1/tools/get_far")).status_code == 404
        assert (await asked.post("/v1/tools/get_far/enable", None, "acme")).json()["available"] is True
    async with open_daemon(store=store) as asked:
        assert (await asked.get("/v1/tools/get_far", "acme")).status_code == 404
