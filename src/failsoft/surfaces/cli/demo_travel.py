"""The demo's turn: a weekend in Paris, planned with tools that fail in six different ways.

Every failure is scripted, so each run tells the same story. The tools only sleep, raise and return: nothing is
installed, requested or paid for.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from failsoft.core.model.options import BreakerOptions, RetryOptions
from failsoft.runtime.runtime import Runtime
from failsoft.runtime.turn.turn import Turn

SECONDS = 4.0
TIMEOUT = "4s"

STORY = (
    ("flights", "a 503, then an answer", "tried again"),
    ("hotels", "keep timing out", "cut off; the next call is refused"),
    ("rates", "the service is down", "another tool serves instead"),
    ("trains", "the key has expired", "only what needs them is skipped"),
    ("table", "the booking's answer is lost", "not repeated: it may be booked"),
    ("activities", "very slow", "abandoned at the deadline"),
)


class HttpError(Exception):
    """An error response of a service."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(f"{status_code} {text}")
        self.status_code = status_code


def make_runtime() -> Runtime:
    """Create a runtime with the demo's tools. Its random source is seeded, so that delays are the same every time."""
    rt = Runtime(random=random.Random(4))
    answers = iter([HttpError(503, "Service Unavailable"), None])  # the second search succeeds

    @rt.tool(read_only=True, retry=RetryOptions(initial_delay="300ms", max_attempts=3))
    async def flight_search(city: str) -> list[str]:
        await asyncio.sleep(0.5)
        error = next(answers)
        if error is not None:
            raise error
        await asyncio.sleep(0.2)
        return [f"AF 1234 to {city}", f"LH 2236 to {city}"]

    @rt.tool(
        read_only=True,
        timeout="400ms",
        retry=RetryOptions(initial_delay="150ms", max_attempts=5),
        breaker=BreakerOptions(failure_threshold=3),
    )
    async def hotel_search(city: str) -> list[str]:  # noqa: ARG001 - times out before it uses it
        await asyncio.sleep(60)
        return []

    @rt.tool(label="exchange rates", read_only=True, retry=RetryOptions(max_attempts=1), fallbacks=["ecb_rates"])
    async def bank_rates(currency: str) -> float:  # noqa: ARG001
        await asyncio.sleep(0.4)
        raise HttpError(502, "Bad Gateway")

    @rt.tool(read_only=True)
    async def ecb_rates(currency: str) -> float:  # noqa: ARG001
        await asyncio.sleep(0.5)
        return 1.08

    @rt.tool(read_only=True)
    async def train_search(city: str) -> list[str]:  # noqa: ARG001
        await asyncio.sleep(0.7)
        raise HttpError(401, "Unauthorized: the API key has expired")

    @rt.tool(label="price comparison", read_only=True)
    async def compare_prices(flights: list[str], trains: list[str]) -> list[str]:
        return sorted([*flights, *trains])

    @rt.tool(label="itinerary", read_only=True)
    async def write_itinerary(prices: list[str]) -> str:
        return ", ".join(prices)

    @rt.tool(label="table booking", idempotent=False, timeout="800ms")
    async def book_table(guests: int) -> str:
        await asyncio.sleep(60)
        return f"table for {guests}"

    @rt.tool(read_only=True)
    async def activity_search(flights: list[str]) -> list[str]:  # noqa: ARG001
        await asyncio.sleep(60)
        return []

    return rt


def submit(turn: Turn, calls: dict[str, Any]) -> None:
    """Submit the calls that an agent would make at once."""
    flights = calls["flights"] = turn.call("flight_search", {"city": "Paris"}, id="flights")
    calls["hotels"] = turn.call("hotel_search", {"city": "Paris"}, id="hotels")
    calls["rates"] = turn.call("bank_rates", {"currency": "USD"}, id="rates")
    trains = calls["trains"] = turn.call("train_search", {"city": "Paris"}, id="trains")
    prices = calls["prices"] = turn.call("compare_prices", {"flights": flights, "trains": trains}, id="prices")
    calls["itinerary"] = turn.call("write_itinerary", {"prices": prices}, id="itinerary")
    calls["table"] = turn.call("book_table", {"guests": 2}, id="table", depends_on=[flights])
    calls["activities"] = turn.call("activity_search", {"flights": flights}, id="activities")


async def continue_turn(turn: Turn, calls: dict[str, Any]) -> None:
    """Ask for hotels in another town after the first search failed, and meet the open circuit."""
    await calls["hotels"]
    calls["hotels again"] = turn.call("hotel_search", {"city": "Versailles"}, id="hotels again")
