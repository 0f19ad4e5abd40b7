"""Shared helpers for tests of the runtime: virtual time around a test, and scripted tools."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, ParamSpec

from failsoft import Runtime, TurnReport
from failsoft.testing import virtual_time

P = ParamSpec("P")

TIMEOUT = TimeoutError("Connection timeout after 30s")  # S-tests 1.1
INVALID = ValueError("Invalid airport code: XYZ")  # S-tests 1.2
RATE_LIMIT = RuntimeError("Rate limit exceeded (429)")  # S-tests 1.3
AUTH = RuntimeError("Authentication failed (401)")  # S-tests 1.4
DOWN = RuntimeError("Service unavailable (503)")  # S-tests 1.5
RESET = ConnectionResetError("Connection reset by peer")
NOT_FOUND = RuntimeError("Resource not found (404)")

OFTEN = {"failure_threshold": 1_000_000}  # a breaker that stays out of the way
ONCE = {"max_attempts": 1}  # no retries


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in virtual time: hours pass in no time, and exactly."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with virtual_time() as time:
            time.run(test(*args, **kwargs))

    return run


def real(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in real time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Takes(NamedTuple):
    """A step that needs some time before it comes to its end."""

    seconds: float
    then: Any = None


class Scripted:
    """An async tool that plays one step per attempt, the last one for ever: raise an exception, or give a value."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.started: list[float] = []
        self.ended: list[float] = []
        self.arguments: list[dict[str, Any]] = []

    @property
    def attempts(self) -> int:
        return len(self.started)

    @property
    def delays(self) -> list[float]:
        """From the start of each attempt to the start of the next."""
        return [after - before for before, after in zip(self.started, self.started[1:], strict=False)]

    async def __call__(self, **arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        step = self.steps[min(self.attempts, len(self.steps) - 1)]
        self.started.append(loop.time())
        self.arguments.append(arguments)
        try:
            if isinstance(step, Takes):
                await asyncio.sleep(step.seconds)
                step = step.then
            if isinstance(step, BaseException):
                raise type(step)(*step.args)  # a new one each time, as a real tool would
            return step
        finally:
            self.ended.append(loop.time())


def records(source: Runtime | TurnReport, event_type: str | None = None) -> list[dict[str, Any]]:
    """The trace as flat records, all or of one type."""
    events: Iterable[Any] = source.events() if isinstance(source, Runtime) else source.trace
    flat = [event.to_dict() for event in events]
    return [record for record in flat if event_type in (None, record["event_type"])]


def phrases(source: Runtime | TurnReport) -> list[str]:
    """The trace's messages, in order."""
    return [record["message"] for record in records(source) if "message" in record]
