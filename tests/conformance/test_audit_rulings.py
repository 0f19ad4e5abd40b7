"""Rulings of the second round that belong to no row of the audit."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import ONCE, Scripted, records, virtual

from failsoft import Runtime
from failsoft.testing import FaultPlan

# --- R38: a server's hint longer than max_total_time ------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [3, 19])
@virtual
async def test_r38_a_hint_is_waited_for_although_it_is_longer_than_max_total_time(seconds: int) -> None:
    rt = Runtime()
    plan = FaultPlan(f"429(retry_after={seconds}), ok")
    rt.add(plan.wrap(Scripted("x")), id="search")
    outcome = await rt.call("search")
    assert (outcome.value, outcome.attempts) == ("x", 2)
    assert outcome.duration == pytest.approx(seconds, abs=0.01)


@virtual
async def test_r38_the_sum_of_such_waits_is_bounded() -> None:
    rt = Runtime()
    plan = FaultPlan("429(retry_after=8)*9, ok")
    rt.add(plan.wrap(Scripted("x")), id="search")
    outcome = await rt.call("search")
    assert (outcome.status, plan.calls) == ("failed", 3)  # 8 + 8 seconds, and 8 more would be 24
    assert outcome.decision is not None
    assert "max_hint_wait is 20s" in outcome.decision.reason
    assert outcome.fault is not None
    assert outcome.fault.retry_after == 8


@pytest.mark.parametrize("where", ["code", "manifest"])
@virtual
async def test_r38_max_hint_wait_is_an_option(where: str) -> None:
    retry = {"max_hint_wait": "5s"}
    rt = Runtime({"tools": {"search": {"retry_policy": {"max_hint_wait_ms": 5000}}}} if where == "manifest" else None)
    plan = FaultPlan("429(retry_after=6), ok")
    rt.add(plan.wrap(Scripted("x")), id="search", **({} if where == "manifest" else {"retry": retry}))
    outcome = await rt.call("search")
    assert (outcome.status, plan.calls, outcome.duration) == ("failed", 1, 0)


@virtual
async def test_r38_the_turns_time_bounds_it_too() -> None:
    rt = Runtime()
    plan = FaultPlan("429(retry_after=10), ok")
    rt.add(plan.wrap(Scripted("x")), id="search")
    async with rt.turn(timeout="5s") as turn:
        turn.call("search", id="s")
    assert (turn.report.outcomes["s"].status, plan.calls, turn.report.duration) == ("failed", 1, 0)


@virtual
async def test_r38_other_calls_wait_for_the_same_hold() -> None:
    rt = Runtime()
    plan = FaultPlan("429(retry_after=10), ok*9")
    rt.add(plan.wrap(Scripted("x")), id="search", retry=ONCE)
    await rt.call("search")
    await asyncio.sleep(1)
    outcome = await rt.call("search")
    assert outcome.value == "x"
    assert 9 <= outcome.duration <= 10
    assert records(rt, "CallHeld")


@virtual
async def test_r38_waiting_for_the_server_leaves_the_backoff_its_time() -> None:
    rt = Runtime()
    plan = FaultPlan("429(retry_after=5), 503*2, ok")
    rt.add(plan.wrap(Scripted("x")), id="search", read_only=True)
    assert (await rt.call("search")).value == "x"
