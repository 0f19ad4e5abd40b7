"""The rate hold: after one call was asked to wait, all calls of the tool (and tenant) wait (R14)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import ONCE, Scripted, records, virtual

from failsoft import Runtime, classify
from failsoft.runtime.call.admission import set_rate_hold
from failsoft.testing import FaultPlan

HINTED = classify("429 Too Many Requests")._replace(retry_after=30.0)


def held(script: str, **options: Any) -> tuple[Runtime, FaultPlan]:
    plan = FaultPlan(script)
    rt = Runtime()
    rt.add(plan.wrap(Scripted("x")), id="search", **options)
    return rt, plan


def times(plan: FaultPlan) -> list[float]:
    return [taken.at for taken in plan.log]


@virtual
async def test_a_call_that_can_wait_waits_and_one_that_cannot_fails_with_the_time_left() -> None:
    rt, plan = held("429(retry_after=10), ok", retry={**ONCE, "max_hint_wait": "2s"})
    await rt.call("search")
    await asyncio.sleep(1)
    refused = await rt.call("search")
    assert plan.calls == 1
    assert refused.fault is not None
    assert (refused.fault.rule, refused.fault.retry_after, refused.duration) == ("rate_hold", 9, 0)
    assert refused.decision is not None
    assert (refused.decision.strategy, refused.decision.delay) == ("fail_gracefully", 9)
    assert refused.decision.reason == "Transient error (held back for 9s); no alternative"
    await asyncio.sleep(7.5)
    assert (await rt.call("search")).value == "x"  # 1.5 s are within its 2 s
    assert times(plan)[1] == pytest.approx(10, abs=0.2)
    assert times(plan)[1] >= 10


@virtual
async def test_without_a_hint_there_is_no_hold() -> None:
    rt, plan = held("429, ok", retry=ONCE)
    await rt.call("search")
    await rt.call("search")
    assert plan.calls == 2


@virtual
async def test_any_transient_error_with_a_hint_holds() -> None:
    rt, plan = held("503(retry_after=30), ok", retry=ONCE)
    await rt.call("search")
    await rt.call("search")
    assert plan.calls == 1


@virtual
async def test_a_rate_limited_call_is_retried_after_its_hint() -> None:
    rt, plan = held("429(retry_after=1.5), ok")
    outcome = await rt.call("search")
    assert (outcome.value, times(plan)) == ("x", [0, 1.5])
    assert rt.metrics("search")["held_count"] == 0


@virtual
async def test_a_hundred_calls_cost_one_rejection() -> None:
    rt, plan = held("429(retry_after=1), ok", read_only=True)
    first = asyncio.ensure_future(rt.call("search"))
    await asyncio.sleep(0.1)
    outcomes = await asyncio.gather(first, *(rt.call("search") for _ in range(100)))
    assert {outcome.status for outcome in outcomes} == {"succeeded"}
    assert plan.calls == 102
    after = times(plan)[1:]
    assert min(after) >= 1
    assert max(after) - min(after) > 0.02  # a little apart
    assert rt.metrics("search")["held_count"] == 100
    assert rt.metrics("search")["error_count"] == 1


@virtual
async def test_waiting_costs_no_attempt_and_no_budget() -> None:
    rt, _ = held("429(retry_after=1), ok", retry=ONCE)
    await rt.call("search")
    outcome = await rt.call("search")
    assert outcome.attempts == 1
    assert rt.metrics("search")["retry_count"] == 0
    event = records(rt, "CallHeld")[0]
    assert (event["rule"], event["decision"], event["attempt"]) == ("rate_hold", "retry", 0)


@virtual
async def test_holds_are_by_tenant() -> None:
    rt, plan = held("429(retry_after=60), ok", retry=ONCE)
    await rt.call("search", {}, tenant="acme")
    assert (await rt.call("search", {}, tenant="acme")).status == "failed"
    assert (await rt.call("search", {}, tenant="other")).value == "x"
    assert (await rt.call("search")).value == "x"
    assert plan.calls == 3


@virtual
async def test_no_call_waits_beyond_its_turn() -> None:
    rt, plan = held("429(retry_after=10), ok", retry={"max_attempts": 1, "max_hint_wait": "60s"})
    await rt.call("search")
    async with rt.turn(timeout="5s") as turn:
        turn.call("search", id="short")
    assert (turn.report.outcomes["short"].status, turn.report.timed_out) == ("failed", False)
    async with rt.turn(timeout="30s") as turn:
        turn.call("search", id="long")
    assert turn.report.outcomes["long"].status == "succeeded"
    assert plan.calls == 2


@virtual
async def test_repeated_waits_for_a_renewed_hold_are_bounded() -> None:
    rt, plan = held("429(retry_after=1.5)", retry={**ONCE, "max_hint_wait": "2s"})
    await rt.call("search")

    async def later() -> None:  # the hold is renewed while others wait
        await asyncio.sleep(1.4)
        set_rate_hold(
            rt._engine,
            rt._engine.runner.open_call(rt._engine.toolbox.tools["search"], (), {}),
            rt._engine.toolbox.tools["search"],
            HINTED._replace(retry_after=1.5),
        )

    renewing = asyncio.ensure_future(later())
    outcome = await rt.call("search")
    await renewing
    assert outcome.fault is not None
    assert (outcome.status, outcome.fault.rule, plan.calls) == ("failed", "rate_hold", 1)
    assert outcome.duration < 2


@virtual
async def test_a_fallback_serves_calls_that_cannot_wait_for_the_hold() -> None:
    rt, plan = held("429(retry_after=60), ok", retry=ONCE, fallbacks=["backup"])
    rt.add(Scripted("backup"), id="backup")
    assert [(await rt.call("search")).via for _ in range(3)] == ["backup"] * 3
    assert plan.calls == 1


@virtual
async def test_the_hold_comes_before_the_breaker() -> None:
    rt, _ = held("429(retry_after=60), ok", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("search")
    assert rt.health("search").state == "open"
    refused = await rt.call("search")
    assert refused.fault is not None
    assert refused.fault.rule == "rate_hold"
    await asyncio.sleep(60)
    assert (await rt.call("search")).value == "x"


@virtual
async def test_guarded_functions_are_held_too_and_get_their_short_way_back() -> None:
    plan = FaultPlan("429(retry_after=1), ok")
    rt = Runtime()

    async def search() -> str:
        return "x"

    guarded = rt.add(plan.wrap(search), id="search", retry={"max_attempts": 2})
    await guarded()
    tool = rt._engine.toolbox.tools["search"]
    assert times(plan) == [0, 1]
    await guarded()
    assert tool.closed_ticket is not None
    assert not tool.health.holds


@virtual
async def test_a_failure_further_in_holds_only_the_tool_that_was_told() -> None:
    plan = FaultPlan("429(retry_after=60), ok")
    rt = Runtime()

    async def inner() -> str:
        return "x"

    guarded = rt.add(plan.wrap(inner), id="inner", retry=ONCE)

    async def outer(deep: bool) -> str:
        return await guarded() if deep else "shallow"

    rt.add(outer, retry=ONCE)
    assert (await rt.call("outer", {"deep": True})).status == "failed"
    assert (await rt.call("outer", {"deep": False})).value == "shallow"


@virtual
async def test_a_hold_between_two_attempts_keeps_no_probe_and_still_counts_the_call() -> None:
    plan = FaultPlan("429(retry_after=0.5)*3, ok")
    rt = Runtime()
    breaker = {"failure_threshold": 1, "timeout": "1s", "count": "calls"}
    rt.add(plan.wrap(Scripted("x")), id="search", retry={"max_attempts": 2}, breaker=breaker)
    tool = rt._engine.toolbox.tools["search"]
    await rt.call("search")
    assert rt.health("search").state == "open"
    await asyncio.sleep(2)
    probe = asyncio.ensure_future(rt.call("search"))
    await asyncio.sleep(0.1)  # the probe has failed once and waits
    set_rate_hold(rt._engine, rt._engine.runner.open_call(tool, (), {}), tool, HINTED)
    outcome = await probe
    assert outcome.fault is not None
    assert (outcome.status, plan.calls) == ("failed", 3)
    assert rt.health("search").state == "open"  # not half-open with its only slot lost
    await asyncio.sleep(30)
    assert (await rt.call("search")).value == "x"
