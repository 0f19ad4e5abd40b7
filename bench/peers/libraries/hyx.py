"""hyx: `@retry`, `@consecutive_breaker`, `@timeout`, for asyncio only. A breaker takes one success to recover here."""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option


class Hyx(Library):
    name = "hyx"
    home = "https://hyx.readthedocs.io/"

    def retry(self, tool: Fn, attempts: int, on: Any = Exception) -> Fn:
        # `attempts` counts the repeats
        from hyx.retry import retry

        return retry(on=on, attempts=attempts - 1, backoff=0.0)(tool)

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float) -> Fn:
        # "Backoffs": expo
        from hyx.retry import retry
        from hyx.retry.backoffs import expo

        return retry(attempts=attempts - 1, backoff=expo(min_delay_secs=first, max_delay_secs=longest))(tool)

    def breaker(self, tool: Fn, failures: int, window: float, exceptions: Any = Exception) -> Fn:
        from hyx.circuitbreaker import consecutive_breaker

        return consecutive_breaker(
            exceptions=exceptions, failure_threshold=failures, recovery_time_secs=window, recovery_threshold=1
        )(tool)

    def timeout(self, tool: Fn, seconds: float) -> Fn:
        from hyx.timeout import timeout

        async def call() -> Any:
            # needs a running loop when it is made
            return await timeout(seconds)(tool)()

        return call

    def timeout_block(self, seconds: float) -> Any:
        from hyx.timeout import timeout

        return timeout(seconds)

    def retry_timeout(self, tool: Fn, attempts: int, seconds: float, on: Any = Exception) -> Fn:
        return self.retry(self.timeout(tool, seconds), attempts, on)

    def everything(self, tool: Fn) -> Fn:
        return self.retry(self.breaker(self.timeout(tool, 5), 5, 60), 3)

    def decorator(self, tool: Any) -> Fn:
        return self.retry(tool, 3)

    def options(self) -> dict[str, Option]:
        def retried(tool: Fn, attempts: int) -> Fn:
            return Hyx().retry(tool, attempts, on=ConnectionError)

        return {
            "T5": Option(
                "`retry(on=ConnectionError)` (then no timeout is repeated)",
                {
                    "retry_timeout": lambda tool, attempts, seconds: Hyx().retry_timeout(
                        tool, attempts, seconds, on=ConnectionError
                    )
                },
            ),
            "T9": Option("`retry(on=ConnectionError)`", {"retry": retried}),
            "T9 breaker": Option(
                "`exceptions=ConnectionError`",
                {"breaker": lambda tool, failures, window: Hyx().breaker(tool, failures, window, ConnectionError)},
            ),
            "T18": Option(
                "its breaker within the retries",
                {"retry": lambda tool, attempts: Hyx().retry(Hyx().breaker(tool, 5, 60), attempts, ConnectionError)},
            ),
        }
