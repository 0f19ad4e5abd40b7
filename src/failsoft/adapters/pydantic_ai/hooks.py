"""Turn a tool's failure into text for the model after the hooks of other capabilities have seen the exception.

pydantic-ai hands ``ModelRetry`` and ``ToolFailed`` to no error hook. So the wrapper toolset raises the tool's own
exception and notes here what the model is to read. The outermost capability replaces one with the other when the exception
has come through all hooks. What a hook returns instead, or raises instead, stands.

Since pydantic-ai 2.54 ``on_tool_execute_error`` runs inside ``wrap_tool_execute``, before that after it. ``asked`` tells
which: the exception is replaced by whichever of the two comes last.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import AgentDepsT


class Failures:
    """The failures of one tool call while its hooks run. A hook may run the tool more than once."""

    __slots__ = ("asked", "call", "told", "wrapped")

    def __init__(self, call: ToolCallPart) -> None:
        self.call = call
        self.told: list[tuple[BaseException, Exception]] = []  # the exception, and what the model is to get instead
        self.wrapped = True  # inside ``wrap_tool_execute``
        self.asked = False  # ``on_tool_execute_error`` has had its turn

    def find(self, error: BaseException) -> Exception | None:
        return next((told for raised, told in self.told if raised is error), None)


_FAILURES: ContextVar[Failures | None] = ContextVar("failsoft_pydantic_ai_failures", default=None)


def take_failures() -> Failures | None:
    """Where the wrapper toolset notes its failure. Agents and tools inside this one get a place of their own."""
    failures = _FAILURES.get()
    if failures is not None:
        _FAILURES.set(None)
    return failures


def give_back(failures: Failures | None) -> None:
    if failures is not None:
        _FAILURES.set(failures)


def choose_for_hooks(failures: Failures | None, error: BaseException, told: Exception) -> BaseException:
    """The exception to raise: the original for the hooks to see, or without hooks what the model is to get."""
    if failures is None:
        return told
    failures.told.append((error, told))
    return error


class AfterHooks(AbstractCapability[AgentDepsT]):
    """A capability that replaces exceptions when all hooks have seen them."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def wrap_tool_execute(self, *_: Any, call: ToolCallPart, args: Any, handler: Any, **__: Any) -> Any:
        """Run a tool with all hooks inside, and replace its exception at the end."""
        around = _FAILURES.get()
        if around is not None and around.call is call:
            return await handler(args)  # another capability of this kind is further out
        failures = Failures(call)
        _FAILURES.set(failures)
        told = None
        try:
            return await handler(args)
        except Exception as error:
            if failures.asked:
                told = failures.find(error)
            if told is None:
                raise
        finally:
            failures.wrapped = False
            if failures.asked or not failures.told:
                _FAILURES.set(around)
        try:
            raise told
        finally:
            del told

    async def on_tool_execute_error(self, *_: Any, call: ToolCallPart, error: Exception, **__: Any) -> Any:
        """Raise the exception again, or what replaces it."""
        failures = _FAILURES.get()
        told = None
        if failures is not None and failures.call is call:
            if failures.wrapped:
                failures.asked = True
            else:
                _FAILURES.set(None)
                told = failures.find(error)
        try:
            raise told or error
        finally:
            del error, told
