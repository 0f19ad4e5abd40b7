"""Everything in this adapter that depends on pydantic-ai's private names.

Each name has a fallback, so that the adapter keeps working, only less precisely, when another version of pydantic-ai
lacks it. ``tests/adapters/test_pydantic_ai_private.py`` checks that the supported versions have all of them, and that the
adapter works without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

__all__ = [
    "SYNTHESIZED", "AgentInstructions", "Always", "came_from_agent", "came_from_server", "function_of", "has_executor",
    "is_engine_toolset", "origin_of", "retries_steps",
]  # fmt: skip

if TYPE_CHECKING:
    from pydantic_ai._instructions import AgentInstructions

# pydantic-ai copies its RunContext for every hook of every capability, even where the hook does nothing: one more
# capability costs a run more than everything else here. pydantic-ai adds this one to each agent that has none of its kind.
# ``Failsoft`` is of that kind, takes its place and does its work. Without it, ``Failsoft`` is one capability more.
try:
    from pydantic_ai.capabilities._pending_messages import PendingMessageDrainCapability as Always
except ImportError:

    class Always:  # type: ignore[no-redef]  # this version has no such capability, or another name for it
        """A capability that does nothing."""


try:
    from pydantic_ai._utils import _thread_executor
except ImportError:
    _thread_executor = ContextVar("no_executor", default=None)


def has_executor() -> bool:
    """True if the user chose an executor for blocking functions, with ``using_thread_executor``."""
    return _thread_executor.get() is not None


# In the metadata of a tool return: pydantic-ai has made it up for a call that was interrupted. Without this mark its own
# text stays.
SYNTHESIZED = "pydantic_ai_synthesized_tool_return"

_AGENT_MODULES = ("pydantic_ai.agent", "pydantic_ai._agent_graph")
_SERVER_MODULE = "pydantic_ai.mcp"


def came_from_agent(error: BaseException) -> bool:
    """True if the error came out of an agent that a tool was running."""
    return any(module.startswith(_AGENT_MODULES) for module in _modules(error))


def came_from_server(error: BaseException) -> bool:
    """True if pydantic-ai made this error of an MCP server's; False for what a user's hook raised."""
    return _modules(error)[-1:] == [_SERVER_MODULE]


def _modules(error: BaseException) -> list[str]:
    """The modules that an error came through, its own last."""
    return [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]


def origin_of(tool: Any) -> Any:
    """The tool as its own toolset made it, without the wrappers of combined toolsets."""
    while (inner := getattr(tool, "source_tool", None)) is not None:
        tool = inner
    return tool


def function_of(tool: Any) -> Any:
    """The Python function behind a tool; None if there is none, or if it is kept elsewhere in this version."""
    schema = getattr(getattr(origin_of(tool), "call_func", None), "__self__", None)
    return getattr(schema, "function", None)


def retries_steps(capability: Any) -> bool:
    """True for a durable engine whose retries run inside the guard, so that the guard does not see them.

    Temporal and Prefect put every function tool into a unit of their own and retry it. DBOS runs functions in the
    workflow itself; its steps of MCP servers are retried only where their config says so.
    """
    names = {base.__name__ for base in type(capability).__mro__}
    kinds = getattr(getattr(capability, "engine_spec", None), "wrapped_toolset_kinds", ())
    config = getattr(capability, "_mcp_step_config", None)
    retries_servers = isinstance(config, Mapping) and bool(config.get("retries_allowed"))
    return retries_servers or "function" in kinds or not names.isdisjoint({"TemporalDurability", "PrefectDurability"})


def is_engine_toolset(toolset: Any) -> bool:
    """True for a toolset that runs functions in retried units, as those of ``TemporalAgent`` and ``PrefectAgent`` do."""
    engines = ("pydantic_ai.durable_exec.temporal", "pydantic_ai.durable_exec.prefect")
    return any(
        base.__module__.startswith(engines) or base.__name__ == "DurableFunctionToolset"
        for base in type(toolset).__mro__
    )
