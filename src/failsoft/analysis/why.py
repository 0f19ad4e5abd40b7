"""Explain why a turn took as long as it did: its waterfall, its biggest loss, and what is known about it.

Rules
-----
- Everything comes from the turn's events as flat records, so a turn can be explained later and elsewhere.
- The loss is the tool whose failures and waits took most time (``Verdict.loss``). Its longest failed attempt describes
  it.
- Knowledge about that family of errors comes from the recovery memory if it is available, else from what the recorded
  decision quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from failsoft.analysis.advice import advise
from failsoft.analysis.waterfall import Share, Waterfall, build
from failsoft.core.resilience.error_family import fingerprint
from failsoft.core.resilience.error_handler import rebuild
from failsoft.core.resilience.recovery_memory import Evidence, Family

Record = Mapping[str, Any]


class Loss(NamedTuple):
    """The tool that lost most time."""

    share: Share
    calls: tuple[str, ...]
    error: str
    code: str
    classification: str
    reason: str  # of the recorded decision
    family: str
    known: Evidence | None

    def to_dict(self) -> dict[str, Any]:
        known = self.known
        return {
            "tool": self.share.tool,
            "seconds": round(self.share.seconds, 3),
            "attempts": self.share.attempts,
            "calls": list(self.calls),
            "error": self.error,
            "code": self.code,
            "classification": self.classification,
            "reason": self.reason,
            "family": self.family,
            "known": None if known is None else {"text": str(known), **known.to_dict()},
        }


class Running(NamedTuple):
    """A call that has not ended."""

    call_id: str | None
    tool: str
    label: str
    seconds: float  # until ``now``, or until the last event if ``now`` is not given

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "seconds": round(self.seconds, 3)}


class Why(NamedTuple):
    """The explanation of a turn."""

    turn_id: str
    began: str | None  # ISO time
    thread: str | None
    ended: bool  # False: the turn is running, or its process has died
    waterfall: Waterfall
    loss: Loss | None
    seconds: float = 0.0  # the turn's duration so far
    running: tuple[Running, ...] = ()
    advice: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "turn_id": self.turn_id,
            "began": self.began,
            "thread": self.thread,
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
            "running": [call.to_dict() for call in self.running],
            "advice": list(self.advice),
            "verdict": str(self.waterfall.verdict),
            "loss": None if self.loss is None else self.loss.to_dict(),
            "waterfall": self.waterfall.to_dict(),
        }


def explain_turn(
    turn_id: str, events: Sequence[Record], families: Iterable[Record] = (), *, now: float | None = None
) -> Why:
    """Explain a turn. ``families`` is the recovery memory as plain data; ``now`` is the wall clock in seconds."""
    waterfall = build(events, turn_id=turn_id)
    started = next((event for event in events if event["event_type"] == "TurnStarted"), None)
    ended = any(event["event_type"] == "TurnEnded" for event in events)
    running = () if ended else tuple(_find_running(waterfall, events, now))
    return Why(
        turn_id,
        events[0]["timestamp"] if events else None,
        None if started is None else started.get("thread"),
        ended,
        waterfall,
        _find_loss(waterfall, events, families),
        max([waterfall.duration, *(call.seconds for call in running)]),
        running,
        tuple(advise(waterfall, events)),
    )


def _find_running(waterfall: Waterfall, events: Sequence[Record], now: float | None) -> Iterator[Running]:
    """The calls reported as running that have not ended, longest first."""
    last = max((_seconds(event) for event in events), default=0.0)
    rows = {row.id: row for row in waterfall.rows if row.status is None}
    reports = {event["call_id"]: event for event in events if event["event_type"] == "CallRunning"}
    found = []
    for call_id, event in reports.items():
        row = rows.get(call_id)
        if row is not None:
            began = _seconds(event) - (event.get("duration_ms") or 0.0) / 1000
            found.append(Running(call_id, row.tool, row.name, max(0.0, (last if now is None else now) - began)))
    yield from sorted(found, key=lambda call: -call.seconds)


def _seconds(event: Record) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def _find_loss(waterfall: Waterfall, events: Sequence[Record], families: Iterable[Record]) -> Loss | None:
    share = waterfall.verdict.loss
    if share is None or not share.attempts:
        return None
    failures = [event for event in events if event["event_type"] == "ToolError" and event["tool_id"] == share.tool]
    if not failures:
        return None
    worst = max(failures, key=lambda event: event.get("duration_ms", 0.0))
    try:
        report = rebuild(worst)
    except (KeyError, ValueError):  # written by another version
        return None
    family = fingerprint(report.fault)
    kept = next(
        (
            Family.from_dict(each)
            for each in families
            if (each["tenant"], each["tool"], each["family"]) == (report.tenant, share.tool, family)
        ),
        None,
    )
    known = report.evidence if kept is None else Evidence(round(kept.seen), tuple(kept.tallies.items()))
    calls = tuple(dict.fromkeys(event["call_id"] for event in failures))
    code, kind = report.fault.code.value, report.fault.classification
    return Loss(share, calls, report.fault.message, code, kind, worst.get("reason", ""), family, known)
