"""Step a tool's coroutine by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from operator import call
from types import GeneratorType, coroutine
from typing import Any, TypeVar, cast

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
    generator = cast(
        "GeneratorType[Any, None, None]", stepper
    )  # reading ``gi_frame`` makes a frame of 176 bytes, which stays
    return (not generator.gi_suspended and generator.gi_frame is None) or task.done()


def cancel(stepper: Stepper, error: BaseException) -> tuple[Any, bool]:
    """Throw into the tool. Returns what it waits for now, or ``OVER``, and whether it ended with a value."""
    try:
        return stepper.throw(error), False
    except StopIteration:
        return OVER, True
    except ENDS:
        return OVER, False


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
