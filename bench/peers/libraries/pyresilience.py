"""pyresilience: `@resilient(retry=RetryConfig(…), timeout=TimeoutConfig(…), circuit_breaker=CircuitBreakerConfig(…))`."""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option


class Pyresilience(Library):
    name = "pyresilience"
    home = "https://pyresilience.readthedocs.io/"

    def retry(self, tool: Fn, attempts: int, budget: Any = None, breaker: Any = None, **more: Any) -> Fn:
        from pyresilience import RetryConfig, resilient

        retry = RetryConfig(max_attempts=attempts, delay=0, jitter=False, **more)
        return resilient(retry=retry, retry_budget=budget, circuit_breaker=breaker)(tool)

    retry_sync = retry

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float, **more: Any) -> Fn:
        from pyresilience import RetryConfig, resilient

        return resilient(
            retry=RetryConfig(max_attempts=attempts, delay=first, max_delay=longest, jitter=False, **more)
        )(tool)

    def breaker(self, tool: Fn, failures: int, window: float, **more: Any) -> Fn:
        from pyresilience import CircuitBreakerConfig, resilient

        config = CircuitBreakerConfig(failure_threshold=failures, recovery_timeout=window, success_threshold=1, **more)
        return resilient(circuit_breaker=config)(tool)

    breaker_sync = breaker

    def timeout(self, tool: Fn, seconds: float) -> Fn:
        from pyresilience import TimeoutConfig, resilient

        return resilient(timeout=TimeoutConfig(seconds=seconds))(tool)

    timeout_sync = timeout

    def retry_timeout(self, tool: Fn, attempts: int, seconds: float, **more: Any) -> Fn:
        from pyresilience import RetryConfig, TimeoutConfig, resilient

        retry = RetryConfig(max_attempts=attempts, delay=0, jitter=False, **more)
        return resilient(retry=retry, timeout=TimeoutConfig(seconds=seconds))(tool)

    def everything(self, tool: Fn, listeners: Any = None) -> Fn:
        # "Quick Start"
        from pyresilience import CircuitBreakerConfig, RetryConfig, TimeoutConfig, resilient

        return resilient(
            retry=RetryConfig(max_attempts=3, delay=0.001),
            timeout=TimeoutConfig(seconds=5),
            circuit_breaker=CircuitBreakerConfig(failure_threshold=5),
            listeners=listeners,
        )(tool)

    everything_sync = everything

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # "Observability": listeners
        return self.everything(tool, listeners=[hook])

    def decorator(self, tool: Any) -> Fn:
        return self.retry(tool, 3)

    def options(self) -> dict[str, Option]:
        from pyresilience import ResilienceTimeoutError, RetryBudgetConfig
        from pyresilience.contrib.http import retry_after_delay

        def retry(**more: Any) -> Fn:
            return lambda tool, attempts: Pyresilience().retry(tool, attempts, **more)

        return {
            "T5": Option(
                "`ignore_on=(ResilienceTimeoutError,)` (then no timeout is repeated)",
                {
                    "retry_timeout": lambda tool, attempts, seconds: Pyresilience().retry_timeout(
                        tool, attempts, seconds, ignore_on=(ResilienceTimeoutError,)
                    )
                },
            ),
            "T9": Option("`retry_on=(ConnectionError,)`", {"retry": retry(retry_on=(ConnectionError,))}),
            "T9 breaker": Option(
                "`ignore_on=(TypeError,)`",
                {
                    "breaker": lambda tool, failures, window: Pyresilience().breaker(
                        tool, failures, window, ignore_on=(TypeError,)
                    )
                },
            ),
            "T18": Option(
                "`retry_budget=RetryBudgetConfig(max_retries=20, refill_rate=1)`",
                {"retry": retry(budget=RetryBudgetConfig(max_retries=20, refill_rate=1))},
            ),
            "T20": Option(
                "`delay_func=retry_after_delay()`",
                {
                    "backoff": lambda tool, attempts, first, longest: Pyresilience().backoff(
                        tool, attempts, first, longest, delay_func=retry_after_delay()
                    )
                },
            ),
            "T6 left": Option("`pool_size=32`", {"timeout_sync": _wide}),
        }


def _wide(tool: Fn, seconds: float) -> Fn:
    from pyresilience import TimeoutConfig, resilient

    return resilient(timeout=TimeoutConfig(seconds=seconds, pool_size=32))(tool)
