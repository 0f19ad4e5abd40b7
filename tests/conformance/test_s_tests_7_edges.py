"""S-tests 7: edge cases."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import DOWN, INVALID, RATE_LIMIT, TIMEOUT, Scripted, Takes, records, virtual

from failsoft import Runtime

LONG = 10_000.0
AT_ONCE = {"initial_delay": "0s"}  # the document's attempt 2 starts in the moment in which attempt 1 fails


@virtual
async def test_7_1_rapid_sequential_failures() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="flight_search")
    first = await rt.call("flight_search")
    assert first.attempts == search.attempts == 5
    assert search.delays == pytest.approx([0.1, 0.2, 0.4, 0.8], rel=0.1)
    refused = [await rt.call("flight_search") for _ in range(5)]
    assert [outcome.attempts for outcome in refused] == [0] * 5
    assert search.attempts == 5
    for outcome in refused:
        assert outcome.decision is not None
        assert outcome.decision.strategy == "fail_gracefully"
    assert rt.health("flight_search").state == "open"
    assert [record["decision"] for record in records(rt, "ToolError")][:4] == ["retry"] * 4


@virtual
async def test_7_2_mixed_transient_and_permanent_errors() -> None:
    rt = Runtime()
    search = Scripted(TIMEOUT, "flights", INVALID, RATE_LIMIT, "flights")
    rt.add(search, id="flight_search")
    first = await rt.call("flight_search")
    assert first.attempts == 2
    second = await rt.call("flight_search")
    assert (second.attempts, second.escalated) == (1, True)
    third = asyncio.create_task(rt.call("flight_search"))
    await asyncio.sleep(0.05)  # error 3 has happened, its retry is still to come
    assert rt.health("flight_search").failure_count == 1
    assert (await third).attempts == 2
    assert [record["decision"] for record in records(rt, "ToolError")] == ["retry", "escalate", "retry"]


@virtual
async def test_7_3_timeout_during_retry() -> None:
    rt = Runtime()
    search = Scripted(Takes(25, TIMEOUT), Takes(LONG), Takes(LONG))
    rt.add(search, id="flight_search", timeout="30s", retry={**AT_ONCE, "max_total_time": "60s"})
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn(timeout="60s") as turn:
        turn.call("flight_search", id="flights")
        await asyncio.sleep(56)
    assert [at - began for at in search.started] == pytest.approx([0, 25, 55])
    assert search.ended[1] - began == pytest.approx(55)
    second = records(turn.report, "ToolError")[1]
    assert (second["error"], second["classification"]) == ("Tool timeout after 30s", "transient")
    assert second["decision"] == "retry"
    assert loop.time() - began == pytest.approx(60)  # the turn's own timeout was active all the time
    assert turn.report.outcomes["flights"].status == "timed_out"


@virtual
async def test_7_3_with_the_default_time_for_retries_the_second_one_is_not_available() -> None:
    rt = Runtime()
    search = Scripted(Takes(25, TIMEOUT), Takes(LONG), Takes(LONG))
    rt.add(search, id="flight_search", timeout="30s", retry=AT_ONCE)
    async with rt.turn(timeout="60s") as turn:
        turn.call("flight_search", id="flights")
    outcome = turn.report.outcomes["flights"]
    assert (outcome.status, outcome.attempts, outcome.duration) == ("failed", 2, pytest.approx(55))
    assert outcome.fault is not None
    assert (outcome.fault.message, outcome.fault.classification) == ("Tool timeout after 30s", "transient")
    assert not turn.report.timed_out


@pytest.mark.parametrize(
    ("tool_timeout", "starts"),
    [
        pytest.param("40s", [0, 25], id="attempt 2 in flight"),
        pytest.param("30s", [0, 25, 55], id="as printed, attempt 3 in flight"),
    ],
)
@pytest.mark.parametrize("on_timeout", ["leave", "cancel"])
@virtual
async def test_7_4_per_turn_timeout_during_retry(tool_timeout: str, starts: list[int], on_timeout: str) -> None:
    """As printed attempt 2 would end at 55 s; R22 gives the two forms in which an attempt is in flight at 60 s."""
    rt = Runtime()
    search = Scripted(Takes(25, TIMEOUT), Takes(LONG))
    rt.add(search, id="flight_search", timeout=tool_timeout, retry={**AT_ONCE, "max_total_time": "60s"})
    rt.add(Scripted(Takes(10, "hotels")), id="hotel_search")
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn(timeout="60s", on_timeout=on_timeout) as turn:
        turn.call("flight_search", id="flights")
        turn.call("hotel_search", id="hotels")
    assert loop.time() - began == pytest.approx(60)
    flights = turn.report.outcomes["flights"]
    assert (flights.status, flights.attempts) == ("timed_out", len(starts))
    assert turn.report.results == {"hotels": "hotels"}
    await asyncio.sleep(300)
    assert [at - began for at in search.started] == pytest.approx(starts)  # not retried
    stopped = 60 if on_timeout == "cancel" else starts[-1] + int(tool_timeout[:-1])
    assert search.ended[-1] - began == pytest.approx(stopped)
