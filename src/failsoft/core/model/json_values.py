"""Any value as plain data that ``json.dumps`` takes.

Rules
-----
- What JSON knows stays as it is; tuples become lists; keys become text; dates and times are written as ISO 8601.
- Dataclasses and pydantic's models become their fields.
- Everything else becomes its ``repr``, cut and sanitised: a value is shown, not kept. So do NaN and infinity, which
  are no JSON, whole numbers too long to print, and whatever lies deeper than ``DEPTH`` (which ends cycles as well).
- Once that has happened ``MOST_CUT`` times in a value, no further list or mapping of it is opened: lists that hold each
  other have no end.
- Nothing raises, whatever a value's own methods do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from reprlib import Repr
from typing import Any

from failsoft.core.redact.sanitise import sanitise

DEPTH = 32
MOST_CUT = 100
LENGTH = 1000  # characters of a repr

_AS_IS = {str, bool, type(None)}  # most of what events are made of
_LONGEST_INT = 4000 * 3  # bits: surely fewer digits than the interpreter's limit of 4,300
_brief = Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = LENGTH
_brief.maxset = _brief.maxfrozenset = _brief.maxlist = _brief.maxtuple = _brief.maxdict = _brief.maxdeque = 20


def plain(value: Any) -> Any:
    """The value as JSON would have it."""
    try:
        return _plain(value, DEPTH, [MOST_CUT])
    except Exception:
        return shown(value)


def shown(value: object) -> str:
    """The value as a short, harmless text."""
    try:
        text = _brief.repr(value)
    except Exception:
        text = f"<{type(value).__name__} that cannot be shown>"
    return sanitise(text[:LENGTH])


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    """``left``: how many more lists and mappings may be too deep."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, also of an enum member
    if isinstance(value, int) and value.bit_length() <= _LONGEST_INT:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if left[0] <= 0:
        depth = 0
    elif not depth and isinstance(value, list | tuple | Mapping):
        left[0] -= 1
    if depth and isinstance(value, list | tuple):
        return [_plain(item, depth - 1, left) for item in value]
    if depth and isinstance(value, Mapping):
        return {
            key if type(key) is str else _key(key): item if type(item) in _AS_IS else _plain(item, depth - 1, left)
            for key, item in value.items()
        }
    if depth and (fields := _fields(value)) is not None:
        return _plain(fields, depth - 1, left)
    return value.isoformat() if type(value).__module__ == "datetime" and hasattr(value, "isoformat") else shown(value)


def _fields(value: Any) -> Any:
    """What a dataclass or a pydantic model consists of; None if it is neither, or does not let itself be opened."""
    try:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        dump = getattr(type(value), "model_dump", None)
        return dump(value) if callable(dump) else None
    except Exception:  # whatever its own methods do; one that contains itself has no end
        return None


def _key(key: object) -> str:
    return str.__str__(key) if isinstance(key, str) else shown(key)
