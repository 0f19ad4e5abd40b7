"""Event types and the event record that every consumer (trace, metrics, memory, ``why``) reads.

A call only appends a raw tuple. Names, timestamps and numbers are computed when the stream is drained:

    (event type, time, tool, call id, turn id, fields)

For a call that succeeded at once, ``fields`` is the start of its attempt and the tool is its id: the garbage collector
does not track a tuple of such plain values. If the call is inside another call, or waited before its attempt, the
record also has the start of the call and the id of the call around it. For a call that an open circuit refused at once,
``fields`` is the outcome that its callers share. If such a call is outside of turns, the event type in either record is a
tuple of type and tool id. There is one such object per tool, so a batch of its records is recognised at once. If
``fields`` is a function, it computes the fields from the record (which then has further items) when an event is made.

An event is flat, and ``to_dict()`` is its stored form. Its ``message``, if any, is one of the phrases quoted in the
specification.
"""

from __future__ import annotations

from typing import Any

from failsoft.core.model.compared import Shown
from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.resilience.recovery_memory import Evidence
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.observe.success_runs import iso

# All event types
CALL_SUCCEEDED = "CallSucceeded"
CALL_FAILED = "CallFailed"
CALL_REFUSED = "CallRefused"  # not run: circuit open, tool unavailable, queue full
CALL_HELD = "CallHeld"  # waits as long as the service has asked, or for its rate limit
CALL_RUNNING = "CallRunning"  # once, when a call has been running for a second
CALL_CANCELLED = "CallCancelled"  # by its caller
CALL_SKIPPED = "CallSkipped"  # a dependency failed, or the turn was over
CALL_LEFT = "CallLeft"  # still running at the turn's deadline, and abandoned
TOOL_ERROR = "ToolError"  # one failed attempt, with the decision about it
TOOL_DISABLED = "ToolDisabled"
TOOL_ENABLED = "ToolEnabled"
TOOL_TIMEOUT = "ToolTimeout"
RETRY_SUCCEEDED = "RetrySucceeded"
FALLBACK_USED = "FallbackUsed"
PARTIAL_USED = "PartialUsed"
DEFAULT_USED = "DefaultUsed"
CIRCUIT_OPENED = "CircuitOpened"
CIRCUIT_HALF_OPENED = "CircuitHalfOpened"
CIRCUIT_CLOSED = "CircuitClosed"
ATTEMPT_ABANDONED = "AttemptAbandoned"  # still running after its deadline
LOOP_BLOCKED = "LoopBlocked"  # an async tool blocked the event loop past its own deadline
LATE_RESULT = "LateResult"  # a result after the turn's deadline
ESCALATED = "Escalated"
LOOP_PREVENTED = "LoopPrevented"  # a call that keeps failing in this thread was answered without running
NO_PROGRESS = "NoProgress"  # the same call keeps returning the same result in this thread
RETRY_OFFERED = "RetryOffered"  # the user may ask for one more try
OFFER_TAKEN = "OfferTaken"  # the user has asked for it
NOT_RECORDED = "NotRecorded"  # the store did not record a write before it started: a crash would go unnoticed
EFFECT_VERIFIED = "EffectVerified"  # the answer of verify about an attempt whose effect was unknown
EFFECT_RESOLVED = "EffectResolved"  # an operator has recorded whether a write with an unknown effect happened
OFFER_CLEARED = "OfferCleared"  # a permanent failure: there is nothing to retry
EXPLAIN_FAILED = "ExplainFailed"  # the user's explain function failed or was slow: the built-in text is used
INTERNAL_ERROR = "InternalError"  # a contract bug, with the data to find it
HANDLER_FAILED = "HandlerFailed"  # a custom Error Handler failed, was slow or was not usable: the built-in one decided
# The daemon has decided for a runtime in another process, which records its own events
REMOTE_DECISION = "RemoteDecision"
OPERATOR_ACTED = "OperatorActed"  # a request to the daemon has changed its state
EVENTS_DROPPED = "EventsDropped"  # a subscriber or sink is too slow; once for each
TURN_STARTED = "TurnStarted"
TURN_TIMED_OUT = "TurnTimedOut"
TURN_ENDED = "TurnEnded"


class Event(NamedTuple):
    """One event of the stream."""

    seq: int  # its number in the runtime's stream
    event_type: str  # what happened
    timestamp: float  # seconds since 1970
    tool_id: str | None  # None if the event is about no tool
    call_id: str | None  # as in ``Outcome.id``; None if it is about no call
    turn_id: str | None  # as in ``TurnReport.turn_id``; None outside a turn
    fields: dict[str, Any]  # the other fields of this event type

    @property
    def message(self) -> str | None:
        """The event in a sentence; None if the type says everything."""
        text = self.fields.get("message")
        return text if isinstance(text, str) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the event as one flat record."""
        record = {
            "seq": self.seq,
            "event_type": str(self.event_type),
            "turn_id": self.turn_id,
            "call_id": self.call_id,
            "tool_id": self.tool_id,
            "timestamp": iso(self.timestamp),
            **self.fields,
        }
        evidence = record.get("evidence")
        if isinstance(evidence, Evidence):
            record["evidence"] = evidence.to_dict()
        return record


point_elsewhere(
    Event,
    {
        "type kind name event": "event.event_type",
        "data payload attributes": "event.fields, or event.to_dict() for all of it",
        "tool": "event.tool_id",
        "time at": "event.timestamp",
    },
)


class ShownEventType(Shown):
    """The type of an event, as subscribers see it."""

    __slots__ = ()

    name = "event.event_type"
    known = tuple(value for name, value in globals().items() if name.isupper() and isinstance(value, str))


_SHOWN_TYPES = ShownEventType.every()


def show_event(event: Event) -> Event:
    """Return an event as subscribers get it: a comparison of its type with a misspelt one is logged."""
    return event._replace(event_type=_SHOWN_TYPES.get(event.event_type, event.event_type))
