"""The scripted, counting tool of all cases."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from bench.peers.library import Fn, Library

VALUE = "flights"


def down() -> Exception:
    """Return the error of a service that is down: transient by every classification."""
    return ConnectionError("Service unavailable (503)")


class Step(NamedTuple):
    """One run of the tool: its duration and its result."""

    seconds: float = 0.0
    then: Any = VALUE


class Service:
    """Play ``script`` first, one step per run, then ``usual`` for ever."""

    def __init__(self, usual: Step | None = None) -> None:
        self.usual = usual or Step()
        self.script: list[Step] = []
        self.began: list[float] = []
        self.ended: list[float] = []

    @property
    def reached(self) -> int:
        return len(self.began)

    def fails(self, error: Exception | None = None, seconds: float = 0.0) -> None:
        self.usual = Step(seconds, error or down())

    def works(self, seconds: float = 0.0) -> None:
        self.usual = Step(seconds)

    def begin(self) -> Step:
        self.began.append(time.monotonic())
        return self.script.pop(0) if self.script else self.usual

    def end(self, step: Step) -> Any:
        self.ended.append(time.monotonic())
        if isinstance(step.then, BaseException):
            raise step.then
        return step.then

    def tool(self) -> Fn:
        async def search() -> Any:
            step = self.begin()
            if step.seconds:
                await asyncio.sleep(step.seconds)
            return self.end(step)

        return search

    def blocking(self) -> Fn:
        def search() -> Any:
            step = self.begin()
            if step.seconds:
                time.sleep(step.seconds)
            return self.end(step)

        return search

    def before_the_first_end(self) -> int:
        """Count the runs that began before any had ended."""
        first = min(self.ended, default=float("inf"))
        return sum(began <= first for began in self.began)


def guard(library: Library, part: str, service: Service, **settings: Any) -> Fn:
    """Wrap the tool with the part, as an async callable; a library for blocking code runs in threads."""
    if library.has(part):
        return getattr(library, part)(service.tool(), **settings)
    blocking = getattr(library, f"{part}_sync")(service.blocking(), **settings)
    pool = ThreadPoolExecutor(64)

    async def call() -> Any:
        return await asyncio.get_running_loop().run_in_executor(pool, blocking)

    return call


async def end_of(call: Awaitable[Any]) -> Any:
    """Return the value, or the exception raised instead."""
    try:
        return await call
    except Exception as error:
        return error


async def reaches(service: Service, guarded: Fn) -> bool:
    """True if a call reaches the tool."""
    before = service.reached
    await end_of(guarded())
    return service.reached > before


async def cancel_soon(call: Awaitable[Any], after: float = 0.02) -> None:
    """Cancel a call soon, like an impatient caller."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(after)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
