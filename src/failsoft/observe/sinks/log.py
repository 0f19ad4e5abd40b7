"""Write events to the stdlib logger ``failsoft``.

Rules
-----
- Levels: ERROR for bugs in a tool and for escalated calls, with a sanitised traceback; WARNING for calls that failed,
  writes that were cancelled and may have acted, circuits that opened, and a ``verify`` that does not know and gives a
  reason; INFO for retries and fallbacks; DEBUG for the rest.
- A failed call is one record, with the event's data in ``extra``.
- Records are formatted and handed to logging on one daemon thread of the process, never on an event loop. Callers only
  append to a bounded queue. ``flush`` waits for it, and so does the end of the program.
- An identical failure of a tool is logged once. Repetitions are counted, and the count is logged once a minute.
- The queue is short, because an entry holds an exception. Entries that do not fit are dropped, and their number is
  logged.
- No handler is installed: where the records go is the application's decision.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from time import monotonic
from typing import Any

from failsoft.core.redact.printable import visible
from failsoft.core.resilience.error_family import family_of
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.observe import events
from failsoft.observe.delivery import Delivery
from failsoft.observe.exception_text import Captured, capture, render

DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
WINDOW = 60.0  # seconds for which identical failures are counted instead of logged
MOST_COUNTED = 1_000  # distinct failures that are remembered at a time
CAPACITY = 2_000  # entries that wait for the logger
LAST = 1.0  # seconds that the end of the program waits for the last records

log = logging.getLogger("failsoft")

_LEVELS = {
    events.INTERNAL_ERROR: ERROR,
    events.CIRCUIT_OPENED: WARNING,
    events.CALL_LEFT: WARNING,
    events.EXPLAIN_FAILED: WARNING,
    events.HANDLER_FAILED: WARNING,
    events.EVENTS_DROPPED: WARNING,
    events.CIRCUIT_CLOSED: INFO,
    events.RETRY_SUCCEEDED: INFO,
    events.FALLBACK_USED: INFO,
}
_FINAL = ("escalate", "fail_gracefully")
_EXTRA = (
    "code", "category", "classification", "effect", "attempts", "attempt", "decision", "reason", "delay_ms",
    "duration_ms", "total_ms", "tenant", "alternative", "timeout_ms", "rule",
)  # fmt: skip


class Entry(NamedTuple):
    """An event queued for the logger."""

    level: int
    event_type: str
    timestamp: float  # seconds since 1970
    tool_id: str | None
    call_id: str | None
    turn_id: str | None
    fields: dict[str, Any]
    error: Captured = ()
    trace: tuple[str, str] | None = None  # the ids of the current trace and span, if OpenTelemetry has one


def level_of(event_type: str, fields: dict[str, Any], *, known_tool: bool = True) -> int:
    """The level at which an event is logged."""
    if event_type == events.ESCALATED:  # a bug has been logged with its traceback already
        return DEBUG if fields.get("category") == "internal_contract_bug" else ERROR
    if event_type == events.CALL_FAILED:
        return DEBUG if fields.get("escalated") else WARNING
    if event_type == events.TOOL_ERROR:
        return INFO if fields.get("decision") == "retry" else DEBUG
    if event_type == events.CALL_REFUSED:
        return _refusal_level(fields, known_tool=known_tool)
    if event_type == events.CALL_CANCELLED:
        return WARNING if fields.get("effect") == "unknown" else DEBUG
    if event_type == events.EFFECT_VERIFIED and fields.get("answer") == "unknown" and fields.get("reason"):
        return WARNING  # the reason may be a mistake in verify, which would not be seen otherwise
    return _LEVELS.get(event_type, DEBUG)


def _refusal_level(fields: dict[str, Any], *, known_tool: bool) -> int:
    decision = fields.get("decision")
    if decision not in _FINAL or fields.get("circuit_breaker_state") == "open":
        return DEBUG  # another tool is tried, or the opening of the circuit has been logged
    if decision == "escalate":
        return DEBUG if known_tool else ERROR  # a registered tool has an event of its own for it
    return WARNING


def is_logged(level: int) -> bool:
    """True if the application wants records of this level."""
    return log.isEnabledFor(level)


def put(entry: Entry, error: BaseException | None = None) -> None:
    """Queue an event for the logger, with the traceback of ``error`` and the current trace."""
    captured = () if error is None else capture(error)
    _delivery.put((entry._replace(error=captured, trace=current_trace()),))


def current_trace() -> tuple[str, str] | None:
    """The ids of OpenTelemetry's current trace and span, as hexadecimal text; None if there is none.

    A program that traces has loaded the API; for others it is not loaded here.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    try:
        context = api.get_current_span().get_span_context()
        return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None
    except Exception:  # the API is being loaded, or another library has replaced its spans
        return None


def flush(timeout: float) -> bool:
    """Wait until everything queued so far has been logged."""
    return _delivery.flush(timeout)


# --- on the delivery thread ---------------------------------------------------------------------------------------------


class _Counter:
    """Decides which failures are logged and which are only counted."""

    def __init__(self) -> None:
        # The start, the number since then, the last failure; oldest first, because ``due`` removes a key before it is
        # seen again
        self._seen: dict[tuple[Any, ...], tuple[float, int, Entry]] = {}

    def admits(self, entry: Entry, now: float) -> bool:
        """True if this failure is new; an identical one within the window is counted."""
        key = (entry.level, entry.event_type, entry.tool_id, _family(entry))
        entry = entry._replace(error=())
        since, count, _ = self._seen.get(key, (None, 0, entry))
        if since is not None and now - since < WINDOW:
            self._seen[key] = (since, count + 1, entry)
            return False
        self._seen[key] = (now, 0, entry)
        return True

    def due(self, now: float, *, everything: bool = False) -> list[tuple[int, float, Entry]]:
        """The counts whose window is over: the number, the seconds, and the failure."""
        found = []
        while self._seen:
            oldest = next(iter(self._seen))
            since, count, entry = self._seen[oldest]
            if now - since < WINDOW and len(self._seen) < MOST_COUNTED and not everything:
                break
            del self._seen[oldest]
            if count:
                found.append((count, now - since, entry))
        return found

    def next_due(self, now: float) -> float | None:
        """Seconds until the next count is to be logged."""
        for since, _, _ in self._seen.values():
            return max(0.0, since + WINDOW - now)
        return None


def _family(entry: Entry) -> str:
    fields = entry.fields
    message = fields.get("error") or (fields.get("reason") if entry.event_type == events.EFFECT_VERIFIED else "")
    return family_of(str(fields.get("code")), str(message or ""))


def _write(entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        now = monotonic()
        _write_counts(now)
        if entry.level < WARNING or _counter.admits(entry, now):
            _log(entry, describe(entry), (render(entry.error) or entry.fields.get("traceback", "")).rstrip())


def _write_counts(now: float, *, everything: bool = False) -> None:
    _losses.write()
    for count, seconds, entry in _counter.due(now, everything=everything):
        times = "once more" if count == 1 else f"{count:,} more times"
        _log(
            entry, f"{describe(entry, counted=True)}: {times} in the last {max(1.0, seconds):.0f} s", "", repeated=count
        )


def _tick() -> float | None:
    now = monotonic()
    _write_counts(now)
    return _counter.next_due(now)


def _log(entry: Entry, message: str, traceback: str, **more: Any) -> None:
    if not log.isEnabledFor(entry.level):
        return
    fields = {name: entry.fields[name] for name in _EXTRA if entry.fields.get(name) is not None}
    if entry.fields.get("thread") is not None:
        fields["thread_id"] = entry.fields["thread"]  # "thread" is the OS thread in log records
    names = {
        "event_type": entry.event_type,
        "tool_id": entry.tool_id,
        "call_id": entry.call_id,
        "turn_id": entry.turn_id,
    }
    if entry.trace is not None:
        names |= dict(zip(("trace_id", "span_id"), entry.trace, strict=True))
    record = log.makeRecord(log.name, entry.level, "(failsoft)", 0, visible(message), (), None)
    record.created, record.msecs = entry.timestamp, int(entry.timestamp % 1 * 1000) + 0.0
    # Not by ``extra``, which refuses names that a record factory has set
    for name, value in {**names, **fields, **more}.items():
        setattr(record, name, visible(value) if isinstance(value, str) else value)
    if traceback:
        record.exc_text = traceback  # formatters print it below the message
    log.handle(record)


def describe(entry: Entry, *, counted: bool = False) -> str:
    """The event in one line."""
    tool, fields = entry.tool_id or "a call", entry.fields
    message = " ".join(str(fields.get("error") or fields.get("reason") or "").split())
    details = f": {fields['code']}: {message}" if fields.get("code") and message else f": {message}" if message else ""
    text = {
        events.INTERNAL_ERROR: f"{tool} has a bug{details}",
        events.ESCALATED: f"{tool} failed and needs attention{details}",
        events.CALL_FAILED: f"{tool} failed{details}",
        events.CALL_REFUSED: f"{tool} was not run{details}",
        events.CALL_CANCELLED: f"{tool} was cancelled"
        + (" and may have acted" if fields.get("effect") == "unknown" else ""),
        events.CALL_LEFT: f"{tool} was still running at the turn's deadline",
        events.EXPLAIN_FAILED: f"explain= failed, and the default text is used{details}",
        events.HANDLER_FAILED: f"the error_handler failed for {tool}, and the built-in one decided{details}",
        events.EVENTS_DROPPED: str(fields.get("message")),
        events.EFFECT_VERIFIED: f"the effect of {tool} is {fields.get('answer')}{details}",
        events.CIRCUIT_OPENED: f"the circuit of {tool} opened{details}",
        events.CIRCUIT_CLOSED: f"the circuit of {tool} closed",
        events.TOOL_ERROR: f"attempt {fields.get('attempt', 1)} of {tool} failed{details}",
        events.FALLBACK_USED: f"{tool} failed; trying {fields.get('alternative')}",
        events.RETRY_SUCCEEDED: f"{tool} succeeded on attempt {fields.get('attempt')}",
    }.get(entry.event_type) or f"{entry.event_type}: {tool}{details}"
    if counted:
        return text
    if fields.get("decision") == "retry" and "delay_ms" in fields:
        text += f"; next attempt in {fields['delay_ms'] / 1000:.2f} s"
    attempts = fields.get("attempts")
    where = [
        f"{attempts} attempts" if attempts and attempts > 1 else "",
        f"call {entry.call_id}" if entry.call_id else "",
    ]
    where.append(f"turn {entry.turn_id}" if entry.turn_id else "")
    details = ", ".join(filter(None, where))
    return f"{text} ({details})" if details else text


class _Losses:
    """Logs how many records the logger was too slow for, at most once a minute."""

    def __init__(self) -> None:
        self._reported = 0
        self._next = 0.0

    def write(self) -> None:
        lost, now = _delivery.dropped - self._reported, monotonic()
        if lost and now >= self._next:
            self._reported, self._next = self._reported + lost, now + WINDOW
            log.warning("%d records of failsoft were not logged: the handlers of this logger are too slow", lost)


_counter = _Counter()
_losses = _Losses()
_delivery = Delivery(
    _write,
    name="log",
    wait=False,
    tick=_tick,
    capacity=CAPACITY,
    complain=lambda _: None,  # logging itself is broken
)


def _finish() -> None:
    _delivery.flush(LAST)
    _write_counts(monotonic(), everything=True)


atexit.register(_finish)
os.register_at_fork(after_in_child=_delivery.renew_after_fork)
