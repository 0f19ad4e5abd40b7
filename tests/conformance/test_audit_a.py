"""The audit's group A: sentences of the documents that 0.1.0 did not keep. One test at least for each row."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, virtual

from failsoft import Outcome, Runtime
from failsoft.testing import FaultPlan

# --- A1: "If all retries exhausted, escalate" (S-spec 4.1, 4.3, R30) --------------------------------------------------


@pytest.mark.parametrize("required", [None, True])
@virtual
async def test_a1_the_call_that_exhausts_its_retries_escalates_although_it_opened_the_circuit(
    required: bool | None,
) -> None:
    told: list[Outcome[Any]] = []
    rt = Runtime(on_escalation=told.append)
    rt.add(Scripted(DOWN), id="search")
    async with rt.turn() as turn:
        turn.call("search", id="s", required=required)
    await rt.flush()
    outcome = turn.report.outcomes["s"]
    assert rt.health("search").state == "open"
    assert (outcome.escalated, outcome.attempts) == (True, 5)
    assert [escalation.call_id for escalation in turn.report.escalations] == ["s"]
    assert [outcome.id for outcome in told] == ["s"]
    assert turn.report.message == "Search failed. Trying search again in a little while may help."


@virtual
async def test_a1_a_call_after_its_timeouts_escalates() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60)), id="search", timeout="30s", read_only=True, retry={"max_total_time": "10m"})
    outcome = await rt.call("search")
    assert (outcome.attempts, outcome.escalated, rt.health("search").state) == (5, True, "open")


@virtual
async def test_a1_an_optional_call_and_refused_calls_fail_gracefully() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search")
    async with rt.turn() as turn:
        turn.call("search", id="s", required=False)
    assert turn.report.escalations == ()
    refused = await rt.call("search")
    assert refused.decision is not None
    assert (refused.attempts, refused.escalated, refused.decision.strategy) == (0, False, "fail_gracefully")


@virtual
async def test_a1_a_half_open_probe_that_fails_does_not_escalate_again() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search")
    assert (await rt.call("search")).escalated
    for _ in range(3):
        await asyncio.sleep(30)
        probe = await rt.call("search")
        assert probe.decision is not None
        assert (probe.attempts, probe.escalated, probe.decision.strategy) == (1, False, "fail_gracefully")


@virtual
async def test_a1_a_call_whose_circuit_another_call_opened_escalates() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", breaker={"failure_threshold": 3})
    first, second = await asyncio.gather(rt.call("search"), rt.call("search"))
    assert first.attempts + second.attempts == 3
    assert (first.escalated, second.escalated) == (True, True)


@virtual
async def test_a1_a_fallback_that_ran_and_failed_escalates() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1}, fallbacks=["backup"])
    rt.add(Scripted(INVALID, DOWN), id="backup", retry=ONCE, breaker={"failure_threshold": 2})
    await rt.call("search")
    refused = await rt.call("search")  # the primary is refused, the fallback runs and fails
    assert (refused.attempts, refused.escalated) == (1, True)
    opening = await rt.call("search")  # and so does the one that opens the fallback's circuit
    assert (opening.attempts, opening.escalated, rt.health("backup").state) == (1, True, "open")
    both_open = await rt.call("search")
    assert (both_open.attempts, both_open.escalated) == (0, False)


@virtual
async def test_a1_a_rate_limited_call_that_cannot_wait_escalates_once() -> None:
    rt = Runtime()
    rt.add(FaultPlan("429(retry_after=60)").wrap(Scripted("x")), id="search")
    assert (await rt.call("search")).escalated
    assert not (await rt.call("search")).escalated
