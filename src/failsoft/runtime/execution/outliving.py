"""Run an abandoned tool, which could not be cancelled, to its end in a task of its own.

Rules
-----
- The tool goes on for as long as it likes.
- When its task is cancelled from outside, as ``asyncio.run`` cancels all tasks at its end, it has ``PATIENCE`` to end.
  Then it is closed, and so are the tasks that it has begun and that were cancelled as well. Otherwise the program would
  wait for them, forever if they swallow every cancellation.
- A cancellation by the tool's own timeouts and scopes does not come from outside. They show that only after they have
  cancelled the task, so the cancellation is judged in the next round of the loop.
- A task that waits for another task passes its cancellation on. If the other task swallows the cancellation, the first
  one never sees it. Therefore the future that the first one waits for is wrapped.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Generator
from contextlib import suppress
from contextvars import Context
from types import coroutine
from typing import Any, cast

from failsoft.observe.exception_text import exception_text
from failsoft.runtime.execution.stepping import ENDS, OVER, Stepper
from failsoft.runtime.scope import SCOPE

PATIENCE = 0.5  # seconds for a tool to end when its task is cancelled from outside

_log = logging.getLogger("failsoft")


class Outliving:
    """A tool that outlives its call."""

    def __init__(self, stepper: Stepper, waiting: Any, name: str, outside: Callable[[Stepper, Any], int]) -> None:
        self._stepper = stepper
        self._waiting = waiting
        self._name = name
        self._outside = outside  # counts the cancellations of a task that do not come from inside the tool
        self._ending = self._ended = False
        self._scope = SCOPE.get()
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run the tool to its end. The first step does nothing, so that the task may be cancelled at once."""
        try:
            try:
                await _begin()
            except asyncio.CancelledError as early:  # a cancelled task that has not begun would never run the tool
                task = cast("asyncio.Task[None]", asyncio.current_task())
                task.uncancel()
                task.cancel(*early.args)
            self._task = asyncio.current_task()
            await self._step()
        except ENDS:
            return  # its caller has its answer already

    @coroutine
    def _step(self) -> Generator[Any, None, None]:
        thrown: BaseException | None = None
        waiting, self._waiting = self._waiting, None
        while waiting is not OVER:
            try:
                yield waiting if waiting is None else _Awaited(waiting, self._note_cancelled)
            except BaseException as error:
                thrown = error
            if self._ended:
                return
            if thrown is None:
                waiting = next(self._stepper, OVER)
                continue
            if isinstance(thrown, asyncio.CancelledError):
                self._note_cancelled()
            try:
                waiting = self._stepper.throw(thrown)
            except StopIteration:
                return
            finally:
                thrown = None

    def _note_cancelled(self) -> None:
        if self._task is not None and not self._ending:
            self._task.get_loop().call_soon(self._begin_end, self._task, context=Context())

    def _begin_end(self, task: asyncio.Task[None]) -> None:
        if not self._ending and self._outside(self._stepper, task) > 0:
            self._ending = True
            task.get_loop().call_later(PATIENCE, self._end, task, context=Context())

    def _end(self, task: asyncio.Task[None]) -> None:
        """Close the tool and the tasks that it has begun, if they have not ended."""
        others = asyncio.all_tasks(task.get_loop()) - {task}
        inner = [other for other in others if _is_cancelled_in(other, self._scope)]
        if task.done() and not inner:
            return
        _log.warning(
            "%s does not let itself be cancelled: it was closed after %g s, so that the event loop can end",
            self._name or "an abandoned tool",
            PATIENCE,
        )
        for one in inner:
            _close(one)
        if not task.done():
            self._ended = True
            with suppress(Exception):  # it may raise, or go on waiting
                self._stepper.close()
            wake(task)


class _Awaited:
    """The future that a task waits for. It reports when the task is cancelled."""

    def __init__(self, future: Any, cancelled: Callable[[], None]) -> None:
        self._future = future
        self._cancelled = cancelled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._future, name)

    @property
    def _asyncio_future_blocking(self) -> bool:  # asyncio's mark of an awaited future
        return bool(self._future._asyncio_future_blocking)

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, value: bool) -> None:
        self._future._asyncio_future_blocking = value

    def cancel(self, *args: Any, **kwargs: Any) -> bool:
        self._cancelled()
        return bool(self._future.cancel(*args, **kwargs))


@coroutine
def _begin() -> Generator[None, None, None]:
    yield


def _is_cancelled_in(task: asyncio.Task[Any], scope: object) -> bool:
    """True if a task has been cancelled, goes on, and was begun in this scope."""
    if scope is None or task.done() or not task.cancelling():
        return False
    contexts = [held for held in gc.get_referents(task) if isinstance(held, Context)]
    return any(context.get(SCOPE) is scope for context in contexts)


def _close(task: asyncio.Task[Any]) -> None:
    """End a task that swallows its cancellation."""
    _detach(task)
    with suppress(Exception):  # it may raise, or go on waiting
        cast("Any", task.get_coro()).close()
    asyncio.Future.cancel(task)  # not the task's own method, which only asks for its end


def wake(task: asyncio.Task[Any]) -> None:
    """Wake a task whose cancellation is stuck in other tasks that do not end."""
    woken_by = _detach(task)
    if woken_by is None:
        task.cancel()  # the tool waits for nothing, or for something unknown
        task.uncancel()
        return
    callback, context = woken_by
    nothing = task.get_loop().create_future()
    nothing.cancel()
    task.get_loop().call_soon(callback, nothing, context=context)


def _detach(task: asyncio.Task[Any]) -> tuple[Callable[..., Any], Context] | None:
    """Let a task no longer wait for anything. Returns what would have woken it; None if that is unknown."""
    awaited = task._fut_waiter  # type: ignore[attr-defined]
    for callback, context in getattr(awaited, "_callbacks", None) or ():
        if getattr(callback, "__self__", None) is task:
            awaited.remove_done_callback(callback)
            return callback, context
    return None


def log_end(task: asyncio.Task[None]) -> None:
    """Log the ``BaseException`` of an abandoned tool, sanitised. asyncio would log it as it is."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("an abandoned tool has ended\n%s", exception_text(error))
