"""Calls of async tools where no event loop runs."""

from __future__ import annotations

import asyncio
import gc
import warnings
from contextvars import ContextVar

import pytest

from failsoft import Runtime
from failsoft.runtime.execution.blocking_loop import forget_loops

WHO: ContextVar[str] = ContextVar("WHO", default="")


def interrupt() -> None:
    raise KeyboardInterrupt


def soon_interrupted() -> None:
    asyncio.get_running_loop().call_soon(interrupt)


def test_an_async_tool_has_the_context_variables_of_each_call() -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def who() -> str:
        return WHO.get()

    seen = []
    for name in ("ann", "bob"):
        token = WHO.set(name)
        seen.append(rt.call_sync("who").value)
        WHO.reset(token)
    assert seen == ["ann", "bob"]


def test_an_interrupt_just_after_a_call_does_not_disturb_the_next() -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def look(*, interrupted: bool) -> str:
        if interrupted:
            soon_interrupted()
        return "seen"

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            rt.call_sync("look", {"interrupted": True})
        assert rt.call_sync("look", {"interrupted": False}).value == "seen"


def test_an_interrupted_call_does_not_go_on_in_the_next() -> None:
    rt = Runtime()
    done: list[str] = []

    @rt.tool(idempotent=False)
    async def pay(*, interrupted: bool) -> str:
        if interrupted:
            soon_interrupted()
            await asyncio.sleep(0)
        done.append("paid")
        return "paid"

    with pytest.raises(KeyboardInterrupt):
        rt.call_sync("pay", {"interrupted": True})
    assert rt.call_sync("pay", {"interrupted": False}).value == "paid"
    assert done == ["paid"]


def test_an_interrupt_inside_a_tool_goes_on_and_the_loop_stays() -> None:
    rt = Runtime()
    loops = []

    @rt.tool(read_only=True)
    async def look(*, interrupted: bool) -> str:
        loops.append(asyncio.get_running_loop())
        if interrupted:
            interrupt()
        return "seen"

    with pytest.raises(KeyboardInterrupt):
        rt.call_sync("look", {"interrupted": True})
    assert rt.call_sync("look", {"interrupted": False}).value == "seen"
    assert loops[0] is loops[1]


def test_a_threads_loop_can_be_closed_while_another_one_runs() -> None:
    rt, ended = Runtime(), []

    async def watch() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("watch")

    @rt.tool(read_only=True)
    async def search(*, begin: bool = False) -> str:
        if begin:
            kept.append(asyncio.create_task(watch()))
            await asyncio.sleep(0)
        return "found"

    async def forget() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            forget_loops()
            gc.collect()

    kept: list[asyncio.Task[None]] = []
    forget_loops()
    rt.call_sync("search")
    asyncio.run(forget())
    assert rt.call_sync("search", {"begin": True}).value == "found"
    asyncio.run(forget())
    assert ended == ["watch"]


def test_an_order_to_stop_that_asyncio_has_left_on_the_task_does_not_disturb_the_end_of_a_call() -> None:
    """``run_until_complete`` leaves it there if the interrupt comes just before its ``try``."""
    rt, ended = Runtime(), []

    @rt.tool(read_only=True)
    async def search(*, interrupted: bool = False) -> str:
        if interrupted:
            task = asyncio.current_task()
            assert task is not None
            task.add_done_callback(lambda done: done.get_loop().stop())
            soon_interrupted()
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                ended.append("search")
        return "found"

    with pytest.raises(KeyboardInterrupt):
        rt.call_sync("search", {"interrupted": True})
    assert ended == ["search"]
    assert rt.call_sync("search").value == "found"
