"""Waiting for descriptors, on an event loop and without one."""

from __future__ import annotations

import asyncio
import gc
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from failsoft.runtime.execution.processes import readiness
from failsoft.runtime.execution.processes.readiness import Blocking, OnLoop
from failsoft.runtime.execution.waiting import run_blocking

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def call(waiting: Any, method: str, *args: Any) -> Any:
    return signalled(waiting, *args) if method == "signalled" else getattr(waiting, method)(*args)


@pytest.fixture(params=["loop", "loop without epoll", "blocking"])
def wait(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that calls a method of one kind of waiting and gives its result."""
    if request.param == "blocking":
        yield lambda method, *args: run_blocking(call(Blocking(), method, *args))
        return
    if request.param == "loop without epoll":
        loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop(__import__("selectors").PollSelector())
        monkeypatch.delattr(select, "epoll")
    else:
        loop = asyncio.new_event_loop()
    yield lambda method, *args: loop.run_until_complete(call(OnLoop(loop), method, *args))
    loop.close()


async def signalled(waiting: Any, delay: float | None) -> None:
    """Wait for a signal that was given before, or will be given by another OS thread."""
    signal = waiting.signal()
    if delay is None:
        signal.give()
    else:
        threading.Timer(delay, signal.give).start()
    await signal.wait()


def soon() -> float:
    return time.monotonic() + 0.05


def test_readable(wait: Any, pair: Pair) -> None:
    ours, theirs = pair
    for _ in range(3):
        assert not wait("readable", ours.fileno(), soon())
        theirs.send(b"x")
        assert wait("readable", ours.fileno(), soon())
        assert wait("readable", ours.fileno(), None)
        ours.recv(1)


def test_readable_at_the_end(wait: Any, pair: Pair) -> None:
    ours, theirs = pair
    theirs.close()
    assert wait("readable", ours.fileno(), soon())


def test_a_deadline_that_has_passed(wait: Any, pair: Pair) -> None:
    assert not wait("readable", pair[0].fileno(), time.monotonic() - 1)


def test_ready(wait: Any, pair: Pair) -> None:
    ours, theirs = pair
    assert wait("ready", (), (ours.fileno(),), soon())
    assert not wait("ready", (ours.fileno(),), (), soon())
    theirs.send(b"x")
    assert wait("ready", (ours.fileno(),), (), None)


@pytest.mark.parametrize("delay", [None, 0.0, 0.05])
def test_a_signal_is_noticed_before_and_during_the_wait(wait: Any, delay: float | None) -> None:
    wait("signalled", delay)


def test_a_descriptor_with_a_used_number_is_watched(wait: Any) -> None:
    """The number of a closed descriptor comes back for another one."""
    numbers = []
    for _ in range(3):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            numbers.append(ours.fileno())
            assert not wait("readable", ours.fileno(), soon())
            theirs.send(b"x")
            assert wait("readable", ours.fileno(), soon())
    assert len(set(numbers)) == 1


def test_simultaneous_waits_are_woken_by_their_own_descriptor(pair: Pair) -> None:
    pairs = [socket.socketpair() for _ in range(20)]

    async def main() -> list[bool]:
        loop = asyncio.get_running_loop()
        until = time.monotonic() + 0.2
        waits = [asyncio.ensure_future(OnLoop(loop).readable(ours.fileno(), until)) for ours, _ in pairs]
        await asyncio.sleep(0)
        for number, (_, theirs) in enumerate(pairs):
            if number % 3 == 0:
                theirs.send(b"x")
        return await asyncio.gather(*waits)

    assert asyncio.run(main()) == [number % 3 == 0 for number in range(20)]
    for both in pairs:
        for one in both:
            one.close()


def test_a_cancelled_wait_leaves_nothing(pair: Pair) -> None:
    ours, theirs = pair

    async def main() -> bool:
        loop = asyncio.get_running_loop()
        gone = asyncio.ensure_future(OnLoop(loop).readable(ours.fileno(), None))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert readiness._loop_readiness[loop].waiters == {}
        theirs.send(b"x")
        await asyncio.sleep(0.02)
        return await OnLoop(loop).readable(ours.fileno(), soon())

    assert asyncio.run(main())


def test_closed_loops_are_forgotten(pair: Pair) -> None:
    async def main() -> None:
        await OnLoop(asyncio.get_running_loop()).readable(pair[0].fileno(), time.monotonic())

    asyncio.run(main())
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        asyncio.run(main())
    assert len(readiness._loop_readiness) <= 1
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_blocking_algorithm_must_not_suspend() -> None:
    async def suspends() -> None:
        await asyncio.sleep(0)

    coro = suspends()
    with pytest.raises(RuntimeError, match="suspended"):
        run_blocking(coro)
    coro.close()
