"""The page about events is complete, and true."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.fakes import AUTH, DOWN, RESET, Scripted, Takes, records, virtual

from failsoft import Runtime, partial
from failsoft.observe import events
from failsoft.surfaces.cli import demo_travel

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "events.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*)$", PAGE, re.MULTILINE))
TYPES = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
COMMON = {"seq", "event_type", "turn_id", "call_id", "tool_id", "timestamp", "parent_id"}


def documented(event_type: str) -> set[str]:
    fields = {*re.findall(r"`(\w+)`", ROWS[event_type])}
    alike = {"CallRefused": "ToolError", "CallHeld": "ToolError"}.get(event_type)
    return fields if alike is None else fields | documented(alike)


def test_every_type_of_event_is_there_and_no_other() -> None:
    assert {*ROWS} == TYPES


@virtual
async def test_every_field_that_is_recorded_is_there() -> None:
    rt = demo_travel.make_runtime()
    calls: dict[str, object] = {}
    async with rt.turn(timeout="4s", thread="chat") as turn:
        demo_travel.submit(turn, calls)
        await demo_travel.continue_turn(turn, calls)
    other = Runtime()
    for _ in range(2):
        other.add(
            Scripted(DOWN), id="down", retry={"max_attempts": 1}, breaker={"failure_threshold": 1, "timeout": "1s"}
        )
        other.add(Scripted(AUTH), id="auth")
    other.add(Scripted(partial([1], missing="2")), id="part", retry={"max_attempts": 1})
    other.add(Scripted(KeyError("bug")), id="bug")
    other.add(Scripted(Takes(9, "late")), id="late")
    other.add(Scripted(RESET, "fine"), id="flaky", read_only=True)
    for _ in range(4):
        for tool in ("down", "auth", "part", "bug", "flaky", "no such tool"):
            await other.call(tool, thread="chat")
    await asyncio.sleep(2)
    await other.threads["chat"].retry("down")
    await other.threads["chat"].retry("down")
    async with other.turn(timeout="1s") as short:
        auth = short.call("auth")
        short.call("flaky", {"x": auth}, defaults={"x": 1})
        short.call("late")
    await asyncio.sleep(20)
    told = [*records(rt), *records(other)]
    seen = {record["event_type"] for record in told}
    assert len(seen) > 18, seen
    for record in told:
        unknown = {*record} - COMMON - documented(record["event_type"])
        assert not unknown, record["event_type"]
