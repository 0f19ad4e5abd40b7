"""One conversation that the tests of threads share: its key, a tool that is missing in it, how it is asked."""

from __future__ import annotations

from typing import Any

from failsoft import Outcome, Runtime

MISSING = RuntimeError("Invalid extension.gateway.execute.request")
THREAD = "chat-42"


def faulty(outcome: Outcome[Any]) -> tuple[str, str, int]:
    assert outcome.fault is not None
    return outcome.fault.category, outcome.fault.rule, outcome.attempts


async def ask(rt: Runtime, args: dict[str, Any] | None = None, *, tool: str = "hotels") -> Outcome[Any]:
    """One turn with one call, as a model makes them."""
    async with rt.turn(thread=THREAD) as turn:
        handle = turn.call(tool, args or {"city": "XYZ"})
    return await handle
