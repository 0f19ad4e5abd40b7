"""Events that do not belong to a call in flight reach subscribers at once too, also if no other call follows."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes import Scripted, Takes, virtual

from failsoft import Runtime, Verified
from failsoft.observe.events import Event


def test_a_tool_that_is_disabled_and_enabled() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="search", read_only=True)
    seen: list[Event] = []
    rt.subscribe(seen.append, inline=True)
    rt.disable("search", "maintenance")
    assert [event.event_type for event in seen] == ["ToolDisabled"]
    rt.enable("search")
    assert [event.event_type for event in seen] == ["ToolDisabled", "ToolEnabled"]


@virtual
async def test_a_result_that_comes_late() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(8, "late")), id="search", read_only=True)
    seen: list[Event] = []
    rt.subscribe(seen.append, inline=True)
    async with rt.turn(timeout="3s") as turn:
        turn.call("search", id="a")
    await asyncio.sleep(6)
    assert seen[-1].event_type == "LateResult"
    assert seen[-1].call_id == "a"


def test_an_answer_of_verify_that_closes_no_case(tmp_path: Path) -> None:
    async def run() -> None:
        async with Runtime(store=f"sqlite:///{tmp_path}/kept.db", record_arguments=True) as rt:
            rt.add(
                Scripted(TimeoutError("late")),
                id="pay",
                idempotent=False,
                verify=lambda arguments, key, fault: Verified.unknown(),
                verify_delay="0s",
            )
            outcome = await rt.call("pay", {"amount": 3}, thread="t")
            seen: list[Event] = []
            rt.subscribe(seen.append, inline=True)
            await rt.ledger.verify(outcome.id, thread="t")
            assert [event.event_type for event in seen] == ["EffectVerified"]

    asyncio.run(run())
