"""Programs made at random: under failsoft they come to the same as with a task for each call, which is simple and dear.

A program is a tree of things that tools and their callers do: wait, fail, swallow, delay or transform a cancellation, enter
timeouts, scopes and groups, wait for children, set context variables, make further guarded calls. The caller is cancelled
now and then. No two moments are the same, so there is one right answer to what happens when.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar
from random import Random
from typing import Any

import anyio
import pytest
from tests.fakes import OFTEN, ONCE

from failsoft import Runtime
from failsoft.testing import virtual_time

Node = tuple[str, int, float, list[Any]]  # what, which, how long, and what is inside
Tool = Callable[[], Coroutine[Any, Any, None]]
PROGRAMS = 100
VALUE: ContextVar[int] = ContextVar("value", default=0)
LEAVES = ("sleep", "sleep", "sleep", "pass_on", "fail")
POLITE = ("timeout", "scope", "children", "child", "shield", "items", "request", "call", "call")
RUDE = ("swallow", "tidy", "transform", "group", "variable")  # for tools alone


class Broken(Exception):
    """The error of a program."""


def make(random: Random, depth: int, kinds: tuple[str, ...]) -> Node:
    kind = random.choice(kinds if depth else LEAVES)
    within = () if kind in LEAVES else (POLITE + RUDE if kind == "call" else kinds) + LEAVES
    parts = [make(random, depth - 1, within) for _ in range(random.choice((1, 1, 2, 3)))] if within else []
    return kind, random.randrange(10**9), round(random.uniform(0.1, 5), 3), parts


class Request:
    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run

    def __await__(self) -> Generator[Any, None, None]:
        answer: Generator[Any, None, None] = self.run().__await__()
        return answer


class World:
    """Runs programs, and writes down how each part has ended, and when."""

    def __init__(self) -> None:
        self.seen: dict[int, list[Any]] = defaultdict(list)

    async def answer(self, tool: Tool, seconds: float) -> str:
        """The result of a call of the tool."""
        raise NotImplementedError

    async def run(self, node: Node) -> None:
        kind, id, delay, parts = node
        ended = "well"
        try:
            await getattr(self, kind)(id, delay, parts)
        except BaseException as error:
            ended = type(error).__name__
            raise
        finally:
            self.seen[id].append((ended, round(asyncio.get_running_loop().time(), 6)))

    async def all(self, parts: list[Node]) -> None:
        for part in parts:
            await self.run(part)

    async def sleep(self, _: int, delay: float, parts: list[Node]) -> None:
        await asyncio.sleep(delay)

    async def pass_on(self, _: int, delay: float, parts: list[Node]) -> None:
        await asyncio.sleep(0)

    async def fail(self, _: int, delay: float, parts: list[Node]) -> None:
        await asyncio.sleep(delay)
        raise Broken

    async def timeout(self, _: int, delay: float, parts: list[Node]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self.all(parts)

    async def scope(self, _: int, delay: float, parts: list[Node]) -> None:
        with anyio.CancelScope():
            await self.all(parts)

    async def children(self, _: int, delay: float, parts: list[Node]) -> None:
        await asyncio.gather(*(self.run(part) for part in parts), return_exceptions=True)

    async def child(self, _: int, delay: float, parts: list[Node]) -> None:
        await asyncio.gather(self.all(parts))

    async def shield(self, _: int, delay: float, parts: list[Node]) -> None:
        inside = asyncio.create_task(self.all(parts))
        inside.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(inside)

    async def items(self, _: int, delay: float, parts: list[Node]) -> None:
        async def generate() -> AsyncIterator[None]:
            async with asyncio.timeout(100):
                await self.all(parts)
            yield

        async for _item in generate():
            await asyncio.sleep(delay)

    async def request(self, _: int, delay: float, parts: list[Node]) -> None:
        await Request(lambda: self.all(parts))

    async def group(self, _: int, delay: float, parts: list[Node]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(delay))
            with suppress(Broken):  # newer Pythons cancel a task once more whose group fails
                await self.all(parts)

    async def swallow(self, _: int, delay: float, parts: list[Node]) -> None:
        try:
            await self.all(parts)
        except asyncio.CancelledError:
            await asyncio.sleep(delay)

    async def tidy(self, _: int, delay: float, parts: list[Node]) -> None:
        try:
            await self.all(parts)
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(delay)

    async def transform(self, _: int, delay: float, parts: list[Node]) -> None:
        try:
            await self.all(parts)
        except asyncio.CancelledError:
            raise Broken from None

    async def variable(self, id: int, delay: float, parts: list[Node]) -> None:
        token = VALUE.set(id)
        try:
            await self.all(parts)
        finally:
            with suppress(ValueError, RuntimeError):
                VALUE.reset(token)

    async def call(self, id: int, delay: float, parts: list[Node]) -> None:
        async def tool() -> None:
            await self.all(parts)

        answer = await self.answer(tool, delay)
        self.seen[id].append(answer)
        if answer == "failed":
            raise Broken


class Failsoft(World):
    """As it is."""

    def __init__(self) -> None:
        super().__init__()
        self.rt = Runtime()

    async def answer(self, tool: Tool, seconds: float) -> str:
        guarded = self.rt.add(tool, id=f"tool{len(self.rt.tools)}", timeout=f"{seconds}s", retry=ONCE, breaker=OFTEN)
        outcome = await self.rt.call(guarded)
        if outcome.fault is None:
            return "well"
        return "too late" if outcome.fault.rule == "tool_timeout" else "failed"


class Plain(World):
    """A task for each call."""

    async def answer(self, tool: Tool, seconds: float) -> str:
        loop = asyncio.get_running_loop()
        task, deadline = loop.create_task(tool()), loop.time() + seconds
        cancelled = None
        while not task.done() and loop.time() < deadline:
            try:
                await asyncio.wait([task], timeout=deadline - loop.time())
            except asyncio.CancelledError as error:
                cancelled = error
                task.cancel()
        if not task.done():
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            task.cancel()
            while task.cancelling():
                task.uncancel()
            if cancelled is not None:
                raise cancelled
            return "too late"
        if task.cancelled():
            raise cancelled or asyncio.CancelledError
        return "well" if task.exception() is None else "failed"


def play(world: type[World], program: Node, cancels: list[float]) -> Any:
    """The observations of a program, the end of its caller, and the complaints of the event loop."""
    complaints: list[Any] = []

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        played = world()
        after: list[Any] = []

        async def caller() -> None:
            task = asyncio.current_task()
            assert task is not None
            with suppress(Broken, asyncio.CancelledError):
                await played.run(program)
            after.append((task.cancelling(), VALUE.get()))
            while loop.time() < 200:  # only this test cancels it from here on
                try:
                    await asyncio.sleep(200)
                except asyncio.CancelledError:
                    after.append(loop.time())

        task = loop.create_task(caller())
        for moment in cancels:
            loop.call_later(moment, task.cancel)
        await asyncio.wait([task])
        await asyncio.sleep(1000)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "somebody is still there"
        return played.seen, after

    with virtual_time() as time:
        return time.run(main()), complaints


@pytest.mark.parametrize("part", range(4))
def test_programs_come_to_the_same_as_with_a_task_for_each_call(part: int) -> None:
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        random = Random(seed)
        program: Node = ("call", 0, round(random.uniform(0.5, 6), 3), [make(random, 4, POLITE + RUDE)])
        program = random.choice([program, ("timeout", 1, round(random.uniform(0.5, 6), 3), [program])])
        cancels = [round(random.uniform(0.1, 8), 3) for _ in range(random.choice((0, 0, 1, 2)))]
        assert play(Failsoft, program, cancels) == play(Plain, program, cancels), (seed, program, cancels)
