"""Outcomes hold no frames; raised exceptions keep their traceback."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from weakref import ref

import pytest
from tests.fakes import ONCE, real

from failsoft import CallFailed, Outcome, Runtime


class Request:
    """Something large, or secret, that a tool has in its hands."""


held: list[ref[Request]] = []


def fail() -> None:
    request = Request()
    held.append(ref(request))
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("bad input") from error


async def fail_later() -> None:
    await asyncio.sleep(0)
    fail()


async def by_name(rt: Runtime, tool: Callable[..., Any]) -> Outcome[Any]:
    return await rt.call("search")


async def with_options(rt: Runtime, tool: Callable[..., Any]) -> Outcome[Any]:
    return await rt.call("search", timeout="5s")


async def blocking(rt: Runtime, tool: Callable[..., Any]) -> Outcome[Any]:
    return await asyncio.to_thread(rt.call_sync, tool)


async def in_a_turn(rt: Runtime, tool: Callable[..., Any]) -> Outcome[Any]:
    async with rt.turn() as turn:
        handle = turn.call("search")
    return turn.report.outcomes[handle.id]


UNSURE = [{"exception": "ValueError", "as": "transient"}]
AGAIN = {"max_attempts": 3, "initial_delay": "0s"}
WAYS = [by_name, with_options, blocking, in_a_turn]


@real
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("fn", [fail, fail_later], ids=["sync", "async"])
@pytest.mark.parametrize("retry", [ONCE, AGAIN], ids=["once", "again"])
async def test_an_outcome_holds_no_frames(
    way: Callable[[Runtime, Callable[..., Any]], Awaitable[Outcome[Any]]], fn: Callable[..., Any], retry: Any
) -> None:
    rt = Runtime()
    held.clear()
    outcome = await way(rt, rt.add(fn, id="search", retry=retry, classification=UNSURE, idempotent=True))
    assert outcome.fault is not None
    cause = outcome.fault.cause
    assert isinstance(cause, ValueError)
    assert cause.__traceback__ is None
    assert isinstance(cause.__cause__, KeyError)
    assert cause.__cause__.__traceback__ is None
    limit = time.monotonic() + 5
    while any(one() is not None for one in held) and time.monotonic() < limit:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)  # a thread may not have left its frame yet
    assert [one() for one in held] == [None] * outcome.attempts


@real
@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a turn"])
async def test_the_cause_of_a_raised_failure_keeps_its_traceback(within: bool) -> None:
    rt = Runtime()
    guarded = rt.tool(fail_later)
    with pytest.raises(CallFailed) as caught:
        if within:
            async with rt.turn():
                await guarded()
        else:
            await guarded()
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert cause.__traceback__ is not None


class Stop(BaseException):
    """An object that only the caller references."""


def stop(*_: object) -> None:
    request = Request()
    held.append(ref(request))
    raise Stop


async def stop_later(_: object) -> None:
    stop()


async def fail_as_a_runner(_: object) -> None:
    fail()


async def within(rt: Runtime, runner: Callable[[object], Any]) -> None:
    with suppress(Stop):  # in here: what comes out of a task, asyncio holds as well
        await rt.run("search", {}, {"search": runner}, control=(Stop,))


ENDS: dict[str, Callable[[Runtime], Any]] = {
    "a call that blocks": lambda rt: rt.add(stop, timeout="5s")(),
    "a framework that blocks": lambda rt: rt.run_sync("search", {}, {"search": stop}, control=(Stop,)),
    "a framework": lambda rt: asyncio.run(within(rt, stop_later)),
    "a framework's tool that fails": lambda rt: asyncio.run(within(rt, fail_as_a_runner)),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_frames_of_a_finished_call_are_freed_without_the_garbage_collector(end: Callable[[Runtime], Any]) -> None:
    rt = Runtime()
    held.clear()
    gc.disable()
    try:
        with suppress(Stop):
            end(rt)
        limit = time.monotonic() + 2
        while held[0]() is not None and time.monotonic() < limit:
            time.sleep(0.001)  # a thread may not have left its frame yet
        assert held[0]() is None
    finally:
        gc.enable()
