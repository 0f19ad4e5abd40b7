"""S3: two failing attempts, then a good one, without delay. Time per attempt; ratio to a loop written by hand.

failsoft runs with ``budget=False``: two retries for every success exceed any retry budget, so the budget would end the
retries, as it should. Everything else is on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bench import stacks
from bench.harness import Peer, Plan, Table, add_instructions, compare


class ToolError(Exception):
    pass


def flaky() -> Callable[..., Any]:
    attempts = 0

    async def tool(x: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts % 3:
            raise ToolError("transient")
        return x

    return tool


def by_hand(*, yields: bool = False) -> Callable[..., Any]:
    tool = flaky()

    async def call(x: Any) -> Any:
        for _ in range(2):
            try:
                return await tool(x)
            except ToolError:
                if yields:
                    await asyncio.sleep(0)
        return await tool(x)

    return call


def guarded() -> Callable[..., Any]:
    from failsoft import RetryOptions, Runtime

    return Runtime().tool(retry=RetryOptions(max_attempts=3, initial_delay="0s", budget=False))(flaky())


PEERS = [
    Peer("loop by hand", by_hand, counted=True),
    Peer("failsoft guarded", guarded, counted=True),
    Peer("loop by hand + sleep(0)", lambda: by_hand(yields=True), counted=True),
    Peer("only tenacity", lambda: stacks.tenacity_retry(flaky())),
    Peer("only stamina", lambda: stacks.stamina_retry(flaky())),
    Peer("only backoff", lambda: stacks.backoff_retry(flaky())),
    Peer("only hyx.retry", lambda: stacks.hyx_retry(flaky())),
    *(
        Peer(f"stack {name}", lambda make=make: make(flaky()), counted="cheapest" in name)
        for name, make in stacks.STACKS.items()
    ),
]


def run(plan: Plan) -> list[Table]:
    rows, skipped = compare(PEERS, plan, divide=3)
    if plan.instr:
        add_instructions(rows, __name__, PEERS, divide=3)
    title = "A failing attempt (two of three fail, no delay), × a loop by hand; per attempt"
    return [Table("S3", title, ["peer", "ns", "ratio", "best", "instr", "instr_ratio"], rows, skipped)]
