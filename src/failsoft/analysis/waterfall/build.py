"""Build a turn's waterfall from its events.

Rules
-----
- The events are those of one trace in order, as objects or as flat records. Events of other turns are ignored.
- An attempt ends at its event's time, minus ``decided_ms`` for a custom Error Handler, and begins ``duration_ms``
  earlier. A wait follows a failure that is retried, or precedes an attempt while the service has asked for a pause
  (``held``). It lasts until the next attempt, even if another delay was planned.
- ``queued`` is the recorded ``queued_ms``: the attempt waited for a slot, a thread or a process. A busy event loop does
  not count.
- ``verifying`` follows the failed attempt: the delay and the time until ``verify`` answered. Its event comes before the
  attempt's, because the decision about the attempt depends on it.
- After a call was abandoned at the deadline, events change only ``late``.
- The critical path runs backwards from the call that ended last: to its dependency that ended last; from a call without
  dependencies to the last call that ended before it began, because the turn's body waited for that call.

Why event types are spelled out here: a trace file is read long after its runtime is gone, so their names are a format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from failsoft.analysis.waterfall.model import PAUSES, Row, Segment, SegmentKind, Tick
from failsoft.analysis.waterfall.waterfall import Waterfall
from failsoft.core.model.builtin_faults import BAD_ARGUMENTS, QUEUE_FULL, THREAD_LIMIT, is_own_timeout
from failsoft.core.model.outcome import Outcome, Status

Fields = Mapping[str, Any]

_NEVER_RAN = (BAD_ARGUMENTS, QUEUE_FULL, THREAD_LIMIT)
_BEFORE = 0.002  # seconds of overlap that still count as "ended before"
_READABLE = 20  # characters of an id; a provider's ids are longer, and names say more
_INSTANT = 0.0005  # seconds; a shorter call is not part of the critical path
_CLOSE = 0.02  # seconds; a shorter gap is only a busy event loop


def build(
    events: Iterable[Any], *, turn_id: str | None = None, outcomes: Mapping[str, Outcome[Any]] | None = None
) -> Waterfall:
    """Build the waterfall of one turn: ``turn_id``, else the first turn in the events.

    ``outcomes``, if given, determine the order of the rows and add calls without events.
    """
    turn = _Turn(turn_id)
    for at, fields in map(_read, events):
        turn.take(at, fields)
    return turn.finish(outcomes or {})


def _read(event: Any) -> tuple[float, Fields]:
    if isinstance(event, Mapping):
        return datetime.fromisoformat(event["timestamp"]).timestamp(), event
    return event.timestamp, event.to_dict()


class _Turn:
    """State of a turn while its events are read."""

    def __init__(self, turn_id: str | None) -> None:
        self._id = turn_id
        self._calls: dict[str, _Call] = {}
        self._began: float | None = None
        self._last = 0.0
        self._duration: float | None = None
        self._deadline: float | None = None
        self._needs: Mapping[str, Any] = {}
        self._labels: Mapping[str, str] = {}

    def take(self, at: float, fields: Fields) -> None:
        turn_id = fields.get("turn_id")
        if turn_id is None or turn_id != (self._id or turn_id):
            return
        self._id = turn_id
        if self._began is None:
            self._began = at
        at = self._last = round(at - self._began, 6)
        kind, call_id = fields["event_type"], fields.get("call_id")
        if kind == "TurnTimedOut":
            self._deadline = at
        elif kind == "TurnEnded":
            self._duration = fields.get("duration_ms", at * 1000) / 1000
            self._needs = fields.get("needs") or {}
            self._labels = fields.get("labels") or {}
        elif call_id is not None:
            if call_id not in self._calls:
                self._calls[call_id] = _Call(call_id, fields)
            self._calls[call_id].take(kind, at, fields)

    def finish(self, outcomes: Mapping[str, Outcome[Any]]) -> Waterfall:
        duration = self._last if self._duration is None else self._duration
        rows = {id: call.finish(self._last) for id, call in self._calls.items()}
        for id, outcome in outcomes.items():
            if id not in rows:
                rows[id] = _cancelled_row(outcome, duration)
        for id, row in rows.items():
            label = outcomes[id].label if id in outcomes else self._labels.get(row.tool, "")
            if label and label != row.name:
                rows[id] = replace(row, label=label)
        for id, needs in self._needs.items():
            if id in rows:
                rows[id] = replace(rows[id], needs=tuple(need for need in needs if need in rows))
        for id, row in rows.items():
            if row.root in rows and len(row.root or "") > _READABLE:
                rows[id] = replace(row, root_name=rows[row.root or ""].name)
        order = list(outcomes) or sorted(rows, key=lambda id: rows[id].start)
        rows = {id: rows[id] for id in _with_children(order, rows)}
        for id in _critical(rows):
            if rows[id].end - rows[id].start >= _INSTANT:
                rows[id] = replace(rows[id], critical=True)
        return Waterfall(self._id or "", duration, tuple(rows.values()), self._deadline)


class _Call:
    """One call's row while its events are read."""

    def __init__(self, id: str, fields: Fields) -> None:
        self.row = Row(id, fields.get("tool_id") or "", parent=fields.get("parent_id"))
        self._abandoned_at: float | None = None
        self._running_since: float | None = None  # start of the attempt last reported as running
        self._verifying: Segment | None = None  # after the attempt whose event comes next

    def finish(self, now: float) -> Row:
        """Return the row. A call that has not ended runs until ``now``."""
        row, since = self.row, self._running_since
        if row.status is not None or since is None:
            return row
        tool = row.segments[-1].tool if row.segments else row.tool
        since = max([since, *(segment.end for segment in row.segments)])
        return row if since >= now else replace(row, segments=(*row.segments, Segment("running", tool, since, now)))

    def take(self, kind: str, at: float, fields: Fields) -> None:
        if self.row.parent is None and fields.get("parent_id") is not None:
            self._change(parent=fields["parent_id"])
        if self._abandoned_at is not None:
            if kind == "LateResult":
                self.row = replace(self.row, late=at - self._abandoned_at)
            return
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, at, fields)

    def _change(self, **changes: Any) -> None:
        self.row = replace(self.row, **changes)

    def _attempt(self, kind: SegmentKind, at: float, fields: Fields, text: str = "") -> None:
        start = round(max(0.0, at - fields.get("duration_ms", 0.0) / 1000), 6)
        asked = round(max(0.0, start - fields.get("queued_ms", 0.0) / 1000), 6)
        if start - asked <= _CLOSE:
            asked = start
        tool = fields.get("tool_id") or self.row.tool
        segments = list(self.row.segments)
        if segments:  # recorded times are rounded, and waits were recorded as planned
            last = segments[-1]
            if last.kind in PAUSES or last.end + _CLOSE > asked:
                segments[-1] = last._replace(end=max(asked, last.start))
            asked = max(asked, segments[-1].end)
        if asked < start:
            segments.append(Segment("queued", tool, asked, start))
        segments.append(Segment(kind, tool, start, at, text))
        self._change(segments=tuple(segments))

    def running(self, at: float, fields: Fields) -> None:
        self._running_since = round(max(0.0, at - fields.get("duration_ms", 0.0) / 1000), 6)

    def failed_once(self, at: float, fields: Fields) -> None:
        kind: SegmentKind = "failed"
        if is_own_timeout(fields.get("rule")):
            kind = "killed" if fields.get("killed") else "timeout"
        at = round(max(0.0, at - fields.get("decided_ms", 0.0) / 1000), 6)
        if fields.get("rule") in _NEVER_RAN:
            self.refused(at, fields)
        else:
            self._attempt(kind, at, fields, fields.get("error", ""))
            self._decided(fields)
        at = self._add_verifying(at)
        if fields.get("decision") == "retry":
            self._wait("waiting", at, fields)

    def verified(self, at: float, fields: Fields) -> None:
        took = (fields.get("delay_ms", 0.0) + fields.get("duration_ms", 0.0)) / 1000
        tool, reason = fields.get("tool_id") or self.row.tool, fields.get("reason")
        text = f"{fields.get('answer', '')}: {reason}" if reason else fields.get("answer", "")
        self._verifying = Segment("verifying", tool, round(max(0.0, at - took), 6), at, text)

    def _add_verifying(self, at: float) -> float:
        """Add the time for ``verify`` after the attempt that it was about; return when it ended, else ``at``."""
        made, self._verifying = self._verifying, None
        if made is None:
            return at
        start = max([made.start, *(segment.end for segment in self.row.segments)])
        self._change(segments=(*self.row.segments, made._replace(start=start, end=max(start, made.end))))
        return max(at, made.end)

    def held(self, at: float, fields: Fields) -> None:
        self._wait("held", at, fields)

    def _wait(self, kind: SegmentKind, at: float, fields: Fields) -> None:
        """Add a wait as planned. The next attempt, or the call's end, corrects its length."""
        segments = [segment._replace(end=min(segment.end, at)) for segment in self.row.segments]
        tool = fields.get("tool_id") or self.row.tool
        wait = Segment(kind, tool, at, round(at + fields.get("delay_ms", 0.0) / 1000, 6))
        self._change(segments=(*segments, wait))

    def refused(self, at: float, fields: Fields) -> None:
        text = fields.get("error") or fields.get("reason", "")
        self._tick(Tick("refused", fields.get("tool_id") or self.row.tool, at, text))
        self._decided(fields)
        if fields.get("decision") not in ("retry", "alternative_tool", "partial_success"):
            self._change(status="failed")

    def _decided(self, fields: Fields) -> None:
        error, decision, reason = (fields.get(name) or "" for name in ("error", "decision", "reason"))
        self._change(code=fields.get("code"), error=error, decision=decision, reason=reason)

    def answered(self, at: float, fields: Fields) -> None:
        """Record that the call was answered without running, because the same call had just failed."""
        self._tick(Tick("refused", self.row.tool, at, fields.get("error") or fields.get("reason", "")))
        self._change(status="failed", code=fields.get("code"), error=fields.get("error") or "")
        self._change(decision="fail_gracefully", reason=fields.get("reason") or "")

    def opened(self, at: float, fields: Fields) -> None:
        self._tick(Tick("opened", fields["tool_id"], at))

    def _tick(self, tick: Tick) -> None:
        self._change(ticks=(*self.row.ticks, tick))

    def succeeded(self, at: float, fields: Fields) -> None:
        verified = fields.get("via") == "verify"
        self._add_verifying(at)
        if not verified and (
            fields.get("duration_ms") or not self.row.partial
        ):  # the part may be from an earlier attempt
            self._attempt("ok", at, fields)
        if verified:
            self._change(value_known=fields.get("value_known") is not False)
        self._change(
            status="succeeded",
            via="verify" if verified else fields["tool_id"],
            tool=fields.get("primary") or self.row.tool,
            code=None,
        )

    def failed(self, _at: float, fields: Fields) -> None:
        acted = fields.get("effect") != "none" and fields.get("safe_to_repeat") is not True
        self._change(status="failed", may_have_acted=acted, code=fields.get("code"))

    def skipped(self, at: float, fields: Fields) -> None:
        self._tick(Tick("skipped", self.row.tool, at))
        self._change(status="skipped", root=fields.get("root"))

    def cut_off(self, at: float, fields: Fields) -> None:
        self._abandoned_at = at
        self._interrupt("left", "timed_out", at, fields)

    def cancelled(self, at: float, fields: Fields) -> None:
        self._interrupt("cancelled", "cancelled", at, fields)

    def _interrupt(self, kind: SegmentKind, status: Status, at: float, fields: Fields) -> None:
        """End the call in the middle of an attempt or a wait."""
        segments = self.row.segments
        if segments and segments[-1].kind in ("waiting", "held") and segments[-1].end >= at:
            self._change(segments=(*segments[:-1], segments[-1]._replace(end=at)))
        elif segments:
            self._attempt(kind, at, {"duration_ms": (at - segments[-1].end) * 1000, "tool_id": segments[-1].tool})
        elif fields.get("duration_ms"):
            self._attempt(kind, at, fields)
        self._change(status=status)

    def defaulted(self, _at: float, fields: Fields) -> None:
        self._change(defaults=tuple(fields.get("arguments", ())))

    def partly(self, _at: float, _fields: Fields) -> None:
        self._change(partial=True)


_READERS: dict[str, Callable[[_Call, float, Fields], None]] = {
    "ToolError": _Call.failed_once,
    "EffectVerified": _Call.verified,
    "CallRefused": _Call.refused,
    "CallHeld": _Call.held,
    "LoopPrevented": _Call.answered,
    "CallRunning": _Call.running,
    "CircuitOpened": _Call.opened,
    "CallSucceeded": _Call.succeeded,
    "CallFailed": _Call.failed,
    "CallSkipped": _Call.skipped,
    "CallLeft": _Call.cut_off,
    "CallCancelled": _Call.cancelled,
    "DefaultUsed": _Call.defaulted,
    "PartialUsed": _Call.partly,
}


def _cancelled_row(outcome: Outcome[Any], duration: float) -> Row:
    """The row of a call that was cancelled with its turn: its own event comes after the turn's end."""
    start = max(0.0, duration - outcome.duration)
    segments = (Segment("cancelled", outcome.tool, start, duration),) if outcome.duration else ()
    return Row(outcome.id, outcome.tool, outcome.status, segments)


def _with_children(order: Sequence[str], rows: Mapping[str, Row]) -> Iterator[str]:
    """The ids in order, each followed by its nested calls."""
    inside: dict[str, list[str]] = {}
    for id, row in rows.items():
        if row.parent is not None and row.parent in rows:
            inside.setdefault(row.parent, []).append(id)
    children = {id for ids in inside.values() for id in ids}
    waiting = [id for id in dict.fromkeys((*order, *rows)) if id not in children][::-1]
    while waiting:
        id = waiting.pop()
        yield id
        waiting += inside.pop(id, [])[::-1]


def _critical(rows: Mapping[str, Row]) -> list[str]:
    """The ids of the calls on the critical path, the last one first."""
    ran = sorted(
        (row for row in rows.values() if row.parent is None and row.end > row.start),
        key=lambda row: (-row.end, row.start),
    )
    place = {row.id: at for at, row in enumerate(ran)}
    path: dict[str, None] = {}
    at = 0
    while at < len(ran) and ran[at].id not in path:
        row = ran[at]
        path[row.id] = None
        if row.needs:
            before = [place[need] for need in row.needs if need in place and need not in path]
            at = min(before, default=len(ran))
        else:
            at = next((at for at in range(at + 1, len(ran)) if ran[at].end <= row.start + _BEFORE), len(ran))
    return list(path)
