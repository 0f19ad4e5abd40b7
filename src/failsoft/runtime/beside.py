"""Coroutines of failsoft's own, for callers that have no event loop to await them on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

from failsoft.runtime.runtime import _on_loop, _runner
from failsoft.runtime.scope import SCOPE
from failsoft.runtime.turn import Turn

T = TypeVar("T")

is_on_loop = _on_loop


def run_here(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end; in a thread beside this one where an event loop is running in this one already.

    Context variables are as they are here. A turn is left: it lives on the event loop of another caller.
    """
    context = copy_context()
    if isinstance(SCOPE.get(), Turn):
        context.run(SCOPE.set, None)
    if not is_on_loop():
        return _runner().run(make(), context=context)
    return _run_beside(make, context)


def _run_beside(make: Callable[[], Coroutine[Any, Any, T]], context: Context) -> T:
    values: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            values.append(context.run(asyncio.run, make()))
        except BaseException as error:  # it belongs to the caller, whatever it is
            errors.append(error)

    beside = threading.Thread(target=run, name="failsoft call", daemon=True)
    beside.start()
    beside.join()
    if errors:
        raise errors[0]
    return values[0]
