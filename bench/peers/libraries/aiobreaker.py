"""aiobreaker: `CircuitBreaker(fail_max, timeout_duration)` as a decorator."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bench.peers.library import Fn, Library, Option


class Aiobreaker(Library):
    name = "aiobreaker"
    home = "https://github.com/arlyon/aiobreaker"
    decorates = "breaker"

    def breaker(self, tool: Fn, failures: int, window: float, **more: Any) -> Fn:
        from aiobreaker import CircuitBreaker

        return CircuitBreaker(fail_max=failures, timeout_duration=timedelta(seconds=window), **more)(tool)

    breaker_sync = breaker

    def everything(self, tool: Fn) -> Fn:
        return self.breaker(tool, 5, 60)

    everything_sync = everything

    def decorator(self, tool: Any) -> Fn:
        return self.breaker(tool, 2, 60)

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # "Listeners": a CircuitBreakerListener
        from aiobreaker import CircuitBreakerListener

        class Listener(CircuitBreakerListener):
            def failure(self, breaker: Any, exception: Exception) -> None:
                hook(breaker, exception)

        return self.breaker(tool, 5, 60, listeners=[Listener()])

    def options(self) -> dict[str, Option]:
        return {
            "T9 breaker": Option(
                "`exclude=[TypeError]`",
                {
                    "breaker": lambda tool, failures, window: Aiobreaker().breaker(
                        tool, failures, window, exclude=[TypeError]
                    )
                },
            )
        }
