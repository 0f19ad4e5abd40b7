"""Toolsets that stand around an agent's own: all its tools pass here, whoever provides them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_json

from failsoft.adapters.pydantic_ai.graceful import (
    CONTROL,
    FailedServerError,
    is_control,
    is_made_by_framework,
    marked,
    meant,
    original_of,
    retry_for,
)
from failsoft.adapters.pydantic_ai.hooks import choose_for_hooks, give_back, take_failures
from failsoft.adapters.pydantic_ai.private import function_of, origin_of
from failsoft.core.model.builtin_faults import bad_arguments
from failsoft.core.model.effect import NothingDone
from failsoft.core.model.outcome import Outcome
from failsoft.errors import CallFailed
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
    from failsoft.adapters.pydantic_ai.capability import Failsoft

KEY = "failsoft"  # in a tool's metadata: its options, and ``graceful_errors``
STREAMS = (GeneratorType, AsyncGeneratorType)


def said(tool: ToolsetTool[Any]) -> dict[str, Any]:
    """What a tool's metadata say to failsoft."""
    return {**read_metadata(tool.tool_def.name, (tool.tool_def.metadata or {}).get(KEY) or {})}


class Runners(NamedTuple):
    """What runs in one call, by tool id."""

    get: Callable[[str], Runner | None]

    @staticmethod
    def read(value: Any) -> tuple[Any]:
        """What a tool has to give: the declared output is that of the value."""
        return (value.return_value if isinstance(value, ToolReturn) else value,)


@dataclass
class GracefulToolset(WrapperToolset[AgentDepsT]):
    """S-agent for tools that are no functions of the agent's own: toolsets, MCP servers, callable objects."""

    default: bool = True

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        tools = await super().get_tools(ctx)
        if self.default:
            return tools
        return {name: self._note(tool) for name, tool in tools.items()}

    def _note(self, tool: ToolsetTool[AgentDepsT]) -> ToolsetTool[AgentDepsT]:
        """Write the agent's choice into the metadata: the capability reads it there."""
        words = {"graceful_errors": False, **said(tool)}
        return replace(tool, tool_def=replace(tool.tool_def, metadata={**(tool.tool_def.metadata or {}), KEY: words}))

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        failures = take_failures()
        try:
            value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            return await whole(value) if isinstance(value, STREAMS) else value
        except Exception as error:
            graceful = said(tool).get("graceful_errors", self.default)
            original = marked(error)
            if original is None and (not graceful or is_control(error)):
                raise
            failed = original or error
            told = retry_for(failed, name) if original is None else error
        finally:
            give_back(failures)
        if not graceful:
            raise failed  # another agent made the function graceful; in this agent the error is raised
        told.__cause__ = failed
        raise choose_for_hooks(failures, failed, told)


@dataclass
class GuardedToolset(WrapperToolset[AgentDepsT]):
    """Runs every call through the runtime."""

    rules: Failsoft[AgentDepsT]
    known: dict[str, ToolsetTool[AgentDepsT]] = field(default_factory=dict)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        tools = await self.wrapped.get_tools(ctx)
        for name, tool in tools.items():
            if name not in self.known and not hasattr(function_of(tool), "__failsoft__"):
                words, hinted = self._declared(tool)
                seen = tool.tool_def
                about = Metadata(seen.description or "", seen.parameters_json_schema, hinted)
                declare_from_metadata(self.rules.runtime, name, words, about)
        self.known = tools
        return tools

    def _declared(self, tool: ToolsetTool[Any]) -> tuple[dict[str, Any], bool]:
        """The options of a tool, and whether those on its effects are its server's hints."""
        words = said(tool)
        words.pop("graceful_errors", None)
        hints = (tool.tool_def.metadata or {}).get("annotations") or {}
        if _source(tool).id in self.rules.trusted and not words.keys() & {"read_only", "idempotent"}:
            if hints.get("readOnlyHint"):
                return {**words, "read_only": True}, True
            if hints.get("idempotentHint"):
                return {**words, "idempotent": True}, True
        return words, False

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        failures = take_failures()
        try:
            outcome = await self._run(name, tool_args, ctx, tool)
        finally:
            give_back(failures)
        if outcome.status == "succeeded":
            return outcome.value if outcome.missing is None else _incomplete(outcome.value, outcome.explanation.model)
        if outcome.status == "cancelled":
            raise CancelledError  # the run is over and must not go on as if the tool had answered
        cause = None if outcome.fault is None else outcome.fault.cause
        error = _loud(outcome)
        failed = isinstance(cause, FailedServerError)
        if is_made_by_framework(cause):  # pydantic-ai tells the model, and shows its own exceptions to no hook
            failures = None
        elif not said(tool).get("graceful_errors", self.rules.graceful):
            raise error
        raise choose_for_hooks(failures, error, self._told(outcome, failed, ctx))

    async def _run(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Outcome[Any]:
        if hasattr(function_of(tool), "__failsoft__"):
            return await self._run_guarded(name, tool_args, ctx, tool)
        runners = Runners(partial(self._runner, name, tool, ctx))
        return await self.rules.runtime.run(
            name, tool_args, runners, control=CONTROL, thread=ctx.conversation_id, id=ctx.tool_call_id or ""
        )

    def _runner(
        self, asked: str, tool: ToolsetTool[AgentDepsT], ctx: RunContext[AgentDepsT], name: str
    ) -> Runner | None:
        if name == asked:
            return partial(self._attempt, name, tool, ctx)
        found = self.known.get(name)
        if found is None or found.tool_def.defer:  # not offered now, or others must approve or run it
            return None
        return partial(self._stand_in, name, found, ctx)

    async def _stand_in(
        self, name: str, tool: ToolsetTool[AgentDepsT], ctx: RunContext[AgentDepsT], tool_args: dict[str, Any]
    ) -> Any:
        """An attempt of another tool than the model has asked for: approved is that one, and so are its arguments."""
        ctx = replace(ctx, tool_name=name, tool_call_approved=False)
        try:
            fitting = tool.args_validator.validate_json(to_json(tool_args), context=ctx.validation_context)
        except ValueError as error:
            raise MisfitError(bad_arguments(detail=error)) from error
        try:
            return await self._attempt(name, tool, ctx, fitting)
        except (ApprovalRequired, CallDeferred):
            refusal = f"{name} wants to be approved, and so cannot stand in for another tool"
            raise NothingDone(refusal, code="PERMISSION_DENIED") from None

    async def _attempt(
        self, name: str, tool: ToolsetTool[AgentDepsT], ctx: RunContext[AgentDepsT], tool_args: dict[str, Any]
    ) -> Any:
        try:
            value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            return await whole(value) if isinstance(value, STREAMS) else value
        except Exception as error:
            failure = meant(error)
        try:
            raise failure  # not while the other one is handled: it would be taken for where this one comes from
        finally:
            del failure  # its traceback holds this frame

    async def _run_guarded(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Outcome[Any]:
        """The function goes through a runtime by itself."""
        try:
            with asked_for(function_of(tool), id=ctx.tool_call_id, thread=ctx.conversation_id):
                value = await super().call_tool(name, tool_args, ctx, tool)
            return Outcome(name, name, "succeeded", value)
        except CallFailed as failed:
            return failed.outcome
        except ModelRetry as retry:
            original = original_of(retry)
            if not isinstance(original, CallFailed):
                raise
            return original.outcome

    def _told(self, outcome: Outcome[Any], failed: bool, ctx: RunContext[AgentDepsT]) -> ModelRetry | ToolFailed:
        """The failure as text for the model."""
        fault = outcome.fault
        which = self.rules.tool_failed or getattr(ctx.agent, "tool_failed", "always")
        permanent = fault is not None and fault.classification == "permanent"
        failed |= which == "always" or (which == "permanent" and permanent)
        told = (ToolFailed if failed else ModelRetry)(outcome.explanation.model)
        told.__cause__ = None if fault is None else fault.cause
        return told


async def whole(stream: Any) -> list[Any]:
    """What a tool yields, together: the model reads it as a list, and if it breaks off, that is the tool's failure."""
    return [item async for item in stream] if isinstance(stream, AsyncGeneratorType) else list(stream)


def _incomplete(value: Any, lacks: str) -> ToolReturn[Any]:
    """A value together with what it lacks."""
    if not isinstance(value, ToolReturn):
        return ToolReturn(value, content=lacks)
    content = [value.content] if isinstance(value.content, str) else value.content or ()
    return replace(value, content=[*content, lacks])


def _loud(outcome: Outcome[Any]) -> BaseException:
    """The tool's own error; ours where it has none."""
    try:
        outcome.unwrap()
    except CallFailed as failed:
        cause = failed.__cause__
        return (cause.__cause__ if isinstance(cause, BrokenOffError) else cause) or failed
    raise AssertionError("it did not fail")


def _source(tool: ToolsetTool[Any]) -> AbstractToolset[Any]:
    """The toolset that a tool comes from, whatever has renamed it on its way."""
    source: AbstractToolset[Any] = origin_of(tool).toolset
    while isinstance(source, WrapperToolset):
        source = source.wrapped
    return source
