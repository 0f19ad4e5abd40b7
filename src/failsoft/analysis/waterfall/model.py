"""A turn as a picture: one row a logical call, its attempts, waits and refusals along one time axis.

Rules
-----
- Times are seconds since the turn began. A row's segments are in order and do not overlap.
- Every call of the turn has a row, also one that never ran. A call inside another one's tool has a row with a
  ``parent``; it is part of that one's time.
- ``critical`` marks the chain of calls that the turn's end had to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from failsoft.core.model.outcome import Status

SegmentKind = Literal["ok", "failed", "timeout", "killed", "waiting", "held", "queued", "running", "left", "cancelled"]
PAUSES: tuple[SegmentKind, ...] = ("waiting", "held", "queued")  # in which nothing was tried
TickKind = Literal["refused", "opened", "skipped"]


class Segment(NamedTuple):
    """A stretch of a call's time: an attempt of a tool, or a wait: before the next one, for the service, for a place to run."""

    kind: SegmentKind  # "left": still running when the turn went on without it; "held": the service had asked to be left alone
    tool: str
    start: float
    end: float
    text: str = ""  # what went wrong

    @property
    def duration(self) -> float:
        return self.end - self.start


class Tick(NamedTuple):
    """A moment: a refusal, a circuit that opened, a skip."""

    kind: TickKind
    tool: str
    at: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One call."""

    id: str
    tool: str
    status: Status | None = None  # None: the trace ends before the call does
    segments: tuple[Segment, ...] = ()
    ticks: tuple[Tick, ...] = ()
    via: str | None = None  # the tool that gave the value
    root: str | None = None  # of a skipped call: whose failure is the cause; None there: no time was left
    code: str | None = None
    may_have_acted: bool = False  # it failed, and nobody says that repeating it is safe
    defaults: tuple[str, ...] = ()  # arguments that a default stood in for
    partial: bool = False
    late: float | None = None  # seconds after the deadline at which its result came
    needs: tuple[str, ...] = ()
    parent: str | None = None
    critical: bool = False
    label: str = ""  # how people call the tool; the tool's id with spaces when unsaid
    error: str = ""  # of the last failure
    decision: str = ""  # what was done about it
    reason: str = ""  # why

    @property
    def name(self) -> str:
        """How people call the tool."""
        return self.label or self.tool.replace("_", " ")

    @property
    def short_id(self) -> str:
        """The call's id, as far as the name does not say it: ``#2`` for the second call that a turn has numbered."""
        number = self.id.removeprefix(f"{self.tool}-")
        return f"#{number}" if number != self.id and number.isdecimal() else self.id

    @property
    def start(self) -> float:
        return min([segment.start for segment in self.segments] + [tick.at for tick in self.ticks], default=0.0)

    @property
    def end(self) -> float:
        return max([segment.end for segment in self.segments] + [tick.at for tick in self.ticks], default=0.0)

    @property
    def attempts(self) -> int:
        return sum(segment.kind not in PAUSES for segment in self.segments)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tool": self.tool,
            "status": self.status,
            "start": round_ms(self.start),
            "end": round_ms(self.end),
            "attempts": self.attempts,
            "segments": [
                {**segment._asdict(), "start": round_ms(segment.start), "end": round_ms(segment.end)}
                for segment in self.segments
            ],
            "ticks": [{**tick._asdict(), "at": round_ms(tick.at)} for tick in self.ticks],
            "via": self.via,
            "root": self.root,
            "code": self.code,
            "may_have_acted": self.may_have_acted,
            "defaults": list(self.defaults),
            "partial": self.partial,
            "late": None if self.late is None else round_ms(self.late),
            "needs": list(self.needs),
            "parent": self.parent,
            "critical": self.critical,
            "label": self.name,
            "error": self.error,
            "decision": self.decision,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole turn, as data; ``Waterfall`` adds the verdict and the drawings."""

    turn_id: str  # as in the trace
    duration: float  # seconds
    rows: tuple[Row, ...] = ()  # one a call
    deadline: float | None = None  # when the turn ran into it


def round_ms(seconds: float) -> float:
    """Seconds, to the millisecond."""
    return round(seconds, 3)
