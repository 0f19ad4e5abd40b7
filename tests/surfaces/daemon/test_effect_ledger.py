"""Writes of unknown effect through HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes import real

PAY = {"tools": {"pay": {"entrypoint": {"function": "tests.surfaces.daemon.tools_of_tests:pay"}, "idempotent": False}}}


@real
async def test_a_write_of_unknown_effect_is_listed_and_resolved_by_name(open_daemon: Any, tmp_path: Path) -> None:
    async with open_daemon(PAY, store=f"sqlite:///{tmp_path}/daemon.db") as asked:
        await asked.post("/v1/calls", {"tool": "pay", "id": "p1", "thread": "chat"})
        (case,) = (await asked.get("/v1/ledger", "reader")).json()["unknown"]
        assert (case["tool"], case["call_id"]) == ("pay", "p1")
        done = await asked.post(f"/v1/ledger/{case['id']}/resolve", {"verdict": "happened", "value": {"receipt": 7}})
        assert done.status_code == 200
        assert done.json()["resolved_by"] == "operator"
        assert (await asked.get("/v1/ledger")).json()["unknown"] == []
        again = await asked.post(f"/v1/ledger/{case['id']}/resolve", {"verdict": "none"})
        assert again.status_code == 409
        assert (await asked.post("/v1/ledger/nothing/resolve", {"verdict": "none"})).status_code == 404
        assert (await asked.post("/v1/ledger/x/resolve", {"verdict": "maybe"})).status_code == 422
        acts = [event.fields["action"] for event in asked.daemon.rt.events() if event.event_type == "OperatorActed"]
        assert acts == ["call", "resolve"]


@real
async def test_a_call_whose_case_is_resolved_may_be_made_again_under_its_id(open_daemon: Any, tmp_path: Path) -> None:
    async with open_daemon(PAY, store=f"sqlite:///{tmp_path}/daemon.db") as asked:
        body = {"tool": "pay", "id": "p1"}

        async def pay() -> Any:
            return (await asked.post("/v1/calls", body)).json()["outcome"]

        assert (await pay())["attempts"] == 1
        assert (await asked.post("/v1/calls", body)).status_code == 409
        assert (await asked.post("/v1/ledger/p1/resolve", {"verdict": "none"})).status_code == 200
        assert (await pay())["attempts"] == 1
        assert (await asked.post("/v1/calls", body)).status_code == 409
        (case,) = (await asked.get("/v1/ledger")).json()["unknown"]
        await asked.post(f"/v1/ledger/{case['id']}/resolve", {"verdict": "happened", "value": 7})
        assert (await pay())["value"] == 7
        assert (await asked.post("/v1/calls", {**body, "tool": "other"})).status_code == 404


@real
async def test_a_tenant_sees_and_resolves_its_own_writes_only(open_daemon: Any, tmp_path: Path) -> None:
    async with open_daemon(PAY, store=f"sqlite:///{tmp_path}/daemon.db") as asked:
        await asked.post("/v1/calls", {"tool": "pay", "id": "p1", "thread": "chat"}, "acme")
        assert (await asked.get("/v1/ledger", "bolt")).json()["unknown"] == []
        (case,) = (await asked.get("/v1/ledger", "acme")).json()["unknown"]
        path = f"/v1/ledger/{case['id']}/resolve"
        assert (await asked.post(path, {"verdict": "none"}, "bolt")).status_code == 404
        assert (await asked.post(path, {"verdict": "none"}, "acme")).status_code == 200
