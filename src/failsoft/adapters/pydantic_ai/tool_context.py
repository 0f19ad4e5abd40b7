"""The changes that a tool makes besides its value: context variables, and the text of a cancellation.

An attempt runs in a context of its own. Without failsoft a tool runs in the context of its hooks, which see the variables
that it sets.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from contextvars import Context, ContextVar, copy_context
from types import TracebackType
from typing import Any

_UNSET = object()


class ToolContext:
    """A context manager around each attempt of one call. ``apply`` repeats the changes in the caller's context."""

    __slots__ = ("_before", "cancellation", "changed")

    def __init__(self) -> None:
        self.changed: dict[ContextVar[Any], Any] = {}
        self.cancellation: tuple[Any, ...] = ()  # arguments of a CancelledError that the tool itself raised
        self._before: Context | None = None

    def __enter__(self) -> None:
        self._before = copy_context()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        before, self._before = self._before, None
        if before is not None:
            after = copy_context()
            self.changed |= {var: after[var] for var in after if before.get(var, _UNSET) is not after[var]}
        if isinstance(error, CancelledError) and not ((task := current_task()) and task.cancelling()):
            self.cancellation = error.args

    def apply(self) -> None:
        for var, value in self.changed.items():
            var.set(value)
