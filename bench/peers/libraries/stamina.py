"""stamina: `@stamina.retry(on=…, attempts=…)`. `on` has no default: its documentation asks for particular errors.

Retries are logged with `logging`, its default without structlog.
"""

from __future__ import annotations

from typing import Any

from bench.peers.library import Fn, Library, Option

NO_WAIT: Any = {"wait_initial": 0, "wait_max": 0, "wait_jitter": 0}


class Stamina(Library):
    name = "stamina"
    home = "https://stamina.hynek.me/"
    notes = {  # noqa: RUF012
        "T15 stream": "documented: generators are restarted from the beginning on each retry",
        "T17": "in the log record's extra field `stamina.caused_by`, which a plain formatter does not print",
    }

    def retry(self, tool: Fn, attempts: int, hook: Any = None) -> Fn:
        # "Instrumentation": set_on_retry_hooks
        import stamina

        stamina.instrumentation.set_on_retry_hooks([hook or stamina.instrumentation.LoggingOnRetryHook])
        return stamina.retry(on=ConnectionError, attempts=attempts, **NO_WAIT)(tool)

    retry_sync = retry

    def everything(self, tool: Fn) -> Fn:
        return self.retry(tool, 3)

    everything_sync = everything

    def decorator(self, tool: Any) -> Fn:
        return self.retry(tool, 3)

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float, on: Any = None) -> Fn:
        import stamina

        on = on or Exception  # the error of T20 is not a ConnectionError
        return stamina.retry(on=on, attempts=attempts, wait_initial=first, wait_max=longest, wait_jitter=0)(tool)

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        return self.retry(tool, 3, hook)

    def options(self) -> dict[str, Option]:
        def on(error: Exception) -> bool | float:
            response = getattr(error, "response", None)
            return float(response.headers["Retry-After"]) if response else True

        return {
            "T20": Option(
                "a backoff hook as `on`, which returns the header's seconds",
                {
                    "backoff": lambda tool, attempts, first, longest: Stamina().backoff(
                        tool, attempts, first, longest, on
                    )
                },
            )
        }
