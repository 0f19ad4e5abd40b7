"""The guarded agent and the tools that it offers to the model."""

from __future__ import annotations

import logging
import weakref
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from agents import Agent, AgentBase, RunContextWrapper, Tool

from failsoft.adapters.openai_agents import private
from failsoft.adapters.openai_agents.guard import Guard, Thread
from failsoft.adapters.openai_agents.own_tools import own_hooks, pass_own_tools, with_own_results
from failsoft.adapters.openai_agents.proxies import GuardedProxy, make_proxy, without_guard
from failsoft.adapters.openai_agents.tools import GuardedTools
from failsoft.errors import FailsoftError
from failsoft.integration.api import reset_variable, visible
from failsoft.integration.framework_tool import require_runtime

log = logging.getLogger("failsoft")
A = TypeVar("A", bound=Agent[Any])

_LISTING: ContextVar[tuple[GuardedAgent, list[Any]] | None] = ContextVar("failsoft_listing", default=None)


def guard_agent(agent: A, runtime: Any, *, thread: Thread | None = None, graceful: bool = True) -> A:
    """Clone the agent, with tools that go through the runtime. Guard the agents that it hands off to separately.

    ``thread`` is a function that returns the conversation's id for the run's context; the default is the run's
    ``group_id``. With ``graceful=False``, a failure is raised if the tool has no failure function of its own.
    """
    require_runtime(runtime, "guard_agent(agent, rt)")
    if not isinstance(agent, AgentBase):
        raise FailsoftError(f"{agent!r:.80} is not an Agent: write guard_agent(agent, rt)")
    if thread is not None and not callable(thread):
        raise FailsoftError(
            f"thread={thread!r:.80}: expected a function that takes the run's context and returns the thread's id"
        )
    if not isinstance(graceful, bool):
        raise FailsoftError(f"graceful={graceful!r:.80}: expected True or False")
    if isinstance(agent, GuardedAgent):
        raise FailsoftError(f"{agent.name!r} is already guarded: use it as it is, or guard the original agent")
    private.watch_runs(pass_own_tools, _look_at)
    clone = cast("A", agent.clone())
    guard = Guard(runtime, thread, graceful)
    guarded = make_proxy(clone, guard, GuardedAgent, {**vars(clone), "tools": GuardedTools(clone.tools)})
    weakref.finalize(guarded, _note_dropped, guard, weakref.ref(agent)).atexit = False
    return guarded


_UNUSED: dict[int, weakref.ref[Any]] = {}  # agents whose guarded form was dropped without a run


def _note_dropped(guard: Guard, agent: weakref.ref[Any]) -> None:
    original = agent()
    if original is not None and not guard.has_run:
        _UNUSED[id(original)] = agent
        weakref.finalize(original, _UNUSED.pop, id(original), None).atexit = False


def _look_at(agent: Any) -> None:
    """Log that an agent runs unguarded although a guarded form was made and dropped: probably a mistake."""
    if isinstance(agent, GuardedAgent):
        agent._guard.has_run = True
    elif _UNUSED.pop(id(agent), None) is not None:  # another object had this id only after its entry was gone
        log.warning(
            "%s runs without failsoft: guard_agent returns the guarded agent and leaves the original as it is: write guarded = "
            "guard_agent(agent, rt), and run that one",
            visible(str(agent.name)),
        )


class GuardedAgent(GuardedProxy):  # noqa: PLW1641 - new_proxy sets the original's __hash__
    """The overridden members of a guarded agent."""

    own = ("_wrapped_hooks",)
    _guard: Guard
    _wrapped_hooks: Any  # the user's hooks, and the wrapper that the SDK gets

    @property
    def tools(self) -> list[Tool]:
        """The guarded tools, including any that were added since."""
        tools: list[Tool] = vars(self)["tools"]
        if isinstance(tools, GuardedTools):
            tools.refresh(self._guard)
        return tools

    @tools.setter
    def tools(self, tools: list[Tool]) -> None:
        own = isinstance(tools, GuardedTools) or not isinstance(tools, list)  # the SDK rejects a non-list itself
        vars(self)["tools"] = tools if own else GuardedTools(tools)

    @property
    def mcp_servers(self) -> list[Any]:
        """The user's own servers; the guarded ones while tools are being listed."""
        listing = _LISTING.get()
        if listing is not None and listing[0] is self:
            return listing[1]
        servers: list[Any] = vars(self)["mcp_servers"]
        return servers

    @mcp_servers.setter
    def mcp_servers(self, servers: list[Any]) -> None:
        vars(self)["mcp_servers"] = servers

    @property
    def hooks(self) -> Any:
        """The user's own hooks; during a run, a wrapper that passes the user's own tools to them."""
        hooks = vars(self).get("hooks")
        if hooks is None or private.current_run() is None:
            return hooks
        try:
            if self._wrapped_hooks[0] is hooks:
                return self._wrapped_hooks[1]
        except AttributeError:  # not wrapped before
            pass
        self._wrapped_hooks = hooks, pass_own_tools(hooks)
        return self._wrapped_hooks[1]

    @hooks.setter
    def hooks(self, hooks: Any) -> None:
        vars(self)["hooks"] = own_hooks(hooks)

    @property
    def tool_use_behavior(self) -> Any:
        """The user's own setting; during a run, a function gets results with the user's own tools."""
        behavior = vars(self).get("tool_use_behavior", "run_llm_again")
        if not callable(behavior) or private.current_run() is None:
            return behavior
        return with_own_results(behavior)

    @tool_use_behavior.setter
    def tool_use_behavior(self, behavior: Any) -> None:
        vars(self)["tool_use_behavior"] = behavior

    def __eq__(self, other: object) -> bool:
        """Compare the original agents, by their own ``__eq__``."""
        if self is other:
            return True
        _ = self.tools, getattr(other, "tools", None)  # reading brings both lists up to date
        return bool(without_guard(self) == without_guard(other))

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        servers = vars(self)["mcp_servers"]
        token = _LISTING.set((self, self._guard.guard_servers(servers))) if servers else None
        try:
            tools: list[Tool] = await super().get_mcp_tools(run_context)  # type: ignore[misc]  # the agent's class
        finally:
            if token is not None:
                reset_variable(_LISTING, token)
        return tools

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        tools: list[Tool] = await super().get_all_tools(run_context)  # type: ignore[misc]  # the agent's class
        forced = getattr(getattr(self, "model_settings", None), "tool_choice", None)
        return self._guard.offer(tools, run_context, forced)

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        prompt: str | None = await super().get_system_prompt(run_context)  # type: ignore[misc]  # the agent's class
        if not vars(self)["mcp_servers"]:
            return prompt
        servers = self._guard.guard_servers(vars(self)["mcp_servers"])
        lost = [server.lost.explanation.model for server in servers if server.lost]
        return "\n\n".join([*filter(None, [prompt]), "Some tools are missing in this run.", *lost]) if lost else prompt
