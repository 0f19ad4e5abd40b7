"""A tool that is not registered, as a ``Tool``.

Rules
-----
- It takes any arguments and options, never runs, and is never repeated. It holds only its name, so a model may invent
  any number of names.
- ``runtime.call.impossible_call`` refuses its calls, not the pipeline (ADR 58).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from failsoft.core.model.options import ToolOptions
from failsoft.runtime.tools.tool import Tool


class UnknownTool(Tool):
    """The tool of a name that no registered tool has."""

    __slots__ = ()

    is_known = False

    def __init__(self, name: str) -> None:
        for slot in Tool.__slots__:
            setattr(self, slot, getattr(_shared(), slot))
        self.id = name


@cache
def _shared() -> Tool:
    """The values that all unknown tools have in common."""
    return Tool(_nothing, ToolOptions(id="unknown", read_only=True, idempotency_key="key"))


def _nothing(**arguments: Any) -> None:
    """Accept any arguments, and do nothing."""
