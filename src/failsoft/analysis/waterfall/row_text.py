"""Describe one call of a waterfall in words, for ``why`` and the HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from failsoft.analysis.waterfall.terminal import summarise
from failsoft.analysis.waterfall.verdict import format_seconds

if TYPE_CHECKING:
    from failsoft.analysis.waterfall.model import Row, Segment

_SAID = {
    "ok": "worked",
    "failed": "failed",
    "timeout": "timed out",
    "killed": "was killed",
    "running": "is running",
    "left": "was left unfinished",
    "cancelled": "was cancelled",
}
_PAUSED = {"waiting": "waited", "held": "held back", "queued": "queued", "verifying": "verified"}


def describe_row(row: Row) -> Iterator[str]:
    """Yield one line per attempt or wait, then the result."""
    number = 0
    for segment in row.segments:
        number += segment.kind in _SAID
        yield _describe_segment(segment, number)
    for tick in row.ticks:
        text = f": {tick.text}" if tick.text else ""
        if tick.kind == "opened":
            yield f"at {format_seconds(tick.at)}: the circuit of {tick.tool} opened"
        elif tick.kind == "refused":
            yield f"at {format_seconds(tick.at)}: refused{text}"
    yield f"in the end: {summarise(row)}"


def _describe_segment(segment: Segment, number: int) -> str:
    when = f"at {format_seconds(segment.start)}"
    if segment.kind == "waiting":
        return f"{when}: waited {format_seconds(segment.duration)} to try again"
    if segment.kind == "held":
        return f"{when}: held back for {format_seconds(segment.duration)}, the service asked for it"
    if segment.kind == "queued":
        return f"{when}: waited {format_seconds(segment.duration)} for a place to run"
    text = f": {segment.text}" if segment.text else ""
    if segment.kind == "verifying":
        return f"{when}: asked verify what happened, answered after {format_seconds(segment.duration)}{text}"
    return (
        f"{when}: attempt {number}, {segment.tool} {_SAID[segment.kind]} after {format_seconds(segment.duration)}{text}"
    )


def sum_up(row: Row) -> str:
    """The attempts and waits on one line: ``failed 15.0 s · waited 2.0 s · worked 3.0 s``."""
    parts = []
    for segment in row.segments:
        described = _SAID.get(segment.kind) or _PAUSED[segment.kind]
        if segment.kind in _SAID and segment.tool != row.tool:
            described = f"{segment.tool} {described}"
        parts.append(f"{described} {format_seconds(segment.duration)}")
    return " · ".join(parts)
