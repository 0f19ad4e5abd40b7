"""Guarded tools: the user's own tools, invoked through the runtime.

The SDK compares tools by identity during a run. So an agent's list holds the guarded tools, not copies made per run.
"""

from __future__ import annotations

import sys
from inspect import signature
from operator import is_
from typing import Any, Protocol, TypeVar, cast

from agents import CustomTool, FunctionTool, Tool
from agents.tool_context import ToolContext

from failsoft.adapters.openai_agents import private
from failsoft.adapters.openai_agents.own_tools import own_tool, with_own_context
from failsoft.adapters.openai_agents.proxies import GuardedProxy, ProxyGuard, make_proxy, without_guard

T = TypeVar("T", bound=FunctionTool | CustomTool)


class ToolGuard(ProxyGuard, Protocol):
    """The part of an agent's guard that a tool uses."""

    def guard_tools(self, tools: list[Tool]) -> list[Tool]: ...
    async def invoke(self, tool: GuardedTool, bare: Any, context: ToolContext[Any], text: str) -> Any: ...
    async def invoke_custom(self, tool: GuardedCustomTool, bare: Any, context: ToolContext[Any], text: str) -> Any: ...


class GuardedInvoker(private.Invoker):  # type: ignore[misc]  # Any: the SDK's is not public
    """The callable with which the SDK runs a guarded tool."""

    def __init__(self, tool: GuardedTool, bare: Any) -> None:
        async def invoke(context: ToolContext[Any], text: str) -> Any:
            return await self(context, text)

        if private.Invoker is not object:
            super().__init__(private.copy_attributes(invoke, bare), None, function_tool=tool)
        self.bare = bare
        self.tool = tool
        self._raises = private.without_failure_function(bare)
        self.__signature__ = signature(self.__call__, eval_str=True)  # the SDK asks for it in every call

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        return await self.tool._guard.invoke(self.tool, self._raises, context, text)

    def __agents_bind_function_tool__(self, tool: FunctionTool) -> Any:
        """Return the invoker for a copy of a guarded tool."""
        return self if cast("Any", tool) is self.tool else private.bind(self.bare, tool)


class GuardedCustomInvoker:
    """The callable with which the SDK runs a guarded custom tool."""

    def __init__(self, tool: GuardedCustomTool, bare: Any) -> None:
        self.tool = tool
        self.bare = bare

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        bare = self.bare
        while isinstance(bare, GuardedCustomInvoker):  # the tool was made with a guarded tool's invoker
            bare = bare.bare
        return await self.tool._guard.invoke_custom(self.tool, bare, context, text)


class AnyGuardedTool(GuardedProxy):  # noqa: PLW1641 - new_proxy sets the original's __hash__
    """The overridden members that all kinds of guarded tools have."""

    own = ("_invoker", "_original")
    invoker_class: type[Any]
    _guard: ToolGuard
    _invoker: Any
    _original: Any  # the tool that was guarded; a copy has none

    @property
    def on_invoke_tool(self) -> Any:
        bare = vars(self)["on_invoke_tool"]
        try:
            invoker = self._invoker
        except AttributeError:
            invoker = None
        if invoker is None or invoker.bare is not bare:
            invoker = self._invoker = self.invoker_class(self, bare)
        return invoker

    @on_invoke_tool.setter
    def on_invoke_tool(self, invoker: Any) -> None:
        vars(self)["on_invoke_tool"] = invoker.bare if isinstance(invoker, self.invoker_class) else invoker

    @property
    def custom_data_extractor(self) -> Any:
        """The user's own function; during a run, a wrapper that passes the user's own tool to it."""
        extract = vars(self).get("custom_data_extractor")
        return extract if extract is None or private.current_run() is None else with_own_context(extract)

    @custom_data_extractor.setter
    def custom_data_extractor(self, extract: Any) -> None:
        vars(self)["custom_data_extractor"] = extract

    def __eq__(self, other: object) -> bool:
        """Compare the original tools, by their own ``__eq__``."""
        mine, theirs = without_guard(self), without_guard(other)
        if isinstance(theirs, FunctionTool | CustomTool) and vars(theirs) is vars(mine):
            return True
        return bool(mine == theirs)


class GuardedTool(AnyGuardedTool):
    """The overridden members of a guarded function tool."""

    invoker_class = GuardedInvoker

    @property
    def timeout_seconds(self) -> float | None:
        """The tool's timeout; None for the SDK, whose timeout would cover all attempts together."""
        return None if private.invokes_tools(sys._getframe(1)) else timeout_of(cast("FunctionTool", self))

    @timeout_seconds.setter
    def timeout_seconds(self, seconds: float | None) -> None:
        vars(self)["timeout_seconds"] = seconds


class GuardedCustomTool(AnyGuardedTool):
    """The overridden members of a guarded custom tool. Custom tools take text instead of JSON arguments."""

    invoker_class = GuardedCustomInvoker


class GuardedTools(list[Tool]):
    """The tools of a guarded agent. The list follows changes to the original agent's list, as a clone's does."""

    def __init__(self, source: list[Tool]) -> None:
        super().__init__(source)
        self.source = source
        self._seen = [*source]  # the source at the last update
        self._guarded: list[Tool] = []  # this list at the last guarding

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedTools, ([],), {**vars(self)}, iter([*self])

    def refresh(self, guard: ToolGuard) -> None:
        """Apply changes of the source and guard new tools. Cheap if nothing changed: the SDK reads the list often."""
        if not _same(self.source, self._seen):
            self._follow()
        if not _same(self, self._guarded):
            guard.guard_tools(self)
            self._guarded = [*self]

    def _follow(self) -> None:
        source, seen = self.source, self._seen
        mine = {_identity(tool): tool for tool in self}
        if [*mine] == [*map(_identity, seen)]:
            self[:] = [mine.get(_identity(tool), tool) for tool in source]
        else:  # this list was changed as well
            now, before = {*map(_identity, source)}, {*map(_identity, seen)}
            self[:] = [tool for tool in self if _identity(tool) in now or _identity(tool) not in before]
            self.extend(tool for tool in source if _identity(tool) not in before)
        self._seen = [*source]


def _same(one: list[Tool], other: list[Tool]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _identity(tool: Tool) -> int:
    """Identify a tool and its proxy: they share one ``__dict__``."""
    return id(vars(tool))


def guard_tool(tool: T, guard: ToolGuard) -> T:
    """Return the guarded proxy of a function tool or a custom tool."""
    proxy = make_proxy(tool, guard, GuardedTool if isinstance(tool, FunctionTool) else GuardedCustomTool)
    cast("AnyGuardedTool", proxy)._original = own_tool(tool)
    return proxy


def timeout_of(tool: FunctionTool) -> float | None:
    """Return the timeout that the user set on the tool, in seconds."""
    seconds: float | None = vars(tool).get("timeout_seconds")
    return seconds
