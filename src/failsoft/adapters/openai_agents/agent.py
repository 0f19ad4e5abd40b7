"""The guarded agent: what it offers to the model, and how a call of one of its tools goes through the runtime."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, TypeVar, cast
from weakref import ref

from agents import Agent, AgentBase, FunctionTool, RunContextWrapper, Tool, Usage
from agents.tool import invoke_function_tool, with_function_tool_failure_error_handler
from agents.tool_context import ToolContext
from agents.tracing import get_current_trace

from failsoft.adapters.openai_agents.attempt import attempt, disarm, is_made_by_sdk, is_watched, say
from failsoft.adapters.openai_agents.servers import GuardedServer
from failsoft.core.fault import Fault
from failsoft.errors import CallFailed, FailsoftError
from failsoft.runtime.arguments import read_arguments
from failsoft.runtime.foreign import MadeWhenAsked, Runner, hide, introduce, refuse_other
from failsoft.runtime.runtime import Runtime

A = TypeVar("A", bound=Agent[Any])
Thread = Callable[[RunContextWrapper[Any]], str | None]
Bare = Mapping[str, FunctionTool]  # tools that raise what they meet


def guard_agent(agent: A, runtime: Runtime, *, thread: Thread | None = None) -> A:
    """A clone of the agent, whose tools go through the runtime. Agents that it hands off to are guarded by themselves."""
    refuse_other(runtime, "guard_agent(agent, rt)")
    if not isinstance(agent, AgentBase):
        raise FailsoftError(f"{agent!r:.80} is no Agent: write guard_agent(agent, rt)")
    if thread is not None and not callable(thread):
        raise FailsoftError(
            f"thread={thread!r:.80}: write a function of the run's context, which gives the thread's id"
        )
    if isinstance(agent, _Guarded):
        raise FailsoftError(
            f"{agent.name!r} is guarded already: use it as it is, or guard the agent that it was made from"
        )
    kind = type(agent)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    guard = _Guard(runtime, thread or group_of)
    guarded: Any = object.__new__(type(kind.__name__, (_Guarded, kind), {**names, "_guard": guard}))
    guarded.__dict__.update(agent.clone(mcp_servers=guard.watch(agent.mcp_servers)).__dict__)
    return cast("A", guarded)


class _Groups:
    """The conversation's id as ``RunConfig(group_id=...)`` gives it.

    Only tools see that. Who asks what is offered knows it from the trace, and where nothing is traced, from the run's
    tools: what all contexts of a run share is its usage.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[ref[Usage], str | None]] = {}

    def __call__(self, context: RunContextWrapper[Any]) -> str | None:
        usage, config = getattr(context, "usage", None), getattr(context, "run_config", None)
        if config is not None:
            if usage is not None and id(usage) not in self._known:
                self._note(usage, config.group_id)
            return cast("str | None", config.group_id)
        found: str | None = getattr(get_current_trace(), "group_id", None)
        return self._known[id(usage)][1] if found is None and id(usage) in self._known else found

    def _note(self, usage: Usage, group: str | None) -> None:
        key = id(usage)
        self._known[key] = ref(usage, lambda _: self._known.pop(key, None)), group


group_of = _Groups()


class _Guarded:
    """What a guarded agent does otherwise."""

    _guard: ClassVar[_Guard]
    mcp_servers: list[Any]

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        self.mcp_servers = self._guard.watch(self.mcp_servers)  # a clone may have others
        tools: list[Tool] = await super().get_all_tools(run_context)  # type: ignore[misc]  # the agent's
        forced = getattr(getattr(self, "model_settings", None), "tool_choice", None)
        return self._guard.offer(tools, run_context, forced)

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        prompt: str | None = await super().get_system_prompt(run_context)  # type: ignore[misc]  # the agent's
        servers = [server for server in self.mcp_servers if isinstance(server, GuardedServer)]
        lost = [server.lost.explanation.model for server in servers if server.lost]
        return "\n\n".join([*filter(None, [prompt]), "Some tools are missing in this run.", *lost]) if lost else prompt


class _Guard:
    """What the tools of one guarded agent share."""

    def __init__(self, runtime: Runtime, thread: Thread) -> None:
        self.runtime = runtime
        self.thread = thread
        self._made: tuple[list[Tool], dict[int, FunctionTool]] = ([], {})  # for which tools, by their ids

    def watch(self, servers: list[Any]) -> list[Any]:
        """Servers that may be down; the very same list, if they may already."""
        if all(isinstance(server, GuardedServer) for server in servers):
            return servers
        seen = Counter[str]()
        watched = []
        for server in servers:
            seen[server.name] += 1
            guarded = isinstance(server, GuardedServer)
            watched.append(server if guarded else GuardedServer(server, self.runtime, seen[server.name]))
        return watched

    def offer(self, tools: list[Tool], context: RunContextWrapper[Any], forced: Any) -> list[Tool]:
        """Those that can be used in this conversation, guarded; and the one that the model is made to call."""
        before, made = self._made
        if len(before) != len(tools) or any(old is not new for old, new in zip(before, tools, strict=True)):
            made = self._guard(tools)
            self._made = tools, made
        thread = self.thread(context)
        if self.runtime.threads[thread or ""].unavailable:
            choice = [_id(tool) for tool in tools if forced in ("required", tool.name)]
            brought = [tool.qualified_name for tool in made.values() if not is_watched(tool)]
            hidden = hide(self.runtime, thread, brought, choice)
            tools = [tool for tool in tools if _id(tool) not in hidden]
        return [made.get(id(tool), tool) for tool in tools]

    def _guard(self, tools: list[Tool]) -> dict[int, FunctionTool]:
        functions = [tool for tool in tools if isinstance(tool, FunctionTool)]
        bare = {tool.qualified_name: disarm(tool) for tool in functions}
        for tool in functions:
            introduce(self.runtime, tool.qualified_name, _words(tool))
        return {id(tool): self._arm(tool, bare) for tool in functions}

    def _arm(self, tool: FunctionTool, bare: Bare) -> FunctionTool:
        guarded, invoker = copy.copy(tool), tool.on_invoke_tool
        guarded.timeout_seconds = None

        async def invoke(context: ToolContext[Any], text: str) -> Any:
            return await self._invoke(tool.qualified_name, bare, context, text)

        if is_made_by_sdk(tool):  # it has a failure function
            invoke.__agents_prepare_arguments__ = invoker.prepare_arguments  # type: ignore[attr-defined]  # for approvals
            handled = with_function_tool_failure_error_handler(invoke, lambda *_: None)
            guarded.on_invoke_tool = cast("Any", handled).__agents_bind_function_tool__(guarded)
        else:
            guarded.on_invoke_tool = invoke
        return guarded

    async def _invoke(self, name: str, bare: Bare, context: ToolContext[Any], text: str) -> Any:
        tool = bare[name]
        if hasattr(getattr(tool, "__wrapped__", None), "__failsoft__"):  # it goes through a runtime by itself
            try:
                return await invoke_function_tool(function_tool=tool, context=context, arguments=text)
            except CallFailed as failed:
                return say(failed.outcome, context)
        given = read_arguments(text)
        if isinstance(given, Fault):
            given = {"arguments": text}  # the tool refuses them

        def runner(other: str) -> Runner | None:
            found = bare.get(other)
            if found is None or (other != name and is_watched(found)):
                return None
            return partial(attempt, found, name, context, text, given)

        runners, thread = MadeWhenAsked(runner), self.thread(context)
        outcome = await self.runtime.run(name, given, runners, thread=thread, id=context.tool_call_id)
        return say(outcome, context)


def _words(tool: FunctionTool) -> dict[str, Any]:
    """What the SDK knows of a tool."""
    return {"timeout": timedelta(seconds=tool.timeout_seconds)} if tool.timeout_seconds else {}


def _id(tool: Tool) -> str | None:
    return tool.qualified_name if isinstance(tool, FunctionTool) else None
