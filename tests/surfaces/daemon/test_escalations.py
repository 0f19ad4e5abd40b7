"""What an operator must know about: listed once, counted, acknowledged, kept, and shown to its tenant only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes import AUTH, real

from failsoft import Runtime
from failsoft.stores.memory import MemoryStore
from failsoft.surfaces.daemon import escalations as module
from failsoft.surfaces.daemon.escalations import Escalations

DENIED = "Authentication failed (401)"
SAID = {"code": "UNAUTHENTICATED", "category": "auth", "error": "no", "attempts": 1}
MANIFEST = {"tools": {"get_denied": {"entrypoint": {"function": "tests.surfaces.daemon.tools_of_tests:get_denied"}}}}


async def listed(asked: Any, who: str = "operator", query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await asked.get(f"/v1/escalations{query}", who)).json()["escalations"]
    return found


@real
async def test_reported_escalations_are_listed_once_and_counted(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        for number in range(3):
            await asked.post("/v1/errors", {"tool": "get_x", "error": DENIED, "call_id": f"c{number}"})
        await asked.post("/v1/errors", {"tool": "get_y", "error": "503"})
        (entry,) = await listed(asked, "reader")
        assert (entry["tool"], entry["count"], entry["call_id"]) == ("get_x", 3, "c2")
        assert "401" in entry["error"]
        assert await listed(asked, query="?tool=get_y") == []


@real
async def test_an_acknowledged_escalation_is_audited_and_open_again_when_it_happens_again(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        report = {"tool": "get_x", "error": DENIED}
        await asked.post("/v1/errors", report)
        (entry,) = await listed(asked)
        path = f"/v1/escalations/{entry['id']}/acknowledge"
        assert (await asked.post(path, {}, "reader")).status_code == 403
        done = (await asked.post(path, {"note": "new key ordered"})).json()
        assert (done["acknowledged"]["by"], done["acknowledged"]["note"]) == ("operator", "new key ordered")
        assert await listed(asked) == []
        assert (
            len(await listed(asked, query="?state=acknowledged")) == len(await listed(asked, query="?state=all")) == 1
        )
        assert (await asked.get("/v1/escalations?state=other")).status_code == 400
        (act,) = (await asked.get("/v1/events?type=OperatorActed")).json()["events"]
        assert (act["action"], act["target"], act["actor"]) == ("acknowledge", entry["id"], "operator")
        await asked.post("/v1/errors", report)
        assert [(one["count"], one["acknowledged"]) for one in await listed(asked)] == [(2, None)]
        assert (await asked.post("/v1/escalations/none/acknowledge")).status_code == 404


@real
async def test_a_tenant_sees_and_acknowledges_its_own_escalations_only(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        for who in ("acme", "bolt"):
            await asked.post("/v1/errors", {"tool": "get_x", "error": f"{DENIED} of {who}", "call_id": who}, who)
        await asked.post("/v1/errors", {"tool": "get_x", "error": DENIED})
        (mine,), (other,) = await listed(asked, "acme"), await listed(asked, "bolt")
        assert (mine["tenant"], "bolt" in str(mine)) == ("acme", False)
        path = f"/v1/escalations/{other['id']}/acknowledge"
        assert (await asked.post(path, {}, "acme")).status_code == 404
        assert len(await listed(asked)) == 3
        assert await listed(asked, query="?tenant=bolt") == [other]
        assert (await asked.get("/v1/escalations?tenant=bolt", "acme")).status_code == 403
        assert (await asked.post(path)).status_code == 200
        (act,) = (await asked.get("/v1/events?type=OperatorActed", "bolt")).json()["events"]
        assert act["target"] == other["id"]
        assert (await asked.get("/v1/events?type=OperatorActed", "acme")).json()["events"] == []


@pytest.mark.parametrize("way", ["call", "turn"])
@real
async def test_calls_and_turns_of_the_daemon_are_listed(open_daemon: Any, way: str) -> None:
    async with open_daemon(MANIFEST) as asked:
        if way == "call":
            await asked.post("/v1/calls", {"tool": "get_denied"}, "acme")
        else:
            await asked.post("/v1/turns", {"plan": {"calls": [{"tool": "get_denied"}]}, "id": "t1"}, "acme")
        (entry,) = await listed(asked, "acme")
        assert (entry["tool"], entry["count"]) == ("get_denied", 1)
        assert entry["turn_id"] == (None if way == "call" else "@acme:t1")
        assert await listed(asked, "bolt") == []


@real
async def test_runtimes_elsewhere_are_listed_once_though_they_send_twice(open_daemon: Any) -> None:
    elsewhere = Runtime()

    @elsewhere.tool
    def get_flights() -> str:
        raise AUTH

    await elsewhere.call("get_flights")
    batch = {"source": "host-1", "events": [event.to_dict() for event in elsewhere.events()]}
    async with open_daemon() as asked:
        for _ in range(2):
            await asked.post("/v1/events", batch, "acme")
        (entry,) = await listed(asked, "acme")
        assert (entry["tool"], entry["runtime"], entry["count"]) == ("get_flights", "host-1", 1)
        assert await listed(asked, "bolt") == []


@real
async def test_escalations_survive_a_restart(open_daemon: Any, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/daemon.db"
    async with open_daemon(store=store) as asked:
        for tool in ("get_x", "get_y"):
            await asked.post("/v1/errors", {"tool": tool, "error": DENIED})
        entry = next(one for one in await listed(asked) if one["tool"] == "get_x")
        await asked.post(f"/v1/escalations/{entry['id']}/acknowledge")
    async with open_daemon(store=store) as asked:
        assert [one["tool"] for one in await listed(asked)] == ["get_y"]
        assert [one["tool"] for one in await listed(asked, query="?state=acknowledged")] == ["get_x"]


def test_entries_are_limited_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    monkeypatch.setattr(module, "MOST_IN_ALL", 5)
    store, now = MemoryStore(), [0.0]
    kept = Escalations(store, lambda: now[0])
    for tenant in ("a", "b", "c"):
        for number in range(6):
            now[0] += 1
            kept.note(tenant, f"{number}" * 5_000, {**SAID, "error": "x" * 100_000, "attempts": [1] * 9_000})
            kept.save()
    assert [len(kept.entries(tenant, None, acknowledged=None)) for tenant in ("a", "b", "c")] == [1, 2, 2]
    assert all(len(str(entry)) < 5_000 for entry in kept.entries(None, None, acknowledged=None))
    again = Escalations(store, lambda: now[0])
    assert again.entries(None, None, acknowledged=None) == kept.entries(None, None, acknowledged=None)


def test_a_tenant_without_entries_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IN_ALL", 5)
    store = MemoryStore()
    kept = Escalations(store, lambda: 1.0)
    for number in range(3):
        kept.note("busy", f"{number}", SAID)
    for number in range(50):
        kept.note(f"tenant {number}", "pay", SAID)
    kept.save()
    latest = [f"tenant {number}" for number in range(45, 50)]
    assert sorted(entry["tenant"] for entry in kept.entries(None, None, acknowledged=None)) == latest
    assert len(store.find("escalation")) == 5
    assert kept._entries.tenants() == latest


@real
async def test_a_page_has_the_latest_escalations_and_the_number_of_all(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        for number in range(5):
            await asked.post("/v1/errors", {"tool": f"get_{number}", "error": DENIED})
        page = (await asked.get("/v1/escalations?limit=2")).json()
        assert ([one["tool"] for one in page["escalations"]], page["total"]) == (["get_4", "get_3"], 5)
        for wrong in ("0", "1001", "x"):
            assert (await asked.get(f"/v1/escalations?limit={wrong}")).status_code == 400


def test_changes_are_saved_later_if_the_store_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    kept = Escalations(store, lambda: 1.0)
    kept.note(None, "get_x", SAID)
    kept.note(None, "get_y", SAID)
    put, calls = store.put, []

    def fail(*args: Any, **more: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise OSError("disk I/O error")
        put(*args, **more)

    monkeypatch.setattr(store, "put", fail)
    with pytest.raises(OSError, match="disk"):
        kept.save()
    kept.save()
    restored = Escalations(store, lambda: 2.0)
    assert {entry["tool"] for entry in restored.entries(None, None, acknowledged=None)} == {"get_x", "get_y"}


def test_an_entry_that_is_only_counted_again_is_saved_once_a_second_and_at_the_end() -> None:
    store, now = MemoryStore(), [100.0]
    kept = Escalations(store, lambda: now[0])

    def saved() -> dict[str, int]:
        return {entry["tool"]: entry["count"] for _, entry in store.find("escalation")}

    kept.note(None, "pay", {"code": "INTERNAL"})
    kept.save()
    for tool in ("pay", "book", "pay"):
        kept.note(None, tool, {"code": "INTERNAL"})
        kept.save()
    assert saved() == {"pay": 1, "book": 1}
    now[0] += 1.0
    kept.save()
    assert saved() == {"pay": 3, "book": 1}
    kept.note(None, "pay", {"code": "INTERNAL"})
    (pay,) = kept.entries(None, "pay", acknowledged=None)
    kept.acknowledge(pay["id"], None, "operator", "")
    kept.save()
    assert saved() == {"pay": 4, "book": 1}
    kept.note(None, "pay", {"code": "INTERNAL"})  # opened again
    kept.save()
    assert saved() == {"pay": 5, "book": 1}
    kept.note(None, "book", {"code": "INTERNAL"})
    kept.save(everything=True)
    assert saved() == {"pay": 5, "book": 2}


@real
async def test_the_list_can_be_paged_while_entries_are_counted_again(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        listed = asked.daemon.escalations
        for number in range(7):
            listed.note("acme" if number % 2 else None, f"get_{number}", {"code": "UNKNOWN"})

        async def page(query: str = "", who: str = "operator") -> tuple[list[str], Any]:
            answer = (await asked.get(f"/v1/escalations?limit=3{query}", who)).json()
            return [entry["tool"] for entry in answer["escalations"]], answer

        tools, first = await page()
        assert (tools, first["total"], first["more"]) == (["get_6", "get_5", "get_4"], 7, True)
        tools, second = await page(f"&after={first['escalations'][-1]['id']}")
        assert (tools, second["total"], second["more"]) == (["get_3", "get_2", "get_1"], 7, True)
        listed.note(None, "get_0", {"code": "UNKNOWN"})  # it is the first now
        tools, last = await page(f"&after={second['escalations'][-1]['id']}")
        assert (tools, last["more"]) == ([], False)
        foreign = first["escalations"][-1]["id"]
        assert (await asked.get(f"/v1/escalations?after={foreign}", "acme")).status_code == 400
        assert (await page(f"&after={first['escalations'][1]['id']}", "acme"))[0] == ["get_3", "get_1"]
