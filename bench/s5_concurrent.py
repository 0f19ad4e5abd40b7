"""S5: ten thousand calls at once, 10 ms each: CPU time as a ratio to a bare gather, and memory a call."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import stacks
from bench.harness import Plan, Table, fresh_rounds, memory_kb
from bench.s1_async import guarded

CALLS = 10_000


async def tool(x: Any) -> Any:
    await asyncio.sleep(0.010)
    return x


MAKERS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "bare gather": lambda tool: tool,
    "failsoft guarded": guarded,
    "only asyncio.timeout": stacks.asyncio_timeout,
    **{f"stack {name}": make for name, make in stacks.STACKS.items()},
}


def run(plan: Plan) -> list[Table]:
    calls = 50 if plan.tiny else CALLS
    found, skipped = fresh_rounds(__name__, list(MAKERS), plan.fresh_rounds, str(calls))
    base = found["bare gather"]
    bare_bytes = statistics.median(one["bytes"] for one in base)
    rows = []
    for name, results in found.items():
        size = statistics.median(one["bytes"] for one in results)
        rows.append(
            {
                "peer": name,
                "cpu_ms": statistics.median(one["cpu_ms"] for one in results),
                "ratio": statistics.median(
                    mine["cpu_ms"] / bare["cpu_ms"] for mine, bare in zip(results, base, strict=True)
                ),
                "best": min(one["cpu_ms"] for one in results) / min(one["cpu_ms"] for one in base),
                "bytes": size,
                "more_bytes": size - bare_bytes,
            }
        )
    title = f"{calls:,} calls at once, 10 ms each, × a bare gather; bytes a call"
    return [Table("S5", title, ["peer", "cpu_ms", "ratio", "best", "bytes", "more_bytes"], rows, skipped)]


async def measure(name: str, calls: int) -> dict[str, float]:
    call = MAKERS[name](tool)
    await asyncio.gather(*(call(number) for number in range(200)))
    gc.collect()
    size, spent = memory_kb("VmHWM"), time.process_time()
    await asyncio.gather(*(call(number) for number in range(calls)))
    spent = time.process_time() - spent
    size = memory_kb("VmHWM") - size
    return {"cpu_ms": spent * 1000, "bytes": size * 1024 / calls}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], int(sys.argv[2])))))
