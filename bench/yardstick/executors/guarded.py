"""Executors that use failsoft: without declarations, with them, and with ``verify``. Options are the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.yardstick.benchmarks.base import GoldCall
from bench.yardstick.readback import RULES
from bench.yardstick.readback.rule import read_answer
from bench.yardstick.replay import Report, Session
from failsoft import Outcome, Runtime, Verified
from failsoft.adapters.plain import run_tool_calls


class Undeclared:
    """``rt.call``; failsoft knows names and descriptions of the tools only."""

    name = "failsoft, nothing declared, rt.call"

    def options(self, session: Session, tool: str) -> dict[str, Any]:  # noqa: ARG002 - others look
        return {}

    async def make(self, runtime: Runtime, call: GoldCall) -> tuple[Report, Any]:
        return read_outcome(await runtime.call(call.tool, call.arguments))

    async def run(self, session: Session) -> None:
        async with Runtime() as runtime:
            for tool, function in session.functions.items():
                runtime.add(function, **self.options(session, tool))
            for call in session.calls:
                session.begin(call)
                session.end(*await self.make(runtime, call))


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


class VerifiedByOracle(Declared):
    """Declared, and ``verify`` asks the injector: an upper bound."""

    name = "failsoft, declared, verify: oracle"

    def options(self, session: Session, tool: str) -> dict[str, Any]:
        options = super().options(session, tool)

        def ask(*_: Any) -> Verified:
            performed = session.answers[-1].performed
            return Verified.happened(performed[-1]) if performed else Verified.none()

        return options if tool not in session.writes else {**options, "verify": ask}


class VerifiedByReadBack(Declared):
    """Declared, and ``verify`` reads back with the benchmark's own read tools, where these show the effect."""

    name = "failsoft, declared, verify: read-back"

    def options(self, session: Session, tool: str) -> dict[str, Any]:
        options, rule = super().options(session, tool), RULES.get(tool)

        async def look(read: str, **arguments: Any) -> Any:
            return read_answer(await reads.run(read, arguments))

        async def ask(arguments: Mapping[str, Any], *_: Any) -> Verified:
            happened = None if rule is None else await rule(look, arguments)
            if happened is None:
                return Verified.unknown("the reads do not show it")
            return Verified.happened() if happened else Verified.none()

        if rule is None or tool not in session.writes:
            return options
        reads = Reads(session)
        return {**options, "verify": ask}


class Reads:
    """Reads of the benchmark that are not gold calls. They meet faults, and are repeated like other reads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._runtime = Runtime()

    async def run(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        read = self._session.look(tool, arguments)
        self._runtime.add(read, id=tool, replace=True, read_only=True)
        return (await self._runtime.call(tool)).unwrap()


def read_outcome(outcome: Outcome[Any]) -> tuple[Report, Any]:
    if outcome.status == "succeeded":
        return "succeeded", outcome.value
    unknown = outcome.fault is not None and outcome.fault.effect == "unknown"
    return "unknown" if unknown else "failed", None
