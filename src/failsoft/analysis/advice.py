"""Advice from a recorded turn: which setting would have saved how much time.

Rules
-----
- Each sentence is supported by recorded numbers, and names them.
- Savings are estimated from this turn alone, with its calls as they were, and presented as estimates.
- Savings below ``LEAST`` seconds or below ``SHARE`` of the turn are not reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failsoft.analysis.waterfall.verdict import format_seconds
from failsoft.core.resilience.retry import CUT_OFF

if TYPE_CHECKING:
    from failsoft.analysis.waterfall import Row, Waterfall

Record = Mapping[str, Any]

LEAST, SHARE = 0.5, 0.1
ROOM = 1.5  # a timeout of this factor times the slowest success is long enough
NICE = (0.1, 0.2, 0.5, 1, 2, 3, 5, 8, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)


def advise(waterfall: Waterfall, events: Sequence[Record]) -> Iterator[str]:
    """Yield sentences about settings that would have saved time in this turn, largest saving first."""
    found = [
        *_shorter_timeouts(waterfall),
        *_more_concurrency(waterfall),
        *_cut_retries(events),
        *_doomed_retries(waterfall),
        *_repeated_calls(events),
    ]
    least = max(LEAST, SHARE * waterfall.duration)
    yield from (sentence for saved, sentence in sorted(found, key=lambda each: -each[0]) if saved >= least)


def _rows(waterfall: Waterfall) -> list[Row]:
    return [row for row in waterfall.rows if row.parent is None]


def _shorter_timeouts(waterfall: Waterfall) -> Iterator[tuple[float, str]]:
    """Tools that answer quickly when they work, and otherwise run into a long timeout."""
    good: dict[str, list[float]] = defaultdict(list)
    late: dict[str, list[float]] = defaultdict(list)
    for row in _rows(waterfall):
        for segment in row.segments:
            if segment.kind == "ok":
                good[segment.tool].append(segment.duration)
            elif segment.kind in ("timeout", "killed"):
                late[segment.tool].append(segment.duration)
    for tool, durations in late.items():
        if not good[tool]:
            continue
        slowest = max(good[tool])
        better = next((limit for limit in NICE if limit >= slowest * ROOM), None)
        if better is None or better >= min(durations):
            continue
        saved = sum(duration - better for duration in durations)
        yield (
            saved,
            (
                f"{tool} works in {format_seconds(slowest)} when it works, and {_times(len(durations), 'attempt')} waited "
                f"{format_seconds(max(durations))} for nothing: `timeout: {_written(better)}` saves {format_seconds(saved)} of "
                f"{format_seconds(waterfall.duration)}."
            ),
        )


def _more_concurrency(waterfall: Waterfall) -> Iterator[tuple[float, str]]:
    """Tools whose calls waited for a slot."""
    queued: dict[str, float] = defaultdict(float)
    for row in _rows(waterfall):
        for segment in row.segments:
            if segment.kind == "queued" and row.critical:
                queued[segment.tool] += segment.duration
    for tool, seconds in queued.items():
        yield (
            seconds,
            (
                f"{tool} waited {format_seconds(seconds)} for a place to run: a larger `concurrency` saves up to that much of "
                f"{format_seconds(waterfall.duration)}."
            ),
        )


def _doomed_retries(waterfall: Waterfall) -> Iterator[tuple[float, str]]:
    """Tools that failed in every attempt: fewer attempts or a fallback would have ended the calls sooner."""
    failed: dict[str, list[Row]] = defaultdict(list)
    worked: set[str] = set()
    for row in _rows(waterfall):
        if row.status == "failed" and row.attempts > 1 and {segment.tool for segment in row.segments} == {row.tool}:
            failed[row.tool].append(row)
        worked |= {segment.tool for segment in row.segments if segment.kind == "ok"}
    for tool, rows in failed.items():
        if tool in worked:
            continue
        attempts = sum(row.attempts for row in rows)
        first = sum(row.segments[0].duration for row in rows)
        saved = sum(row.end - row.start for row in rows if row.critical) - first
        yield (
            saved,
            (
                f"{tool} failed in all {attempts} attempts: with a fallback, the first failure would have been enough "
                f"(it took {format_seconds(first)}), which saves up to {format_seconds(saved)} of {format_seconds(waterfall.duration)}."
            ),
        )


def _cut_retries(events: Sequence[Record]) -> Iterator[tuple[float, str]]:
    """Calls whose retries ended because of ``max_total_time`` before their attempts were used up."""
    reported: set[object] = set()
    for event in events:
        why = str(event.get("no_retry") or "")
        tool = event.get("tool_id")
        if event.get("event_type") == "ToolError" and tool not in reported and why.startswith(CUT_OFF):
            reported.add(tool)
            yield float("inf"), f"The retries of {tool} ended early: {why}. A longer `max_total_time` allows more."


def _repeated_calls(events: Sequence[Record]) -> Iterator[tuple[float, str]]:
    """Tools that kept returning the same result to the same call."""
    for event in events:
        if event.get("event_type") == "NoProgress":
            tool, repeats = event.get("tool_id"), event.get("repeats")
            yield (
                float("inf"),
                (
                    f"{tool} has returned the same result to the same call {repeats} times in its thread: `max_repeats` "
                    "refuses further ones; `polling: true` says that it is meant to be so."
                ),
            )


def _times(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _written(seconds: float) -> str:
    return f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"
