"""Run one selector event loop on a virtual clock.

Rules
-----
- The loop's ``time``, its selector's ``select`` and every method that starts work outside the loop are replaced on the
  instance. ``remove`` restores everything and keeps every timer's remaining time.
- The clock jumps only in ``select``, which checks for outstanding work *before* it polls. Outside work writes to the
  loop's wake-up socket before it reports its end, so the poll sees work that ended in between.
- The clock stands still while outside work is awaited. The real time of that wait, less a head start, counts only
  towards timers that were set before it. So no timer comes due earlier than in real time, and quick work adds no odd
  fractions of seconds and finishes before a timer that is due just after.

Why counting instead of a real pause before each jump: a pause is too short on a busy machine and too long on all
others.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from time import monotonic
from typing import Any, Protocol

_SLICE = 0.02  # real seconds between checks for outstanding work
_HEAD_START = 0.05  # real seconds for outside work, so that the speed of a thread does not decide the order


class Deadlock(RuntimeError):
    """All tasks wait under virtual time, and nothing can wake them."""


class Movable(Protocol):
    """A clock that can be moved."""

    grace: float

    def time(self) -> float: ...

    def reach(self, when: float) -> None: ...


class Driver:
    """Drive ``loop`` (a stock selector event loop) by ``clock``, from ``install`` to ``remove``."""

    def __init__(self, loop: Any, clock: Movable) -> None:
        self._loop = loop  # Any: asyncio has no public access to timers, selector and resolution
        self._clock = clock
        self._selector = loop._selector
        self._lock = threading.Lock()
        self._outside = 0
        self._processes: list[asyncio.SubprocessTransport] = []
        self._waited = -_HEAD_START  # real seconds waited for outside work, not yet credited to a timer
        self._resolution: float = loop._clock_resolution
        on_loop = (
            "time",
            "call_at",
            "run_in_executor",
            "shutdown_default_executor",
            "subprocess_exec",
            "subprocess_shell",
        )
        self._replaced = [*((loop, name) for name in on_loop), (self._selector, "select")]
        self._original: dict[str, Callable[..., Any]] = {name: getattr(owner, name) for owner, name in self._replaced}

    def install(self) -> None:
        self._shift(self._clock.time() - self._loop.time())
        for owner, name in self._replaced:
            setattr(owner, name, getattr(self, name))
        self._loop.failsoft_outside = self.count

    def remove(self) -> None:
        for owner, name in self._replaced:
            delattr(owner, name)
        del self._loop.failsoft_outside
        self._loop._clock_resolution = self._resolution
        self._shift(self._loop.time() - self._clock.time())

    def _shift(self, seconds: float) -> None:
        for handle in self._loop._scheduled:
            handle._when += seconds  # all by the same amount: the heap stays valid

    # --- replacements for methods of the loop --------------------------------------------------------------------------

    def time(self) -> float:
        now = self._clock.time()
        # The loop runs everything due before now + resolution. Time stands still meanwhile: a timer that ran slightly
        # early could reschedule itself forever.
        self._loop._clock_resolution = math.ulp(now)
        return now

    def call_at(self, *args: Any, **options: Any) -> Any:
        self._waited = -_HEAD_START
        return self._original["call_at"](*args, **options)

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:
        future = self._original["run_in_executor"](executor, func, *args)
        self.count(+1)
        future.add_done_callback(lambda _: self.count(-1))  # also if cancelled: it is no longer awaited
        return future

    async def shutdown_default_executor(self, *args: Any, **options: Any) -> None:
        self.count(+1)
        try:
            await self._original["shutdown_default_executor"](*args, **options)
        finally:
            self.count(-1)

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        return self._watch(await self._original["subprocess_exec"](*args, **options))

    async def subprocess_shell(self, *args: Any, **options: Any) -> Any:
        return self._watch(await self._original["subprocess_shell"](*args, **options))

    def select(self, timeout: float | None = None) -> Any:
        poll = self._original["select"]
        if timeout is not None and timeout <= 0:
            return poll(0)
        idle = 0.0
        while True:
            sockets, outside = self._has_sockets(), self._has_work()
            if not (sockets or outside):
                self._waited = -_HEAD_START
            pause = self._pause(sockets, outside)
            before = monotonic()
            found = poll(pause)
            spent = monotonic() - before
            if sockets:
                self._clock.reach(self._clock.time() + spent)
            elif outside:
                self._waited += spent
            if found:
                return found
            due = self._due()
            if due is not None and (not (sockets or outside) or due <= self._clock.time() + self._credit(sockets)):
                self._clock.reach(due)
                self._waited = -_HEAD_START
                return found
            idle = 0.0 if sockets or outside else idle + spent
            if idle >= self._clock.grace:
                raise Deadlock(_describe(self._loop))

    # --- outstanding work ----------------------------------------------------------------------------------------------

    def count(self, change: int) -> None:
        """Count work outside the loop that has begun (+1) or ended (-1). Call it from any thread."""
        with self._lock:
            self._outside += change

    def _watch(self, made: tuple[asyncio.SubprocessTransport, Any]) -> Any:
        self._processes.append(made[0])
        return made

    def _has_sockets(self) -> bool:
        return len(self._selector.get_map()) > 1  # one is the loop's own wake-up socket

    def _has_work(self) -> bool:
        self._processes = [process for process in self._processes if process.get_returncode() is None]
        return self._outside > 0 or bool(self._processes)

    def _due(self) -> float | None:
        return self._loop._scheduled[0]._when if self._loop._scheduled else None

    def _credit(self, sockets: bool) -> float:
        """Return the real time that counts towards the next timer; with sockets, the clock already includes it."""
        return max(0.0, self._waited) if sockets else self._waited

    def _pause(self, sockets: bool, outside: bool) -> float:
        due = self._due()
        if due is None:
            return _SLICE
        remaining = due - self._clock.time() - self._credit(sockets)
        return min(_SLICE, max(0.0, remaining)) if sockets or outside else 0.0


def _describe(loop: asyncio.AbstractEventLoop) -> str:
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    waiting = "".join(f"\n  {task.get_name()}: {_place(task)}" for task in tasks) or "\n  no task: the loop itself"
    return (
        "nothing can happen any more: no timer is set, nothing is ready, and no thread, process or socket work is "
        f"outstanding. Still waiting:{waiting}"
    )


def _place(task: asyncio.Task[Any]) -> str:
    """Describe where a task is suspended: its innermost coroutine outside asyncio."""
    coro: Any = task.get_coro()
    place = str(coro)
    while coro is not None:
        frame = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None)
        if frame is not None and frame.f_globals.get("__package__") != "asyncio":
            place = f'{frame.f_code.co_qualname}, "{frame.f_code.co_filename}", line {frame.f_lineno}'
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None)
    return place
