"""Several calls at once: T10, T21, T22, T28."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.peers.cases.case import Seen, case
from bench.peers.library import Library
from bench.peers.service import Service, Step, down

ABREAST = 8
EACH = 0.2


@case("T10", "independent calls run one after another", "batch|everything|everything_sync")
async def side_by_side(library: Library) -> Seen:
    first, second = await _abreast(library), await _abreast(library)
    took = {how: min(seconds, second[how]) for how, seconds in first.items()}  # the better one: busy machine
    words = f"{ABREAST} calls of {EACH} s: " + ", ".join(f"{how} {seconds:.1f} s" for how, seconds in took.items())
    return Seen(max(took.values()) > ABREAST * EACH * 0.75, words)


async def _abreast(library: Library) -> dict[str, float]:
    took: dict[str, float] = {}
    if library.has("batch"):
        service = Service(Step(EACH))
        search = service.tool()

        async def numbered(number: int) -> Any:
            return number, await search()

        began = time.monotonic()
        await library.batch(
            {"search": numbered}, [(f"id-{number}", "search", {"number": number}) for number in range(ABREAST)]
        )
        took["a batch"] = time.monotonic() - began
    elif library.has("everything"):
        guarded = library.everything(Service(Step(EACH)).tool())
        began = time.monotonic()
        await asyncio.gather(*(guarded() for _ in range(ABREAST)))
        took["tasks"] = time.monotonic() - began
    if library.has("everything_sync"):
        blocking = library.everything_sync(Service(Step(EACH)).blocking())
        began = time.monotonic()
        with ThreadPoolExecutor(ABREAST) as pool:
            list(pool.map(lambda _: blocking(), range(ABREAST)))
        took["threads"] = time.monotonic() - began
    return took


@case("T21", "one failure in a batch loses the finished siblings", "batch")
async def siblings(library: Library) -> Seen:
    async def works(number: int) -> int:
        await asyncio.sleep(0.05)
        return number

    async def broken() -> None:
        raise down()

    calls: list[tuple[str, str, dict[str, Any]]] = [
        (f"id-{number}", "works", {"number": number}) for number in range(5)
    ]
    calls.insert(2, ("id-broken", "broken", {}))
    try:
        ended = await library.batch({"works": works, "broken": broken}, calls)
    except Exception as error:
        return Seen(True, f"the whole batch ended with {type(error).__name__}")
    kept = sorted(value for _, value in ended if isinstance(value, int))
    return Seen(
        kept != [*range(5)] or len(ended) != 6, f"{len(kept)} of 5 siblings kept, {len(ended)} results for 6 calls"
    )


@case("T22", "a cycle in the plan is not refused", "plan")
async def cycles(library: Library) -> Seen:
    try:
        ran = await library.plan({"a": ["c"], "b": ["a"], "c": ["b"], "d": []})
    except Exception as error:
        return Seen(False, f"refused: {error}")
    return Seen(True, f"no error; calls that run: {', '.join(ran) or 'none'}")


@case("T22 unknown", "a dependency on an unknown id makes calls vanish", "plan")
async def unknown_ids(library: Library) -> Seen:
    try:
        ran = await library.plan({"a": [], "b": ["hotles"]})
    except Exception as error:
        return Seen(False, f"refused: {error}")
    lost = {"a", "b"} - {*ran}
    return Seen(bool(lost), f"no error; calls of which nothing is heard: {', '.join(sorted(lost)) or 'none'}")


@case("T28", "results do not say whose they are, or two equal calls become one", "batch")
async def ids_and_order(library: Library) -> Seen:
    ran: list[int] = []

    async def search(number: int) -> int:
        await asyncio.sleep(0.2 - number * 0.05)
        ran.append(number)
        return number

    numbers = [0, 1, 2, 2]
    calls: list[tuple[str, str, dict[str, Any]]] = [
        (f"id-{at}", "search", {"number": number}) for at, number in enumerate(numbers)
    ]
    wrong = []
    ended = await library.batch({"search": search}, calls)
    given = {id: value for id, value in ended if id is not None}
    if given != {f"id-{at}": number for at, number in enumerate(numbers)}:
        wrong.append(f"{len(given)} of {len(calls)} results carry the right id")
    if len(ran) != len(calls):
        wrong.append(f"{len(calls)} calls, two of them equal, ran {len(ran)} times")
    if library.has("batch_text"):
        ran.clear()
        await library.batch_text({"search": search}, calls)
        if len(ran) != len(calls):
            wrong.append(f"{len(calls)} calls in a text, two of them equal, ran {len(ran)} times")
    return Seen(bool(wrong), "; ".join(wrong) or "each result under its own id, every call was made")
