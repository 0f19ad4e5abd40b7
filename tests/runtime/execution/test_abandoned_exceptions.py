"""A tool that was abandoned may end with a ``BaseException``: nothing logs it with the secrets in it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time

import pytest

from failsoft import Runtime

SECRET = "sk-proj-" + "a1B2" * 10


class Odd(BaseException):
    """Not an ``Exception``."""


async def stubborn() -> None:
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
    raise Odd(f"token={SECRET}")


async def late() -> None:
    await asyncio.sleep(0.2)
    raise Odd(f"token={SECRET}")


def late_blocking() -> None:
    time.sleep(0.2)
    raise Odd(f"token={SECRET}")


@pytest.mark.parametrize("tool", [stubborn, late, late_blocking])
@pytest.mark.parametrize("way", ["timeout", "deadline", "cancel"])
def test_the_end_of_an_abandoned_tool_is_logged_without_secrets(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], tool: object, way: str
) -> None:
    rt = Runtime()
    rt.add(tool, id="odd", read_only=True, retry={"max_attempts": 1}, timeout="50ms" if way == "timeout" else "5s")  # type: ignore[call-overload]

    async def main() -> None:
        if way == "timeout":
            await rt.call("odd")
        elif way == "deadline":
            async with rt.turn(timeout="50ms") as turn:
                turn.call("odd")
        else:
            call = asyncio.create_task(rt.call("odd"))
            await asyncio.sleep(0.05)
            call.cancel()
            await asyncio.wait([call])
            assert call.cancelled() or call.exception()
        await asyncio.sleep(0.4)

    asyncio.run(main())
    gc.collect()
    said = capfd.readouterr()
    assert SECRET not in caplog.text + said.out + said.err
    assert "never retrieved" not in caplog.text
