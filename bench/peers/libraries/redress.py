"""redress: `Policy` and `AsyncPolicy` with `Retry` and `CircuitBreaker`, its "default entry point"."""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option


def _soon() -> Any:
    from redress.strategies import decorrelated_jitter

    return decorrelated_jitter(base_s=0.0001, max_s=0.0002)


def _retry(*, blocking: bool = False, **settings: Any) -> Any:
    from redress import AsyncRetry, Retry, default_classifier

    made = Retry if blocking else AsyncRetry
    return made(**{"classifier": default_classifier, "strategy": _soon(), **settings})


def _policy(tool: Fn, *, blocking: bool = False, failures: int | None = None, window: float = 60, **retry: Any) -> Fn:
    from redress import AsyncPolicy, CircuitBreaker, Policy

    breaker = failures and CircuitBreaker(failure_threshold=failures, window_s=60.0, recovery_timeout_s=window)
    made: Any = Policy if blocking else AsyncPolicy
    policy = made(retry=_retry(blocking=blocking, **retry) if retry else None, circuit_breaker=breaker or None)
    return lambda: policy.call(tool)


class Redress(Library):
    name = "redress"
    home = "https://aponysus.github.io/redress/"

    def retry(self, tool: Fn, attempts: int, **more: Any) -> Fn:
        return _policy(tool, max_attempts=attempts, **more)

    def retry_sync(self, tool: Fn, attempts: int) -> Fn:
        return _policy(tool, blocking=True, max_attempts=attempts)

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float, **more: Any) -> Fn:
        # the strategy that its documentation calls exponential
        from redress.strategies import equal_jitter

        strategy = more.pop("strategy", equal_jitter)(base_s=first, max_s=longest)
        return _policy(tool, max_attempts=attempts, strategy=strategy, **more)

    def breaker(self, tool: Fn, failures: int, window: float) -> Fn:
        return _policy(tool, failures=failures, window=window)

    def breaker_sync(self, tool: Fn, failures: int, window: float) -> Fn:
        return _policy(tool, blocking=True, failures=failures, window=window)

    def timeout(self, tool: Fn, seconds: float) -> Fn:
        return _policy(tool, max_attempts=1, attempt_timeout_s=seconds)

    def timeout_sync(self, tool: Fn, seconds: float) -> Fn:
        return _policy(tool, blocking=True, max_attempts=1, attempt_timeout_s=seconds)

    def retry_timeout(self, tool: Fn, attempts: int, seconds: float, **more: Any) -> Fn:
        return _policy(tool, max_attempts=attempts, attempt_timeout_s=seconds, **more)

    def everything(self, tool: Fn) -> Fn:
        return _policy(tool, failures=5, max_attempts=3, attempt_timeout_s=5.0)

    def everything_sync(self, tool: Fn) -> Fn:
        return _policy(tool, blocking=True, failures=5, max_attempts=3, attempt_timeout_s=5.0)

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # "Metrics & Observability": on_metric
        from redress import AsyncPolicy

        policy = AsyncPolicy(retry=_retry(max_attempts=3))
        return lambda: policy.call(tool, on_metric=hook)

    def decorator(self, tool: Any) -> Fn:
        return self.retry(tool, 3)

    def options(self) -> dict[str, Option]:
        from redress import Budget, ErrorClass, default_classifier
        from redress.extras import http_retry_after_classifier
        from redress.strategies import decorrelated_jitter, retry_after_or

        def careful(error: BaseException) -> ErrorClass:
            return ErrorClass.PERMANENT if isinstance(error, TimeoutError) else default_classifier(error)

        def hinted(base_s: float, max_s: float) -> Any:
            return retry_after_or(decorrelated_jitter(base_s=base_s, max_s=max_s))

        def backoff(**more: Any) -> Fn:
            return lambda tool, attempts, first, longest: Redress().backoff(tool, attempts, first, longest, **more)

        budget = Budget(max_retries=20, window_s=60.0)
        return {
            "T5": Option(
                "a `classifier` to which a timeout is permanent (then none is repeated)",
                {
                    "retry_timeout": lambda tool, attempts, seconds: Redress().retry_timeout(
                        tool, attempts, seconds, classifier=careful
                    )
                },
            ),
            "T9": Option(
                "`max_unknown_attempts=0`",
                {"retry": lambda tool, attempts: Redress().retry(tool, attempts, max_unknown_attempts=0)},
            ),
            "T18": Option(
                "`budget=Budget(max_retries=20, window_s=60)`",
                {"retry": lambda tool, attempts: Redress().retry(tool, attempts, budget=budget)},
            ),
            "T19": Option(
                "`decorrelated_jitter`, the strategy of its quick start",
                {"backoff": backoff(strategy=decorrelated_jitter)},
            ),
            "T20": Option(
                "`http_retry_after_classifier` and `retry_after_or(…)`",
                {"backoff": backoff(classifier=http_retry_after_classifier, strategy=hinted)},
            ),
        }
