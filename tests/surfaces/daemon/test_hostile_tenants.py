"""Tenants and executors that overstep, and restarts that must not forget."""

from __future__ import annotations

from typing import Any

from tests.fakes import real
from tests.surfaces.daemon.test_hostile_input import EVENT
from tests.surfaces.daemon.test_work import HERE, MANIFEST

from failsoft.stores.memory import MemoryStore


@real
async def test_a_plan_cannot_put_its_calls_among_those_of_another_tenant(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        plan = {"calls": [{"id": "@bolt:c", "tool": "get_slowly"}]}
        assert (await asked.post("/v1/turns", {"plan": plan, "wait": 0}, "acme")).status_code == 422
        assert (await asked.get("/v1/running", "bolt")).json() == {"running": []}


@real
async def test_a_tenant_finds_the_events_of_its_calls_by_their_short_ids(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        plan = {"calls": [{"id": "c", "tool": "get_weather", "args": {"city": "Rome"}}]}
        for tenant in ("acme", "bolt"):
            await asked.post("/v1/turns", {"plan": plan, "id": "t"}, tenant)
            await asked.post("/v1/calls", {"tool": "get_weather", "args": {"city": "Oslo"}, "id": "d"}, tenant)

        async def turns_of(query: str) -> list[str]:
            return [event["turn_id"] for event in (await asked.get(f"/v1/events?{query}", "acme")).json()["events"]]

        assert {*await turns_of("call_id=c")} == {*await turns_of("call_id=c&turn_id=t")} == {"@acme:t"}
        assert {*await turns_of("call_id=d")} == {*await turns_of("call_id=@acme:d")} == {None}
        assert await turns_of("call_id=@bolt:d") == await turns_of("call_id=@bolt:c") == []


@real
async def test_the_error_that_opened_a_circuit_reaches_no_other_tenants_memory(open_daemon: Any) -> None:
    tool = {"entrypoint": {"function": f"{HERE}:get_nothing"}, "breaker": {"failure_threshold": 1}}
    async with open_daemon({"tools": {"get_nothing": tool}}) as asked:
        await asked.post("/v1/calls", {"tool": "get_nothing"}, "acme")
        refused = (await asked.post("/v1/calls", {"tool": "get_nothing"}, "bolt")).json()["outcome"]
        assert refused["fault"]["rule"] == "circuit_open"
        assert (await asked.get("/v1/memory", "bolt")).json() == {"families": []}
        assert len((await asked.get("/v1/memory", "acme")).json()["families"]) == 1


@real
async def test_a_write_is_not_retried_once_an_earlier_attempt_may_have_acted(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        first = {"tool": "send_mail", "call_id": "c", "error": "Connection reset by peer"}
        assert (await asked.post("/v1/errors", first)).json()["strategy"] == "escalate"
        second = {"tool": "send_mail", "call_id": "c", "error": "ECONNREFUSED: connection refused"}
        assert (await asked.post("/v1/errors", second)).json()["strategy"] == "escalate"
        assert (await asked.post("/v1/errors", {**second, "call_id": "other"})).json()["strategy"] == "retry"


@real
async def test_a_disabled_tool_is_still_disabled_after_a_restart(open_daemon: Any) -> None:
    store = MemoryStore()
    async with open_daemon(MANIFEST, store=store) as asked:
        assert (await asked.post("/v1/tools/get_weather/disable", {"reason": "too costly"})).status_code == 200
        assert (await asked.get("/v1/ledger")).json() == {"unknown": []}
        assert (await asked.post("/v1/tools/get_nothing/disable", {})).status_code == 200
        assert (await asked.post("/v1/tools/get_nothing/enable", {})).status_code == 200
    async with open_daemon(MANIFEST, store=store) as asked:
        found = (await asked.get("/v1/tools/get_weather")).json()
        assert (found["available"], "too costly" in found["unavailable_because"]) == (False, True)
        assert (await asked.get("/v1/tools/get_nothing")).json()["available"]


@real
async def test_a_call_that_is_sent_again_after_a_restart_does_not_run_again(open_daemon: Any) -> None:
    store, ran = MemoryStore(), []

    def book() -> str:
        ran.append(1)
        return "booked"

    for begun in range(2):
        async with open_daemon(store=store) as asked:
            asked.daemon.rt.add(book, id="book", idempotent=False)
            for sent in range(2):
                answer = await asked.post("/v1/calls", {"tool": "book", "id": "b"}, "acme")
                assert answer.status_code == (409 if begun or sent else 200)
            assert (await asked.get("/v1/calls/b", "acme")).json()["state"] == "finished"
            assert (await asked.get("/v1/calls/b", "bolt")).status_code == 404
            assert (await asked.post("/v1/calls", {"tool": "book"}, "acme")).status_code == 200
            asked.daemon.used_ids.begin("@acme:i", "book")  # a process that was killed
            assert (await asked.get("/v1/calls/i", "acme")).json()["state"] == "interrupted"
            assert (await asked.post("/v1/calls", {"tool": "book", "id": "i"}, "acme")).status_code == 409
    assert len(ran) == 3


@real
async def test_events_sent_again_after_a_restart_are_stored_once(open_daemon: Any) -> None:
    store = MemoryStore()
    batch = {"source": "h", "events": [EVENT, {**EVENT, "seq": 2}]}
    for _ in range(2):
        async with open_daemon(store=store) as asked:
            assert (await asked.post("/v1/events", batch, "acme")).json() == {"accepted": 2}
            assert len((await asked.get("/v1/events?runtime=h")).json()["events"]) == 2
