"""T22: a cycle skipped everything, an unknown dependency made calls vanish, deadlines were added up. Here: refused, kept."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import ManifestError, Runtime, TurnError

GRAPHS = 100


@virtual
async def test_t22_a_cycle_is_refused_with_its_path() -> None:
    rt = Runtime()
    search = Scripted("flights")
    rt.add(search, id="search")
    plan = {
        "calls": [
            {"id": "a", "tool": "search", "depends_on": ["c"]},
            {"id": "b", "tool": "search", "depends_on": ["a"]},
            {"id": "c", "tool": "search", "depends_on": ["b"]},
            {"id": "d", "tool": "search"},
        ]
    }
    with pytest.raises(ManifestError, match=r"a → c → b → a|a → b → c → a|circle: (\w) → \w → \w → \1"):
        await rt.run_plan(plan)
    assert search.attempts == 0


@virtual
async def test_t22_an_unknown_id_is_refused_by_its_name() -> None:
    rt = Runtime()
    search = Scripted("flights")
    rt.add(search, id="search")
    with pytest.raises(ManifestError, match="hotles"):
        await rt.run_plan({"calls": [{"id": "a", "tool": "search", "depends_on": ["hotles"]}]})
    async with rt.turn() as turn:
        with pytest.raises(TurnError, match="hotles"):
            turn.call("search", depends_on=["hotles"])
    assert search.attempts == 0
    assert turn.report.outcomes == {}


@virtual
async def test_t22_deadlines_are_not_added_up() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(100)), id="hangs", timeout="30s", retry=ONCE, breaker={"failure_threshold": 1000})
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn() as turn:
        for _ in range(20):
            turn.call("hangs")
    assert loop.time() - began == pytest.approx(30)
    assert len(turn.report.failures) == 20
    began = loop.time()
    async with rt.turn(timeout="10s") as turn:
        first = turn.call("hangs")
        for _ in range(20):
            turn.call("hangs", depends_on=[first])
    assert loop.time() - began == pytest.approx(10)
    await rt.close()


@virtual
async def test_t22_nothing_vanishes() -> None:
    """Random graphs with random failures, unknown tools, deadlines: there are as many outcomes as calls."""
    for seed in range(GRAPHS):
        source = random.Random(seed)
        rt = Runtime()
        for number in range(8):
            end: Any = source.choice([number, DOWN, ValueError("no")])
            rt.add(Scripted(Takes(source.uniform(0, 5), end)), id=f"tool{number}", retry=ONCE, timeout="3s")
        calls: list[dict[str, Any]] = []
        for number in range(source.randint(1, 30)):
            needs = source.sample(range(number), min(number, source.randint(0, 3)))
            call: dict[str, Any] = {"id": f"c{number}", "tool": f"tool{source.randint(0, 7)}"}
            call |= {"depends_on": [f"c{need}" for need in needs], "required": source.choice([True, False, None])}
            calls.append(call)
        limit = f"{source.randint(1, 8)}s"
        async with rt:
            plan = source.sample(calls, len(calls))  # in any order
            report = await rt.run_plan({"timeout": limit, "calls": plan})
            async with rt.turn(timeout=limit) as turn:
                for call in calls:
                    tool = source.choice([call.pop("tool"), "no such tool"])
                    turn.call(tool, **call)
        assert [*report.outcomes] == [call["id"] for call in plan]
        assert [*turn.report.outcomes] == [call["id"] for call in calls]
        ended = [*report.outcomes.values(), *turn.report.outcomes.values()]
        assert {outcome.status for outcome in ended} <= {"succeeded", "failed", "skipped", "timed_out"}
