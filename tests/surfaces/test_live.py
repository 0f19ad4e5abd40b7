"""A turn while it runs: the growing picture, and the lines for pipes."""

from __future__ import annotations

import asyncio
import io
import re

import pytest
from rich.console import Console
from tests.fakes import DOWN, Scripted, Takes, virtual

from failsoft import Runtime
from failsoft.observe import events
from failsoft.surfaces.cli import live
from failsoft.surfaces.cli.live import describe, watching

FRAME = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


def terminal(height: int = 30) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, height=height, color_system=None, markup=False)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return FRAME.sub("", console.file.getvalue())


@virtual
async def test_the_picture_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "is_live", lambda _: True)
    console = terminal()
    rt = Runtime()
    retry = {"initial_delay": "1s", "max_delay": "1s", "jitter_percent": 0}
    rt.add(Scripted(Takes(1, DOWN), Takes(1, "ok")), id="search", retry=retry, read_only=True)
    handles = {}
    async with watching(rt, console, handles, span=4.0), rt.turn() as turn:
        handles["flights"] = turn.call("search", id="flights")
        handles["[red]prices"] = turn.call("search", {"a": handles["flights"]}, id="[red]prices")
    lines = [line for line in shown(console).splitlines() if line.strip().startswith("search  flights")]
    bars = [line.split("flights", 1)[1].strip() for line in lines]
    assert any(bar.startswith("▓") and bar.endswith("running") for bar in bars)
    assert any("✗╱" in bar and bar.endswith("waiting to try again") for bar in bars)
    assert any("▓" in bar and bar.endswith("running, attempt 2") for bar in bars)
    assert any("██" in bar and bar.endswith("ok, 2 attempts") for bar in bars)
    assert "[red]prices" in shown(console)
    assert "has not begun" in shown(console)


@virtual
async def test_more_calls_than_lines_show_those_that_run() -> None:
    console = terminal(height=12)
    rt = Runtime()
    rt.add(Scripted(Takes(1, "ok")), id="quick")
    rt.add(Scripted(Takes(9, "ok")), id="slow")
    chart = live.Chart(console, handles := {}, None)
    async with rt.turn() as turn:
        for number in range(50):
            handles[f"q{number}"] = turn.call("quick", id=f"q{number}")
        handles["s"] = turn.call("slow", id="s")
        await asyncio.sleep(2)
        chart.update(list(rt.events()))
    chart.close()
    rows = {line for line in shown(console).splitlines() if re.match(r"  (quick  q\d+|slow  s) ", line)}
    assert len(rows) == 6
    assert any(line.strip().startswith("slow  s ") for line in rows)


@virtual
async def test_pipes_get_lines() -> None:
    console = Console(file=io.StringIO(), width=100, markup=False)
    rt = Runtime()
    rt.add(Scripted(Takes(1, DOWN), Takes(1, "ok")), id="search", retry={"jitter_percent": 0}, read_only=True)
    async with watching(rt, console, {}), rt.turn(timeout="60s") as turn:
        turn.call("search", id="flights")
    assert shown(console) == (
        "   1.00 s  flights: search failed: Service unavailable (503); trying again in 0.1 s\n"
        "   2.10 s  flights: ok after 2 attempts\n\n"
    )


def test_every_described_event_type_exists() -> None:
    there = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
    assert set(live._DESCRIBERS) <= there
    started = events.Event(1, events.TURN_STARTED, 0.0, None, None, "t", {})
    assert describe(started) is None
