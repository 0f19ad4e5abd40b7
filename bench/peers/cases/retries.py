"""Retries: T9, T18, T19, T20."""

from __future__ import annotations

import math
import time
from typing import Any

from bench.peers.cases.case import Seen, case
from bench.peers.library import Library
from bench.peers.service import Service, Step, down, end_of


@case("T9", "calls with bad arguments are repeated", "retry")
async def bad_calls(library: Library) -> Seen:
    service = Service(Step(0, TypeError("search() got an unexpected keyword argument 'place'")))
    await end_of(library.retry(service.tool(), attempts=4)())
    return Seen(service.reached > 1, f"attempts: {service.reached}")


CALLS = 1_000


@case("T18", "retries multiply the load on a service that is down", "retry", limit=60)
async def amplification(library: Library) -> Seen:
    service = Service(Step(0, down()))
    guarded = library.retry(service.tool(), attempts=3)
    for _ in range(CALLS):
        await end_of(guarded())
    ratio = service.reached / CALLS
    return Seen(ratio > 1.1, f"{CALLS:,} calls made {service.reached:,} attempts: {ratio:.2f} times")


ATTEMPTS = 1_100


@case("T19", "the backoff overflows after a thousand attempts", "backoff", limit=60)
async def overflow(library: Library) -> Seen:
    service = Service(Step(0, down()))
    ended = await end_of(library.backoff(service.tool(), attempts=ATTEMPTS, first=1e-6, longest=1e-5)())
    broken = service.reached < ATTEMPTS
    how = f", then {type(ended).__name__}: {ended}" if broken else ""
    return Seen(broken, f"{service.reached:,} of {ATTEMPTS:,} attempts{how}")


@case("T19 nonsense", "a delay that is no time is taken: NaN, infinity, -1", "backoff")
async def nonsense(library: Library) -> Seen:
    taken = []
    for name, value in {"NaN": math.nan, "infinity": math.inf, "-1": -1.0}.items():
        try:
            library.backoff(Service().tool(), attempts=2, first=value, longest=1.0)
        except Exception:
            continue
        taken.append(name)
    return Seen(bool(taken), f"taken without a word: {', '.join(taken)}" if taken else "refused, all of them")


class _Response:
    status_code = 429
    headers = {"Retry-After": "1"}  # noqa: RUF012 - as on a response


class TooMany(Exception):
    """HTTP 429 as clients raise it."""

    status = status_code = 429
    response: Any = _Response()


@case("T20", "Retry-After is not waited for", "backoff")
async def retry_after(library: Library) -> Seen:
    service = Service()
    service.script = [Step(0, TooMany("429 Too Many Requests"))]
    began = time.monotonic()
    await end_of(library.backoff(service.tool(), attempts=2, first=0.01, longest=5.0)())
    if service.reached < 2:
        return Seen(True, "the call was given up")
    waited = service.began[1] - began
    return Seen(waited < 0.99, f"asked for 1 s, waited {waited:.2f} s")
