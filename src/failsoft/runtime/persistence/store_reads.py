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
            settle: Callable[[], None] = setter(answered, ask())
        except Exception as error:
            settle = _raiser(answered, error)
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(settle)

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


def setter(future: asyncio.Future[T], value: T) -> Callable[[], None]:
    """Return a function that sets the future's result, unless it has one."""
    return lambda: None if future.done() else future.set_result(value)


def _raiser(future: asyncio.Future[T], error: Exception) -> Callable[[], None]:
    return lambda: None if future.done() else future.set_exception(error)
