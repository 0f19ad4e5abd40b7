"""S4: a call that is refused because the circuit is open. Ratio to raising and catching across an await.

Also: the memory that a million refusals take.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable
from typing import Any

from bench import stacks
from bench.harness import Peer, Plan, Table, add_instructions, compare, fresh, memory_kb

LONG = 600  # seconds for which circuits stay open
MANY = 1_000_000
COUNTS = (1024, 9216)  # whole batches; many, because another thread logs the failures before them at the same time


class Down(Exception):
    pass


async def tool(_: Any) -> Any:
    raise Down("connection refused")


async def tripped(call: Callable[..., Any]) -> Callable[..., Any]:
    """Open the circuit, and return a callable that catches refusals."""
    for _ in range(12):
        try:
            await call(1)
        except Exception as error:
            last = error
    assert not isinstance(last, Down), "the circuit did not open"
    refusal = type(last)

    async def caught(x: Any) -> Any:
        try:
            await call(x)
        except refusal:
            return None
        raise AssertionError("not refused")

    return caught


def raise_and_catch() -> Callable[..., Any]:
    class Open(Exception):
        pass

    is_open = True

    async def call(x: Any) -> Any:
        if is_open:
            raise Open("tool")
        return await tool(x)

    async def caught(x: Any) -> Any:
        try:
            await call(x)
        except Open:
            return None

    return caught


def guarded() -> Any:
    from failsoft import BreakerOptions, RetryOptions, Runtime

    add = Runtime().tool(retry=RetryOptions(max_attempts=1), breaker=BreakerOptions(timeout="10m"))
    return tripped(add(tool))


async def as_value() -> Callable[..., Any]:
    from failsoft import BreakerOptions, RetryOptions, Runtime

    rt = Runtime()
    rt.add(tool, id="tool", retry=RetryOptions(max_attempts=1), breaker=BreakerOptions(timeout="10m"))

    def call(x: Any) -> Any:
        return rt.call("tool", {"_": x})

    for _ in range(12):
        outcome = await call(1)
    assert outcome.attempts == 0, "the circuit did not open"
    return call


BREAKERS = {
    "circuitbreaker": stacks.circuitbreaker,
    "aiobreaker": stacks.aiobreaker,
    "purgatory": stacks.purgatory,
    "hyx.breaker": stacks.hyx_breaker,
    "pybreaker": stacks.pybreaker_async,
    "pyresilience breaker": stacks.pyresilience_breaker,
}

PEERS = [
    Peer("raise and catch", raise_and_catch, counted=True),
    Peer("failsoft guarded", guarded, counted=True),
    Peer("failsoft rt.call, a value", as_value, counted=True),
    *(
        Peer(f"only {name}", lambda make=make: tripped(make(tool, LONG)), counted=name == "circuitbreaker")
        for name, make in BREAKERS.items()
    ),
]


def run(plan: Plan) -> list[Table]:
    rows, skipped = compare(PEERS, plan)
    if plan.instr:
        add_instructions(rows, __name__, PEERS)
    title = "A call that is refused while the circuit is open, × raise and catch"
    time = Table("S4", title, ["peer", "ns", "ratio", "best", "instr", "instr_ratio"], rows, skipped)
    count = 2000 if plan.tiny else MANY
    growth = [{"peer": name, **fresh(__name__, name, str(count))} for name in GROWTH]
    title = f"What {count:,} refusals leave in memory"
    return [time, Table("S4 memory", title, ["peer", "growth_kb"], growth, {})]


# --- memory, in a process of its own -----------------------------------------------------------------------------------

GROWTH = {"failsoft guarded": guarded, "failsoft rt.call, a value": as_value}


async def growth(name: str, count: int) -> dict[str, int]:
    call = await GROWTH[name]()
    for _ in range(min(count, 50_000)):  # fill the ring buffers first
        await call(1)
    gc.collect()
    before = memory_kb("VmRSS")
    for _ in range(count):
        await call(1)
    gc.collect()
    return {"growth_kb": memory_kb("VmRSS") - before}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(growth(sys.argv[1], int(sys.argv[2])))))
