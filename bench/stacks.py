"""The peers, each used as its documentation says: three retries without delay, breaker after five failures, 30 s.

Each function takes the tool and returns the guarded one. A missing library raises ImportError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

Fn = Callable[..., Any]
SECONDS = 30


# --- one purpose -------------------------------------------------------------------------------------------------------


def asyncio_timeout(tool: Fn) -> Fn:
    async def call(x: Any) -> Any:
        async with asyncio.timeout(SECONDS):
            return await tool(x)

    return call


def tenacity_retry(tool: Fn) -> Fn:
    import tenacity

    return tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none(), reraise=True)(tool)


def stamina_retry(tool: Fn) -> Fn:
    import stamina

    stamina.instrumentation.set_on_retry_hooks([])  # otherwise every retry is logged
    return stamina.retry(on=Exception, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)(tool)


def backoff_retry(tool: Fn) -> Fn:
    import backoff

    return backoff.on_exception(backoff.constant, Exception, max_tries=3, interval=0, jitter=None, logger=None)(tool)


def hyx_retry(tool: Fn) -> Fn:
    from hyx.retry import retry

    return retry(on=Exception, attempts=3, backoff=0.0)(tool)


def circuitbreaker(tool: Fn, recovery: int = 60) -> Fn:
    from circuitbreaker import CircuitBreaker

    return CircuitBreaker(failure_threshold=5, recovery_timeout=recovery, name=f"c{id(tool)}")(tool)


def aiobreaker(tool: Fn, recovery: int = 60) -> Fn:
    from aiobreaker import CircuitBreaker

    return CircuitBreaker(fail_max=5, timeout_duration=timedelta(seconds=recovery))(tool)


def purgatory(tool: Fn, recovery: int = 60) -> Fn:
    from purgatory import AsyncCircuitBreakerFactory

    return AsyncCircuitBreakerFactory(default_threshold=5, default_ttl=recovery)("c")(tool)


def purgatory_sync(tool: Fn, recovery: int = 60) -> Fn:
    from purgatory import SyncCircuitBreakerFactory

    return SyncCircuitBreakerFactory(default_threshold=5, default_ttl=recovery)("c")(tool)


def hyx_breaker(tool: Fn, recovery: int = 60) -> Fn:
    from hyx.circuitbreaker import consecutive_breaker

    return consecutive_breaker(failure_threshold=5, recovery_time_secs=recovery)(tool)


def pybreaker(tool: Fn, recovery: int = 60) -> Fn:
    from pybreaker import CircuitBreaker

    return CircuitBreaker(fail_max=5, reset_timeout=recovery)(tool)


def pybreaker_async(tool: Fn, recovery: int = 60) -> Fn:
    from pybreaker import CircuitBreaker

    breaker = CircuitBreaker(fail_max=5, reset_timeout=recovery)

    async def call(x: Any) -> Any:
        with breaker.calling():
            return await tool(x)

    return call


def pyresilience_breaker(tool: Fn, recovery: int = 60) -> Fn:
    from pyresilience import CircuitBreakerConfig, resilient

    return resilient(circuit_breaker=CircuitBreakerConfig(failure_threshold=5, recovery_timeout=recovery))(tool)


# --- retry, breaker and timeout together -------------------------------------------------------------------------------


def hyx_stack(tool: Fn) -> Fn:
    from hyx.timeout import timeout

    return hyx_retry(hyx_breaker(timeout(float(SECONDS))(tool)))


def pyresilience_stack(tool: Fn) -> Fn:
    from pyresilience import CircuitBreakerConfig, RetryConfig, TimeoutConfig, resilient

    return resilient(
        retry=RetryConfig(max_attempts=3, delay=0, jitter=False),
        timeout=TimeoutConfig(seconds=SECONDS),
        circuit_breaker=CircuitBreakerConfig(failure_threshold=5, recovery_timeout=60),
    )(tool)


def tenacity_stack(tool: Fn) -> Fn:
    return tenacity_retry(aiobreaker(asyncio_timeout(tool)))


def stamina_stack(tool: Fn) -> Fn:
    return stamina_retry(purgatory(asyncio_timeout(tool)))


def best_stack(tool: Fn) -> Fn:
    """The cheapest library of each kind."""
    return hyx_retry(circuitbreaker(asyncio_timeout(tool)))


STACKS: dict[str, Callable[[Fn], Fn]] = {
    "hyx": hyx_stack,
    "pyresilience": pyresilience_stack,
    "tenacity + aiobreaker + timeout": tenacity_stack,
    "stamina + purgatory + timeout": stamina_stack,
    "cheapest: hyx + circuitbreaker + timeout": best_stack,
}


# --- the same for blocking functions, without a timeout ----------------------------------------------------------------


def tenacity_sync_stack(tool: Fn) -> Fn:
    return tenacity_retry(pybreaker(tool))


def stamina_sync_stack(tool: Fn) -> Fn:
    return stamina_retry(purgatory_sync(tool))


def pyresilience_sync_stack(tool: Fn) -> Fn:
    from pyresilience import CircuitBreakerConfig, RetryConfig, resilient

    return resilient(
        retry=RetryConfig(max_attempts=3, delay=0, jitter=False),
        circuit_breaker=CircuitBreakerConfig(failure_threshold=5, recovery_timeout=60),
    )(tool)


def best_sync_stack(tool: Fn) -> Fn:
    return backoff_retry(circuitbreaker(tool))


SYNC_STACKS: dict[str, Callable[[Fn], Fn]] = {
    "pyresilience": pyresilience_sync_stack,
    "tenacity + pybreaker": tenacity_sync_stack,
    "stamina + purgatory": stamina_sync_stack,
    "cheapest: backoff + circuitbreaker": best_sync_stack,
}
