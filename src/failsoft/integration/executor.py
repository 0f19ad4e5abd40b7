"""A runtime's daemon threads for frameworks that run blocking tools themselves, and the executor of their event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakSet

from failsoft.runtime.execution.executor import DaemonExecutor
from failsoft.runtime.scope import SCOPE

if TYPE_CHECKING:
    from failsoft.runtime.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")

_LOOPS: WeakSet[asyncio.AbstractEventLoop] = WeakSet()  # loops whose default executor is a _Router, or set by the user
_ASYNCIO = "asyncio"  # the thread name prefix of asyncio's own default executor


def executor_of(runtime: Runtime) -> DaemonExecutor:
    """Return an executor that uses the daemon threads of a runtime."""
    return DaemonExecutor(runtime._engine.places.thread_pool)


def use_daemon_threads(runtime: Runtime) -> None:
    """Run what tools and frameworks hand to the running loop's executor in daemon threads.

    Both use the loop's default executor (``asyncio.to_thread``), whose threads are joined when the loop is closed and
    when the program ends. From now on, work that is submitted inside a call runs on daemon threads, and all other work
    runs as before. An executor that the user has set is not changed.
    """
    loop = asyncio.get_running_loop()
    if loop in _LOOPS:
        return
    _LOOPS.add(loop)
    before = getattr(loop, "_default_executor", None)
    if before is None or getattr(before, "_thread_name_prefix", None) == _ASYNCIO:
        loop.set_default_executor(_Router(executor_of(runtime), before))


class _Router(ThreadPoolExecutor):
    """An event loop's default executor that runs the work of calls on daemon threads."""

    def __init__(self, daemon: DaemonExecutor, before: ThreadPoolExecutor | None) -> None:
        super().__init__(thread_name_prefix=_ASYNCIO)
        self._daemon = daemon
        self._before = before

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if _is_inside_call():
            return self._daemon.submit(fn, *args, **kwargs)
        if self._before is not None:
            return self._before.submit(fn, *args, **kwargs)
        return super().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._before is not None:
            self._before.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


def _is_inside_call() -> bool:
    scope = SCOPE.get()
    return scope is not None and (isinstance(scope, list) or not scope.is_turn)
