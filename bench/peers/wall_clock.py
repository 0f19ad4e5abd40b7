"""A settable wall clock. Install it before a library imports ``time.time`` or ``datetime``."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

_shift = 0.0
_time = time.time
_Real = dt.datetime


def set_wall_clock(seconds: float) -> None:
    """Shift the clock by so many seconds from real time."""
    global _shift  # noqa: PLW0603 - there is one clock
    _shift = seconds


class Datetime(_Real):
    """``datetime.datetime`` on that clock."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(dt.UTC).replace(tzinfo=None)


def install() -> None:
    time.time = lambda: _time() + _shift
    dt.datetime = Datetime
