"""Why a turn took as long as it did: its picture, its biggest loss, and what is known of that.

Rules
-----
- Everything comes from the turn's events, as flat records; so it can be asked long after the turn, and elsewhere.
- The loss is the tool whose failures and waits took most (``Verdict.loss``). It is told by the failed attempt
  that took longest.
- What the recovery memory knows of that error's family is taken from the memory if that is at hand, else from what the
  decision at the time could quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from failsoft.core.fingerprint import fingerprint
from failsoft.core.memory import Evidence, Family
from failsoft.core.recovery import rebuild
from failsoft.core.waterfall import Share, Waterfall, build

Record = Mapping[str, Any]


class Loss(NamedTuple):
    """Where most time was lost."""

    share: Share
    calls: tuple[str, ...]
    error: str
    code: str
    classification: str
    reason: str  # of the decision about it
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


class Why(NamedTuple):
    """A turn, explained."""

    turn_id: str
    began: str | None  # ISO time
    thread: str | None
    ended: bool  # False: the turn runs still, or its process has died
    waterfall: Waterfall
    loss: Loss | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "turn_id": self.turn_id,
            "began": self.began,
            "thread": self.thread,
            "ended": self.ended,
            "verdict": str(self.waterfall.verdict),
            "loss": None if self.loss is None else self.loss.to_dict(),
            "waterfall": self.waterfall.to_dict(),
        }


def explain_turn(turn_id: str, events: Sequence[Record], families: Iterable[Record] = ()) -> Why:
    """Work it out. ``families`` are the recovery memory's, as plain data (``Family.to_dict()``)."""
    waterfall = build(events, turn_id=turn_id)
    started = next((event for event in events if event["event_type"] == "TurnStarted"), None)
    return Why(
        turn_id,
        events[0]["timestamp"] if events else None,
        None if started is None else started.get("thread"),
        any(event["event_type"] == "TurnEnded" for event in events),
        waterfall,
        _find_loss(waterfall, events, families),
    )


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
    except (KeyError, ValueError):  # an event of another version
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
