"""tenacity: the `retry` decorator with `stop` and `wait`, as in the examples of its documentation."""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option


class Tenacity(Library):
    name = "tenacity"
    home = "https://tenacity.readthedocs.io/"

    def retry(self, tool: Fn, attempts: int, **more: Any) -> Fn:
        # "Stopping": stop_after_attempt; "Error Handling": reraise=True. The default is to retry any Exception.
        import tenacity

        return tenacity.retry(
            stop=tenacity.stop_after_attempt(attempts), wait=tenacity.wait_none(), reraise=True, **more
        )(tool)

    retry_sync = retry

    def everything(self, tool: Fn) -> Fn:
        return self.retry(tool, 3)

    everything_sync = everything

    def decorator(self, tool: Any) -> Fn:
        return self.retry(tool, 3)

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float, **more: Any) -> Fn:
        # "Waiting before retrying": wait_exponential(multiplier, max)
        import tenacity

        wait = more.pop("wait", None) or tenacity.wait_exponential(multiplier=first, max=longest)
        return tenacity.retry(stop=tenacity.stop_after_attempt(attempts), wait=wait, reraise=True)(tool)

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # "Before and After Retry, and Logging": before_sleep
        return self.retry(tool, 3, before_sleep=hook)

    def options(self) -> dict[str, Option]:
        import tenacity

        def asked(error: BaseException) -> float:
            return float(error.response.headers["Retry-After"])

        only = tenacity.retry_if_exception_type(ConnectionError)
        return {
            "T9": Option(
                "`retry=retry_if_exception_type(ConnectionError)`",
                {"retry": lambda tool, attempts: Tenacity().retry(tool, attempts, retry=only)},
            ),
            "T20": Option(
                "`wait=wait_exception(…)` with a function that reads the header",
                {
                    "backoff": lambda tool, attempts, first, longest: Tenacity().backoff(
                        tool, attempts, first, longest, wait=tenacity.wait_exception(asked)
                    )
                },
            ),
        }
