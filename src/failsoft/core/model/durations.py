"""Read durations: a text with units or a timedelta; a bare number only if the field's name says milliseconds.

Rules
-----
- A text is a decimal number with a unit of ``ms s m h``, or a sequence of them: ``"30s"``, ``"1.5s"``, ``"1m30s"``.
  Signs, blanks and digits of other scripts are refused.
- Reading a ``Seconds`` again changes nothing.
- Zero is accepted only if the caller allows it; negative values, NaN and values above ``LONGEST`` never.
- A refusal is a ``ValueError`` that says what would be right.

Why bare numbers are refused: ``timeout=30`` means 30 s to some readers and 30 ms to others.
"""

from __future__ import annotations

import math
from reprlib import repr as brief
from typing import TYPE_CHECKING, Self, TypeAlias

from failsoft.core.startup.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from datetime import timedelta

PATTERN = r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+"  # matches the whole text; also used in the manifest's schema
LONGEST = 9e9  # 285 years; Python's locks refuse to wait longer (threading.TIMEOUT_MAX)
MOMENT = 1e-6  # tolerance of one microsecond, so that binary fractions do not decide whether a limit is met

_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0}
_WHOLE = lazy_pattern(PATTERN)
_PART = lazy_pattern(r"(?<![0-9.])([0-9.]++)(ms|s|m|h)")
_LIKELY_MS = 1000  # a number of this size without a unit
_NUMBER = lazy_pattern(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_EXAMPLE = 'write a number with a unit of ms, s, m or h, like "30s", "500ms" or "1m30s"'


class Seconds(float):
    """A parsed duration in seconds. ``text`` is its original spelling, if it was written as text."""

    __slots__ = ("text",)

    text: str | None

    def __new__(cls, value: float, text: str | None = None) -> Self:
        self = super().__new__(cls, value)
        self.text = text
        return self


Duration: TypeAlias = "str | timedelta | Seconds"  # accepted from users


def seconds(value: object, *, zero: bool = False, bare_ms: bool = False) -> Seconds:
    """Read a duration. ``zero`` allows 0; ``bare_ms`` reads a number without unit as milliseconds."""
    read = value if isinstance(value, Seconds) else _read(value, bare_ms=bare_ms)
    if math.isnan(read) or read < 0:
        raise ValueError(f"{brief(value)} is not a duration: {_EXAMPLE}")
    if read > LONGEST:
        raise ValueError(f'{brief(value)} is too long: write at most "{text(LONGEST)}"')
    if not (read or zero):
        raise ValueError(f"{brief(value)} is not longer than zero: {_EXAMPLE}")
    return read


def text(value: float) -> str:
    """Format a duration: as it was written, else in the shortest form, to the microsecond."""
    if isinstance(value, Seconds) and value.text is not None:
        return value.text
    micros = round(value * 1_000_000)
    if 0 < micros < 1_000_000:
        return f"{micros / 1000:g}ms"
    minutes, micros = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    parts = ((str(hours), "h"), (str(minutes), "m"), (_decimal(micros / 1_000_000), "s"))
    return "".join(number + unit for number, unit in parts if number != "0") or "0s"


def _read(value: object, *, bare_ms: bool) -> Seconds:
    if isinstance(value, str):
        if _WHOLE.fullmatch(value):
            return Seconds(math.fsum(_part(float(number), unit) for number, unit in _PART.findall(value)), value)
        if _NUMBER.fullmatch(value):
            raise ValueError(f"{brief(value)} has no unit: {_with_unit(value, float(value))}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if bare_ms:
            return Seconds(_part(min(value, LONGEST * 2000), "ms"))  # an int can be larger than any float
        if 1e-6 <= value <= LONGEST:
            raise ValueError(f"{brief(value)} has no unit: {_with_unit(_decimal(value), value)}")
    else:
        from datetime import timedelta  # rarely needed, and slow to import

        if isinstance(value, timedelta):
            return Seconds(value.total_seconds())
    raise ValueError(f"{brief(value)} is not a duration: {_EXAMPLE}")


def _with_unit(written: str, number: float) -> str:
    """Say how to write a number with its unit. A thousand and more are more likely milliseconds."""
    return f'write "{written}ms" or "{written}s"' if number >= _LIKELY_MS else f'write "{written}s"'


def _part(number: float, unit: str) -> float:
    return number / 1000 if unit == "ms" else number * _PER_UNIT[unit]  # 700 * 0.001 is not 0.7


def _decimal(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")
