"""Guard sources of tools, such as MCP servers: the run continues without the tools of a source that is down.

Rules
-----
- A source is entered, queried and exited in the run's own task: sessions and cancel scopes belong to the task that
  opened them. The result is then reported to the runtime as a call of the tool ``toolset:<id>``. So it is classified,
  counted by a breaker and listed in the turn's report. While the breaker is open, the source is not queried. The
  timeout is the manifest's for that tool, or the source's own.
- Sources of the same name are numbered (``docs``, ``docs-2``); each has its own breaker.
- The model is told that tools are missing: a dead server is not an empty one.
- Function toolsets are not sources: they fail only through the user's own code.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar

from pydantic_ai import RunContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool, WrapperToolset

from failsoft.adapters.pydantic_ai.graceful import CONTROL
from failsoft.adapters.pydantic_ai.repeated import OnceToolset, has_own_wrapper
from failsoft.core.model.durations import text
from failsoft.core.model.options import RetryOptions
from failsoft.core.model.outcome import Outcome
from failsoft.integration.api import SCOPE, Runtime
from failsoft.integration.framework_tool import timeout_of

T = TypeVar("T")


@dataclass
class SourceGuard(WrapperToolset[AgentDepsT]):
    """The guard of one source, for one run."""

    runtime: Runtime
    name: str
    absent: Outcome[Any] | None = None  # why it could not be entered
    lost: Outcome[Any] | None = None  # why it could not list its tools

    @property
    def tool(self) -> str:
        """The source's tool id in the runtime."""
        return f"toolset:{self.name}"

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        absent, made = await self._try(partial(super().for_run, ctx))
        return made or replace(self, absent=absent)

    async def __aenter__(self) -> Self:
        if self.absent is None:
            self.absent, _ = await self._try(self.wrapped.__aenter__)
        return self

    async def __aexit__(self, *args: object) -> bool | None:
        if self.absent is not None:
            return None
        try:
            return await super().__aexit__(*args)
        except CONTROL:
            raise
        except Exception as error:
            await self._report(error)  # the run already has its result
            return None

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        if self.absent is not None:
            return self
        self.lost = None
        self.lost, stepped = await self._try(partial(super().for_run_step, ctx))
        return stepped or self

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        if self.absent is not None or self.lost is not None:
            return {}
        self.lost, tools = await self._try(partial(super().get_tools, ctx))
        health = self.runtime.health(self.tool)
        if self.lost is None and (health.failure_count or health.state != "closed"):
            await self._report(None)  # listing succeeded: the source works again
        return tools or {}

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> Any:
        lost = self.absent or self.lost
        if lost is not None:
            return f"The tools of {self.name} are missing in this run. {lost.explanation.model}"
        _, instructions = await self._try(partial(super().get_instructions, ctx))
        return instructions

    async def _try(self, do: Callable[[], Awaitable[T]]) -> tuple[Outcome[Any] | None, T | None]:
        """Return the failure, or the result."""
        runtime, tool = self.runtime, self.tool
        label = f"the tools of {self.name}"
        runtime.declare(tool, idempotent=True, retry=RetryOptions(max_attempts=1), timeout=None, label=label)
        if runtime.health(tool).state == "open":
            refusal = await runtime.run(tool, {}, {tool: partial(_end, None)})
            if refusal.status != "succeeded":  # otherwise the breaker admits a probe now
                return refusal, None
        scope = asyncio.timeout(limit := timeout_of(runtime, tool))
        try:
            async with scope:
                return None, await do()
        except CONTROL:
            raise
        except Exception as failure:
            error = TimeoutError(f"No answer within {text(limit)}") if limit and scope.expired() else failure
            return await runtime.run(tool, {}, {tool: partial(_end, error)}), None

    async def _report(self, error: Exception | None) -> None:
        """Report a recovery or a failed exit to the breaker, but not in the turn's report."""
        token = SCOPE.set(None)
        try:
            await self.runtime.run(self.tool, {}, {self.tool: partial(_end, error)})
        finally:
            SCOPE.reset(token)


async def _end(error: Exception | None, _: dict[str, Any]) -> None:
    if error is not None:
        raise error


def guard_sources(toolset: AbstractToolset[AgentDepsT], runtime: Runtime) -> AbstractToolset[AgentDepsT]:
    """Guard every source inside a toolset."""
    names: Counter[str] = Counter()
    repeats = has_own_wrapper(toolset)

    def guard(leaf: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        once = OnceToolset(leaf) if repeats else leaf
        if isinstance(leaf, FunctionToolset):
            return once
        name = leaf.id or type(leaf).__name__
        names[name] += 1
        return SourceGuard(once, runtime, name if names[name] == 1 else f"{name}-{names[name]}")

    def enter(around: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        if isinstance(around, CombinedToolset):
            return replace(around, toolsets=[enter(each) for each in around.toolsets])
        if isinstance(around, WrapperToolset) and type(around).visit_and_replace is WrapperToolset.visit_and_replace:
            made = copy(around)  # visit_and_replace rebuilds the wrapper, which fails for a class with its own __init__
            made.wrapped = enter(around.wrapped)
            return made
        return around.visit_and_replace(guard)

    leaves: list[AbstractToolset[AgentDepsT]] = []
    toolset.apply(leaves.append)
    if not repeats and all(isinstance(leaf, FunctionToolset) for leaf in leaves):
        return toolset  # most agents have functions only: nothing to rebuild
    return enter(toolset)
