"""Metrics that the runtime does not count itself: durations, error codes, and how turns spent their time.

Rules
-----
- Events are counted on a delivery thread, in batches. Calls never wait for it.
- A reader waits for the lock of one batch at most.
- The waterfall of a turn is built when the turn ends. At most ``MOST_TURNS`` open turns are followed, and ``MOST_EVENTS``
  events of each; the time of a longer turn is not divided.
- A call is measured once. A call that continues after its turn's deadline is measured up to the deadline.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from failsoft.analysis.waterfall.build import build
from failsoft.analysis.waterfall.verdict import TimeKind
from failsoft.observe import events
from failsoft.observe import metric_definitions as defined
from failsoft.observe.events import Event
from failsoft.observe.metric_definitions import BUCKETS, MetricDefinition, TurnEnd, TurnPart
from failsoft.observe.raw_records import Batch, make
from failsoft.observe.subscriptions import EventBatch
from failsoft.observe.success_runs import Run

MOST_TURNS = 1_000
MOST_EVENTS = 5_000
MOST_ABANDONED = 1_000  # calls that go on after their turns
_PARTS: dict[TimeKind, TurnPart] = {
    "useful": "useful",
    "failed": "failed",
    "unfinished": "failed",
    "waiting": "waiting",
    "held": "waiting",
    "queued": "waiting",
    "outside": "model",
}


class HistogramValue(NamedTuple):
    """A histogram: how many values are at most as large as each bucket's bound, the last one without a bound."""

    buckets: tuple[int, ...]  # cumulative; one more than BUCKETS
    total: float  # the sum of all values


class _Histogram:
    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        seconds = max(0.0, seconds)
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def value(self) -> HistogramValue:
        return HistogramValue(tuple(accumulate(self.counts)), self.total)


class _OpenTurn:
    __slots__ = ("events", "is_whole", "timed_out")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.timed_out = False
        self.is_whole = True  # all its events are here


class EventCounts:
    """Counts the events of one runtime. ``label`` maps a tool's id to the value of its label."""

    def __init__(self, label: Callable[[str | None], str]) -> None:
        self._label = label
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, tuple[str, ...]], float] = {}
        self._histograms: dict[tuple[str, tuple[str, ...]], _Histogram] = {}
        self._turns: dict[str, _OpenTurn] = {}
        self._abandoned: dict[tuple[str | None, str], None] = {}  # calls that their turns have abandoned, oldest first

    def take(self, parts: Iterable[Run | Batch]) -> None:
        """Count a part of the event stream."""
        with self._lock:
            for part in parts:
                if isinstance(part, Run):
                    self._take_run(part)
                else:
                    raws, offset, first = part
                    for seq, raw in enumerate(raws, first):
                        if type(raw[5]) is float and raw[4] is None:  # a plain success outside of turns
                            began = raw[6] if len(raw) > 6 else raw[5]
                            self.observe(defined.CALL_DURATION, raw[1] - began, self._label(raw[2]))
                        else:
                            self.take_event(make(raw, offset, seq))

    def _take_run(self, run: Run) -> None:
        if run.turn_id is not None:
            for event in EventBatch(run):
                self.take_event(event)
            return
        for tool, began, ended in zip(run.tools, run.began, run.ended, strict=True):
            self.observe(defined.CALL_DURATION, ended - began, self._label(tool))

    def take_event(self, event: Event) -> None:
        """Count one event; the caller holds the lock, or is alone."""
        kind, fields = event.event_type, event.fields
        if kind in _TURN_EVENTS:
            _TURN_EVENTS[kind](self, event)
            return
        if event.turn_id is not None:
            self._follow(event.turn_id, event)
        if event.call_id is None:
            return
        tool = self._label(event.tool_id)
        if kind in _ENDS and self._was_abandoned(event.turn_id, event.call_id):
            return
        if kind == events.CALL_LEFT:
            self._note_abandoned(event.turn_id, event.call_id)
        if kind == events.CALL_CANCELLED and not fields["attempts"]:
            return  # its tool did not run
        if kind == events.CALL_SUCCEEDED:
            asked = self._label(fields["primary"])
            self.observe(defined.CALL_DURATION, fields["total_ms"] / 1000, asked)
            if "recovery_ms" in fields:
                self.observe(defined.RECOVERY_DURATION, fields["recovery_ms"] / 1000, asked)
        elif kind in _DURATIONS:
            metric, name = _DURATIONS[kind]
            self.observe(metric, fields[name] / 1000, tool)
        elif kind == events.TOOL_ERROR:
            self.add(defined.ERRORS, 1, tool, fields["code"])
            self.add(defined.LOST_TIME, fields["duration_ms"] / 1000, tool, "failed")
            self.add(defined.LOST_TIME, fields.get("delay_ms", 0.0) / 1000, tool, "waiting")

    def _note_abandoned(self, turn_id: str | None, call_id: str) -> None:
        self._abandoned[turn_id, call_id] = None
        while len(self._abandoned) > MOST_ABANDONED:
            del self._abandoned[next(iter(self._abandoned))]

    def _was_abandoned(self, turn_id: str | None, call_id: str) -> bool:
        return bool(self._abandoned) and self._abandoned.pop((turn_id, call_id), self) is None

    # -- turns -------------------------------------------------------------------------------------------------------

    def _begin_turn(self, event: Event) -> None:
        if event.turn_id is None:
            return
        self._turns[event.turn_id] = _OpenTurn()
        while len(self._turns) > MOST_TURNS:
            del self._turns[next(iter(self._turns))]
        self._follow(event.turn_id, event)

    def _follow(self, turn_id: str, event: Event) -> None:
        turn = self._turns.get(turn_id)
        if turn is None:
            return
        if len(turn.events) < MOST_EVENTS:
            turn.events.append(event)
        else:
            turn.is_whole = False

    def _time_out(self, event: Event) -> None:
        turn = self._turns.get(event.turn_id or "")
        if turn is not None:
            turn.timed_out = True
            turn.events.append(event)

    def _end_turn(self, event: Event) -> None:
        turn = self._turns.pop(event.turn_id or "", None)
        fields = event.fields
        outcome: TurnEnd = "succeeded" if fields["succeeded"] >= fields["calls"] else "degraded"
        if turn is not None and turn.timed_out:
            outcome = "timed_out"
        self.observe(defined.TURN_DURATION, fields["duration_ms"] / 1000, outcome)
        if turn is not None and turn.is_whole:
            for share in build([*turn.events, event], turn_id=event.turn_id).verdict.path:
                self.add(defined.TURN_TIME, share.seconds, _PARTS[share.kind])

    # -- values ------------------------------------------------------------------------------------------------------

    def add(self, metric: MetricDefinition, amount: float, *labels: str) -> None:
        """Add to a counter."""
        key = (metric.name, labels)
        self._counters[key] = self._counters.get(key, 0.0) + max(0.0, amount)

    def observe(self, metric: MetricDefinition, seconds: float, *labels: str) -> None:
        """Add to a histogram."""
        key = (metric.name, labels)
        found = self._histograms.get(key)
        if found is None:
            found = self._histograms[key] = _Histogram()
        found.add(seconds)

    def counters(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """The counters by name and labels."""
        with self._lock:
            return dict(self._counters)

    def histograms(self) -> dict[tuple[str, tuple[str, ...]], HistogramValue]:
        """The histograms by name and labels."""
        with self._lock:
            return {key: histogram.value() for key, histogram in self._histograms.items()}

    def renew_after_fork(self) -> None:
        """Replace the lock of the parent process."""
        self._lock = threading.Lock()


_DURATIONS: dict[str, tuple[MetricDefinition, str]] = {
    events.CALL_FAILED: (defined.CALL_DURATION, "total_ms"),
    events.CALL_LEFT: (defined.CALL_DURATION, "duration_ms"),
    events.CALL_CANCELLED: (defined.CALL_DURATION, "duration_ms"),
    events.RETRY_SUCCEEDED: (defined.RECOVERY_DURATION, "recovery_ms"),
    events.CIRCUIT_CLOSED: (defined.RECOVERY_DURATION, "recovery_ms"),
}
_ENDS = (events.CALL_SUCCEEDED, events.CALL_FAILED, events.CALL_CANCELLED)
_TURN_EVENTS: dict[str, Callable[[EventCounts, Event], Any]] = {
    events.TURN_STARTED: EventCounts._begin_turn,
    events.TURN_TIMED_OUT: EventCounts._time_out,
    events.TURN_ENDED: EventCounts._end_turn,
}
