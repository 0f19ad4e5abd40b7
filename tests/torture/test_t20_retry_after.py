"""T20: ``Retry-After`` was lost, or jittered downward. Here it is kept, within bounds, and never shortened."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fakes import virtual

from failsoft import Runtime, classify
from failsoft.core.model.options import RetryOptions
from failsoft.core.resilience.backoff import LONGEST_HINT, delay
from failsoft.runtime.execution import clock as clocks
from failsoft.testing import HttpError

SEEDS = 200


class Response:
    def __init__(self, headers: dict[str, str]) -> None:
        self.status_code = 429
        self.headers = headers


class Limited(Exception):
    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("slow down")
        self.response = Response(headers)


class Telling(Exception):
    def __init__(self, when: float | str) -> None:
        super().__init__("slow down (429)")
        self.retry_after = when


SAID: dict[str, Exception] = {
    "header": Limited({"Retry-After": "7"}),
    "lower case": Limited({"retry-after": "7"}),
    "milliseconds": Limited({"retry-after-ms": "7000"}),
    "date": Limited({"Retry-After": "Wed, 05 Nov 2025 10:00:07 GMT", "Date": "Wed, 05 Nov 2025 10:00:00 GMT"}),
    "attribute": Telling(7.0),
    "text": RuntimeError("Rate limit exceeded (429). Please try again in 7s."),
    "cause": RuntimeError("no luck"),
}
SAID["cause"].__cause__ = Limited({"Retry-After": "7"})


@pytest.mark.parametrize("error", SAID.values(), ids=SAID.keys())
def test_t20_a_hint_is_found_wherever_it_stands(error: Exception) -> None:
    assert classify(error).retry_after == pytest.approx(7.0)


@pytest.mark.parametrize(
    "tell",
    [
        lambda until: Limited({"Retry-After": until.strftime("%a, %d %b %Y %H:%M:%S GMT")}),
        lambda until: Limited({"X-RateLimit-Reset": str(int(until.timestamp()))}),
        lambda until: Telling(f"{until:%Y-%m-%dT%H:%M:%SZ}"),
    ],
    ids=["date", "epoch", "attribute"],
)
@virtual
async def test_t20_a_point_in_time_is_waited_for(tell: Callable[[datetime], Exception]) -> None:
    clock, loop = clocks.current(), asyncio.get_running_loop()
    until = datetime.fromtimestamp(clock.wall() + 2, UTC)
    begun = []

    async def search() -> str:
        begun.append(loop.time())
        if len(begun) < 3:
            raise tell(until)
        return "found"

    rt = Runtime()
    rt.add(search, retry={"jitter_percent": 0, "max_total_time": "1m"})
    assert (await rt.call("search")).value == "found"
    assert begun[1] - begun[0] == pytest.approx(2.0)  # after that time no call waits again
    assert begun[2] - begun[1] == pytest.approx(0.2)


def test_t20_jitter_never_shortens_it() -> None:
    source = random.Random(20)
    for _ in range(10_000):
        options = RetryOptions(jitter_percent=source.uniform(0, 100), max_delay=source.choice(["1s", "5s", "1m"]))  # type: ignore[arg-type]
        hint = source.uniform(0.001, LONGEST_HINT)
        assert delay(options, source.randint(1, 2_000), jitter=source.random(), hint=hint) >= hint


def limited(hint: float) -> tuple[Callable[[], Awaitable[str]], list[float]]:
    """A tool that is rate-limited once, and the times of its calls."""
    asked: list[float] = []

    async def search() -> str:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) == 1:
            raise HttpError(429, retry_after=hint)
        return "flights"

    return search, asked


@virtual
async def test_t20_no_call_comes_back_too_soon() -> None:
    for seed in range(SEEDS):
        rt = Runtime(random=random.Random(seed))
        search, asked = limited(7)
        rt.add(search, retry={"max_total_time": "1m", "jitter_percent": 50, "max_delay": "1s"})
        outcome = await rt.call("search")
        assert (outcome.value, outcome.attempts) == ("flights", 2)
        assert 7 <= asked[1] - asked[0] <= 7 * 1.5


@pytest.mark.parametrize("hint", [LONGEST_HINT + 1, 86_400.0, 86_400.0 * 365])
@virtual
async def test_t20_hints_beyond_the_limit_are_not_waited_for(hint: float) -> None:
    rt = Runtime()
    search, asked = limited(hint)
    rt.add(search, retry={"max_total_time": "48h"})
    outcome: Any = await rt.call("search")
    assert (outcome.status, outcome.attempts, len(asked)) == ("failed", 1, 1)
    assert outcome.duration < 1
