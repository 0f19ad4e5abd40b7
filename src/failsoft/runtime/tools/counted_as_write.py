"""Undeclared tools as agents call them: they count as writes (ADR 28).

A developer's own call of such a tool is retried as before, so one registered tool has both forms.
"""

from __future__ import annotations

import inspect
from typing import Any

from failsoft.core.model.fault import Fault
from failsoft.runtime.tools.tool import Tool


class _Shared:
    """An attribute that belongs to the original tool."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tool: CountedAsWrite, owner: type) -> Any:
        return getattr(tool.original, self.name)

    def __set__(self, tool: CountedAsWrite, value: Any) -> None:
        setattr(tool.original, self.name, value)


class CountedAsWrite(Tool):
    """An undeclared tool as a model calls it: it counts as a write. Everything else is shared with the original."""

    __slots__ = ("original",)

    disabled: Any = _Shared()
    cached_refusal: Any = _Shared()
    closed_ticket: Any = _Shared()
    unavailable_fault: Any = _Shared()

    def __init__(self, original: Tool) -> None:
        self.original = original
        for name in _COPIED:
            setattr(self, name, getattr(original, name))
        self.safe_to_repeat, self.known_errors, self.by_name = False, None, None

    def renew_ticket(self) -> None:
        self.original.renew_ticket()

    def mark_unavailable(self, fault: Fault) -> None:
        self.original.mark_unavailable(fault)

    def signature(self) -> inspect.Signature | None:
        return self.original.signature()


_COPIED = tuple(name for name in Tool.__slots__ if not isinstance(vars(CountedAsWrite).get(name), _Shared))


def count_as_write(tool: Tool) -> Tool:
    """The tool as agents call it: an undeclared one counts as a write (ADR 28)."""
    return CountedAsWrite(tool) if tool.safe_to_repeat is None else tool
