"""S9: blocking tools under a hard deadline.

- What a call costs, × ``asyncio.to_thread``; wall time, since work in other processes counts too.
- Three tools that do not stop by themselves, a deadline of 0.3 s: when is the caller answered, was the tool really
  stopped (its side effect never came), how long does the next call take?
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from bench import slow_tools
from bench.harness import NotInstalled, Plan, Table, fresh, fresh_rounds

DEADLINE = 0.3
TOOLS = ("spin", "sleep", "hog")

Invoke = Callable[[str, Any, float], Any]  # tool, argument, deadline


async def to_thread() -> Invoke:
    async def invoke(tool: str, arg: Any, limit: float) -> Any:
        return await asyncio.wait_for(asyncio.to_thread(getattr(slow_tools, tool), arg), limit)

    return invoke


def failsoft_in(isolation: Literal["thread", "process"]) -> Callable[[], Any]:
    async def make() -> Invoke:
        from failsoft import RetryOptions, Runtime

        rt = Runtime()
        rt.add(slow_tools.noop, isolation=isolation)
        for name in TOOLS:
            once = RetryOptions(max_attempts=1)
            rt.add(getattr(slow_tools, name), isolation=isolation, timeout=timedelta(seconds=DEADLINE), retry=once)

        async def invoke(tool: str, arg: Any, _: float) -> Any:
            return (await rt.call(tool, {"arg": arg})).unwrap()

        return invoke

    return make


async def pebble() -> Invoke:
    from pebble import ProcessPool

    pool = ProcessPool(max_workers=2)

    async def invoke(tool: str, arg: Any, limit: float) -> Any:
        return await asyncio.wrap_future(pool.schedule(getattr(slow_tools, tool), args=[arg], timeout=limit))

    return invoke


async def loky() -> Invoke:
    from loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=2, timeout=60)

    async def invoke(tool: str, arg: Any, limit: float) -> Any:
        return await asyncio.wait_for(asyncio.wrap_future(pool.submit(getattr(slow_tools, tool), arg)), limit)

    return invoke


async def process_pool() -> Invoke:
    from concurrent.futures import ProcessPoolExecutor

    pool = ProcessPoolExecutor(2)

    async def invoke(tool: str, arg: Any, limit: float) -> Any:
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(loop.run_in_executor(pool, getattr(slow_tools, tool), arg), limit)

    return invoke


async def anyio_process() -> Invoke:
    import anyio
    from anyio import to_process

    async def invoke(tool: str, arg: Any, limit: float) -> Any:
        with anyio.fail_after(limit):
            return await to_process.run_sync(getattr(slow_tools, tool), arg, cancellable=True)

    return invoke


MAKERS: dict[str, Callable[[], Any]] = {
    "asyncio.to_thread": to_thread,
    "failsoft isolation=process": failsoft_in("process"),
    "failsoft isolation=thread": failsoft_in("thread"),
    "pebble ProcessPool": pebble,
    "loky": loky,
    "ProcessPoolExecutor": process_pool,
    "anyio.to_process": anyio_process,
}


def run(plan: Plan) -> list[Table]:
    calls = 3 if plan.tiny else 200
    found, skipped = fresh_rounds(__name__, list(MAKERS), plan.fresh_rounds, "cost", str(calls))
    base = [one["us"] for one in found["asyncio.to_thread"]]
    rows = []
    for name, results in found.items():
        mine = [one["us"] for one in results]
        ratio = statistics.median(one / other for one, other in zip(mine, base, strict=True))
        rows.append({"peer": name, "us": statistics.median(mine), "ratio": ratio, "best": min(mine) / min(base)})
    cost = Table(
        "S9", "A blocking no-op, × asyncio.to_thread (wall time)", ["peer", "us", "ratio", "best"], rows, skipped
    )
    if plan.tiny:
        return [cost]
    stops = [stopped(name, tool) for name in found for tool in TOOLS]
    columns = ["peer", "tool", "late_ms", "stopped", "next_ms"]
    title = f"Tools that do not stop, a deadline of {DEADLINE * 1000:.0f} ms: answered how late, stopped, next call"
    return [cost, Table("S9 stop", title, columns, stops, {})]


def stopped(name: str, tool: str) -> dict[str, Any]:
    try:
        answer = fresh(__name__, name, "stop", tool)
    except (NotInstalled, RuntimeError) as error:
        answer = {"stopped": f"failed: {str(error)[:60]}"}
    return {"peer": name, "tool": tool, **answer}


# --- in a process of its own -------------------------------------------------------------------------------------------


async def cost(name: str, calls: int) -> dict[str, float]:
    invoke = await MAKERS[name]()
    for _ in range(5):
        await invoke("noop", 7, 30)
    spent = []
    for _ in range(calls):
        started = time.perf_counter()
        await invoke("noop", 7, 30)
        spent.append(time.perf_counter() - started)
    return {"us": statistics.median(spent) * 1e6}


async def stop(name: str, tool: str) -> dict[str, Any]:
    invoke = await MAKERS[name]()
    for _ in range(5):
        await invoke("noop", 7, 30)
    marker = Path(tempfile.mkdtemp(), "acted")
    began = time.perf_counter()
    with suppress(Exception):
        await invoke(tool, str(marker), DEADLINE)
    answered = time.perf_counter()
    await invoke("noop", 9, 20)
    next_done = time.perf_counter()
    await asyncio.sleep(slow_tools.HOLD + 1.5)  # a tool that held the GIL delayed this process, too
    return {
        "late_ms": (answered - began - DEADLINE) * 1000,
        "stopped": "no" if marker.exists() else "yes",  # noqa: ASYNC240 - nothing else runs now
        "next_ms": (next_done - answered) * 1000,
    }


def main() -> None:
    name, what, detail = sys.argv[1:]
    answer = asyncio.run(cost(name, int(detail)) if what == "cost" else stop(name, detail))
    print(json.dumps(answer), flush=True)
    os._exit(0)  # a hanging thread must not hold the result back


if __name__ == "__main__":
    main()
