"""T8: an async tool that blocked the loop past its timeout was a success. Here it is a timeout, reported by name."""

from __future__ import annotations

import asyncio
import time

from tests.fakes import ONCE, real, records, virtual

from failsoft import CallFailed, Runtime
from failsoft.runtime.execution import clock as clocks


@virtual
async def test_t08_a_timeout_is_never_a_success() -> None:
    rt = Runtime()
    block = clocks.current().sleep  # time passes, and the loop does not turn

    async def blocks() -> str:
        await asyncio.sleep(0)
        block(3)
        return "flights"

    guarded = rt.add(blocks, timeout="2s", retry=ONCE)
    outcomes = [await rt.call("blocks")]
    try:
        await guarded()
    except CallFailed as failed:
        outcomes.append(failed.outcome)
    async with rt.turn() as turn:
        turn.call("blocks")
    outcomes += turn.report.outcomes.values()
    assert len(outcomes) == 3
    for outcome in outcomes:
        assert (outcome.status, outcome.value) == ("failed", None)
        assert outcome.fault is not None
        assert (outcome.fault.message, outcome.fault.effect) == ("Tool timeout after 2s", "happened")
    reports = records(rt, "LoopBlocked")
    assert [report["tool_id"] for report in reports] == ["blocks"] * 3
    assert {report["blocked_ms"] for report in reports} == {3000.0}
    assert all("was blocked while blocks ran" in report["message"] for report in reports)


@real
async def test_t08_a_timeout_is_never_a_success_in_real_time() -> None:
    rt = Runtime()

    async def blocks() -> str:
        time.sleep(0.1)  # noqa: ASYNC251 - that is the point
        return "flights"

    rt.add(blocks, timeout="50ms", retry=ONCE)
    assert (await rt.call("blocks")).status == "failed"
    assert rt.metrics("blocks")["loop_blocked_count"] == 1


@virtual
async def test_t08_the_outcome_names_the_blocked_loop_and_the_remedy() -> None:
    rt = Runtime()
    block = clocks.current().sleep

    async def get_after() -> None:
        block(3)

    async def get_before() -> None:
        block(3)
        await asyncio.sleep(1)

    for tool in (get_after, get_before):
        rt.add(tool, timeout="2s", retry=ONCE)
        outcome = await rt.call(tool.__name__)
        assert outcome.fault is not None
        assert outcome.fault.reason.startswith("The event loop was blocked for ")
        assert f"while {tool.__name__} ran: write a tool that blocks as def, not async def" in outcome.fault.reason
        assert outcome.fault.reason in outcome.explanation.operator
