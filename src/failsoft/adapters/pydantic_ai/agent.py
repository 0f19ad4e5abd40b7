"""``Agent``: pydantic-ai's own, with S-agent built in. All keywords and overloads of pydantic-ai's are kept."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypedDict, Unpack, cast, overload

import pydantic_ai
from pydantic_ai import Tool
from pydantic_ai.output import OutputDataT
from pydantic_ai.tools import AgentDepsT, ToolParams

from failsoft.adapters.pydantic_ai.capability import Failsoft, Graceful
from failsoft.adapters.pydantic_ai.graceful import make_graceful
from failsoft.adapters.pydantic_ai.toolset import KEY

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_ai import RunContext
    from pydantic_ai._instructions import AgentInstructions
    from pydantic_ai.agent import AgentModelSettings, AgentRetries, EndStrategy
    from pydantic_ai.agent.abstract import AgentMetadata
    from pydantic_ai.agent.spec import AgentSpec
    from pydantic_ai.capabilities import AgentCapability
    from pydantic_ai.concurrency import AnyConcurrencyLimit
    from pydantic_ai.messages import ToolKind, ToolPartKind
    from pydantic_ai.models import KnownModelName, Model
    from pydantic_ai.output import OutputSpec
    from pydantic_ai.template import TemplateStr
    from pydantic_ai.tools import (
        ArgsValidatorFunc,
        DocstringFormat,
        KindArgsT,
        KindContentT,
        KindedToolDecorator,
        KindedToolPlainDecorator,
        ToolFuncContext,
        ToolFuncEither,
        ToolFuncPlain,
        ToolPrepareFunc,
    )
    from pydantic_ai.toolsets import AgentToolset
    from typing_extensions import TypeForm

    from failsoft.runtime.keywords import ToolKeywords

    class AgentKeywords(TypedDict, Generic[AgentDepsT], total=False):
        """What pydantic-ai's agent takes beside model, output and dependencies."""

        instructions: AgentInstructions[AgentDepsT]
        system_prompt: str | Sequence[str]
        name: str | None
        description: TemplateStr[AgentDepsT] | str | None
        model_settings: AgentModelSettings[AgentDepsT] | None
        retries: int | AgentRetries | None
        validation_context: Any | Callable[[RunContext[AgentDepsT]], Any]
        tools: Sequence[Tool[AgentDepsT] | ToolFuncEither[AgentDepsT, ...]]
        toolsets: Sequence[AgentToolset[AgentDepsT]] | None
        defer_model_check: bool
        end_strategy: EndStrategy
        metadata: AgentMetadata[AgentDepsT] | None
        tool_timeout: float | None
        max_concurrency: AnyConcurrencyLimit
        capabilities: Sequence[AgentCapability[AgentDepsT]] | None

    class DecoratorKeywords(TypedDict, Generic[AgentDepsT], total=False):
        """What pydantic-ai's decorators take, and what is ours."""

        name: str | None
        description: str | None
        retries: int | None
        prepare: ToolPrepareFunc[AgentDepsT] | None
        docstring_format: DocstringFormat
        require_parameter_descriptions: bool
        schema_generator: type[GenerateJsonSchema]
        strict: bool | None
        sequential: bool
        requires_approval: bool
        metadata: dict[str, Any] | None
        timeout: float | None
        defer_loading: bool
        include_return_schema: bool | None
        graceful_errors: bool | None
        failsoft: ToolKeywords | None


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """What holds for all tools of an agent."""

    graceful_tool_errors: bool = True  # exceptions of tools become words for the model (S-agent)


class Agent(pydantic_ai.Agent[AgentDepsT, OutputDataT]):
    """A pydantic-ai agent whose tools' exceptions become words for the model, unless a tool or ``config`` opts out."""

    def __init__(
        self,
        model: Model | KnownModelName | str | None = None,
        *,
        output_type: OutputSpec[OutputDataT] = str,  # type: ignore[assignment]  # as pydantic-ai has it
        deps_type: type[AgentDepsT] | TypeForm[AgentDepsT] = object,  # type: ignore[assignment]  # as pydantic-ai has it
        config: AgentConfig | None = None,
        **options: Unpack[AgentKeywords[AgentDepsT]],
    ) -> None:
        self.config = config or AgentConfig()
        options.update(_make_graceful(self.config, options.get("tools", ()), options.get("capabilities")))
        super().__init__(model, output_type=output_type, deps_type=deps_type, **options)

    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        config: AgentConfig | None = None,
        tools: Sequence[Any] = (),
        capabilities: Sequence[Any] | None = None,
        **options: Any,
    ) -> Agent[Any, Any]:
        """pydantic-ai's ``from_spec``, with ``config``."""
        config = config or AgentConfig()
        agent: Any = super().from_spec(spec, **_make_graceful(config, tools, capabilities), **options)
        agent.__class__ = cls  # pydantic-ai makes one of its own
        agent.config = config
        return cast("Agent[Any, Any]", agent)

    @overload
    def tool(self, func: ToolFuncContext[AgentDepsT, ToolParams], /) -> ToolFuncContext[AgentDepsT, ToolParams]: ...
    @overload
    def tool(
        self,
        /,
        *,
        tool_kind: ToolKind[KindArgsT, KindContentT],
        args_validator: ArgsValidatorFunc[AgentDepsT, ...] | None = None,
        **options: Unpack[DecoratorKeywords[AgentDepsT]],
    ) -> KindedToolDecorator[AgentDepsT, KindArgsT, KindContentT]: ...
    @overload
    def tool(
        self,
        /,
        *,
        tool_kind: ToolPartKind | None = None,
        args_validator: ArgsValidatorFunc[AgentDepsT, ToolParams] | None = None,
        **options: Unpack[DecoratorKeywords[AgentDepsT]],
    ) -> Callable[[ToolFuncContext[AgentDepsT, ToolParams]], ToolFuncContext[AgentDepsT, ToolParams]]: ...
    def tool(self, func: Any = None, /, **options: Any) -> Any:
        """Register a tool that takes the ``RunContext``; ``graceful_errors`` says what becomes of its exceptions.

        Exceptions become words for the model (True), end the run (False), or do as the agent's ``config`` says (None).
        ``failsoft`` has options for the ``Failsoft`` capability, such as ``{"read_only": True}``.
        """
        return self._register(super().tool, func, **options)

    @overload
    def tool_plain(self, func: ToolFuncPlain[ToolParams], /) -> ToolFuncPlain[ToolParams]: ...
    @overload
    def tool_plain(
        self,
        /,
        *,
        tool_kind: ToolKind[KindArgsT, KindContentT],
        args_validator: ArgsValidatorFunc[AgentDepsT, ...] | None = None,
        **options: Unpack[DecoratorKeywords[AgentDepsT]],
    ) -> KindedToolPlainDecorator[KindArgsT, KindContentT]: ...
    @overload
    def tool_plain(
        self,
        /,
        *,
        tool_kind: ToolPartKind | None = None,
        args_validator: ArgsValidatorFunc[AgentDepsT, ToolParams] | None = None,
        **options: Unpack[DecoratorKeywords[AgentDepsT]],
    ) -> Callable[[ToolFuncPlain[ToolParams]], ToolFuncPlain[ToolParams]]: ...
    def tool_plain(self, func: Any = None, /, **options: Any) -> Any:
        """Register a tool that does not take the ``RunContext``; the options are those of ``tool``."""
        return self._register(super().tool_plain, func, **options)

    def _register(
        self,
        register: Callable[..., Any],
        func: Any,
        *,
        graceful_errors: bool | None = None,
        failsoft: ToolKeywords | None = None,
        **options: Any,
    ) -> Any:
        words: dict[str, Any] = {**(failsoft or {})}
        if graceful_errors is not None:
            words["graceful_errors"] = graceful_errors
        if words:
            metadata = options.get("metadata") or {}
            options["metadata"] = {**metadata, KEY: {**metadata.get(KEY, {}), **words}}
        graceful = self.config.graceful_tool_errors if graceful_errors is None else graceful_errors

        def decorate(function: Callable[..., Any]) -> Any:
            return register(**options)(make_graceful(function) if graceful else function)

        return decorate if func is None else decorate(func)


def _make_graceful(config: AgentConfig, tools: Sequence[Any], capabilities: Sequence[Any] | None) -> Any:
    """What the agent's constructor gets for these: the choice is told to the capability that converts errors.

    One is added where there is none.
    """
    default = config.graceful_tool_errors
    told = [replace(one, graceful=default) if isinstance(one, Failsoft) else one for one in capabilities or ()]
    if not any(isinstance(one, Failsoft) for one in told):
        told.append(Graceful(default))
    return {"tools": [_graceful(tool) for tool in tools] if default else tools, "capabilities": told}


def _graceful(tool: Any) -> Any:
    """A tool of the constructor's, made graceful; the user's own object stays as it is."""
    if not isinstance(tool, Tool):
        return make_graceful(tool)
    if ((tool.metadata or {}).get(KEY) or {}).get("graceful_errors", True) is False:
        return tool
    made = copy.copy(tool)
    made.function = make_graceful(tool.function)
    made.function_schema = replace(tool.function_schema, function=made.function)
    return made
