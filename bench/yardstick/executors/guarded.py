"""Executors that use failsoft: without declarations, with them, and with ``verify``. Options are the defaults."""

from __future__ import annotations

from typing import Any

from bench.yardstick.benchmarks.base import GoldCall
from bench.yardstick.replay import Report, Session
from failsoft import Outcome, Runtime
from failsoft.adapters.plain import run_tool_calls


class Undeclared:
    """``rt.call``; failsoft knows names and descriptions of the tools only."""

    name = "failsoft, nothing declared, rt.call"

    def options(self, session: Session, tool: str) -> dict[str, Any]:  # noqa: ARG002 - others look
        return {}

    async def make(self, runtime: Runtime, call: GoldCall) -> tuple[Report, Any]:
        return read_outcome(await runtime.call(call.tool, call.arguments))

    async def run(self, session: Session) -> None:
        runtime = Runtime()
        for tool, function in session.functions.items():
            runtime.add(function, **self.options(session, tool))
        for call in session.calls:
            session.begin(call)
            session.end(*await self.make(runtime, call))
        await runtime.close()


class UndeclaredToolCalls(Undeclared):
    """``run_tool_calls``: the calls of a model. A tool of which nothing is known counts as a write."""

    name = "failsoft, nothing declared, run_tool_calls"

    async def make(self, runtime: Runtime, call: GoldCall) -> tuple[Report, Any]:
        asked = {"type": "tool_use", "id": call.id, "name": call.tool, "input": dict(call.arguments)}
        (message,) = await run_tool_calls(runtime, [asked])
        (answer,) = message["content"]
        return ("failed", None) if answer.get("is_error") else ("succeeded", answer["content"])


class Declared(Undeclared):
    """``rt.call``; every tool is declared ``read_only`` or ``idempotent=False``."""

    name = "failsoft, declared"

    def options(self, session: Session, tool: str) -> dict[str, Any]:
        return {"idempotent": False} if tool in session.writes else {"read_only": True}


def read_outcome(outcome: Outcome[Any]) -> tuple[Report, Any]:
    if outcome.status == "succeeded":
        return "succeeded", outcome.value
    unknown = outcome.fault is not None and outcome.fault.effect == "unknown"
    return "unknown" if unknown else "failed", None
