"""Read rates: a number of calls per time, like "100/1m"."""

from __future__ import annotations

import re
from reprlib import repr as brief
from typing import Self

from failsoft.core.model.durations import PATTERN, seconds
from failsoft.core.startup.lazy_pattern import lazy_pattern

RATE_PATTERN = rf"[1-9][0-9]{{0,8}}/{PATTERN}"  # matches the whole text; also used in the manifest's schema

_WHOLE = lazy_pattern(r"([0-9]{1,9})/(.+)")
_EXAMPLE = 'write calls and a time, like "100/1m" or "5/1s"'
_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    "ms": "ms",
}


class Rate(str):
    """A rate as it was written, with its numbers."""

    __slots__ = ("calls", "seconds")

    calls: int
    seconds: float

    def __new__(cls, text: str, calls: int, per: float) -> Self:
        self = super().__new__(cls, text)
        self.calls, self.seconds = calls, per
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Rate, (str(self), self.calls, self.seconds)


def read_rate(value: object) -> Rate:
    """Read a rate; raise ``ValueError`` with what would be right."""
    if isinstance(value, Rate):
        return value
    found = _WHOLE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        bare = isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value)
        if bare or (isinstance(value, int) and not isinstance(value, bool)):
            raise ValueError(f'{brief(value)} has no time: write "{value}/1m" for {value} calls a minute')
        raise ValueError(f"{brief(value)} is not a rate: {_EXAMPLE}")
    if not int(found[1]):
        raise ValueError(f"{brief(value)} would allow no call at all: {_EXAMPLE}")
    try:
        per = seconds(found[2])
    except ValueError as wrong:
        unit = _UNITS.get(found[2].strip().lower())
        right = wrong if unit is None else f'write "{found[1]}/1{unit}"'
        raise ValueError(f"{brief(value)} is not a rate: {right}") from None
    return Rate(found[0], int(found[1]), float(per))
