"""Guarded tools: the user's own, except that invoking one goes through the runtime.

The SDK checks its tools again by identity while a run is under way. So an agent's list of tools has the guarded ones in
it, and not copies that are made for a run.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, cast

from agents import FunctionTool, Tool
from agents.tool_context import ToolContext

from failsoft.adapters.openai_agents import private
from failsoft.adapters.openai_agents.own_tools import own_tool
from failsoft.adapters.openai_agents.twins import Twin, make_twin

if TYPE_CHECKING:
    from failsoft.adapters.openai_agents.guard import Guard


class GuardedInvoker(private.Invoker):  # type: ignore[misc]  # Any: the SDK's is not public
    """What the SDK calls to run a guarded tool."""

    def __init__(self, tool: GuardedTool, bare: Any) -> None:
        async def invoke(context: ToolContext[Any], text: str) -> Any:
            return await self(context, text)

        if private.Invoker is not object:
            super().__init__(private.dress(invoke, bare), None, function_tool=tool)
        self.bare = bare
        self.tool = tool
        self._raises = private.without_failure_function(bare)

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        return await self.tool._guard.invoke(self.tool, self._raises, context, text)

    def __agents_bind_function_tool__(self, tool: FunctionTool) -> Any:
        """A copy of a guarded tool gets an invoker of its own."""
        return self if cast("Any", tool) is self.tool else private.bind(self.bare, tool)


class GuardedTool(Twin):
    """What a guarded tool does otherwise."""

    own = ("_invoker", "_original")
    _guard: Guard
    _invoker: GuardedInvoker
    _original: FunctionTool  # what it was made from; a copy has none

    @property
    def on_invoke_tool(self) -> Any:
        bare = vars(self)["on_invoke_tool"]
        try:
            invoker = self._invoker
        except AttributeError:
            invoker = None
        if invoker is None or invoker.bare is not bare:
            invoker = self._invoker = GuardedInvoker(self, bare)
        return invoker

    @on_invoke_tool.setter
    def on_invoke_tool(self, invoker: Any) -> None:
        vars(self)["on_invoke_tool"] = invoker.bare if isinstance(invoker, GuardedInvoker) else invoker

    @property
    def timeout_seconds(self) -> float | None:
        """None: the SDK would stop all attempts of a call together. ``timeout_of`` has the tool's."""
        return None

    @timeout_seconds.setter
    def timeout_seconds(self, seconds: float | None) -> None:
        vars(self)["timeout_seconds"] = seconds

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FunctionTool) and vars(other) is vars(self):
            return True
        return bool(super().__eq__(other))

    __hash__ = None  # type: ignore[assignment]  # as the SDK's tools have none


class GuardedTools(list[Tool]):
    """A guarded agent's list of tools. It follows the list of the agent that was guarded, as a clone's does."""

    def __init__(self, source: list[Tool]) -> None:
        super().__init__(source)
        self.source = source
        self._seen = [*source]  # what the source had when it was followed last
        self._guarded: list[Tool] = []  # what this list had when it was guarded last

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedTools, ([],), {**vars(self)}, iter([*self])

    def refresh(self, guard: Guard) -> None:
        """Take over what has changed in the source, and guard what is new. The SDK reads the list often."""
        if not _same(self.source, self._seen):
            self._follow()
        if not _same(self, self._guarded):
            guard.guard_tools(self)
            self._guarded = [*self]

    def _follow(self) -> None:
        source, seen = self.source, self._seen
        mine = {_state(tool): tool for tool in self}
        if [*mine] == [*map(_state, seen)]:
            self[:] = [mine.get(_state(tool), tool) for tool in source]
        else:  # it has been changed itself, too
            now, before = {*map(_state, source)}, {*map(_state, seen)}
            self[:] = [tool for tool in self if _state(tool) in now or _state(tool) not in before]
            self.extend(tool for tool in source if _state(tool) not in before)
        self._seen = [*source]


def _same(one: list[Tool], other: list[Tool]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _state(tool: Tool) -> int:
    """What a tool and its twin have in common."""
    return id(vars(tool))


def guard_tool(tool: FunctionTool, guard: Guard) -> FunctionTool:
    """The guarded twin of a tool."""
    twin = make_twin(tool, guard, GuardedTool)
    cast("GuardedTool", twin)._original = own_tool(tool)
    return twin


def timeout_of(tool: FunctionTool) -> float | None:
    """What the user has set as the tool's timeout, in seconds."""
    seconds: float | None = vars(tool).get("timeout_seconds")
    return seconds
