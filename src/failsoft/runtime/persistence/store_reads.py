"""Read a store from an event loop: on an OS thread, with a limit on the waiting time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from failsoft.runtime.execution.clock import outside_finished, outside_started

PATIENCE = 0.5  # seconds

T = TypeVar("T")


async def ask_store(ask: Callable[[], T], otherwise: T) -> T:
    """Return the result of a function that blocks, or ``otherwise`` if it takes longer than ``PATIENCE``.

    The OS thread is a daemon: a store that hangs does not keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            answer: Callable[[], None] = setter(answered, ask())
        except Exception as error:
            answer = _raiser(answered, error)
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(answer)

    try:
        threading.Thread(target=run, name="failsoft store", daemon=True).start()
    except RuntimeError:  # the interpreter is about to end
        return ask()
    timer = loop.call_later(PATIENCE, setter(answered, otherwise))
    outside_started(loop)
    try:
        return await answered
    finally:
        timer.cancel()
        outside_finished(loop)


async def submit(start: Callable[[Callable[[], None]], T], patience: float) -> T:
    """Start work on another OS thread, and wait until it calls its callback, ``patience`` seconds at most."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[None] = loop.create_future()
    resolve = setter(answered, None)
    submitted = start(lambda: _call_soon(loop, resolve))
    timer = loop.call_later(patience, resolve)
    outside_started(loop)
    try:
        await answered
    finally:
        timer.cancel()
        outside_finished(loop)
    return submitted


def submit_blocking(start: Callable[[Callable[[], None]], T], patience: float) -> T:
    """``submit`` for callers that block."""
    answered = threading.Lock()
    answered.acquire()

    def release() -> None:
        with suppress(RuntimeError):  # it has been called before
            answered.release()

    submitted = start(release)
    answered.acquire(timeout=patience)
    return submitted


def note_outside() -> Callable[[], None]:
    """Tell a virtual event loop of work that its caller does not wait for; return a function that ends this."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return nothing
    outside_started(loop)
    return lambda: _call_soon(loop, lambda: outside_finished(loop))


def nothing() -> None:
    """Do nothing: no caller waits."""


def _call_soon(loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has been closed
        loop.call_soon_threadsafe(do)


def setter(future: asyncio.Future[T], value: T) -> Callable[[], None]:
    """Return a function that sets the future's result, unless it has one."""
    return lambda: None if future.done() else future.set_result(value)


def _raiser(future: asyncio.Future[T], error: Exception) -> Callable[[], None]:
    return lambda: None if future.done() else future.set_exception(error)
