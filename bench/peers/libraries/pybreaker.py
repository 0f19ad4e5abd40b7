"""pybreaker: `CircuitBreaker(fail_max, reset_timeout)` as a decorator.

It supports blocking code and Tornado, not asyncio.
"""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option


class Pybreaker(Library):
    name = "pybreaker"
    home = "https://github.com/danielfm/pybreaker"

    def breaker_sync(self, tool: Fn, failures: int, window: float, **more: Any) -> Fn:
        from pybreaker import CircuitBreaker

        return CircuitBreaker(fail_max=failures, reset_timeout=window, **more)(tool)

    def everything_sync(self, tool: Fn) -> Fn:
        return self.breaker_sync(tool, 5, 60)

    def hooked_sync(self, tool: Fn, hook: Fn) -> Fn:
        # "Event Listening": a CircuitBreakerListener
        from pybreaker import CircuitBreakerListener

        class Listener(CircuitBreakerListener):
            def failure(self, cb: Any, exc: BaseException) -> None:
                hook(cb, exc)

        return self.breaker_sync(tool, 5, 60, listeners=[Listener()])

    def options(self) -> dict[str, Option]:
        from pybreaker import CircuitBreaker

        def block(tool: Fn) -> Fn:
            breaker = CircuitBreaker(fail_max=5, reset_timeout=60)

            def call() -> Any:
                with breaker.calling():
                    return tool()

            return call

        # in this form all threads get in when the circuit is half open; T1 tests the decorator
        calling = Option(
            "`with breaker.calling()` instead of the decorator (and then T1 is seen)", {"everything_sync": block}
        )
        return {
            "T10": calling,
            "T24": calling,
            "T9 breaker": Option(
                "`exclude=[TypeError]`",
                {
                    "breaker_sync": lambda tool, failures, window: Pybreaker().breaker_sync(
                        tool, failures, window, exclude=[TypeError]
                    )
                },
            ),
            "T14": Option(
                "`exclude=[KeyboardInterrupt, SystemExit, GeneratorExit]`",
                {
                    "breaker_sync": lambda tool, failures, window: Pybreaker().breaker_sync(
                        tool, failures, window, exclude=[KeyboardInterrupt, SystemExit, GeneratorExit]
                    )
                },
            ),
        }
