"""interlock-cb: `CircuitBreaker`, `timeout`, `sync_timeout`, and `Pipeline` with retries by its tenacity extra.

It trips on a rate. "So many failures in a row" is a window of that many calls at a threshold of 100 %. Here one probe
decides instead of ten in sequence.
"""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option


def _breaker(failures: int, window: float, **more: Any) -> Any:
    from interlock import CircuitBreaker, Config

    config = Config(
        failure_rate_threshold=1.0,
        minimum_number_of_calls=failures,
        window_size=failures,
        wait_duration_in_open=window,
        permitted_calls_in_half_open=1,
    )
    return CircuitBreaker(name="search", config=config, **more)


class Interlock(Library):
    name = "interlock-cb"
    home = "https://bagowix.github.io/interlock/"

    def retry(self, tool: Fn, attempts: int, **more: Any) -> Fn:
        # "Resilience pipeline"
        import tenacity
        from interlock import Pipeline

        return Pipeline.builder().retry(attempts=attempts, wait=tenacity.wait_none(), **more).build()(tool)

    retry_sync = retry

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float, wait: Any = None) -> Fn:
        # its default is tenacity's wait_exponential_jitter
        import tenacity
        from interlock import Pipeline

        wait = wait or tenacity.wait_exponential_jitter(multiplier=first, max=longest, jitter=0)
        return Pipeline.builder().retry(attempts=attempts, wait=wait).build()(tool)

    def breaker(self, tool: Fn, failures: int, window: float, **more: Any) -> Fn:
        return _breaker(failures, window, **more)(tool)

    breaker_sync = breaker

    def timeout(self, tool: Fn, seconds: float) -> Fn:
        from interlock import Pipeline

        return Pipeline.builder().timeout(seconds).build()(tool)

    timeout_sync = timeout

    def timeout_block(self, seconds: float) -> Any:
        from interlock import timeout

        return timeout(seconds)

    def retry_timeout(self, tool: Fn, attempts: int, seconds: float, **more: Any) -> Fn:
        import tenacity
        from interlock import Pipeline

        wait = tenacity.wait_none()
        return Pipeline.builder().retry(attempts=attempts, wait=wait, **more).timeout(seconds).build()(tool)

    def everything(self, tool: Fn) -> Fn:
        # the order recommended by its documentation: retry, breaker, timeout
        import tenacity
        from interlock import Pipeline

        builder = Pipeline.builder().retry(attempts=3, wait=tenacity.wait_none())
        return builder.circuit_breaker(_breaker(5, 60)).timeout(5).build()(tool)

    everything_sync = everything

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # "Observability": a listener
        class Listener:
            def on_call(self, **told: Any) -> None:
                hook(told)

        return self.breaker(tool, 5, 60, listener=Listener())

    def decorator(self, tool: Any) -> Fn:
        return self.retry(tool, 3)

    def options(self) -> dict[str, Option]:
        import tenacity
        from interlock.integrations.tenacity import retry_unless_open

        class Transient:
            def is_failure(self, *, result: object, exception: Exception | None) -> bool:  # noqa: ARG002 - its signature
                return isinstance(exception, ConnectionError)

        def asked(error: BaseException) -> float:
            return float(error.response.headers["Retry-After"])

        def guarded(tool: Fn, attempts: int) -> Fn:
            from interlock import Pipeline

            builder = Pipeline.builder().retry(attempts=attempts, wait=tenacity.wait_none())
            return builder.circuit_breaker(_breaker(5, 60)).build()(tool)

        only = retry_unless_open(ConnectionError)
        return {
            "T5": Option(
                "`retry=retry_unless_open(ConnectionError)` (then no timeout is repeated)",
                {
                    "retry_timeout": lambda tool, attempts, seconds: Interlock().retry_timeout(
                        tool, attempts, seconds, retry=only
                    )
                },
            ),
            "T9": Option(
                "`retry=retry_unless_open(ConnectionError)`",
                {"retry": lambda tool, attempts: Interlock().retry(tool, attempts, retry=only)},
            ),
            "T9 breaker": Option(
                "a `classifier` that knows what is transient",
                {
                    "breaker": lambda tool, failures, window: Interlock().breaker(
                        tool, failures, window, classifier=Transient()
                    )
                },
            ),
            "T18": Option("its breaker within the retries, as its documentation recommends", {"retry": guarded}),
            "T20": Option(
                "tenacity's `wait_exception(…)` as `wait`",
                {
                    "backoff": lambda tool, attempts, first, longest: Interlock().backoff(
                        tool, attempts, first, longest, tenacity.wait_exception(asked)
                    )
                },
            ),
        }
