"""The capabilities: ``Failsoft`` for any agent, and ``Graceful``, which ``Agent`` adds to itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from inspect import isawaitable
from typing import Any, Self

from pydantic_ai import Agent, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import CapabilityOrdering, WrapRunHandler
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset

from failsoft.adapters.pydantic_ai.engines import refuse_engine_toolsets, refuse_engines
from failsoft.adapters.pydantic_ai.hooks import AfterHooks
from failsoft.adapters.pydantic_ai.interrupted import explain_interrupted
from failsoft.adapters.pydantic_ai.private import Always, has_executor
from failsoft.adapters.pydantic_ai.sources import guard_sources
from failsoft.adapters.pydantic_ai.toolset import Failures, GracefulToolset, GuardedToolset
from failsoft.core.model.durations import Duration
from failsoft.core.model.validation import one_of, texts, whole
from failsoft.errors import ManifestError
from failsoft.integration.api import Runtime, Turn, TurnReport, read_time, refuse_odd_flag, require_callables
from failsoft.integration.framework_tool import open_turn, require_runtime, tools_to_hide

log = logging.getLogger("failsoft")


@dataclass
class Failsoft(AfterHooks[AgentDepsT], Always):
    """Run all tools of an agent through a runtime: ``Agent(..., capabilities=[Failsoft(runtime)])``.

    One run is one turn; the conversation is the thread. A tool's id is its name. A tool counts as a write unless its
    metadata, a manifest entry or a registered tool of that name declares a read, or its name and description show that
    it reads.
    """

    runtime: Runtime  # runs the tools
    _: KW_ONLY
    graceful: bool = True
    """Turn failures into text for the model, unless a tool says otherwise. If False, failures are raised.

    A tool's ``timeout`` and an MCP server's error always become text for the model, as in pydantic-ai itself.
    """
    tool_failed: Failures | None = None
    """The failures that reach the model as ``ToolFailed`` instead of ``ModelRetry``. ``ToolFailed`` uses up no
    retries.

    Default: ``"always"``; with failsoft's own ``Agent``, which promises ``ModelRetry``, ``"never"``.
    """
    trusted: Collection[str] = ()
    """Ids of MCP toolsets whose hints (``readOnlyHint``, ``idempotentHint``) are trusted."""
    timeout: Duration | None = None
    """Limit for all calls of a run together. Default: the manifest's timeout for turns, or no limit."""
    max_calls: int | None = None
    """How many calls a run may make. Default: the manifest's limit for turns, or none."""
    max_calls_per_tool: int | None = None
    """How many calls of any one tool a run may make."""
    on_report: Callable[[TurnReport], Any] | None = None
    """Called with the report of every run. A coroutine function is awaited."""

    def __post_init__(self) -> None:
        require_runtime(self.runtime, "Failsoft(rt)")
        require_callables(on_report=self.on_report)
        refuse_odd_flag("graceful", self.graceful)
        if self.timeout is not None:
            read_time("timeout", self.timeout)
        try:
            if self.tool_failed is not None:
                one_of("tool_failed", self.tool_failed, Failures)
            texts("trusted", self.trusted, like='{"github"}')
            for name in ("max_calls", "max_calls_per_tool"):
                if getattr(self, name) is not None:
                    whole(name, getattr(self, name), least=1)
        except ValueError as error:
            raise ManifestError(str(error)) from None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # not serializable: it holds a runtime

    def for_agent(self, agent: AbstractAgent[AgentDepsT, Any]) -> Self:
        refuse_engines(agent.root_capability)
        return self

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        refuse_engine_toolsets(toolset)
        return GuardedToolset(guard_sources(toolset, self.runtime), self)

    async def before_model_request(self, ctx: RunContext[AgentDepsT], request_context: Any) -> Any:
        if self.runtime.threads[ctx.conversation_id or ""].unavailable:
            self._hide_unavailable(request_context, ctx.conversation_id)
        if ctx.run_step <= 1:
            await explain_interrupted(self.runtime, request_context.messages, ctx.conversation_id)
        return await super().before_model_request(ctx, request_context)

    def _hide_unavailable(self, request_context: Any, thread: str | None) -> None:
        """Remove unavailable tools from the request, once the model's settings and tool choice are known."""
        parameters = request_context.model_request_parameters
        tools = {tool.name: tool for tool in parameters.function_tools}
        choice = (request_context.model_settings or {}).get("tool_choice")
        names = [*tools] if choice == "required" else getattr(choice, "function_tools", choice)
        offered = [name for name, tool in tools.items() if not tool.defer]
        hidden = tools_to_hide(self.runtime, thread, offered, names if isinstance(names, list) else ())
        offered = [tool for name, tool in tools.items() if name not in hidden]
        request_context.model_request_parameters = replace(parameters, function_tools=offered)

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        refuse_engines(ctx.root_capability)  # an engine may have been added for this run
        turn = open_turn(
            self.runtime,
            timeout=self.timeout,
            thread=ctx.conversation_id,
            id=ctx.run_id,
            max_calls=self.max_calls,
            max_calls_per_tool=self.max_calls_per_tool,
        )
        try:
            async with turn:
                with self._daemon_threads():
                    result = await handler()
                turn.cancel_open()  # after a cancellation answered by another capability: do not wait for open calls
                return result
        finally:
            await self._deliver_report(turn)

    def _daemon_threads(self) -> AbstractContextManager[None]:
        """Run blocking functions, and what tools give to the event loop's executor, in daemon threads.

        An executor that the user has chosen is kept.
        """
        # not importable in Temporal's workflow sandbox
        from failsoft.integration.executor import executor_of, use_daemon_threads

        use_daemon_threads(self.runtime)
        return nullcontext() if has_executor() else Agent.using_thread_executor(executor_of(self.runtime))

    async def _deliver_report(self, turn: Turn) -> None:
        if self.on_report is not None:
            try:
                result = self.on_report(turn.report)
                if isawaitable(result):
                    await result
            except Exception:
                log.exception("on_report failed; the run is not affected")


@dataclass
class Graceful(AfterHooks[AgentDepsT]):
    """Graceful errors for tools that are not the agent's own functions, for agents without ``Failsoft``."""

    default: bool = True

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost", wrapped_by=[Failsoft])

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        return GracefulToolset(toolset, self.default)
