"""The clock of a runtime.

Rules
-----
- A runtime reads ``current()`` once, when it is made, and binds the functions; it never uses ``time`` itself.
- ``monotonic`` is for durations and deadlines, ``wall`` for timestamps only; blocking code waits with ``sleep``.
- Code that starts work outside of an event loop (in a thread or a process) calls ``outside_started``, and
  ``outside_finished`` once the result has been handed to the loop or is no longer awaited. Each may be called from any
  thread. Virtual time never jumps in between; on ordinary loops both cost one look-up and do nothing.

Why a ContextVar: ``failsoft.testing.virtual_time`` must reach runtimes that are made deep inside the code under test,
yet two tests side by side must not meet each other's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Clock(NamedTuple):
    """Three functions that belong together: under virtual time they move as one."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    sleep: Callable[[float], None]


SYSTEM = Clock(time.monotonic, time.time, time.sleep)

_CURRENT: ContextVar[Clock] = ContextVar("failsoft_clock", default=SYSTEM)


def current() -> Clock:
    """The clock of this context: the virtual one inside ``virtual_time()``, else the system's."""
    return _CURRENT.get()


@contextmanager
def using(clock: Clock) -> Iterator[Clock]:
    """Make ``clock`` the current clock in the body and in everything that it starts."""
    token = _CURRENT.set(clock)
    try:
        yield clock
    finally:
        _CURRENT.reset(token)


def outside_started(loop: AbstractEventLoop) -> None:
    """Tell a virtual loop that work has begun outside of it."""
    count = getattr(loop, "failsoft_outside", None)
    if count is not None:
        count(+1)


def outside_finished(loop: AbstractEventLoop) -> None:
    """Tell a virtual loop that this work has delivered its result, or is no longer awaited."""
    count = getattr(loop, "failsoft_outside", None)
    if count is not None:
        count(-1)
