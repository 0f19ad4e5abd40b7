"""S-tests 4: timeouts of tools (a hard stop) and of turns (a soft one)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.fakes import ONCE, Scripted, Takes, records, virtual

from failsoft import Outcome, Runtime, ToolTimeout
from failsoft.testing import FaultPlan, virtual_time

LONG = 10_000.0


@virtual
async def test_4_1_per_tool_timeout_terminates_tool() -> None:
    rt = Runtime()
    search = Scripted(Takes(LONG), "flights")
    rt.add(search, id="flight_search", timeout="30s")
    began = asyncio.get_running_loop().time()
    call = asyncio.create_task(rt.call("flight_search"))
    await asyncio.sleep(25)
    assert search.ended == []  # running at t=25s, normally
    outcome = await call
    assert search.ended[0] - began == pytest.approx(30)
    error = records(rt, "ToolError")[0]
    assert error["error"] == "Tool timeout after 30s"
    assert (error["classification"], error["decision"]) == ("transient", "retry")
    assert search.started[1] - search.ended[0] == pytest.approx(0.1, rel=0.1)  # with backoff
    assert (outcome.value, outcome.attempts) == ("flights", 2)


@virtual
async def test_4_1_the_caller_gets_the_documents_words() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(Takes(LONG)), id="flight_search", timeout_ms=30000, retry=ONCE)
    with pytest.raises(ToolTimeout, match="Tool timeout after 30s") as caught:
        await guarded()
    assert isinstance(caught.value, TimeoutError)
    fault = caught.value.fault
    assert fault is not None
    assert (fault.message, fault.classification, fault.retryable) == ("Tool timeout after 30s", "transient", True)


@pytest.mark.parametrize("written", ["90s", "0.5s", "1500ms", "1h"])
@pytest.mark.parametrize("where", ["tool", "manifest", "call", "turn", "plan"])
def test_4_1_the_timeout_is_quoted_as_it_was_written(written: str, where: str) -> None:
    async def main() -> Outcome[Any]:
        rt = Runtime({"tools": {"flight_search": {"timeout": written}}} if where in ("manifest", "plan") else None)
        said = {"timeout": written} if where in ("tool", "turn") else {}
        rt.add(Scripted(Takes(LONG)), id="flight_search", retry=ONCE, **said)
        if where == "plan":
            return (await rt.run_plan({"timeout": "2h", "calls": [{"tool": "flight_search"}]})).outcomes[
                "flight_search-1"
            ]
        if where == "turn":
            async with rt.turn(timeout="2h") as turn:
                return await turn.call("flight_search")
        return await rt.call("flight_search", None, **({"timeout": written} if where == "call" else {}))

    with virtual_time() as clock:
        fault = clock.run(main()).fault
    assert fault is not None
    assert fault.message == f"Tool timeout after {written}"


@pytest.mark.parametrize("door", ["by name", "blocking", "function", "turn"])
@pytest.mark.parametrize("sync", [False, True])
def test_4_1_a_result_after_the_deadline_is_not_a_success(sync: bool, door: str) -> None:
    def fetch() -> str:
        return "flights"

    async def afetch() -> str:
        return "flights"

    with virtual_time() as clock:
        rt = Runtime()
        guarded: Any = rt.add(FaultPlan("slow(40)").wrap(fetch if sync else afetch), id="flight_search", retry=ONCE)

        async def main() -> Outcome[Any]:
            if door == "by name":
                return await rt.call("flight_search")
            if door == "turn":
                async with rt.turn() as turn:
                    return await turn.call("flight_search")
            with pytest.raises(ToolTimeout) as caught:
                guarded() if sync else await guarded()
            return caught.value.outcome

        outcome = rt.call_sync("flight_search") if door == "blocking" else clock.run(main())
    assert (outcome.status, outcome.value) == ("failed", None)
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 30s"
    assert len(records(rt, "ToolTimeout")) == 1


@virtual
async def test_4_2_per_turn_timeout_collects_partial_results() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(50, ["AF 1"])), id="flight_search", timeout="10m")
    rt.add(Scripted(Takes(LONG)), id="hotel_search", timeout="10m")
    rt.add(Scripted(Takes(LONG)), id="activity_search", timeout="10m")
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn(timeout="300s") as turn:
        flights, hotels, activities = (turn.call(tool) for tool in ("flight_search", "hotel_search", "activity_search"))
        assert (await flights).value == ["AF 1"]
        assert loop.time() - began == pytest.approx(50)
        await asyncio.sleep(50)
        assert not hotels.done()
        assert not activities.done()
    report = turn.report
    assert loop.time() - began == pytest.approx(300)
    assert report.timed_out
    assert report.results == {"flight_search-1": ["AF 1"]}
    assert [outcome.status for outcome in report.outcomes.values()] == ["succeeded", "timed_out", "timed_out"]
    assert [outcome.attempts for outcome in report.outcomes.values()] == [1, 1, 1]
    assert list(report.failures) == ["hotel_search-1", "activity_search-1"]
    assert report.message.startswith("Completed flight search, but hotel search timed out, and so did activity search")


@virtual
async def test_4_2_response_in_the_documents_words() -> None:
    """The document's response names one tool that timed out; so does a turn with just one."""
    rt = Runtime()
    rt.add(Scripted(Takes(50, ["AF 1"])), id="flight_search", timeout="10m")
    rt.add(Scripted(Takes(LONG)), id="hotel_search", timeout="10m")
    async with rt.turn() as turn:  # 300s is the default
        turn.call("flight_search")
        turn.call("hotel_search")
    assert turn.report.message.rstrip(".") == "Completed flight search, but hotel search timed out"


@virtual
async def test_4_3_timeout_treated_as_transient_error() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(LONG)), id="flight_search", timeout="30s", retry=ONCE)
    fault = (await rt.call("flight_search")).fault
    assert fault is not None
    assert fault.classification == "transient"
    assert fault.retryable
    assert fault.reason == "Timeout is temporary"
    assert fault.code == "DEADLINE_EXCEEDED"
    assert rt.health("flight_search").failure_count == 1


@virtual
async def test_4_4_timeouts_recorded_in_turn_trace() -> None:
    printed = {"event_type": "ToolTimeout", "tool_id": "flight_search", "timeout_ms": 30000}
    rt = Runtime()
    rt.add(Scripted(Takes(LONG)), id="flight_search", timeout="30s", retry=ONCE)
    async with rt.turn() as turn:
        turn.call("flight_search")
    (record,) = records(turn.report, "ToolTimeout")
    assert printed.items() <= record.items()
    assert re.fullmatch(r"2025-11-05T10:31:15(\.000)?Z", record["timestamp"])  # virtual time begins at 10:30:45
    assert (record["turn_id"], record["call_id"]) == (turn.id, "flight_search-1")
