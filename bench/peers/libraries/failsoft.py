"""failsoft, by the same rules as the others: `Runtime()` and its documented options."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.peers.library import Fn, Library, Option

OFF: Any = {"failure_threshold": 1_000_000}  # a breaker that never opens
ONCE: Any = {"max_attempts": 1}
SOON: Any = {"initial_delay": "1ms", "max_delay": "1ms"}


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"


class Failsoft(Library):
    name = "failsoft"
    home = "../README.md"

    def _guard(self, tool: Fn, **options: Any) -> Fn:
        from failsoft import Runtime

        return Runtime().add(tool, id="search", **options)

    def retry(self, tool: Fn, attempts: int) -> Fn:
        return self._guard(tool, retry={"max_attempts": attempts, **SOON}, breaker=OFF)

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float) -> Fn:
        retry: Any = {"max_attempts": attempts, "max_total_time": "1m", "budget": False}
        for name, value in (("initial_delay", first), ("max_delay", longest)):
            retry[name] = timedelta(seconds=value) if math.isfinite(value) else f"{value}s"
        return self._guard(tool, retry=retry, breaker=OFF)

    def breaker(self, tool: Fn, failures: int, window: float) -> Fn:
        breaker: Any = {"failure_threshold": failures, "timeout": _seconds(window)}
        return self._guard(tool, retry=ONCE, breaker=breaker)

    breaker_sync = breaker

    def timeout(self, tool: Fn, seconds: float) -> Fn:
        return self._guard(tool, timeout=_seconds(seconds), retry=ONCE, breaker=OFF)

    timeout_sync = timeout

    def retry_timeout(self, tool: Fn, attempts: int, seconds: float, **more: Any) -> Fn:
        retry: Any = {"max_attempts": attempts, **SOON}
        return self._guard(tool, timeout=_seconds(seconds), retry=retry, breaker=OFF, **more)

    def everything(self, tool: Fn) -> Fn:
        return self._guard(tool, timeout="5s", retry={"max_attempts": 3, **SOON}, breaker={"failure_threshold": 5})

    everything_sync = everything

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        from failsoft import Runtime

        rt = Runtime()
        rt.subscribe(hook)
        return rt.add(tool, id="search", retry={"max_attempts": 3, **SOON})

    def decorator(self, tool: Any) -> Fn:
        return self._guard(tool, retry={"max_attempts": 3, **SOON})

    def isolated(self, function: Fn, seconds: float) -> Fn:
        from failsoft import CallFailed, Runtime

        if not hasattr(self, "_shared"):
            self._shared = Runtime()
        rt, name = self._shared, f"{function.__name__} {seconds}"
        rt.add(function, id=name, timeout=_seconds(seconds), retry=ONCE, breaker=OFF, isolation="process")

        async def call() -> Any:
            outcome = await rt.call(name)
            if outcome.status != "succeeded":
                raise CallFailed(outcome)
            return outcome.value

        return call

    async def batch(
        self, tools: dict[str, Fn], calls: list[tuple[str, str, dict[str, Any]]]
    ) -> list[tuple[str | None, Any]]:
        from failsoft import Runtime

        rt = Runtime()
        for name, tool in tools.items():
            rt.add(tool, id=name, retry=ONCE)
        async with rt.turn() as turn:
            for id, tool_id, arguments in calls:
                turn.call(tool_id, arguments, id=id)
        return [
            (id, outcome.value if outcome.status == "succeeded" else RuntimeError(outcome.explanation.operator))
            for id, outcome in turn.report.outcomes.items()
        ]

    async def plan(self, needs: dict[str, list[str]]) -> list[str]:
        from failsoft import Runtime

        rt = Runtime()

        async def search() -> str:
            return "flights"

        rt.add(search)
        calls = [{"id": id, "tool": "search", "depends_on": other} for id, other in needs.items()]
        report = await rt.run_plan({"calls": calls})
        return [*report.outcomes]

    def acknowledge(self, folder: str) -> Fn:
        from failsoft import Runtime

        rt = Runtime(trace=f"{folder}/trace.jsonl")
        rt.add(lambda: "flights", id="search", timeout=None)

        async def record(number: int) -> None:
            await rt.call("search", id=f"call-{number}")
            await rt.flush()

        return record

    def kept(self, folder: Path) -> set[int]:
        import json

        lines = (folder / "trace.jsonl").read_text().split("\n")[:-1]
        return {int(json.loads(line)["call_id"].removeprefix("call-")) for line in lines}

    def options(self) -> dict[str, Option]:
        def once(tool: Fn, attempts: int, seconds: float) -> Fn:
            return Failsoft().retry_timeout(tool, attempts, seconds, idempotent=False)

        return {
            "T5": Option("`idempotent=False`", {"retry_timeout": once}),
            "T6 left": Option('`isolation="process"`', {"timeout_sync": None}),
        }
