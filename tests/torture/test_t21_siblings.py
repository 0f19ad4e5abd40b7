"""T21: one parallel failure lost the finished siblings. Here they are kept, under their ids, in submission order."""

from __future__ import annotations

import random

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, virtual

from failsoft import Runtime

CALLS = 100


@pytest.mark.parametrize("error", [DOWN, INVALID, TypeError("a bug")], ids=["transient", "permanent", "bug"])
@virtual
async def test_t21_one_failure_among_100_costs_one_result(error: Exception) -> None:
    source = random.Random(21)
    rt = Runtime()
    for number in range(CALLS):
        end = error if number == CALLS // 2 else number
        rt.add(Scripted(Takes(source.uniform(0, 10), end)), id=f"tool{number}", retry=ONCE)
    async with rt.turn() as turn:
        handles = [turn.call(f"tool{number}", id=f"call{number}") for number in range(CALLS)]
    report = turn.report
    assert [*report.outcomes] == [f"call{number}" for number in range(CALLS)]
    assert [*report.failures] == [f"call{CALLS // 2}"]
    assert report.results == {f"call{number}": number for number in range(CALLS) if number != CALLS // 2}
    for handle in handles:
        assert await handle is report.outcomes[handle.id]


@virtual
async def test_t21_results_finished_before_the_deadline_are_kept() -> None:
    rt = Runtime()
    for number in range(CALLS):
        rt.add(Scripted(Takes(float(number), number)), id=f"tool{number}", timeout="5m")
    async with rt.turn(timeout="49500ms") as turn:
        for number in range(CALLS):
            turn.call(f"tool{number}", id=f"call{number}")
    assert turn.report.results == {f"call{number}": number for number in range(50)}
    assert len(turn.report.outcomes) == CALLS
    await rt.close()


@virtual
async def test_t21_finished_results_are_kept_when_the_body_raises() -> None:
    rt = Runtime()
    rt.add(Scripted("flights"), id="quick")
    rt.add(Scripted(Takes(60)), id="slow", timeout="2m")
    turn = rt.turn()
    with pytest.raises(RuntimeError, match="the body broke"):
        async with turn:
            assert await turn.call("quick", id="a").value() == "flights"
            turn.call("slow", id="b")
            raise RuntimeError("the body broke")
    assert {id: outcome.status for id, outcome in turn.report.outcomes.items()} == {"a": "succeeded", "b": "cancelled"}
    assert turn.report.results == {"a": "flights"}
