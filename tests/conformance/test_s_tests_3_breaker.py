"""S-tests 3: circuit breaker."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import (
    AUTH,
    DOWN,
    INVALID,
    NOT_FOUND,
    ONCE,
    RATE_LIMIT,
    RESET,
    TIMEOUT,
    Scripted,
    Takes,
    phrases,
    records,
    virtual,
)

from failsoft import CircuitOpen, Runtime


async def opened(*after: object) -> tuple[Runtime, Scripted]:
    """A runtime whose flight_search has just been cut off; afterwards the tool plays the steps given."""
    rt = Runtime()
    search = Scripted(*[DOWN] * 5, *after)
    rt.add(search, id="flight_search", retry=ONCE)
    for _ in range(5):
        await rt.call("flight_search")
    assert rt.health("flight_search").state == "open"
    return rt, search


@virtual
async def test_3_1_circuit_opens_after_n_failures() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    guarded = rt.add(search, id="flight_search", retry=ONCE, breaker={"failure_threshold": 5})
    for failure in range(1, 6):
        assert rt.health("flight_search").state == "closed", f"before failure {failure}"
        await rt.call("flight_search")
        assert rt.health("flight_search").failure_count == failure
    assert rt.health("flight_search").state == "open"
    before = asyncio.get_running_loop().time()
    outcome = await rt.call("flight_search")
    assert asyncio.get_running_loop().time() == before
    assert (outcome.status, outcome.attempts, search.attempts) == ("failed", 0, 5)
    assert outcome.fault is not None
    assert outcome.fault.retry_after == pytest.approx(30)
    with pytest.raises(CircuitOpen):
        await guarded()
    assert search.attempts == 5
    assert phrases(rt).count("Circuit breaker opened for flight_search") == 1


@virtual
async def test_3_1_circuit_opens_within_the_attempts_of_one_call() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="flight_search", retry={"max_attempts": 10, "max_total_time": "1m"})
    outcome = await rt.call("flight_search")
    assert search.attempts == outcome.attempts == 5
    assert rt.health("flight_search").state == "open"


@virtual
async def test_3_2_circuit_half_opens_after_timeout() -> None:
    rt, search = await opened(Takes(1.0, "flights"))
    assert (await rt.call("flight_search")).attempts == 0
    await asyncio.sleep(15)
    assert rt.health("flight_search").state == "open"
    assert (await rt.call("flight_search")).attempts == 0
    await asyncio.sleep(14.9)
    assert rt.health("flight_search").state == "open"
    await asyncio.sleep(0.1)
    assert rt.health("flight_search").state == "half_open"  # by the clock alone: nobody has called
    assert search.attempts == 5
    probe = asyncio.create_task(rt.call("flight_search"))
    await asyncio.sleep(0.5)
    others = await asyncio.gather(*(rt.call("flight_search") for _ in range(20)))
    assert {other.attempts for other in others} == {0}
    assert search.attempts == 6
    assert (await probe).value == "flights"
    assert rt.health("flight_search").state == "closed"


@virtual
async def test_3_2_a_failed_probe_opens_the_circuit_anew() -> None:
    rt, search = await opened(DOWN)
    await asyncio.sleep(30)
    await rt.call("flight_search")
    assert search.attempts == 6
    assert rt.health("flight_search").state == "open"
    await asyncio.sleep(29.9)
    assert rt.health("flight_search").state == "open"
    await asyncio.sleep(0.1)
    assert rt.health("flight_search").state == "half_open"


@virtual
async def test_3_3_circuit_closes_after_success_in_half_open() -> None:
    rt, search = await opened("flights")
    await asyncio.sleep(30)
    assert rt.health("flight_search").state == "half_open"
    assert (await rt.call("flight_search")).value == "flights"
    assert rt.health("flight_search").state == "closed"
    assert rt.health("flight_search").failure_count == 0
    outcomes = await asyncio.gather(*(rt.call("flight_search") for _ in range(3)))
    assert [outcome.value for outcome in outcomes] == ["flights"] * 3
    assert search.attempts == 9
    assert "Circuit breaker closed for flight_search" in phrases(rt)


@virtual
async def test_3_4_permanent_errors_dont_increment_circuit_counter() -> None:
    rt = Runtime()
    search = Scripted(INVALID, AUTH, NOT_FOUND, INVALID, AUTH)
    rt.add(search, id="flight_search", breaker={"failure_threshold": 5})
    for _ in range(5):
        outcome = await rt.call("flight_search")
        assert outcome.fault is not None
        assert outcome.fault.classification == "permanent"
        assert rt.health("flight_search").state == "closed"
        assert rt.health("flight_search").failure_count == 0
    assert search.attempts == 5


@virtual
async def test_3_5_transient_errors_increment_circuit_counter() -> None:
    rt = Runtime()
    rt.add(Scripted(TIMEOUT, RATE_LIMIT, RESET, TIMEOUT, RATE_LIMIT), id="flight_search", retry=ONCE)
    counts = []
    for _ in range(5):
        outcome = await rt.call("flight_search")
        assert outcome.fault is not None
        assert outcome.fault.classification == "transient"
        counts.append(rt.health("flight_search").failure_count)
    assert counts == [1, 2, 3, 4, 5]
    assert rt.health("flight_search").state == "open"
    assert [record["circuit_breaker_state"] for record in records(rt, "ToolError")] == ["closed"] * 4 + ["open"]
