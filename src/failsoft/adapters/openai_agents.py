"""OpenAI Agents SDK: ``guarded = guard_agent(agent, runtime)``, then ``Runner.run(guarded, ...)``.

Rules
-----
- The agent itself is not touched: a clone comes back, whose function tools go through the runtime under their names,
  those of MCP servers too. They count as not idempotent until a manifest entry, ``rt.declare`` or a registered tool of
  their name says otherwise. Tools that run elsewhere (web search, computers, shells) stay as they are.
- The model reads the explanation of a failed call as the call's result; the tool's own failure function is not asked.
- What the SDK steers itself with passes: guardrail tripwires, ``MaxTurnsExceeded``, ``UserError``, ``ModelRefusalError``,
  ``ModelTimeoutError``, ``MCPToolCancellationError``. It then meets the tool's own failure function, as ever.
- A tool's ``timeout`` becomes its timeout here, and functions that block may have one as well (30 s if nobody says).
- A dead MCP server does not end the run: its tools are missing, and the model is told why.
- The thread is the run's ``group_id``, unless ``thread`` finds another. Tools that are missing in it are not offered.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

try:
    from agents import Agent, FunctionTool, RunContextWrapper, Tool
    from agents.exceptions import AgentsException, ModelBehaviorError, ToolTimeoutError, UserError
    from agents.tool import (
        invoke_function_tool,
        set_function_tool_failure_error_function,
        with_function_tool_failure_error_handler,
    )
    from agents.tool_context import ToolContext
    from agents.tracing import get_current_trace
    from pydantic import ValidationError
except ImportError as missing:
    raise ImportError(f"{missing}: install failsoft[openai-agents]", name=missing.name) from missing

from failsoft.core import own_faults
from failsoft.core.fault import Fault
from failsoft.core.outcome import Outcome
from failsoft.errors import CallFailed, FailsoftError, TurnError
from failsoft.runtime.arguments import BrokenToolError, MisfitError, find_misfit, read_arguments
from failsoft.runtime.foreign import MadeWhenAsked, Passing, Runner
from failsoft.runtime.runtime import Runtime

if TYPE_CHECKING:
    from agents.mcp import MCPServer

A = TypeVar("A", bound=Agent[Any])
Thread = Callable[[RunContextWrapper[Any]], str | None]
Bare = Mapping[str, FunctionTool]  # tools that raise what they meet


def guard_agent(agent: A, runtime: Runtime, *, thread: Thread | None = None) -> A:
    """A clone of the agent, whose tools go through the runtime. Agents that it hands off to are guarded by themselves."""
    if isinstance(agent, _Guarded):
        raise FailsoftError(f"{agent.name!r} is guarded already")
    kind = type(agent)
    servers = [GuardedServer(server, runtime) for server in agent.mcp_servers]
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    guard = _Guard(runtime, thread or group_of)
    guarded: Any = object.__new__(type(kind.__name__, (_Guarded, kind), {**names, "_guard": guard}))
    guarded.__dict__.update(agent.clone(mcp_servers=servers).__dict__)
    return cast("A", guarded)


def group_of(context: RunContextWrapper[Any]) -> str | None:
    """The conversation's id as ``RunConfig(group_id=...)`` gives it."""
    config = getattr(context, "run_config", None)
    return config.group_id if config is not None else getattr(get_current_trace(), "group_id", None)


class _Guarded:
    """What a guarded agent does otherwise."""

    _guard: ClassVar[_Guard]

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        tools: list[Tool] = await super().get_all_tools(run_context)  # type: ignore[misc]  # the agent's
        return self._guard.offer(tools, run_context)

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        prompt: str | None = await super().get_system_prompt(run_context)  # type: ignore[misc]  # the agent's
        servers: Iterable[Any] = self.mcp_servers  # type: ignore[attr-defined]  # the agent's
        lost = [
            server.lost.explanation.model for server in servers if isinstance(server, GuardedServer) and server.lost
        ]
        return "\n\n".join([*filter(None, [prompt]), "Some tools are missing in this run.", *lost]) if lost else prompt


class _Guard:
    """What the tools of one guarded agent share."""

    def __init__(self, runtime: Runtime, thread: Thread) -> None:
        self.runtime = runtime
        self.thread = thread
        self._made: tuple[list[Tool], dict[int, Tool]] = ([], {})  # for which tools, by their ids

    def offer(self, tools: list[Tool], context: RunContextWrapper[Any]) -> list[Tool]:
        """Those that can be used in this conversation, guarded."""
        before, made = self._made
        if len(before) != len(tools) or any(old is not new for old, new in zip(before, tools, strict=True)):
            made = self._guard(tools)
            self._made = tools, made
        hidden = set(self.runtime.threads[self.thread(context) or ""].unavailable)
        return [made.get(id(tool), tool) for tool in tools if not hidden or _id(tool) not in hidden]

    def _guard(self, tools: list[Tool]) -> dict[int, Tool]:
        functions = [tool for tool in tools if isinstance(tool, FunctionTool)]
        bare = {tool.qualified_name: _disarm(tool) for tool in functions}
        known = set(self.runtime.tools)
        for tool in functions:
            if tool.qualified_name not in known:
                limit = {"timeout": timedelta(seconds=tool.timeout_seconds)} if tool.timeout_seconds else {}
                self.runtime.declare(tool.qualified_name, **limit)
        return {id(tool): self._arm(tool, bare) for tool in functions}

    def _arm(self, tool: FunctionTool, bare: Bare) -> FunctionTool:
        guarded, invoker = copy.copy(tool), tool.on_invoke_tool
        guarded.timeout_seconds = None

        async def invoke(context: ToolContext[Any], text: str) -> Any:
            return await self._invoke(tool.qualified_name, bare, context, text)

        if hasattr(invoker, "__agents_bind_function_tool__"):  # made by the SDK: it has a failure function
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
                return failed.outcome.explanation.model
        given = read_arguments(text)
        if isinstance(given, Fault):
            given = {"arguments": text}  # the tool refuses them

        def runner(other: str) -> Runner | None:
            return partial(_attempt, bare[other], name, context, text, given) if other in bare else None

        run = partial(self.runtime.run, name, given, MadeWhenAsked(runner), thread=self.thread(context))
        try:
            outcome = await run(id=context.tool_call_id)
        except TurnError:  # an id that is not unique in the turn around the run
            outcome = await run()
        return _say(outcome)


# --- one attempt -------------------------------------------------------------------------------------------------------


def _disarm(tool: FunctionTool) -> FunctionTool:
    bare = set_function_tool_failure_error_function(copy.copy(tool), None)
    bare.timeout_seconds = None
    return bare


async def _attempt(
    tool: FunctionTool, asked: str, context: ToolContext[Any], text: str, given: Mapping[str, Any], arguments: Any
) -> Any:
    if tool.qualified_name != asked:  # a stand-in: what was prepared for the other one is not for it
        context = copy.copy(context)
        context.tool_name, context._function_tool_arguments = tool.name, None
    if arguments != given:
        text = json.dumps(arguments)
    try:
        return await invoke_function_tool(function_tool=tool, context=context, arguments=text)
    except ModelBehaviorError as error:
        fault = find_misfit(tool.params_json_schema, text) or own_faults.bad_arguments(detail=error)
        raise MisfitError(fault) from error
    except ValidationError as error:
        raise BrokenToolError(str(error)) from error
    except Exception as error:
        if _is_control(error):
            raise Passing(error) from None
        if type(error) is AgentsException and isinstance(error.__cause__, Exception):
            raise error.__cause__  # noqa: B904 - the SDK's wrapping says less
        raise


def _is_control(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_control, error.exceptions))
    own = isinstance(error, AgentsException) and type(error) is not AgentsException
    return own and not isinstance(error, ModelBehaviorError | ToolTimeoutError)


def _say(outcome: Outcome[Any]) -> Any:
    if outcome.status != "succeeded":
        return outcome.explanation.model
    return outcome.value if outcome.missing is None else f"{outcome.value}\n{outcome.explanation.model}"


def _id(tool: Tool) -> str | None:
    return tool.qualified_name if isinstance(tool, FunctionTool) else None


# --- MCP servers ---------------------------------------------------------------------------------------------------------


class ServerError(Exception):
    """An MCP server's error, in its own words."""


class GuardedServer:
    """An MCP server that may be down; for everything else it is the server itself."""

    def __init__(self, server: MCPServer, runtime: Runtime) -> None:
        self._server = server
        self._runtime = runtime
        self._id = f"mcp:{own_faults.quote(server.name)}"
        self.lost: Outcome[Any] | None = None  # why its tools are missing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def list_tools(self, *args: Any, **kwargs: Any) -> list[Any]:
        async def list_(_: dict[str, Any]) -> Any:
            return await _plainly(self._server.list_tools(*args, **kwargs))

        if self._id not in self._runtime.tools:
            self._runtime.declare(self._id, read_only=True)
        outcome = await self._runtime.run(self._id, {}, {self._id: list_})
        self.lost = None if outcome.status == "succeeded" else outcome
        tools: list[Any] = outcome.value or []
        return tools

    async def call_tool(self, *args: Any, **kwargs: Any) -> Any:
        result = await _plainly(self._server.call_tool(*args, **kwargs))
        name = "is_error" if hasattr(result, "is_error") else "isError"  # mcp 2, mcp 1
        if getattr(result, name, False):
            raise ServerError("\n".join(getattr(part, "text", "") for part in result.content))
        return result


async def _plainly(asked: Any) -> Any:
    """The SDK makes its ``UserError`` of a lost connection: here it is nobody's control flow."""
    try:
        return await asked
    except UserError as error:
        raise ServerError(str(error)) from error.__cause__
