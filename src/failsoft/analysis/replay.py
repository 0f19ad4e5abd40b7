"""Replay the decisions of a recorded turn.

Rules
-----
- Every event that records a decision with its grounds is decided again, by the current core. There are two kinds: the
  Error Handler's decision about a failure (``replay``), and the verdict on a call whose dependency did not succeed
  (``replay_cascades``).
- A failure is the same if strategy, tool and reason are equal, and the delay to the millisecond. A cascade is the same
  if verdict and root are equal and the dependency did not succeed.
- A policy named by the event is looked up in the given policies. If it is missing, the decision cannot
  be compared.
- Decisions without recorded grounds cannot be compared either: refusals shared by callers, events of other versions.
  A decision of a custom Error Handler is compared with the built-in one's.

Why: a record explains a decision only if the decision can be reproduced from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failsoft.core.model.builtin_faults import REQUIRED_SKIPPED
from failsoft.core.model.decision import Decision
from failsoft.core.resilience.error_handler import decide, rebuild
from failsoft.core.turn.cascade import CascadeDecision, cascade

if TYPE_CHECKING:
    from failsoft.core.resilience.policy import Policy

_DECIDED = ("ToolError", "CallRefused", "CallHeld")
_CLOSE = 0.001  # seconds: events record delays in milliseconds
_NO_GROUNDS = "the event does not record its reasons"

Record = Mapping[str, Any]


class Replayed(NamedTuple):
    """One decision about a failure: as recorded, and as decided now."""

    seq: int
    call_id: str | None
    tool_id: str | None
    error: str
    recorded: Decision
    now: Decision | None  # None: it cannot be compared
    not_comparable: str = ""  # why it cannot be compared

    @property
    def same(self) -> bool | None:
        """True if the decisions are equal; None if they cannot be compared."""
        if self.now is None:
            return None
        here, there = self.recorded, self.now
        delays = abs((here.delay or 0.0) - (there.delay or 0.0)) <= _CLOSE
        return (here.strategy, here.reason, here.tool) == (there.strategy, there.reason, there.tool) and delays

    def to_dict(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "call_id": self.call_id,
            "tool_id": self.tool_id,
            "error": self.error,
            "recorded": self.recorded._asdict(),
            "now": None if self.now is None else self.now._asdict(),
            "same": self.same,
            "not_recorded": self.not_comparable,
        }


def replay(events: Iterable[Record], policies: Iterable[Policy] = ()) -> list[Replayed]:
    """Decide every recorded decision about a failure again. The events are flat records."""
    book = tuple(policies)
    return [_replay(event, book) for event in events if _is_decided(event)]


def _is_decided(event: Record) -> bool:
    """True if an event records a decision. There is no decision about a call that ``verify`` found to have happened."""
    return event["event_type"] in _DECIDED and event.get("decision", "verified") != "verified"


def _replay(event: Record, policies: tuple[Policy, ...]) -> Replayed:
    now, not_comparable = _decide(event, policies)
    recorded = Decision(
        event["decision"], event.get("reason", ""), _delay(event, now), event.get("alternative")
    )  # fmt: skip
    return Replayed(
        event.get("seq", 0),
        event.get("call_id"),
        event.get("tool_id"),
        event.get("error", ""),
        recorded,
        now,
        not_comparable,
    )


def _decide(event: Record, policies: tuple[Policy, ...]) -> tuple[Decision | None, str]:
    named = event.get("policy")
    if named is not None and all(policy.name != named for policy in policies):
        return None, f"policy {named!r} is not available"
    try:
        return decide(rebuild(event, policies)), ""
    except (KeyError, TypeError, ValueError):
        return None, _NO_GROUNDS


def _delay(event: Record, now: Decision | None) -> float | None:
    """The recorded delay. Events record it for retries only; for other strategies, use the replayed one."""
    if event["decision"] == "retry":
        return float(event["delay_ms"]) / 1000 if "delay_ms" in event else event.get("retry_delay")
    return None if now is None else now.delay


# --- cascades ---------------------------------------------------------------------------------------------------------

Fate = CascadeDecision | Literal["run"]  # run: nothing prevented it


class Cascaded(NamedTuple):
    """The fate of a call whose dependency did not succeed: as recorded, and as decided now."""

    seq: int
    call_id: str | None
    recorded: Fate
    now: Fate | None  # None: it cannot be compared
    root: str | None = None  # for a skipped call: the call whose failure is the cause
    root_now: str | None = None
    not_comparable: str = ""  # why it cannot be compared

    @property
    def same(self) -> bool | None:
        """True if the fates are equal; None if they cannot be compared."""
        return None if self.now is None else (self.recorded, self.root) == (self.now, self.root_now)

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "same": self.same}


def replay_cascades(events: Iterable[Record]) -> list[Cascaded]:
    """Judge every cascade of one turn again. The events are flat records."""
    records = [*events]
    return [*_Turn(records).judge(records)]


class _Turn:
    """State of a turn while its events are read."""

    def __init__(self, events: Sequence[Record]) -> None:
        ends: dict[str, str] = {}  # each call's first end; a success after CallLeft is late
        for event in events:
            if event["event_type"] in ("CallSucceeded", "CallLeft"):
                ends.setdefault(event["call_id"], event["event_type"])
        self._good = {id for id, end in ends.items() if end == "CallSucceeded"}  # calls that succeeded in time
        # Calls that succeeded without a known value
        self._lost = {event["call_id"] for event in events if event.get("value_known") is False}
        self._ran: set[str] = set()  # calls that ran
        self._helped: set[str] = set()  # calls that got a default
        self._roots: dict[str, str | None] = {}  # roots of skipped calls
        self._expired = False

    def judge(self, events: Iterable[Record]) -> Iterator[Cascaded]:
        for event in events:
            kind, id = event["event_type"], event.get("call_id") or ""
            if kind in ("CallSucceeded", "ToolError", "CallLeft"):
                self._ran.add(id)
            elif kind == "CallSkipped":
                yield self._skipped(event, id)
                self._roots[id] = event.get("root")
            elif kind == "DefaultUsed":
                yield _compare(event, id, "substitute", _judge(event))
                self._helped.add(id)
            elif kind == "TurnTimedOut":
                self._expired = True
            elif kind == "TurnEnded":
                yield from self._ran_all_the_same(event)

    def _skipped(self, event: Record, id: str) -> Cascaded:
        recorded: Fate = "escalate" if event.get("message") == REQUIRED_SKIPPED else "skip"
        if "because" not in event:
            return _compare(event, id, recorded, None)
        because = event["because"]
        if because is None:  # skipped for lack of time
            return _compare(event, id, recorded, "skip" if self._expired else "run")
        now: Fate | None = "run" if because in self._good - self._lost else "skip" if self._expired else _judge(event)
        return _compare(event, id, recorded, now, self._roots.get(because, because))

    def _ran_all_the_same(self, ended: Record) -> Iterator[Cascaded]:
        """Yield calls that ran although a dependency did not succeed and no default replaced its value."""
        for id, needs in (ended.get("needs") or {}).items():
            if id in self._ran - self._helped and not self._good.issuperset(needs):
                yield _compare(ended, id, "run", "skip")


def _compare(event: Record, id: str, recorded: Fate, now: Fate | None, root: str | None = None) -> Cascaded:
    not_comparable = _NO_GROUNDS if now is None else ""
    return Cascaded(event.get("seq", 0), id, recorded, now, event.get("root"), root, not_comparable)


def _judge(event: Record) -> CascadeDecision | None:
    try:
        return cascade(event["required"], event["defaults"], event["arguments"])
    except (KeyError, TypeError):
        return None
