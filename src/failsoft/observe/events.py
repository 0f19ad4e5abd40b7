"""The event stream's records: what every reader of it (trace, metrics, memory, ``why``) sees.

A call appends a raw tuple, nothing more; names, timestamps and numbers are worked out when the stream is drained:

    (event type, when, tool, call id, the turn's id, fields)

``fields`` of a call that succeeded at once is just the time when it began, and its tool just the id: a tuple of such
plain things is none of the garbage collector's business. One that was refused at once has ``REFUSED`` there. A function
there makes the fields when somebody reads them, from the record, which has more behind it then.

Rules for readers: an event is flat, its ``to_dict()`` is what goes to disk, and a ``message`` is one of the phrases
that the specification quotes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from failsoft.core.resilience.recovery_memory import Evidence
from failsoft.observe.success_runs import iso

# Every event type there is, with what it tells.
CALL_SUCCEEDED = "CallSucceeded"
CALL_FAILED = "CallFailed"
CALL_REFUSED = "CallRefused"  # not run: circuit open, tool unavailable, queue full
CALL_HELD = "CallHeld"  # waits until the service wants to be asked again
CALL_RUNNING = "CallRunning"  # once, when a call has been running for a second
CALL_CANCELLED = "CallCancelled"  # its caller left
CALL_SKIPPED = "CallSkipped"  # a dependency failed, or the turn was over
CALL_LEFT = "CallLeft"  # still open at the turn's deadline, which did not wait for it
TOOL_ERROR = "ToolError"  # one failed attempt, with the decision about it (S-spec 8.2)
TOOL_DISABLED = "ToolDisabled"
TOOL_ENABLED = "ToolEnabled"
TOOL_TIMEOUT = "ToolTimeout"  # S-tests 4.4
RETRY_SUCCEEDED = "RetrySucceeded"
FALLBACK_USED = "FallbackUsed"
PARTIAL_USED = "PartialUsed"
DEFAULT_USED = "DefaultUsed"
CIRCUIT_OPENED = "CircuitOpened"
CIRCUIT_HALF_OPENED = "CircuitHalfOpened"
CIRCUIT_CLOSED = "CircuitClosed"
TOOL_ORPHANED = "ToolOrphaned"  # still running after its deadline
LOOP_BLOCKED = "LoopBlocked"  # an async tool kept the event loop past its own deadline
LATE_RESULT = "LateResult"  # came after the turn's deadline
ESCALATED = "Escalated"
LOOP_PREVENTED = "LoopPrevented"  # a call that keeps failing in this thread was answered without being run
RETRY_OFFERED = "RetryOffered"  # it may be tried once more if the user asks for it
OFFER_TAKEN = "OfferTaken"  # the user has asked
NOT_RECORDED = "NotRecorded"  # the store did not record a write before it started: a crash would not be noticed
OFFER_CLEARED = "OfferCleared"  # a hard failure: nothing is left to retry
EXPLAIN_FAILED = "ExplainFailed"  # who phrases the user's text failed or was slow: the default stands
INTERNAL_ERROR = "InternalError"  # a contract bug, with what is needed to find it
HANDLER_FAILED = "HandlerFailed"  # another Error Handler failed, was slow or asked in vain: the built-in decided
TURN_STARTED = "TurnStarted"
TURN_TIMED_OUT = "TurnTimedOut"
TURN_ENDED = "TurnEnded"


REFUSED = b"refused"  # the fields of a refusal at once, as they are recorded


class Event(NamedTuple):
    """One record of the stream."""

    seq: int  # its number in the stream of its runtime
    event_type: str  # what has happened
    timestamp: float  # seconds since 1970
    tool_id: str | None  # None where it is about no tool; so with the next two
    call_id: str | None  # as in ``Outcome.id``
    turn_id: str | None  # as in ``TurnReport.turn_id``
    fields: dict[str, Any]  # whatever else events of this type have

    @property
    def message(self) -> str | None:
        """What has happened, in a sentence; None where the type says it all."""
        text = self.fields.get("message")
        return text if isinstance(text, str) else None

    def to_dict(self) -> dict[str, Any]:
        """The event as one flat record."""
        record = {
            "seq": self.seq,
            "event_type": self.event_type,
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
