"""Retry-after hints: when a server says that a retry can help, in seconds.

Rules
-----
- The most precise statement wins: ``retry-after-ms``, ``retry-after``, the body's delay, the rate limit's reset, words.
- A point in time (an HTTP date, an epoch, RFC 3339) is compared with the response's own ``Date``, else with the caller's
  ``now``, else ignored. The core reads no clock.
- Hints are capped at ``LONGEST``. A negative or unreadable value is not a hint. A point in time that has passed is 0.

Sources: RFC 9110, 10.2.3; draft-ietf-httpapi-ratelimit-headers (03 and 10); OpenAI, Anthropic, GitHub and Azure rate
limit headers; google.rpc.RetryInfo; Discord and Telegram bodies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from failsoft.core.classify.cache import cached, compiled
from failsoft.core.classify.text_reader import unquoted
from failsoft.core.startup.lazy_pattern import lazy_pattern

LONGEST: Final = 86_400.0  # one day; longer hints mean "not now"
_EPOCH: Final = 1_000_000_000  # a larger number is a point in time, not a delay
_MILLISECONDS: Final = 100 * _EPOCH  # a larger number is a point in time in milliseconds …
_NO_TIME: Final = 100_000 * _EPOCH  # … and an even larger one a delay again, beyond any limit

_MONTHS: Final = {
    name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)
}
_HTTP_DATE: Final = r"(?:\w{3,9}, )?(\d{1,2})[ -](\w{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)"
_TIMESTAMP: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_SPAN: Final = r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)?(?![a-z])"
_UNITS: Final = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LENGTH: Final = 100  # characters of a delay in a body
_DIGIT: Final = lazy_pattern(r"\d")
_CUES: Final = (
    "try ",
    "retry",
    "retried ",
    "again ",
    "wait",
    "reset",
    "available ",
)  # every match contains one of these
# Lower case, like the text. Every branch starts with its own letter, so that a search tries few positions.
_SPOKEN: Final = (
    "(?:"
    + "|".join(
        rf"{word}(?: \w+){{0,3}}? (?:in|after|for)"
        for word in ("try", "re(?:try(?:ing)?|tried|sets?)", "a(?:vailable|gain)", "wait")
    )
    + r"|wait(?<=\bwait)|retry[- ]after:?)[ :=]+(?:about |at least |approximately )?"
    r"((?:\d{1,9}(?:\.\d{1,9})? ?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)(?![a-z])[ ,]*(?:and )?)+|\d{1,6}\b)"
)
_FIELD_T: Final = r"(?:^|[;,]\s*)(?:t|reset)=(\d{1,9})"


def find_delay(
    headers: Mapping[str, str], body: Iterable[tuple[str, Any]], text: str = "", *, now: float | None = None
) -> float | None:
    """Return the seconds until a retry can help; None if nothing says so."""
    if "date" in headers:
        sent = _instant(headers["date"])
        now = now if sent is None else sent
    for delay in _stated(headers, body, text, now):
        if delay is not None and math.isfinite(delay) and delay >= 0:
            return min(delay, LONGEST)
    return None


def _stated(
    headers: Mapping[str, str], body: Iterable[tuple[str, Any]], text: str, now: float | None
) -> Iterable[float | None]:
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if name in headers:
            yield _number(headers[name], 0.001)
    for name in ("retry-after", "x-retry-after", "grpc-retry-pushback-ms"):
        if name in headers:
            yield _delay_or_date(headers[name], now) if "ms" not in name else _number(headers[name], 0.001)
    for name, value in body:
        yield _of_body(name, value, now)
    if headers:
        yield _reset(headers, now)
    if text:
        yield _spoken(text)


def find_spoken_delay(text: str) -> float | None:
    """Return the seconds until a retry can help, if words say so."""
    delay = _spoken(text) if text else None
    return None if delay is None else min(delay, LONGEST)


@cached
def _spoken(text: str) -> float | None:
    """Read a delay from words: "try again in 20s"."""
    low = text.lower()
    if not any(cue in low for cue in _CUES) or not _DIGIT.search(low):
        return None
    match = compiled(_SPOKEN).search(unquoted(low))
    return None if match is None else span(match[1])


def _number(text: str, unit: float = 1.0) -> float | None:
    try:
        return float(text) * unit
    except ValueError:
        return None


def _delay_or_date(text: str, now: float | None) -> float | None:
    number = _number(text)
    if number is None:
        instant = _instant(text)
        return span(text) if instant is None else _until(instant, now)
    if not _EPOCH < number < _NO_TIME:
        return number
    return _until(number if number < _MILLISECONDS else number / 1000, now)


def _until(instant: float, now: float | None) -> float | None:
    return None if now is None else max(instant - now, 0.0)


def _instant(text: str) -> float | None:
    """Parse an HTTP date or an RFC 3339 timestamp into seconds since 1970."""
    from datetime import UTC, datetime  # lazy: few hints are dates

    try:
        if match := compiled(_HTTP_DATE).search(text):
            day, month, year, hour, minute, second = match.groups()
            numbers = (int(year), _MONTHS[month.lower()], int(day), int(hour), int(minute), int(second))
            return datetime(*numbers, tzinfo=UTC).timestamp()
        if compiled(_TIMESTAMP).match(text):
            read = datetime.fromisoformat(text)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (KeyError, ValueError, OverflowError):
        pass
    return None


def span(text: str) -> float | None:
    """Parse a duration as servers write it: 20s, 6m0s, 1.5 seconds, 120ms; without a unit, seconds."""
    total, found = 0.0, False
    for number, unit in compiled(_SPAN).findall(text):
        low = unit.lower() or "s"
        total += float(number) * _UNITS[low[:2] if low[:2] == "ms" or low[:3] == "mil" else low[:1]]
        found = True
    return total if found else None


def _of_timedelta(value: object) -> float | None:
    from datetime import timedelta

    return value.total_seconds() if isinstance(value, timedelta) else None


def _of_body(name: str, value: Any, now: float | None) -> float | None:
    if isinstance(value, Mapping):  # a google.protobuf.Duration as JSON
        return _number(str(value.get("seconds", "")))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return _of_timedelta(value)
    if isinstance(value, str):
        return _delay_or_date(value[:_LENGTH], now)
    return value * 0.001 if "ms" in name else _delay_or_date(str(value), now)


def _reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the longest reset among the exhausted limits, or among all if none says what remains."""
    waits: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name and "rate-limit" not in name:
            continue
        if name == "ratelimit":
            match = compiled(_FIELD_T).search(value)
            wait = float(match[1]) if match else None
        elif "reset" in name:
            left = headers.get(name.replace("reset-after", "remaining").replace("reset", "remaining"))
            if left is not None and left.strip() not in ("0", "0.0", ""):
                continue
            wait = _delay_or_date(value, now)
        else:
            continue
        if wait is not None and math.isfinite(wait):
            waits.append(wait)
    return max(waits, default=None)
