"""Decide again: a recorded turn fed back through the core.

Rules
-----
- Every event that tells of a decision and of what it rested on is decided again, with the core that this version of
  failsoft has. There are two kinds: what the Error Handler decided about a failure (``replay``), and what became of a
  call whose dependency brought no value (``replay_cascades``).
- A failure: strategy, tool and reason must be the same, and the delay to the millisecond. A cascade: the verdict, the
  root it names, and that the dependency at fault brought no value.
- A policy that the event names is looked for in the book that is given. Without it the decision cannot come out the
  same, and is not held against anybody: it is ``untold``.
- ``untold`` are decisions, too, that the event has no grounds for: refusals that callers shared, events of other
  versions. What another Error Handler has decided comes out as this one would have.

Why: a decision that cannot be repeated from what was written down was not explained by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failsoft.core.model.builtin_faults import REQUIRED_SKIPPED
from failsoft.core.model.outcome import Decision
from failsoft.core.resilience.error_handler import decide, rebuild
from failsoft.core.turn.cascade import Verdict, cascade

if TYPE_CHECKING:
    from failsoft.core.resilience.policy import Policy

_DECIDED = ("ToolError", "CallRefused", "CallHeld")
_CLOSE = 0.001  # seconds: delays are written down in milliseconds
_NO_GROUNDS = "the event does not say what it rested on"

Record = Mapping[str, Any]


class Replayed(NamedTuple):
    """One decision about a failure, as it was and as it comes out now."""

    seq: int
    call_id: str | None
    tool_id: str | None
    error: str
    recorded: Decision
    again: Decision | None  # None: untold
    untold: str = ""  # why

    @property
    def same(self) -> bool | None:
        """Is it the same decision? None: that cannot be said."""
        if self.again is None:
            return None
        here, there = self.recorded, self.again
        delays = abs((here.delay or 0.0) - (there.delay or 0.0)) <= _CLOSE
        return (here.strategy, here.reason, here.tool) == (there.strategy, there.reason, there.tool) and delays

    def to_dict(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "call_id": self.call_id,
            "tool_id": self.tool_id,
            "error": self.error,
            "recorded": self.recorded._asdict(),
            "again": None if self.again is None else self.again._asdict(),
            "same": self.same,
            "untold": self.untold,
        }


def replay(events: Iterable[Record], policies: Iterable[Policy] = ()) -> list[Replayed]:
    """Every decision of the events (flat records) about a failure, decided again."""
    book = tuple(policies)
    return [_replay(event, book) for event in events if event["event_type"] in _DECIDED and "decision" in event]


def _replay(event: Record, policies: tuple[Policy, ...]) -> Replayed:
    again, untold = _decide(event, policies)
    recorded = Decision(
        event["decision"], event.get("reason", ""), _delay(event, again), event.get("alternative")
    )  # fmt: skip
    return Replayed(
        event.get("seq", 0),
        event.get("call_id"),
        event.get("tool_id"),
        event.get("error", ""),
        recorded,
        again,
        untold,
    )


def _decide(event: Record, policies: tuple[Policy, ...]) -> tuple[Decision | None, str]:
    named = event.get("policy")
    if named is not None and all(policy.name != named for policy in policies):
        return None, f"policy {named!r} is not at hand"
    try:
        return decide(rebuild(event, policies)), ""
    except (KeyError, TypeError, ValueError):
        return None, _NO_GROUNDS


def _delay(event: Record, again: Decision | None) -> float | None:
    """What was waited; an event says so of retries only, of the others the decision alone knows it."""
    if event["decision"] == "retry":
        return float(event["delay_ms"]) / 1000 if "delay_ms" in event else event.get("retry_delay")
    return None if again is None else again.delay


# --- cascades ---------------------------------------------------------------------------------------------------------

Fate = Verdict | Literal["run"]  # run: nothing stood in its way


class Cascaded(NamedTuple):
    """What became of a call whose dependency brought no value, as it was and as it comes out now."""

    seq: int
    call_id: str | None
    recorded: Fate
    again: Fate | None  # None: untold
    root: str | None = None  # of a skipped call: whose failure is the cause
    root_again: str | None = None
    untold: str = ""  # why

    @property
    def same(self) -> bool | None:
        """Is it the same? None: that cannot be said."""
        return None if self.again is None else (self.recorded, self.root) == (self.again, self.root_again)

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "same": self.same}


def replay_cascades(events: Iterable[Record]) -> list[Cascaded]:
    """Every cascade of one turn's events (flat records), judged again."""
    records = [*events]
    return [*_Turn(records).judge(records)]


class _Turn:
    """What the events have said so far."""

    def __init__(self, events: Iterable[Record]) -> None:
        ends: dict[str, str] = {}  # each call's first; what comes after it was left is late
        for event in events:
            if event["event_type"] in ("CallSucceeded", "CallLeft"):
                ends.setdefault(event["call_id"], event["event_type"])
        self._good = {id for id, end in ends.items() if end == "CallSucceeded"}  # calls that brought a value
        self._ran: set[str] = set()  # calls that were let run
        self._helped: set[str] = set()  # by a default
        self._roots: dict[str, str | None] = {}  # of calls that were skipped
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
        if because is None:  # there was no time
            return _compare(event, id, recorded, "skip" if self._expired else "run")
        again: Fate | None = "run" if because in self._good else "skip" if self._expired else _judge(event)
        return _compare(event, id, recorded, again, self._roots.get(because, because))

    def _ran_all_the_same(self, ended: Record) -> Iterator[Cascaded]:
        """Calls that were let run, and nothing stood in for what they needed and did not get."""
        for id, needs in (ended.get("needs") or {}).items():
            if id in self._ran - self._helped and not self._good.issuperset(needs):
                yield _compare(ended, id, "run", "skip")


def _compare(event: Record, id: str, recorded: Fate, again: Fate | None, root: str | None = None) -> Cascaded:
    untold = _NO_GROUNDS if again is None else ""
    return Cascaded(event.get("seq", 0), id, recorded, again, event.get("root"), root, untold)


def _judge(event: Record) -> Verdict | None:
    try:
        return cascade(event["required"], event["defaults"], event["arguments"])
    except (KeyError, TypeError):
        return None
