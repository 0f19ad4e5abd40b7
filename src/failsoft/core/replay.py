"""Decide again: a recorded turn fed back through the Error Handler.

Rules
-----
- Every event that tells of a decision and of what it rested on is decided again, with the handler that this version of
  failsoft has. Strategy, tool and reason must be the same, and the delay to the millisecond.
- A policy that the event names is looked for in the book that is given. Without it the decision cannot come out the
  same, and is not held against anybody: it is ``untold``.
- ``untold`` are decisions, too, that the event has no grounds for: refusals that callers shared, events of other
  versions. What another Error Handler has decided comes out as this one would have.

Why: a decision that cannot be repeated from what was written down was not explained by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from failsoft.core.outcome import Decision
from failsoft.core.recovery import decide, rebuild

if TYPE_CHECKING:
    from failsoft.core.policy import Policy

_DECIDED = ("ToolError", "CallRefused", "CallHeld")
_CLOSE = 0.001  # seconds: delays are written down in milliseconds


class Replayed(NamedTuple):
    """One decision, as it was and as it comes out now."""

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


def replay(events: Iterable[Mapping[str, Any]], policies: Iterable[Policy] = ()) -> list[Replayed]:
    """Every decision of the events (flat records), decided again."""
    book = tuple(policies)
    return [_replay(event, book) for event in events if event["event_type"] in _DECIDED and "decision" in event]


def _replay(event: Mapping[str, Any], policies: tuple[Policy, ...]) -> Replayed:
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


def _decide(event: Mapping[str, Any], policies: tuple[Policy, ...]) -> tuple[Decision | None, str]:
    named = event.get("policy")
    if named is not None and all(policy.name != named for policy in policies):
        return None, f"policy {named!r} is not at hand"
    try:
        return decide(rebuild(event, policies)), ""
    except (KeyError, TypeError, ValueError):
        return None, "the event does not say what it rested on"


def _delay(event: Mapping[str, Any], again: Decision | None) -> float | None:
    """What was waited; an event says so of retries only, of the others the decision alone knows it."""
    if event["decision"] == "retry":
        return float(event["delay_ms"]) / 1000 if "delay_ms" in event else event.get("retry_delay")
    return None if again is None else again.delay
