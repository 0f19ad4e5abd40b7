"""The keywords of pydantic-ai's agent and decorators, for type checkers only. Not imported at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypedDict

from pydantic.json_schema import GenerateJsonSchema
from pydantic_ai import RunContext, Tool
from pydantic_ai.agent import AgentModelSettings, AgentRetries, EndStrategy
from pydantic_ai.agent.abstract import AgentMetadata
from pydantic_ai.capabilities import AbstractCapability, AgentCapability
from pydantic_ai.concurrency import AnyConcurrencyLimit
from pydantic_ai.models import KnownModelName, Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.template import TemplateStr
from pydantic_ai.tools import AgentDepsT, DocstringFormat, ToolFuncEither, ToolPrepareFunc
from pydantic_ai.toolsets import AgentToolset

from failsoft.adapters.pydantic_ai.private import AgentInstructions
from failsoft.integration.api import ToolKeywords


class CommonKeywords(TypedDict, Generic[AgentDepsT], total=False):
    """Keywords of every way to make an agent."""

    instructions: AgentInstructions[AgentDepsT]
    system_prompt: str | Sequence[str]
    name: str | None
    description: TemplateStr[AgentDepsT] | str | None
    retries: int | AgentRetries | None
    validation_context: Any | Callable[[RunContext[AgentDepsT]], Any]
    tools: Sequence[Tool[AgentDepsT] | ToolFuncEither[AgentDepsT, ...]]
    toolsets: Sequence[AgentToolset[AgentDepsT]] | None
    defer_model_check: bool
    metadata: AgentMetadata[AgentDepsT] | None
    tool_timeout: float | None
    max_concurrency: AnyConcurrencyLimit
    capabilities: Sequence[AgentCapability[AgentDepsT]] | None


class AgentKeywords(CommonKeywords[AgentDepsT], Generic[AgentDepsT], total=False):
    """Keywords of the constructor besides model, output and dependencies."""

    model_settings: AgentModelSettings[AgentDepsT] | None
    end_strategy: EndStrategy


class SpecKeywords(CommonKeywords[Any], total=False):
    """Keywords besides a specification, which may set them already."""

    model: Model | KnownModelName | str | None
    model_settings: ModelSettings | None
    end_strategy: EndStrategy | None
    custom_capability_types: Sequence[type[AbstractCapability[Any]]]


class DecoratorKeywords(TypedDict, Generic[AgentDepsT], total=False):
    """Keywords of the decorators, including failsoft's own."""

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
