"""Virtual time: hours of waiting in no time, at exactly the time they would have happened.

Rules
-----
- The clock starts at 0 and stands still while code runs. When nothing is ready it jumps to the next timer.
- It never jumps while work is outstanding that the loop cannot foresee: ``run_in_executor`` and ``to_thread``,
  subprocesses, whatever failsoft runs in threads and processes of its own (``runtime.execution.clock.outside_started``).
  Meanwhile, after a moment, timers come due at the pace of real time; work that ends before costs no virtual time.
- While a socket or pipe is registered with the loop (a server that listens, an idle connection too), virtual time
  runs as real time does.
- When nothing can happen any more (no timer, nothing ready, nothing outstanding) the loop raises ``Deadlock`` with what
  is being waited for, after a short real grace: a foreign thread may still call in.
- One event loop at a time lives by a clock.

Why not simply patch ``time``: a loop that is told "an hour has passed" while a thread works on an answer reports a
timeout that never was. Why patch the instance: it serves stock loops that are running already, and leaves no trace.
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
    """What ``virtual_time()`` gives: reads the virtual time, and moves it."""

    def __init__(self, start: datetime, grace: float) -> None:
        self._now = 0.0
        self._start = start.timestamp()
        self._lock = threading.Lock()  # tools in threads may sleep
        self.grace = grace
        self.functions = clocks.Clock(self.time, self.wall, self.sleep)

    def time(self) -> float:
        """Seconds since virtual time began; also what ``loop.time()`` says."""
        return self._now

    def wall(self) -> float:
        """The time of day, as ``time.time()`` would say it."""
        return self._start + self._now

    def advance(self, seconds: float) -> None:
        """Let time pass at once. What has come due by then runs when the loop runs next."""
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"advance: {seconds!r} is not a number of seconds")
        if not seconds >= 0:
            raise ValueError(f"time passes forwards only: {seconds!r}")
        with self._lock:
            self._now += seconds

    def sleep(self, seconds: float) -> None:
        """``time.sleep`` for code without a loop: the time passes at once."""
        self.advance(seconds)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """``asyncio.run`` on this clock."""
        if clocks.current() is not self.functions:
            main.close()
            raise RuntimeError("this clock is not in use: call run() inside its own `with virtual_time() as clock:`")
        return asyncio.run(main)

    def reach(self, when: float) -> None:
        """Let time pass until ``when``; if it has passed already, nothing happens."""
        with self._lock:
            self._now = max(self._now, when)


class virtual_time:  # noqa: N801 - reads as the function that it is to its users
    """Make time virtual in the body: ``with virtual_time() as clock: asyncio.run(main())``.

    Around ``asyncio.run`` every loop made in the body is virtual. Inside a coroutine (``with`` or ``async with``) the
    running loop becomes virtual until the end of the body, with the timers that it has. ``start`` is the time of day at
    which it begins, ``grace`` the real seconds that a deadlock must last to be believed.
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
                undo.enter_context(_living_by(self._clock, loop))
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


_clocks: dict[clocks.Clock, VirtualClock] = {}  # those that make loops now
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
    global _new_event_loop  # noqa: PLW0603 - whoever replaced it before us gets it back
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
def _living_by(clock: VirtualClock, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    if not isinstance(loop, selector_events.BaseSelectorEventLoop):
        raise TypeError(
            f"virtual_time() cannot drive a running {type(loop).__module__}.{type(loop).__qualname__}: "
            "use it around asyncio.run(), or run a stock asyncio.SelectorEventLoop"
        )
    if hasattr(loop, "failsoft_outside"):
        raise RuntimeError("this event loop lives in virtual time already: use the clock that it has")
    driver = Driver(loop, clock)
    driver.install()
    try:
        yield
    finally:
        driver.remove()
