"""S1: an async call that succeeds at once. Ratio to the bare await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from bench import stacks
from bench.harness import Peer, Plan, Table, add_instructions, compare


async def at_once(x: Any) -> Any:
    return x


async def typed(x: int) -> Any:
    return x


async def suspending(x: Any) -> Any:
    await asyncio.sleep(0)
    return x


def guarded(tool: Callable[..., Any]) -> Callable[..., Any]:
    from failsoft import Runtime

    return Runtime().tool(tool)


def by_name(tool: Callable[..., Any]) -> Callable[..., Any]:
    from failsoft import Runtime

    rt = Runtime()
    rt.add(tool, id="tool")

    return lambda x: rt.call("tool", {"x": x})  # returns the awaitable: no extra coroutine of the benchmark


SINGLE = {
    "asyncio.timeout": stacks.asyncio_timeout,
    "tenacity": stacks.tenacity_retry,
    "stamina": stacks.stamina_retry,
    "backoff": stacks.backoff_retry,
    "hyx.retry": stacks.hyx_retry,
    "circuitbreaker": stacks.circuitbreaker,
    "aiobreaker": stacks.aiobreaker,
    "purgatory": stacks.purgatory,
    "hyx.breaker": stacks.hyx_breaker,
    "pybreaker": stacks.pybreaker_async,
    "pyresilience breaker": stacks.pyresilience_breaker,
}


def peers(tool: Callable[..., Any]) -> list[Peer]:
    return [
        Peer("bare", lambda: tool, counted=True),
        Peer("failsoft guarded", partial(guarded, tool), counted=True),
        Peer("failsoft rt.call", partial(by_name, tool), counted=True),
        *(Peer(f"only {name}", partial(make, tool)) for name, make in SINGLE.items()),
        *(
            Peer(f"stack {name}", partial(make, tool), counted="cheapest" in name)
            for name, make in stacks.STACKS.items()
        ),
    ]


COUNTS = (500, 4600)  # four batches of events are drained in between
PEERS = peers(at_once)
PEERS.insert(3, Peer("failsoft rt.call, typed", partial(by_name, typed), counted=True))


def table(name: str, title: str, module: str, who: list[Peer], plan: Plan) -> Table:
    rows, skipped = compare(who, plan)
    if plan.instr:
        add_instructions(rows, module, who)
    return Table(name, title, ["peer", "ns", "ratio", "best", "instr", "instr_ratio"], rows, skipped)


def run(plan: Plan) -> list[Table]:
    return [table("S1", "An async call that succeeds at once, × the bare await", __name__, PEERS, plan)]
