"""The waterfall of a turn: one row per call, with its attempts, waits and refusals on one time axis.

Rules
-----
- Times are seconds since the turn began. A row's segments are ordered and do not overlap.
- Every call of the turn has a row, even if it never ran. A nested call has a row with a ``parent``; its time is part of
  the parent's.
- ``critical`` marks the chain of calls that determined the turn's end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from failsoft.core.model.outcome import Status

SegmentKind = Literal[
    "ok", "failed", "timeout", "killed", "waiting", "held", "queued", "running", "left", "cancelled", "verifying"
]
PAUSES: tuple[SegmentKind, ...] = ("waiting", "held", "queued", "verifying")  # segments that are not attempts
TickKind = Literal["refused", "opened", "skipped"]


class Segment(NamedTuple):
    """A part of a call's time: an attempt, or a wait (for the next attempt, for the service, for a slot, for verify)."""

    kind: SegmentKind  # "left": abandoned while running; "held": waiting for the time that the service has named
    tool: str
    start: float
    end: float
    text: str = ""  # the error; the answer of verify

    @property
    def duration(self) -> float:
        return self.end - self.start


class Tick(NamedTuple):
    """A moment: a refusal, a circuit that opened, or a skip."""

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
    via: str | None = None  # the tool that returned the value
    root: str | None = None  # for a skipped call: the call whose failure is the cause; None: there was no time
    root_name: str = ""  # its name for people, if its id is too long to read
    code: str | None = None
    may_have_acted: bool = False  # it failed, and repeating it may be unsafe
    defaults: tuple[str, ...] = ()  # arguments filled by a default
    partial: bool = False
    late: float | None = None  # seconds from the deadline to its late result
    needs: tuple[str, ...] = ()
    parent: str | None = None
    critical: bool = False
    label: str = ""  # the tool's name for people; empty: the id with spaces
    error: str = ""  # the last failure
    decision: str = ""  # the decision about it
    reason: str = ""  # why
    value_known: bool = True  # False: verify found that it succeeded, but its value is lost

    @property
    def name(self) -> str:
        """The tool's name for people."""
        return self.label or self.tool.replace("_", " ")

    @property
    def short_id(self) -> str:
        """The call's id without the tool's name: ``#2`` for the second numbered call of a turn."""
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
            **({} if self.value_known else {"value_known": False}),
        }


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows of one turn. ``Waterfall`` adds the verdict and the drawings."""

    turn_id: str  # as in the trace
    duration: float  # seconds
    rows: tuple[Row, ...] = ()  # one per call
    deadline: float | None = None  # when the turn reached its deadline; None: it did not


def round_ms(seconds: float) -> float:
    """Round seconds to the millisecond."""
    return round(seconds, 3)
