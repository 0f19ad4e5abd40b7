"""Step a tool's coroutine by hand: inside its caller's task, or in a task of its own once it was abandoned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from operator import call
from types import GeneratorType, coroutine
from typing import Any, TypeVar, cast

from failsoft.observe.exception_text import exception_text

T = TypeVar("T")
Stepper = Generator[Any, None, None]
Box = list[Any]  # its first item is the value of an attempt that has ended; more in ``runtime.scope``
ENDS = (asyncio.CancelledError, Exception)
OVER = object()  # the result of stepping a tool that has ended


@coroutine
def step(coro: Any, box: Box) -> Stepper:
    """The tool's coroutine as a generator that puts its value into ``box``: iterating it makes no StopIteration."""
    box[0] = yield from coro


def has_ended(stepper: Stepper, task: asyncio.Task[Any]) -> bool:
    """True if an attempt has ended, by itself or with its task, but an interrupt has kept it in its queue."""
    return cast("GeneratorType[Any, None, None]", stepper).gi_frame is None or task.done()


def cancel(stepper: Stepper, error: BaseException) -> tuple[Any, bool]:
    """Throw into the tool. Returns what it waits for now, or ``OVER``, and whether it ended with a value."""
    try:
        return stepper.throw(error), False
    except StopIteration:
        return OVER, True
    except ENDS:
        return OVER, False


def log_end(task: asyncio.Task[None]) -> None:
    """Log the ``BaseException`` of an abandoned tool, sanitised. asyncio would log it as it is."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logging.getLogger("failsoft").error("an abandoned tool has ended\n%s", exception_text(error))


async def outlive(stepper: Stepper, waiting: Any) -> None:
    """Run an abandoned tool to its end. Its first step does nothing, so that the task may be cancelled at once."""
    try:
        try:
            await _begin()
        except asyncio.CancelledError as early:  # a cancelled task that has not begun would never run the tool
            task = cast("asyncio.Task[None]", asyncio.current_task())
            task.uncancel()
            task.cancel(*early.args)
        await run_abandoned(stepper, waiting)
    except ENDS:
        return  # its caller has its answer already


@coroutine
def _begin() -> Generator[None, None, None]:
    yield


@coroutine
def run_abandoned(stepper: Stepper, waiting: Any, run: Callable[..., Any] = call) -> Generator[Any, None, None]:
    """Run a tool that has suspended on ``waiting``, without a deadline; ``run`` may be that of a context."""
    thrown: BaseException | None = None
    while waiting is not OVER:
        try:
            yield waiting
        except BaseException as error:
            thrown = error
        if thrown is None:
            waiting = run(next, stepper, OVER)
            continue
        try:
            waiting = run(stepper.throw, thrown)
        except StopIteration:
            return
        finally:
            thrown = None


async def in_context(context: Context, coro: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine in a context of its own."""
    box: Box = [None]
    stepper = step(coro, box)
    await run_abandoned(stepper, context.run(next, stepper, OVER), context.run)
    return cast("T", box[0])
