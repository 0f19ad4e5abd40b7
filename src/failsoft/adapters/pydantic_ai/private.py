"""Private names of pydantic-ai, all in one place.

Each name has a fallback: in a version without it, the adapter works less precisely.
``tests/adapters/test_pydantic_ai_private.py`` checks that the supported versions have all names, and that the adapter
works without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

__all__ = [
    "SYNTHESIZED", "AgentInstructions", "Always", "came_from_agent", "came_from_server", "dynamic_toolset", "function_of",
    "has_executor", "is_engine_toolset", "origin_of", "retries_steps",
]  # fmt: skip

if TYPE_CHECKING:
    from pydantic_ai._instructions import AgentInstructions

# pydantic-ai copies its RunContext for every hook of every capability, even for no-op hooks: one more capability costs
# a run more than everything else here. pydantic-ai adds this capability to each agent that has none of its class.
# ``Failsoft`` subclasses it and so takes its place. Without it, ``Failsoft`` is one more capability.
try:
    from pydantic_ai.capabilities._pending_messages import PendingMessageDrainCapability as Always
except ImportError:

    class Always:  # type: ignore[no-redef]  # a version without this capability
        """A capability that does nothing."""


try:
    from pydantic_ai._utils import _thread_executor
except ImportError:
    _thread_executor = ContextVar("no_executor", default=None)


def has_executor() -> bool:
    """True if the user chose an executor for blocking functions, with ``using_thread_executor``."""
    return _thread_executor.get() is not None


# Metadata key of a tool return that pydantic-ai synthesised for an interrupted call. Without it, pydantic-ai's text
# stays.
SYNTHESIZED = "pydantic_ai_synthesized_tool_return"

_AGENT_MODULES = ("pydantic_ai.agent", "pydantic_ai._agent_graph")
_SERVER_MODULE = "pydantic_ai.mcp"


def came_from_agent(error: BaseException) -> bool:
    """True if the error came out of an agent that a tool was running."""
    return any(module.startswith(_AGENT_MODULES) for module in _modules(error))


def came_from_server(error: BaseException) -> bool:
    """True if pydantic-ai made this error from an MCP server's; False if a user's hook raised it."""
    return _modules(error)[-1:] == [_SERVER_MODULE]


def _modules(error: BaseException) -> list[str]:
    """List the modules in the error's traceback, innermost last."""
    return [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]


def origin_of(tool: Any) -> Any:
    """Return the tool as its own toolset made it, without the wrappers of combined toolsets."""
    while (inner := getattr(tool, "source_tool", None)) is not None:
        tool = inner
    return tool


def function_of(tool: Any) -> Any:
    """Return the Python function of a tool; None if it has none or this version keeps it elsewhere."""
    schema = getattr(getattr(origin_of(tool), "call_func", None), "__self__", None)
    return getattr(schema, "function", None)


def retries_steps(capability: Any) -> bool:
    """True for a durable engine whose retries run inside the guard, where the guard does not see them.

    Temporal and Prefect run every function tool in a unit of their own and retry it. DBOS runs functions in the
    workflow itself; it retries steps of MCP servers only if configured.
    """
    names = {base.__name__ for base in type(capability).__mro__}
    wrapped_kinds = getattr(getattr(capability, "engine_spec", None), "wrapped_toolset_kinds", ())
    config = getattr(capability, "_mcp_step_config", None)
    retries_servers = isinstance(config, Mapping) and bool(config.get("retries_allowed"))
    return (
        retries_servers
        or "function" in wrapped_kinds
        or not names.isdisjoint({"TemporalDurability", "PrefectDurability"})
    )


@cache
def is_engine_toolset(kind: type[Any]) -> bool:
    """True for toolsets that run functions in retried units, like those of ``TemporalAgent`` and ``PrefectAgent``."""
    engines = ("pydantic_ai.durable_exec.temporal", "pydantic_ai.durable_exec.prefect")
    return any(
        base.__module__.startswith(engines) or base.__name__ == "DurableFunctionToolset" for base in kind.__mro__
    )


def dynamic_toolset(toolset: Any) -> Any:
    """Return the toolset that a function made for this run (``@agent.toolset``); None, and unchecked, if unknown."""
    return getattr(toolset, "_toolset", None)
