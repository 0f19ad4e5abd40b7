"""Where tools come from may be down (an MCP server, say): then the run goes on without its tools.

Rules
-----
- A source is entered, asked and left in the run's own task: sessions and cancel scopes belong to the task that opened
  them. How that ended is handed to the runtime afterwards, as a call of the tool ``toolset:<id>``; so it is classified,
  counted by a breaker, and in the turn's report. While that breaker is open the source is not asked at all.
- Sources of one name are counted, ``docs`` and ``docs-2``: each has a breaker of its own.
- The model is told that tools are missing. A dead server is not an empty one.
- Function toolsets are no sources: what fails there is the user's own code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic_ai import RunContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool, WrapperToolset

from failsoft.adapters.pydantic_ai.graceful import CONTROL
from failsoft.core.options import RetryOptions
from failsoft.core.outcome import Outcome
from failsoft.runtime.scope import SCOPE

if TYPE_CHECKING:
    from failsoft.adapters.pydantic_ai.capability import Failsoft

T = TypeVar("T")


@dataclass
class SourceGuard(WrapperToolset[AgentDepsT]):
    """Around one source, for one run."""

    rules: Failsoft[AgentDepsT]
    name: str
    absent: Outcome[Any] | None = None  # it could not be entered
    lost: Outcome[Any] | None = None  # it could not say what it has

    async def __aenter__(self) -> Self:
        self.absent, _ = await self._try(self.wrapped.__aenter__)
        return self

    async def __aexit__(self, *args: object) -> bool | None:
        return None if self.absent is not None else await super().__aexit__(*args)

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        if self.absent is not None:
            return self
        self.lost, stepped = await self._try(partial(super().for_run_step, ctx))
        return stepped or self

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        if self.absent is not None or self.lost is not None:
            return {}
        self.lost, tools = await self._try(partial(super().get_tools, ctx))
        return tools or {}

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> Any:
        lost = self.absent or self.lost
        if lost is not None:
            return f"The tools of {self.name} are missing in this run. {lost.explanation.model}"
        _, instructions = await self._try(partial(super().get_instructions, ctx))
        return instructions

    async def _try(self, do: Callable[[], Awaitable[T]]) -> tuple[Outcome[Any] | None, T | None]:
        """How it failed, or what it gave."""
        runtime, id = self.rules.runtime, f"toolset:{self.name}"
        runtime.declare(id, idempotent=True, retry=RetryOptions(max_attempts=1), label=f"the tools of {self.name}")
        if runtime.health(id).state == "open":
            refusal = await runtime.run(id, {}, {id: partial(_end, None)})
            if refusal.status != "succeeded":  # else it was to be tried again this very moment
                return refusal, None
        try:
            result = await do()
        except CONTROL:
            raise
        except Exception as error:
            return await runtime.run(id, {}, {id: partial(_end, error)}), None
        health = runtime.health(id)
        if health.failure_count or health.state != "closed":
            token = SCOPE.set(None)  # that it works again is no news for the turn's report
            try:
                await runtime.run(id, {}, {id: partial(_end, None)})
            finally:
                SCOPE.reset(token)
        return None, result


async def _end(error: Exception | None, _: dict[str, Any]) -> None:
    if error is not None:
        raise error


def guard_sources(toolset: AbstractToolset[AgentDepsT], rules: Failsoft[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
    """Every source further in, guarded."""
    names: Counter[str] = Counter()

    def guard(leaf: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        if isinstance(leaf, FunctionToolset):
            return leaf
        name = leaf.id or type(leaf).__name__
        names[name] += 1
        return SourceGuard(leaf, rules, name if names[name] == 1 else f"{name}-{names[name]}")

    def enter(around: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        if isinstance(around, CombinedToolset):
            return replace(around, toolsets=[enter(each) for each in around.toolsets])
        if isinstance(around, WrapperToolset) and type(around).visit_and_replace is WrapperToolset.visit_and_replace:
            made = copy(around)  # pydantic-ai makes another one, and cannot where a class has an __init__ of its own
            made.wrapped = enter(around.wrapped)
            return made
        return around.visit_and_replace(guard)

    leaves: list[AbstractToolset[AgentDepsT]] = []
    toolset.apply(leaves.append)
    if all(isinstance(leaf, FunctionToolset) for leaf in leaves):
        return toolset  # most agents have functions only: nothing is to be built anew
    return enter(toolset)
