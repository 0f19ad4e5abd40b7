"""Hostile bodies, ids and events."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes import real
from tests.surfaces.daemon.test_work import MANIFEST

EVENT = {"event_type": "ToolError", "timestamp": "2026-01-01T00:00:00+00:00", "seq": 1, "tool_id": "x"}
JSON = {"authorization": "Bearer operator-token-0123456789", "content-type": "application/json"}


async def post_raw(asked: Any, path: str, text: str) -> Any:
    async with asked.client() as client:
        return await client.post(path, content=text.encode(), headers=JSON)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@real
async def test_numbers_that_no_answer_could_repeat_are_refused_everywhere(open_daemon: Any, number: str) -> None:
    event = '{"event_type":"ToolError","timestamp":"2026-01-01T00:00:00Z","seq":1,"x":{"y":[NUMBER]}}'
    bodies = {
        "/v1/events": '{"source":"h","events":[EVENT]}',
        "/v1/errors": '{"tool":"t","error":{"message":"m","body":[NUMBER]}}',
        "/v1/calls": '{"tool":"get_weather","args":{"city":NUMBER}}',
        "/v1/turns": '{"plan":{"calls":[{"tool":"get_weather","args":{"city":NUMBER}}]}}',
        "/v1/ledger/x/resolve": '{"verdict":"happened","value":NUMBER}',
    }
    async with open_daemon(MANIFEST) as asked:
        for path, body in bodies.items():
            text = body.replace("EVENT", event).replace("NUMBER", number)
            assert (await post_raw(asked, path, text)).status_code == 422, path
        assert (await asked.get("/v1/events")).json()["events"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"seq": None},
        {"seq\x00": "one"},
        {"event_type\x00": 5},
        {"event_type": "OperatorActed", "actor": "operator", "action": "disable"},
        {"event_type": "Operator\x00Acted", "actor": "operator", "action": "disable"},
    ],
)
@real
async def test_events_that_only_pretend_to_be_ones_of_a_runtime_are_refused(open_daemon: Any, change: Any) -> None:
    async with open_daemon() as asked:
        answer = await asked.post("/v1/events", {"source": "h", "events": [{**EVENT, **change}]}, "reporter")
        assert answer.status_code == 422
        assert (await asked.get("/v1/events")).json()["events"] == []


@pytest.mark.parametrize("id", ["日本", "a b", "x?y#z", "a%2fb", "a/b", "é"])
@real
async def test_the_place_of_a_call_leads_to_it_whatever_its_id(open_daemon: Any, id: str) -> None:
    async with open_daemon(MANIFEST) as asked:
        for tenant in (None, "a b/ü"):
            body = {"tool": "get_slowly", "id": id, "wait": 0, "tenant": tenant}
            begun = await asked.post("/v1/calls", body)
            assert begun.status_code == 202
            found = await asked.get(begun.headers["location"])
            assert (found.status_code, found.json()["id"]) == (200, begun.json()["id"])
