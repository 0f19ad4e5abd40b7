"""An abandoned tool whose task is cancelled from outside ends soon, so that the program can end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import pytest
from tests.fakes import ONCE, virtual

from failsoft import Runtime, ToolTimeout
from failsoft.runtime.execution.outliving import PATIENCE


async def swallow() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def wait_for_a_task() -> None:
    await asyncio.create_task(swallow())


async def wait_for_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(swallow())
        group.create_task(swallow())


async def left_by(tool: Callable[[], Awaitable[None]]) -> set[asyncio.Task[None]]:
    """Abandon a tool; return its task and those that it has begun."""
    before = asyncio.all_tasks()
    rt = Runtime()
    with pytest.raises(ToolTimeout):
        await rt.tool(tool, timeout="100ms", retry=ONCE)()
    return asyncio.all_tasks() - before


@pytest.mark.parametrize("tool", [swallow, wait_for_a_task, wait_for_a_group])
def test_a_tool_that_does_not_end_is_closed_after_a_while(
    tool: Callable[[], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        left = await left_by(tool)
        assert left
        for task in left:
            task.cancel()
        _, waiting = await asyncio.wait(left, timeout=PATIENCE - 0.1)
        assert waiting
        _, waiting = await asyncio.wait(left, timeout=0.2)
        assert not waiting

    virtual(main)()
    said = [
        record.getMessage() for record in caplog.records if "does not let itself be cancelled" in record.getMessage()
    ]
    assert said == [
        f"{tool.__name__} does not let itself be cancelled: it was closed after 0.5 s, so that the event loop can end"
    ]


def test_a_tool_that_ends_in_time_is_not_closed(caplog: pytest.LogCaptureFixture) -> None:
    ended = []

    async def tidies() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(PATIENCE / 2)
        ended.append(True)

    async def main() -> None:
        left = await left_by(tidies)
        await asyncio.sleep(PATIENCE)
        for task in left:
            task.cancel()
        await asyncio.sleep(2 * PATIENCE)

    with caplog.at_level(logging.WARNING):
        virtual(main)()
    assert ended == [True]
    assert "closed" not in caplog.text


def test_a_tool_that_nobody_cancels_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A timeout of its own is no reason to close it."""
    rounds = []

    async def goes_on() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        for _ in range(5):
            try:
                async with asyncio.timeout(1):
                    await asyncio.sleep(60)
            except TimeoutError:
                rounds.append(True)

    async def main() -> None:
        left = await left_by(goes_on)
        await asyncio.wait(left)

    with caplog.at_level(logging.WARNING):
        virtual(main)()
    assert len(rounds) == 5
    assert "closed" not in caplog.text


def test_tasks_that_the_tool_has_not_begun_go_on() -> None:
    async def main() -> None:
        other = asyncio.create_task(swallow())
        left = await left_by(swallow)
        other.cancel()
        for task in left:
            task.cancel()
        await asyncio.wait(left)
        await asyncio.sleep(1)
        assert not other.done()
        asyncio.Future.cancel(other)

    virtual(main)()
