"""Convert any value to plain data for ``json.dumps``.

Rules
-----
- JSON types stay as they are; tuples become lists; keys become text; dates and times become ISO 8601 text.
- Dataclasses and pydantic models become their fields.
- Everything else becomes its ``repr``, shortened and sanitised. So do NaN and infinity, integers too long to print, and
  containers deeper than ``DEPTH`` (which also ends cycles).
- After ``MOST_CUT`` containers of a value were too deep, its remaining containers are not opened: lists that contain
  each other would never end.
- Nothing raises, whatever a value's own methods do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from reprlib import Repr
from typing import Any

from failsoft.core.redact.sanitise import sanitise

DEPTH = 32
MOST_CUT = 100
LENGTH = 1000  # characters of a repr

_AS_IS = {str, bool, type(None)}  # most values in events
_LONGEST_INT = 4000 * 3  # bits; always fewer digits than the interpreter's limit of 4,300
_brief = Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = LENGTH
_brief.maxset = _brief.maxfrozenset = _brief.maxlist = _brief.maxtuple = _brief.maxdict = _brief.maxdeque = 20


def plain(value: Any) -> Any:
    """Convert the value to plain JSON data."""
    try:
        return _plain(value, DEPTH, [MOST_CUT])
    except Exception:
        return shown(value)


def shown(value: object) -> str:
    """Describe the value in a short, sanitised text."""
    try:
        text = _brief.repr(value)
    except Exception:
        text = f"<{type(value).__name__} that cannot be shown>"
    return sanitise(text[:LENGTH])


def _plain(value: Any, depth: int, may_cut: list[int]) -> Any:
    """Convert one value. ``may_cut`` holds how many more containers may be too deep."""
    if value is None or isinstance(value, bool) or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # the plain text, also for an enum member
    if isinstance(value, int) and value.bit_length() <= _LONGEST_INT:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if may_cut[0] <= 0:
        depth = 0
    elif not depth and isinstance(value, list | tuple | Mapping):
        may_cut[0] -= 1
    if depth and isinstance(value, list | tuple):
        return [_plain(item, depth - 1, may_cut) for item in value]
    if depth and isinstance(value, Mapping):
        return {
            key if type(key) is str else _key(key): item if type(item) in _AS_IS else _plain(item, depth - 1, may_cut)
            for key, item in value.items()
        }
    if depth and (fields := _fields(value)) is not None:
        return _plain(fields, depth - 1, may_cut)
    return value.isoformat() if type(value).__module__ == "datetime" and hasattr(value, "isoformat") else shown(value)


def _fields(value: Any) -> Any:
    """The fields of a dataclass or a pydantic model; None for other values and if reading them fails."""
    try:
        if hasattr(type(value), "__dataclass_fields__"):
            from dataclasses import asdict  # start-up: few values are dataclasses

            return asdict(value)
        dump = getattr(type(value), "model_dump", None)
        return dump(value) if callable(dump) else None
    except Exception:  # its own methods may raise anything; a model that contains itself recurses
        return None


def _key(key: object) -> str:
    return str.__str__(key) if isinstance(key, str) else shown(key)
