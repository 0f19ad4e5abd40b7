"""Stop the user's own toolsets from repeating a tool inside one attempt.

A user's ``WrapperToolset`` may retry inside the guard, where failsoft sees only one attempt. If the tool is not safe to
repeat, the wrapper gets the same error again instead of another run.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ToolsetTool, WrapperToolset

from failsoft.integration.api import Runtime, visible

log = logging.getLogger("failsoft")

Runs = list[tuple[AbstractToolset[Any], str, dict[str, Any], Exception]]  # failed runs
RUNS: ContextVar[Runs | None] = ContextVar(
    "failsoft_runs", default=None
)  # the failed runs of the current attempt; None: every tool may be repeated


@dataclass
class OnceToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose tools run once in each attempt, if they are not safe to repeat."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        runs = RUNS.get()
        if runs is None:
            return await super().call_tool(name, tool_args, ctx, tool)
        for toolset, before, arguments, error in runs:
            if (toolset, before, arguments) == (self.wrapped, name, tool_args):  # otherwise it is another call
                log.warning(
                    "%s is not run again: a toolset inside of failsoft repeats it. Leave retries to failsoft",
                    visible(name),
                )
                raise error
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            runs.append((self.wrapped, name, tool_args, error))
            raise


def may_be_repeated(runtime: Runtime, name: str) -> bool:
    """Return True if repeating a tool does no harm. An agent's tool counts as a write unless declared or recognised."""
    info = runtime.tools[name]
    options = info.options
    return info.effect == "read" or options.idempotent is True or options.idempotency_key is not None


def has_own_wrapper(toolset: AbstractToolset[Any]) -> bool:
    """Return True if one of the user's own wrappers is around a toolset, and so may run its tools again."""
    if isinstance(toolset, CombinedToolset):
        return any(map(has_own_wrapper, toolset.toolsets))
    if not isinstance(toolset, WrapperToolset):
        return False
    return not type(toolset).__module__.startswith("pydantic_ai.") or has_own_wrapper(toolset.wrapped)
