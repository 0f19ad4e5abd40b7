"""circuitbreaker: `@circuit(failure_threshold, recovery_timeout)`; its class is `CircuitBreaker`."""

from __future__ import annotations

from itertools import count
from typing import Any

from bench.peers.library import Fn, Library, Option

_names = count()


class Circuitbreaker(Library):
    name = "circuitbreaker"
    home = "https://github.com/fabfuel/circuitbreaker"
    decorates = "breaker"

    def breaker(self, tool: Fn, failures: int, window: float, **more: Any) -> Fn:
        from circuitbreaker import CircuitBreaker

        name = f"search {next(_names)}"
        return CircuitBreaker(failure_threshold=failures, recovery_timeout=window, name=name, **more)(tool)

    breaker_sync = breaker

    def everything(self, tool: Fn) -> Fn:
        return self.breaker(tool, 5, 60)

    everything_sync = everything

    def decorator(self, tool: Any) -> Fn:
        return self.breaker(tool, 2, 60)

    def options(self) -> dict[str, Option]:
        return {
            "T9 breaker": Option(
                "`expected_exception=ConnectionError`",
                {
                    "breaker": lambda tool, failures, window: Circuitbreaker().breaker(
                        tool, failures, window, expected_exception=ConnectionError
                    )
                },
            )
        }
