"""Scopes and context variables of a tool abandoned at its deadline no longer affect its caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Self

import anyio
import pytest
from tests.fakes import ONCE, virtual

from failsoft import Runtime, ToolTimeout


@asynccontextmanager
async def scoped() -> AsyncIterator[None]:
    with anyio.CancelScope():
        yield


class Session:
    """Opens its task group by hand, as clients do."""

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(asyncio.sleep, 100)
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._group.__aexit__(*error)


async def wait_and_tidy() -> None:
    """On cancellation close open connections first, as connection pools do."""
    try:
        await asyncio.sleep(60)
    finally:
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(1)


async def in_a_scope() -> None:
    with anyio.CancelScope():
        await wait_and_tidy()


async def in_a_timeout() -> None:
    with anyio.fail_after(30):
        await wait_and_tidy()


async def in_a_generator() -> None:
    async with scoped():
        await wait_and_tidy()


async def in_an_exit_stack() -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(scoped())
        stack.enter_context(anyio.CancelScope())
        stack.callback(print, end="")
        await wait_and_tidy()


async def in_a_session() -> None:
    async with Session():
        await wait_and_tidy()


async def in_a_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(asyncio.sleep, 100)
        await wait_and_tidy()


async def leaving_a_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(wait_and_tidy)


async def wait_and_hang() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(60)


async def in_a_timeout_that_comes_later() -> None:
    with anyio.move_on_after(1.5):
        await wait_and_hang()


async def items(waits: Callable[[], Awaitable[None]] | None) -> AsyncIterator[int]:
    async with asyncio.timeout(1.5):
        if waits is not None:
            await waits()
        yield 1


async def waiting_for_an_item() -> None:
    async for _ in items(wait_and_hang):
        pass


async def between_two_items() -> None:
    async for _ in items(None):
        await wait_and_hang()


class Request:
    """Something to await, as clients have it."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.run = run

    def __await__(self) -> Generator[Any, None, None]:
        return self.run().__await__()


async def in_what_is_awaited() -> None:
    await Request(in_a_timeout_that_comes_later)


TOOLS = (
    wait_and_tidy, in_a_scope, in_a_timeout, in_a_generator, in_an_exit_stack, in_a_session, in_a_group,
    leaving_a_group, in_a_timeout_that_comes_later, in_what_is_awaited, waiting_for_an_item, between_two_items,
)  # fmt: skip


async def _inside_a_timeout(call: Callable[[], Awaitable[Any]]) -> Any:
    with anyio.fail_after(40):
        return await call()


async def _inside_a_group(call: Callable[[], Awaitable[Any]]) -> Any:
    async with anyio.create_task_group():
        return await call()


async def _inside_nothing(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


@pytest.mark.parametrize("around", [_inside_a_timeout, _inside_a_group, _inside_nothing])
@pytest.mark.parametrize("tool", TOOLS)
@virtual
async def test_scopes_of_an_abandoned_tool_do_not_affect_its_caller(tool: Any, around: Any) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    rt = Runtime()
    rt.add(tool, id="tool", timeout="500ms", retry=ONCE)
    outcome = await around(lambda: rt.call("tool"))
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 500ms"
    with anyio.move_on_after(5) as later:  # the orphan ends meanwhile
        await asyncio.sleep(60)
    assert later.cancelled_caught
    task = asyncio.current_task()
    assert task is not None
    assert (task.cancelling(), complaints) == (0, [])


@virtual
async def test_an_abandoned_tool_may_clean_up_even_if_its_scope_is_cancelled() -> None:
    rt = Runtime()
    seen: list[str] = []

    @rt.tool(timeout="500ms", retry=ONCE)
    async def tool() -> None:
        with anyio.move_on_after(0.5):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                try:
                    await asyncio.sleep(60)
                finally:
                    with anyio.CancelScope(shield=True):
                        await asyncio.sleep(1)
                    seen.append("tidied up")

    await rt.call("tool")
    await asyncio.sleep(5)
    assert seen == ["tidied up"]


CURRENT: ContextVar[str] = ContextVar("current", default="the caller's")


@contextmanager
def span(name: str) -> Iterator[None]:
    token = CURRENT.set(name)
    try:
        yield
    finally:
        with suppress(ValueError, RuntimeError):
            CURRENT.reset(token)


class Attached:
    """Keeps its token itself."""

    def __enter__(self) -> None:
        self.token = CURRENT.set("attached")

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError, RuntimeError):
            CURRENT.reset(self.token)


@virtual
async def test_context_variables_set_by_an_abandoned_tool_are_restored_for_its_caller() -> None:
    rt = Runtime()
    seen: list[str] = []

    async def request() -> None:
        token = CURRENT.set("request")
        with Attached():
            try:
                await wait_and_tidy()
            finally:
                seen.append(CURRENT.get())
        CURRENT.reset(token)

    @rt.tool(timeout="500ms", retry=ONCE)
    async def tool() -> None:
        with span("outer"), span("inner"):
            await request()

    await rt.call("tool")
    assert CURRENT.get() == "the caller's"
    with pytest.raises(ToolTimeout):
        await tool()
    assert CURRENT.get() == "the caller's"
    await asyncio.sleep(5)
    assert seen == ["attached"] * 2, "for the tool itself it is as it was"


@pytest.mark.parametrize("limit", ["2s", "500ms"])  # later than that of the call around it, or in the same moment
@virtual
async def test_a_guarded_call_inside_an_abandoned_tool_is_cancelled_and_not_repeated(limit: str) -> None:
    rt = Runtime()
    began: list[float] = []

    @rt.tool(timeout=limit, read_only=True)
    async def inner() -> None:
        began.append(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)

    @rt.tool(timeout="500ms", retry=ONCE)
    async def outer() -> None:
        await inner()

    outcome = await rt.call("outer")
    assert outcome.status == "failed"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(10)
    assert task.cancelling() == 0
    await asyncio.sleep(100)
    assert began == [0], "the call around it is over: nothing is repeated"
    told = [event.event_type for event in rt.events() if event.tool_id == "inner"]
    assert [event_type for event_type in told if event_type != "CallRunning"] == ["CallCancelled"]


@virtual
async def test_a_cancellation_uncancelled_by_a_task_group_is_not_uncancelled_again() -> None:
    rt = Runtime()

    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError("a sibling has failed")

    @rt.tool(timeout="2s", retry=ONCE)
    async def tool() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(wait_and_hang())
            await asyncio.sleep(60)

    async def work() -> int:
        try:
            await asyncio.sleep(60)
        finally:
            await rt.call("tool")
        raise AssertionError("never")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), task.cancelling()) == (True, 1)


@virtual
async def test_a_cancelled_scope_around_the_call_cancels_its_caller() -> None:
    rt = Runtime()
    rt.add(in_a_scope, id="tool", timeout="500ms", retry=ONCE)
    with anyio.move_on_after(2) as around:
        await rt.call("tool")
        await asyncio.sleep(60)
    assert around.cancelled_caught
    assert asyncio.get_running_loop().time() == pytest.approx(2, abs=0.1)


@virtual
async def test_a_task_group_that_a_tool_was_handed_stays_its_callers() -> None:
    rt = Runtime()

    @rt.tool(timeout="500ms", retry=ONCE)
    async def tool(group: asyncio.TaskGroup) -> None:
        async with asyncio.timeout(30):
            await wait_and_tidy()
        group.create_task(asyncio.sleep(0))

    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError("a sibling has failed")

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await rt.call("tool", {"group": group})
            await asyncio.sleep(60)
    assert isinstance(caught.value.exceptions[0], LookupError)
