"""Progress of an attempt. Tools report it, and ``idle_timeout`` ends an attempt that reports none for too long.

Rules
-----
- ``progress`` only notes the time and the message. It moves no timer and formats no text. The side that waits for the
  attempt checks the time of the latest progress when its own timer fires.
- Progress inside an inner call counts for all calls around it.
- Progress does not count after the idle timeout has passed, nor after the attempt has ended.
- An attempt that has ended by itself is late if its last silence was longer than the idle timeout. That happens if the event
  loop was blocked, and in virtual time.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from time import monotonic as real_time
from typing import Any

from failsoft.core.redact.printable import quote

_LENGTH = 1000  # characters of a message that are sanitised


class Activity:
    """The latest progress of one attempt. Any OS thread may use it."""

    __slots__ = ("_args", "_message", "_now", "expired", "idle", "last", "last_real", "late", "outer", "over")

    def __init__(self, idle: float, now: Callable[[], float], outer: Activity | None = None) -> None:
        self.idle = idle  # seconds without progress that end the attempt
        self.outer = outer
        self.last = math.inf  # the latest progress, by the runtime's clock
        self.last_real = math.inf  # the same by the real clock, which locks use
        self.over = False  # nothing counts any more
        self.expired = False  # the attempt was ended because it made no progress
        self.late = False  # it ended by itself, after too long a silence
        self._now = now
        self._message: object = None
        self._args: tuple[object, ...] = ()

    def begin(self, at: float) -> None:
        """Note that the tool begins or continues at this time."""
        self.last_real = real_time()
        self.last = at
        self.over = False

    def note(self, message: object = None, args: tuple[object, ...] = (), made: float | None = None) -> bool:
        """Note progress made now, or at the time when another process ``made`` it. False if it comes too late."""
        now = self._now() if made is None else made
        if self.over or now - self.last > self.idle:
            return False
        self.last = now
        self.last_real = real_time() if made is None else made
        if message is not None:
            self._message, self._args = message, args
        return True

    def remaining(self, now: float) -> float:
        """Seconds until the attempt is ended unless it makes progress; 0 once it has been ended."""
        if self.over:
            return 0.0 if self.expired else math.inf
        return self.last + self.idle - now

    def expire(self) -> None:
        """Note that the attempt is ended because it made no progress."""
        self.expired = self.over = True

    def finish(self, at: float) -> None:
        """Note that the tool has ended by itself at this time."""
        if not self.over:
            self.late = at - self.last > self.idle
            self.over = True

    def shown(self) -> str:
        """The message of the latest progress: one short, sanitised piece of text."""
        return "" if self._message is None else quote(formatted(self._message, self._args))


def formatted(message: object, args: tuple[object, ...]) -> str:
    """The text of a message, cut but not sanitised; without its arguments if they do not fit."""
    try:
        return (str(message) % args if args else str(message))[:_LENGTH]
    except Exception:
        return message[:_LENGTH] if isinstance(message, str) else f"<{type(message).__name__}>"


ACTIVITY: ContextVar[Activity | None] = ContextVar("failsoft_activity", default=None)


class _Noted:
    """Awaitable without effect."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


_NOTED = _Noted()


def progress(message: object = None, *args: object) -> Awaitable[None]:
    """Report from inside a tool that it makes progress: its ``idle_timeout`` starts anew.

    ``rt.running()`` shows the latest message, and so does the fault of an attempt that stops making progress. The message is
    formatted with ``args`` (``progress("page %d of %d", page, pages)``) only then. May be called from any OS thread that runs
    as part of the call (``failsoft.in_thread``). Outside of a tool it does nothing, and it never raises. It need not be awaited;
    `await` has no effect.
    """
    report_progress(ACTIVITY.get(), message, args)
    return _NOTED


def report_progress(activity: Activity | None, message: object = None, args: tuple[object, ...] = ()) -> None:
    """Note progress of an attempt and of all attempts around it."""
    while activity is not None and activity.note(message, args):
        activity = activity.outer


def next_deadline(cap: float | None, activity: Activity | None) -> float | None:
    """The earlier of a deadline and the end of the idle timeout, by the real clock; None if there is neither."""
    due = math.inf if activity is None else activity.last_real + activity.idle
    if cap is None:
        return None if due == math.inf else due
    return min(cap, due)
