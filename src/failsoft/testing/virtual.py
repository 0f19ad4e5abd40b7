"""Virtual time: hours of waiting pass at once, and everything happens at the exact time it would have.

Rules
-----
- The clock starts at 0 and stands still while code runs. When nothing is ready, it jumps to the next timer.
- It never jumps while work is outstanding that the loop cannot see: ``run_in_executor`` and ``to_thread``,
  subprocesses, and failsoft's own threads and processes (``runtime.execution.clock.outside_started``). Meanwhile, after
  a short head start, timers come due at the pace of real time; work that ends earlier costs no virtual time.
- While a socket or pipe is registered with the loop (even a listening server or an idle connection), virtual time runs
  at the pace of real time.
- When nothing can happen any more (no timer, nothing ready, nothing outstanding), the loop raises ``Deadlock`` with a
  list of the waiting tasks, after a short real grace period: a foreign thread may still call in.
- One event loop at a time runs on a clock.

Why not just patch ``time``: a loop that is told "an hour has passed" while a thread works on an answer reports a false
timeout. Why patch the instance: it works for stock loops that are already running, and can be undone.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import events, selector_events
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeVar

from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.execution.blocking_loop import end_loop_threads
from failsoft.testing.virtual_loop import Driver

T = TypeVar("T")

START = datetime(2025, 11, 5, 10, 30, 45, tzinfo=UTC)


class VirtualClock:
    """The clock that ``virtual_time()`` returns: read and move virtual time."""

    def __init__(self, start: datetime, grace: float) -> None:
        self._now = 0.0
        self._start = start.timestamp()
        self._lock = threading.Lock()  # tools in threads may sleep
        self.grace = grace
        self.functions = clocks.Clock(self.time, self.wall, self.sleep)

    def time(self) -> float:
        """Return the seconds since virtual time began, like ``loop.time()``."""
        return self._now

    def wall(self) -> float:
        """Return the time of day, like ``time.time()``."""
        return self._start + self._now

    def advance(self, seconds: float) -> None:
        """Let time pass at once. Timers that came due run the next time the loop runs."""
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"advance: {seconds!r} is not a number of seconds")
        if not seconds >= 0:
            raise ValueError(f"time cannot go backwards: {seconds!r}")
        with self._lock:
            self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Replace ``time.sleep`` for code without a loop: the time passes at once."""
        self.advance(seconds)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine like ``asyncio.run``, on this clock."""
        if clocks.current() is not self.functions:
            main.close()
            raise RuntimeError("this clock is not active: call run() inside its own `with virtual_time() as clock:`")
        return asyncio.run(main)

    def reach(self, when: float) -> None:
        """Let time pass until ``when``; do nothing if it has passed already."""
        with self._lock:
            self._now = max(self._now, when)


class virtual_time:  # noqa: N801 - users call it like a function
    """Make time virtual in the body: ``with virtual_time() as clock: asyncio.run(main())``.

    Around ``asyncio.run``, every loop made in the body is virtual. Inside a coroutine (``with`` or ``async with``), the
    running loop and its timers become virtual until the end of the body. ``start`` is the time of day at the beginning,
    ``grace`` the real seconds that a deadlock must last before it is reported.
    """

    def __init__(self, *, start: datetime = START, grace: float = 1.0) -> None:
        self._clock = VirtualClock(start, grace)
        self._undo = ExitStack()

    def __enter__(self) -> VirtualClock:
        with ExitStack() as undo:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                undo.enter_context(_making_virtual_loops(self._clock))
            else:
                undo.enter_context(_driven_by(self._clock, loop))
            undo.enter_context(clocks.using(self._clock.functions))
            undo.callback(end_loop_threads, self._clock.functions)
            self._undo = undo.pop_all()
        return self._clock

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    async def __aenter__(self) -> VirtualClock:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


_clocks: dict[clocks.Clock, VirtualClock] = {}  # clocks that currently make loops
_swap = threading.Lock()
_new_event_loop = events.new_event_loop


def _new_virtual_loop() -> asyncio.AbstractEventLoop:
    clock = _clocks.get(clocks.current())
    if clock is None:  # another thread, or a body that has left virtual time
        return _new_event_loop()
    loop = asyncio.SelectorEventLoop()
    Driver(loop, clock).install()
    return loop


def _use(new_event_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    events.new_event_loop = asyncio.new_event_loop = new_event_loop


@contextmanager
def _making_virtual_loops(clock: VirtualClock) -> Iterator[None]:
    global _new_event_loop  # noqa: PLW0603 - restored for an earlier replacement
    with _swap:
        if not _clocks:
            _new_event_loop = events.new_event_loop
            _use(_new_virtual_loop)
        _clocks[clock.functions] = clock
    try:
        yield
    finally:
        with _swap:
            del _clocks[clock.functions]
            if not _clocks:
                _use(_new_event_loop)


@contextmanager
def _driven_by(clock: VirtualClock, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    if not isinstance(loop, selector_events.BaseSelectorEventLoop):
        raise TypeError(
            f"virtual_time() cannot drive a running {type(loop).__module__}.{type(loop).__qualname__}: "
            "use it around asyncio.run(), or run a stock asyncio.SelectorEventLoop"
        )
    if hasattr(loop, "failsoft_outside"):
        raise RuntimeError("this event loop is already on virtual time: use its clock")
    driver = Driver(loop, clock)
    driver.install()
    try:
        yield
    finally:
        driver.remove()
