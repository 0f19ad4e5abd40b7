"""purgatory: `AsyncCircuitBreakerFactory(default_threshold, default_ttl)` and its blocking version, as decorators."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.peers.library import Fn, Library, Option


class Purgatory(Library):
    name = "purgatory"
    home = "https://mardiros.github.io/purgatory/"
    decorates = "breaker"

    def breaker(self, tool: Fn, failures: int, window: float, **more: Any) -> Fn:
        from purgatory import AsyncCircuitBreakerFactory

        return AsyncCircuitBreakerFactory(default_threshold=failures, default_ttl=window, **more)("search")(tool)

    def breaker_sync(self, tool: Fn, failures: int, window: float) -> Fn:
        from purgatory import SyncCircuitBreakerFactory

        return SyncCircuitBreakerFactory(default_threshold=failures, default_ttl=window)("search")(tool)

    def everything(self, tool: Fn) -> Fn:
        return self.breaker(tool, 5, 60)

    def everything_sync(self, tool: Fn) -> Fn:
        return self.breaker_sync(tool, 5, 60)

    def decorator(self, tool: Any) -> Fn:
        return self.breaker(tool, 2, 60)

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # "Monitoring": add_listener
        from purgatory import AsyncCircuitBreakerFactory

        factory = AsyncCircuitBreakerFactory(default_threshold=5, default_ttl=60)
        factory.add_listener(lambda name, kind, event: hook(name, event) if kind == "failed" else None)
        return factory("search")(tool)

    def options(self) -> dict[str, Option]:
        def without(*kinds: type[BaseException]) -> Option:
            names = ", ".join(kind.__name__ for kind in kinds)
            return Option(
                f"`exclude=[{names}]`",
                {
                    "breaker": lambda tool, failures, window: Purgatory().breaker(
                        tool, failures, window, exclude=[*kinds]
                    )
                },
            )

        return {
            "T2": without(asyncio.CancelledError),
            "T3": without(asyncio.CancelledError),
            "T9 breaker": without(TypeError),
            "T14": without(KeyboardInterrupt, SystemExit, GeneratorExit),
        }
