"""Turn a tool's failure into text for the model after all hooks have seen the exception.

pydantic-ai passes ``ModelRetry`` and ``ToolFailed`` to no error hook. So the wrapper toolset raises the tool's own
exception and records its replacement here. The outermost capability swaps the two after all hooks. A value or an
exception that a hook substitutes is kept.

Since pydantic-ai 2.54 ``on_tool_execute_error`` runs inside ``wrap_tool_execute``; before, it ran after it. ``asked``
records the order, and the later of the two swaps the exception.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import AgentDepsT


class Failures:
    """The failures of one tool call while its hooks run. A hook may run the tool more than once."""

    __slots__ = ("asked", "call", "replacements", "wrapped")

    def __init__(self, call: ToolCallPart) -> None:
        self.call = call
        self.replacements: list[tuple[BaseException, Exception]] = []  # (the exception, its replacement for the model)
        self.wrapped = True  # inside ``wrap_tool_execute``
        self.asked = False  # ``on_tool_execute_error`` has run

    def find(self, error: BaseException) -> Exception | None:
        return next((replacement for raised, replacement in self.replacements if raised is error), None)


_FAILURES: ContextVar[Failures | None] = ContextVar("failsoft_pydantic_ai_failures", default=None)


def take_failures() -> Failures | None:
    """Take the record for this call's failures. Agents and tools inside this call get their own."""
    failures = _FAILURES.get()
    if failures is not None:
        _FAILURES.set(None)
    return failures


def give_back(failures: Failures | None) -> None:
    if failures is not None:
        _FAILURES.set(failures)


def choose_for_hooks(failures: Failures | None, error: BaseException, replacement: Exception) -> BaseException:
    """Choose the exception to raise: the original if hooks must see it, else the replacement for the model."""
    if failures is None:
        return replacement
    failures.replacements.append((error, replacement))
    return error


class AfterHooks(AbstractCapability[AgentDepsT]):
    """A capability that replaces exceptions after all hooks have seen them."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def wrap_tool_execute(self, *_: Any, call: ToolCallPart, args: Any, handler: Any, **__: Any) -> Any:
        """Run a tool with all hooks inside, then replace its exception."""
        around = _FAILURES.get()
        if around is not None and around.call is call:
            return await handler(args)  # an outer capability of this class handles the call
        failures = Failures(call)
        _FAILURES.set(failures)
        replacement = None
        try:
            return await handler(args)
        except Exception as error:
            if failures.asked:
                replacement = failures.find(error)
            if replacement is None:
                raise
        finally:
            failures.wrapped = False
            if failures.asked or not failures.replacements:
                _FAILURES.set(around)
        try:
            raise replacement
        finally:
            del replacement

    async def on_tool_execute_error(self, *_: Any, call: ToolCallPart, error: Exception, **__: Any) -> Any:
        """Raise the exception again, or its replacement."""
        failures = _FAILURES.get()
        replacement = None
        if failures is not None and failures.call is call:
            if failures.wrapped:
                failures.asked = True
            else:
                _FAILURES.set(None)
                replacement = failures.find(error)
        try:
            raise replacement or error
        finally:
            del error, replacement
