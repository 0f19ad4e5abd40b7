"""S-tests 2: retry policy. Delays are exact in virtual time; what varies is the jitter."""

from __future__ import annotations

from random import Random

import pytest
from tests.fakes import OFTEN, TIMEOUT, Scripted, Takes, records, virtual

from failsoft import Runtime

BACKOFF = [0.1, 0.2, 0.4, 0.8]


@virtual
async def test_2_1_exponential_backoff_delays_correct() -> None:
    rt = Runtime(random=Random(21))
    totals: list[float] = []
    search = Scripted(TIMEOUT)
    rt.add(search, id="flight_search", breaker=OFTEN)
    for run in range(20):
        search.started.clear()
        outcome = await rt.call("flight_search")
        assert search.attempts == outcome.attempts == 5, f"run {run}"
        for delay, nominal in zip(search.delays, BACKOFF, strict=True):
            assert delay == pytest.approx(nominal, rel=0.1)
        totals.append(outcome.duration)
    assert sum(1.35 <= total <= 1.65 for total in totals) >= 19


@virtual
async def test_2_2_jitter_applied_correctly() -> None:
    rt = Runtime(random=Random(22))
    search = Scripted(TIMEOUT)
    policy = {"initial_delay": "100ms", "multiplier": 1.0, "jitter_percent": 10, "max_attempts": 11}
    rt.add(search, id="flight_search", retry=policy, breaker=OFTEN)
    await rt.call("flight_search")
    assert len(search.delays) == 10
    assert all(0.09 <= delay <= 0.11 for delay in search.delays)
    assert len({round(delay, 6) for delay in search.delays}) >= 8
    assert sum(search.delays) / 10 == pytest.approx(0.1, abs=0.005)


@virtual
async def test_2_3_max_attempts_respected() -> None:
    rt = Runtime()
    search = Scripted(TIMEOUT)
    rt.add(search, id="flight_search", retry={"max_attempts": 5}, breaker=OFTEN)
    outcome = await rt.call("flight_search")
    assert search.attempts == outcome.attempts == 5
    assert outcome.status == "failed"
    assert outcome.fault is not None
    assert outcome.fault.message == "Connection timeout after 30s"
    assert [record["decision"] for record in records(rt, "ToolError")] == ["retry"] * 4 + ["escalate"]
    assert records(rt, "ToolError")[-1]["reason"] == "Transient error (max attempts reached (5))"


@virtual
async def test_2_4_max_total_time_respected() -> None:
    """The document counts the running time of the retries; waiting comes on top (R4)."""
    rt = Runtime()
    search = Scripted(Takes(0.6, TIMEOUT))
    rt.add(search, id="flight_search", retry={"max_total_time": "2s", "max_attempts": 5}, breaker=OFTEN)
    outcome = await rt.call("flight_search")
    assert search.attempts == outcome.attempts == 4
    retries = zip(search.started[1:], search.ended[1:], strict=True)
    assert sum(ended - started for started, ended in retries) == pytest.approx(1.8)
    last = records(rt, "ToolError")[-1]
    why = "max total retry time of 2s reached after 4 of 5 attempts"
    assert (last["decision"], last["reason"]) == ("escalate", f"Transient error ({why})")
    assert outcome.fault is not None
    assert outcome.fault.reason.endswith(why)


@virtual
async def test_2_4_holds_at_any_delay() -> None:
    for initial in (0, 1, 100):
        rt = Runtime()
        search = Scripted(Takes(0.6, TIMEOUT))
        rt.add(search, id="flight_search", retry={"initial_delay": f"{initial}ms"}, breaker=OFTEN)
        await rt.call("flight_search")
        assert search.attempts == 4, f"{initial} ms"


@virtual
async def test_2_5_tool_specific_overrides_work() -> None:
    said = {"retry_policy": {"initial_delay_ms": 50, "max_delay_ms": 2000, "max_attempts": 3}}
    rt = Runtime({"version": 1, "tools": {"custom_api": said}})
    custom, plain = Scripted(TIMEOUT), Scripted(TIMEOUT)
    rt.add(custom, id="custom_api")
    rt.add(plain, id="flight_search")
    outcome = await rt.call("custom_api")
    assert custom.attempts == outcome.attempts == 3
    assert custom.delays == pytest.approx([0.05, 0.1], rel=0.1)
    await rt.call("flight_search")
    assert plain.attempts == 5
    assert plain.delays == pytest.approx(BACKOFF, rel=0.1)
