"""Wrapper toolsets: every tool call of an agent passes through them, whatever toolset provides the tool."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_json

from failsoft.adapters.pydantic_ai.engines import refuse_engine_toolsets
from failsoft.adapters.pydantic_ai.graceful import (
    CONTROL,
    FailedServerError,
    is_control,
    is_made_by_framework,
    marked,
    original_of,
    retry_for,
    translate_error,
)
from failsoft.adapters.pydantic_ai.hooks import choose_for_hooks, give_back, take_failures
from failsoft.adapters.pydantic_ai.private import function_of, origin_of
from failsoft.adapters.pydantic_ai.repeated import RUNS, may_be_repeated
from failsoft.adapters.pydantic_ai.tool_context import ToolContext
from failsoft.core.model.builtin_faults import bad_arguments
from failsoft.core.model.effect import NothingDone
from failsoft.core.model.outcome import Outcome
from failsoft.errors import CallFailed
from failsoft.integration.api import reset_variable
from failsoft.integration.arguments import MisfitError
from failsoft.integration.framework_tool import (
    BrokenOffError,
    Metadata,
    Runner,
    asked_for,
    declare_from_metadata,
    read_metadata,
)

if TYPE_CHECKING:
    from failsoft.integration.api import Runtime

Failures = Literal["never", "permanent", "always"]  # that reach the model as ``ToolFailed``

KEY = "failsoft"  # metadata key of a tool's options and ``graceful_errors``
STREAMS = (GeneratorType, AsyncGeneratorType)


def failsoft_options(tool: ToolsetTool[Any]) -> dict[str, Any]:
    """Return the failsoft options in a tool's metadata."""
    return {**read_metadata(tool.tool_def.name, (tool.tool_def.metadata or {}).get(KEY) or {})}


class Rules(Protocol):
    """The settings of the capability that calls use."""

    runtime: Runtime
    graceful: bool
    tool_failed: Failures | None
    trusted: Collection[str]


class Runners(NamedTuple):
    """The runners of one call, by tool id."""

    get: Callable[[str], Runner | None]
    for_reading: Callable[[], Any] | None = None

    @staticmethod
    def own(value: Any) -> Any:
        """Return the tool's value."""
        return value.return_value if isinstance(value, ToolReturn) else value

    @staticmethod
    def read(value: Any) -> tuple[Any]:
        """Return the value that the declared output describes."""
        return (value.return_value if isinstance(value, ToolReturn) else value,)


@dataclass
class GracefulToolset(WrapperToolset[AgentDepsT]):
    """Graceful errors for tools that are not the agent's own functions: toolsets, MCP servers, callable objects."""

    default: bool = True

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        failures = take_failures()
        try:
            value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            return await whole(value) if isinstance(value, STREAMS) else value
        except Exception as error:
            graceful = failsoft_options(tool).get("graceful_errors", self.default)
            original = marked(error)
            if original is None and (not graceful or is_control(error)):
                raise
            failed = original or error
            replacement = retry_for(failed, name) if original is None else error
        finally:
            give_back(failures)
        if not graceful:
            raise failed  # another agent made the function graceful; this agent raises errors
        replacement.__cause__ = failed
        raise choose_for_hooks(failures, failed, replacement)


@dataclass
class GuardedToolset(WrapperToolset[AgentDepsT]):
    """Run every call through the runtime."""

    rules: Rules
    known: dict[str, ToolsetTool[AgentDepsT]] = field(default_factory=dict)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        tools = await self.wrapped.get_tools(ctx)
        refuse_engine_toolsets(self.wrapped)  # functions may have made toolsets for this step
        for name, tool in tools.items():
            if name not in self.known and not hasattr(function_of(tool), "__failsoft__"):
                options, hinted = self._declared(tool)
                seen = tool.tool_def
                about = Metadata(seen.description or "", seen.parameters_json_schema, hinted)
                declare_from_metadata(self.rules.runtime, name, options, about)
        self.known = tools
        return tools

    def _declared(self, tool: ToolsetTool[Any]) -> tuple[dict[str, Any], bool]:
        """Return a tool's options, and whether the effects among them are its server's hints."""
        options = failsoft_options(tool)
        options.pop("graceful_errors", None)
        hints = (tool.tool_def.metadata or {}).get("annotations") or {}
        if _source(tool).id in self.rules.trusted and not options.keys() & {"read_only", "idempotent"}:
            if hints.get("readOnlyHint"):
                return {**options, "read_only": True}, True
            if hints.get("idempotentHint"):
                return {**options, "idempotent": True}, True
        return options, False

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        failures, around = take_failures(), ToolContext()
        try:
            outcome = await self._run(name, tool_args, ctx, tool, around)
        finally:
            around.apply()
            give_back(failures)
        if not outcome.value_known:
            return outcome.explanation.model
        if outcome.status == "succeeded":
            return _with_remark(outcome.value, outcome.remark) if outcome.remark else outcome.value
        if outcome.status == "cancelled":
            raise CancelledError(
                *around.cancellation
            )  # the run is over and must not continue as if the tool had answered
        cause = None if outcome.fault is None else outcome.fault.cause
        error = _as_error(outcome)
        failed = isinstance(cause, FailedServerError)
        if is_made_by_framework(cause):  # pydantic-ai reports these errors itself and shows them to no hook
            failures = None
        elif not self._is_graceful(tool, ctx):
            raise error
        raise choose_for_hooks(failures, error, self._replacement(outcome, failed, ctx))

    async def _run(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
        around: ToolContext,
    ) -> Outcome[Any]:
        if hasattr(function_of(tool), "__failsoft__"):
            return await self._run_guarded(name, tool_args, ctx, tool)

        def read_only() -> Runners:
            return Runners(partial(self._runner, name, tool, ctx, ToolContext()))

        runners = Runners(partial(self._runner, name, tool, ctx, around), read_only)
        return await self.rules.runtime.run(
            name, tool_args, runners, control=CONTROL, thread=ctx.conversation_id, id=ctx.tool_call_id or ""
        )

    def _runner(
        self, asked: str, tool: ToolsetTool[AgentDepsT], ctx: RunContext[AgentDepsT], around: ToolContext, name: str
    ) -> Runner | None:
        if name == asked:
            return partial(self._attempt, name, tool, ctx, around)
        found = self.known.get(name)
        if found is None or found.tool_def.defer:  # not offered now, or needs external approval or execution
            return None
        return partial(self._attempt_fallback, name, found, ctx, around)

    async def _attempt_fallback(
        self,
        name: str,
        tool: ToolsetTool[AgentDepsT],
        ctx: RunContext[AgentDepsT],
        around: ToolContext,
        tool_args: dict[str, Any],
    ) -> Any:
        """Attempt a fallback. The approval and the validated arguments belong to the tool that the model asked for."""
        ctx = replace(ctx, tool_name=name, tool_call_approved=False)
        try:
            fitting = tool.args_validator.validate_json(to_json(tool_args), context=ctx.validation_context)
        except ValueError as error:
            raise MisfitError(bad_arguments(detail=error)) from error
        try:
            return await self._attempt(name, tool, ctx, around, fitting)
        except (ApprovalRequired, CallDeferred):
            refusal = f"{name} needs approval, so it cannot be used as a fallback"
            raise NothingDone(refusal, code="PERMISSION_DENIED") from None

    async def _attempt(
        self,
        name: str,
        tool: ToolsetTool[AgentDepsT],
        ctx: RunContext[AgentDepsT],
        around: ToolContext,
        tool_args: dict[str, Any],
    ) -> Any:
        token = RUNS.set(None if may_be_repeated(self.rules.runtime, name) else [])
        try:
            with around:
                value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
                return await whole(value) if isinstance(value, STREAMS) else value
        except Exception as error:
            failure = translate_error(error)
        finally:
            reset_variable(RUNS, token)
        try:
            raise failure  # raised outside the except block, so that ``error`` does not become its __context__
        finally:
            del failure  # its traceback holds this frame

    async def _run_guarded(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Outcome[Any]:
        """Run a function that goes through a runtime itself."""
        try:
            with asked_for(function_of(tool), id=ctx.tool_call_id, thread=ctx.conversation_id) as asked:
                value = await super().call_tool(name, tool_args, ctx, tool)
            return Outcome(name, name, "succeeded", value) if asked.valueless is None else asked.valueless
        except CallFailed as failed:
            return failed.outcome
        except ModelRetry as retry:
            original = original_of(retry)
            if not isinstance(original, CallFailed):
                raise
            return original.outcome

    def _is_graceful(self, tool: ToolsetTool[AgentDepsT], ctx: RunContext[AgentDepsT]) -> bool:
        """Return the tool's own setting, else that of the agent and this capability: either may turn it off."""
        default = self.rules.graceful and getattr(ctx.agent, "graceful_tool_errors", True)
        graceful: bool = failsoft_options(tool).get("graceful_errors", default)
        return graceful

    def _replacement(self, outcome: Outcome[Any], failed: bool, ctx: RunContext[AgentDepsT]) -> ModelRetry | ToolFailed:
        """Format the failure for the model."""
        fault = outcome.fault
        which = self.rules.tool_failed or getattr(ctx.agent, "tool_failed", "always")
        permanent = fault is not None and fault.classification == "permanent"
        failed |= which == "always" or (which == "permanent" and permanent)
        replacement = (ToolFailed if failed else ModelRetry)(outcome.explanation.model)
        replacement.__cause__ = None if fault is None else fault.cause
        return replacement


async def whole(stream: Any) -> list[Any]:
    """Collect what a tool yields into a list for the model. A stream that breaks off is the tool's failure."""
    return [item async for item in stream] if isinstance(stream, AsyncGeneratorType) else list(stream)


def _with_remark(value: Any, remark: str) -> ToolReturn[Any]:
    """Add a remark for the model; the value itself stays unchanged."""
    if not isinstance(value, ToolReturn):
        return ToolReturn(value, content=remark)
    content = [value.content] if isinstance(value.content, str) else value.content or ()
    return replace(value, content=[*content, remark])


def _as_error(outcome: Outcome[Any]) -> BaseException:
    """Return the tool's own error, or failsoft's if there is none."""
    try:
        outcome.unwrap()
    except CallFailed as failed:
        cause = failed.__cause__
        return (cause.__cause__ if isinstance(cause, BrokenOffError) else cause) or failed
    raise AssertionError("it did not fail")


def _source(tool: ToolsetTool[Any]) -> AbstractToolset[Any]:
    """Return the toolset that a tool comes from, without renaming wrappers."""
    source: AbstractToolset[Any] = origin_of(tool).toolset
    while isinstance(source, WrapperToolset):
        source = source.wrapped
    return source
