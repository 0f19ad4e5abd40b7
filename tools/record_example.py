"""Record the example that `failsoft why --trace example` reads: a turn of 40 seconds, in virtual time."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import failsoft
from failsoft import Runtime, TurnReport
from failsoft.testing import virtual_time

PLACE = Path(failsoft.__file__).parent / "surfaces" / "cli" / "example.jsonl"
HOURS = 3600.0


def make_runtime() -> Runtime:
    rt = Runtime(random=random.Random(40))
    hangs, busy = 60.0, ConnectionError("503 Service Unavailable: upstream is busy")
    nights = [step for _ in range(6) for step in (hangs, 3.0)]
    steps = iter([*nights, hangs, busy, 3.0])

    @rt.tool(
        read_only=True,
        timeout="15s",
        retry={"initial_delay": "2s", "max_delay": "10s", "jitter_percent": 0, "max_total_time": "60s"},
    )
    async def web_search(query: str) -> list[str]:
        step = next(steps)
        await asyncio.sleep(step if isinstance(step, float) else 2.1)
        if isinstance(step, Exception):
            raise step
        return [f"{query}: result {number}" for number in (1, 2, 3)]

    @rt.tool(read_only=True)
    async def weather(city: str) -> str:
        await asyncio.sleep(0.8)
        return f"rain in {city}"

    @rt.tool(read_only=True)
    async def summarise(pages: list[str]) -> str:
        await asyncio.sleep(6.0)
        return ", ".join(pages)

    return rt


async def play() -> TurnReport:
    rt = make_runtime()
    for _ in range(6):  # six bad evenings for the recovery memory
        await rt.call("web_search", {"query": "museums"})
        await asyncio.sleep(4 * HOURS)
    async with rt.turn(id="turn-40s", thread="chat-42") as turn:
        pages = turn.call("web_search", {"query": "museums in Paris"}, id="search")
        turn.call("weather", {"city": "Paris"}, id="weather")
        await pages
        await asyncio.sleep(8.0)  # the model reads and thinks
        turn.call("summarise", {"pages": pages}, id="summary")
    return turn.report


def record() -> str:
    with virtual_time() as time:
        report = time.run(play())
    return "".join(json.dumps(event.to_dict(), ensure_ascii=False) + "\n" for event in report.trace)


if __name__ == "__main__":
    PLACE.write_text(record(), encoding="utf-8")
