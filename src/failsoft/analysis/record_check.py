"""The check of event records from outside: a trace file or a store can contain anything."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

Record = Mapping[str, Any]  # an event as ``Event.to_dict()`` returns it

LARGEST_NUMBER = 1e14  # milliseconds: 3,000 years
_TEXT, _NUMBER = (str, "not text"), (int | float | None, "not a number")
_NUMBERS = ("seq", "duration_ms", "delay_ms", "queued_ms", "decided_ms", "total_ms", "timeout_ms", "attempts")
_FIELD_TYPES: dict[str, tuple[Any, str]] = {  # the types that readers rely on
    "event_type": _TEXT,
    "timestamp": _TEXT,
    **dict.fromkeys(("turn_id", "call_id", "tool_id", "error", "reason", "code"), (str | None, "not text")),
    **dict.fromkeys(_NUMBERS, _NUMBER),
    **dict.fromkeys(("needs", "labels"), (dict | None, "not an object")),
}


def parse_line(line: str) -> Any:
    """Parse a line of a trace file; raise ``ValueError`` if it is not JSON, NaN and infinity included."""
    try:
        return json.loads(line, parse_constant=_refuse_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def find_mistake(event: Any) -> str:
    """Return why a record is not an event; empty if it is one."""
    if not isinstance(event, dict):
        return "it is not an object"
    for field, (field_type, what) in _FIELD_TYPES.items():
        if not isinstance(event.get(field), field_type):
            return f"{field} is {what}" if field in event else f"it has no {field}"
    for field in _NUMBERS:
        number = event.get(field)
        if number is not None and (isinstance(number, bool) or not -LARGEST_NUMBER <= number <= LARGEST_NUMBER):
            return f"{field} is out of range"
    try:
        datetime.fromisoformat(event["timestamp"])
    except (ValueError, OverflowError):
        return f"{event['timestamp']!r:.40} is not an ISO time"
    for id, needs in (event.get("needs") or {}).items():
        if not isinstance(needs, list | dict) or not all(isinstance(need, str) for need in needs):
            return f"needs of {id!r:.40} is not a list of ids"
    if not all(isinstance(label, str) for label in (event.get("labels") or {}).values()):
        return "a label is not text"
    return ""


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)
