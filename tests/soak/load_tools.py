"""The tools of the real soak: those that run in processes of their own, which a worker imports from here, and the others."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from failsoft import Runtime
from failsoft.testing import HttpError

NEVER = {"failure_threshold": 1_000_000}  # a breaker that stays out of the way
ONCE = {"max_attempts": 1}
SHORT = {"max_attempts": 3, "initial_delay": "5ms"}

# -- in processes ------------------------------------------------------------------------------------------------------


def echo(number: int) -> int:
    return number


def fails_there(number: int) -> None:
    raise ConnectionResetError(f"connection {number} was reset")


def hangs_there(number: int) -> None:
    """Does not let itself be ended by a polite signal."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


def dies(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# -- here --------------------------------------------------------------------------------------------------------------


class Tools:
    """Tools that fail at random."""

    def __init__(self, draw: Callable[[], float], effects: bytearray) -> None:
        self._draw = draw
        self._effects = effects
        self.guarded: Any = None  # the guarded form of ``flaky``

    async def flaky(self, number: int) -> int:
        drawn = self._draw()
        if drawn < 0.5:
            await asyncio.sleep(drawn / 50)
        if drawn < 0.10:
            raise ConnectionResetError(f"connection {number} was reset")
        if drawn < 0.13:
            raise HttpError(503)
        if drawn < 0.14:
            raise ValueError(f"Invalid input {number}")
        if drawn < 0.145:
            raise KeyError("result")
        return number

    async def pay(self, number: int) -> int:
        drawn = self._draw()
        if drawn < 0.1:
            raise ConnectionRefusedError("Connection refused")
        await asyncio.sleep(0.001)
        self._effects[number] += 1
        if drawn < 0.3:
            raise ConnectionResetError("Connection reset by peer")
        return number

    async def slow(self, number: int) -> int:
        await asyncio.sleep(self._draw() / 10)
        return number

    async def stubborn(self, number: int) -> int:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
        return number

    async def nested(self, number: int) -> int:
        value: int = await self.guarded(number=number)
        return value

    def blocking(self, number: int) -> int:
        time.sleep(self._draw() / 200)
        if number % 10 == 0:
            raise ConnectionResetError("Connection reset by peer")
        return number

    def sleeper(self, number: int) -> int:
        time.sleep(0.3)
        return number

    def inline(self, number: int) -> int:
        return number


def register(rt: Runtime, tools: Tools) -> Callable[..., Any]:
    """Make all of them known; the guarded form of ``flaky``."""
    often: dict[str, Any] = {"read_only": True, "breaker": NEVER}
    tools.guarded = rt.add(tools.flaky, id="flaky", timeout="1s", retry=SHORT, fallbacks=["inline"], **often)
    rt.add(tools.flaky, id="shaky", read_only=True, retry=SHORT, breaker={"failure_threshold": 3, "timeout": "200ms"})
    rt.add(tools.inline, id="inline", timeout=None, read_only=True)
    rt.add(tools.pay, id="pay", idempotent=False, timeout="1s", breaker=NEVER)
    rt.add(tools.slow, id="slow", timeout="50ms", retry=ONCE, **often)
    rt.add(tools.stubborn, id="stubborn", timeout="20ms", retry=ONCE, **often)
    rt.add(tools.nested, id="nested", timeout="1s", **often)
    rt.add(tools.blocking, id="blocking", timeout="1s", retry=SHORT, **often)
    rt.add(tools.sleeper, id="sleeper", timeout="20ms", retry=ONCE, **often)
    rt.add(tools.slow, id="narrow", timeout="1s", concurrency=4, queue=4, retry=ONCE, **often)
    process: dict[str, Any] = {"isolation": "process", "breaker": NEVER, "retry": ONCE}
    for tool in (echo, fails_there, dies):
        rt.add(tool, id=tool.__name__, timeout="5s", **process)
    rt.add(hangs_there, id="hangs_there", timeout="100ms", **process)
    return tools.guarded  # type: ignore[no-any-return]  # whatever a tool is
