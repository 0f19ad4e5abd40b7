"""Success in a body: find fields of an error's body that say that something was done.

A refusal whose body has ``"charged": true``, ``"payment": {"status": "captured"}``, a count of finished items, or the data
of a GraphQL answer contradicts itself. Three things are read: the body itself, the keys that contain the answer, and things
that a request creates. The caller's own input, which some services send back, is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from failsoft.core.classify.tables.acted import DONE_STATES
from failsoft.core.startup.lazy_pattern import lazy_pattern

_NODES: Final = 20
_KEYS: Final = 60
_MOST: Final = 100_000  # larger numbers are times, not counts
_STATES: Final = frozenset("status state result outcome".split())
_ENTERED: Final = frozenset(
    "data result results response body error errors details detail payment payments charge transfer transaction refund "
    "receipt payment_intent paymentintent summary counts messages responses steps operations recipients deliveries".split()
)
_FLAGS: Final = DONE_STATES | {"ok"}
_AROUND: Final = lazy_pattern(r"^(?:is|was)_?|_?(?:count|ids|items)$")  # "isSuccess", "successCount", "created_ids"
_HUMP: Final = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")  # in "paymentStatus"


def shows_success(root: Any) -> bool:
    """True if a parsed body says that something was done."""
    nodes, seen = [root], 0
    while nodes and seen < _NODES:
        node = nodes.pop(0)
        seen += 1
        if isinstance(node, (list, tuple)):
            nodes.extend(islice(node, _NODES))
        elif isinstance(node, Mapping):
            if _is_partial_answer(node):
                return True
            for key, value in islice(node.items(), _KEYS):
                name = _HUMP.sub("_", key).lower() if isinstance(key, str) else ""
                if _says(name, value):
                    return True
                if name in _ENTERED and isinstance(value, (Mapping, list, tuple)):
                    nodes.append(value)
    return False


def _says(name: str, value: Any) -> bool:
    if isinstance(value, str):
        stated = name in _STATES or name.endswith(("_status", "_state"))
        return stated and value.strip().lower() in _FLAGS
    if name not in _FLAGS and _AROUND.sub("", name) not in _FLAGS:
        return name == "partial" and value is True
    if isinstance(value, (list, tuple, Mapping)):
        return len(value) > 0
    return value is True or (type(value) is int and 0 < value < _MOST)


def _is_partial_answer(node: Mapping[Any, Any]) -> bool:
    """True for GraphQL's ``{"data": {"pay": {…}}, "errors": […]}``: some fields were carried out."""
    data = node.get("data")
    return (
        "errors" in node
        and isinstance(data, Mapping)
        and any(value is not None for value in islice(data.values(), _KEYS))
    )
