"""``Agent``: pydantic-ai's own, with S-agent built in. All keywords and overloads of pydantic-ai's are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr as brief
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, cast, overload

import pydantic_ai
from pydantic_ai import Tool
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.output import OutputDataT
from pydantic_ai.tools import AgentDepsT, ToolParams

from failsoft.adapters.pydantic_ai.capability import Failsoft, Failures, Graceful
from failsoft.adapters.pydantic_ai.graceful import make_graceful
from failsoft.adapters.pydantic_ai.toolset import KEY
from failsoft.config.settings import Settings, refuse_odd_flag, tool_options
from failsoft.errors import ManifestError
from failsoft.integration.framework_tool import read_metadata

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolKind, ToolPartKind
    from pydantic_ai.models import KnownModelName, Model
    from pydantic_ai.output import OutputSpec
    from pydantic_ai.tools import (
        ArgsValidatorFunc,
        KindArgsT,
        KindContentT,
        KindedToolDecorator,
        KindedToolPlainDecorator,
        ToolFuncContext,
        ToolFuncPlain,
    )
    from typing_extensions import TypeForm, TypeVar

    from failsoft.adapters.pydantic_ai.keywords import AgentKeywords, DecoratorKeywords, SpecKeywords
    from failsoft.runtime.call_options import ToolKeywords

    MadeDepsT = TypeVar("MadeDepsT", default=object)  # of an agent that a class method makes
    MadeOutputT = TypeVar("MadeOutputT", default=str)

_NO_DEPS = cast("type[object]", NoneType)  # what pydantic-ai takes for a specification's agent where nobody says a type


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """What holds for all tools of an agent."""

    graceful_tool_errors: bool = True  # exceptions of tools become words for the model (S-agent)

    def __post_init__(self) -> None:
        refuse_odd_flag("graceful_tool_errors", self.graceful_tool_errors)


class Agent(pydantic_ai.Agent[AgentDepsT, OutputDataT]):
    """A pydantic-ai agent whose tools' exceptions become ``ModelRetry``, unless a tool or ``config`` opts out."""

    tool_failed: ClassVar[Failures] = "never"  # what holds for a ``Failsoft`` that says nothing about it

    def __init__(
        self,
        model: Model | KnownModelName | str | None = None,
        *,
        output_type: OutputSpec[OutputDataT] = str,  # type: ignore[assignment]  # as pydantic-ai has it
        deps_type: type[AgentDepsT] | TypeForm[AgentDepsT] = object,  # type: ignore[assignment]  # as pydantic-ai has it
        config: AgentConfig | None = None,
        **options: Unpack[AgentKeywords[AgentDepsT]],
    ) -> None:
        options.update(_make_graceful(config, options.get("tools", ()), options.get("capabilities")))
        self.config = config or AgentConfig()
        super().__init__(model, output_type=output_type, deps_type=deps_type, **options)

    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        output_type: OutputSpec[MadeOutputT] = str,  # type: ignore[assignment]  # as pydantic-ai has it
        deps_type: type[MadeDepsT] = _NO_DEPS,  # type: ignore[assignment]  # as pydantic-ai has it
        config: AgentConfig | None = None,
        **options: Unpack[SpecKeywords],
    ) -> Agent[MadeDepsT, MadeOutputT]:
        """pydantic-ai's ``from_spec``, with ``config``."""
        options.update(_make_graceful(config, options.get("tools", ()), options.get("capabilities")))
        made: Any = super().from_spec(spec, output_type=output_type, deps_type=deps_type, **options)
        made.__class__ = cls  # pydantic-ai makes one of its own
        made.config = config or AgentConfig()
        return cast("Agent[MadeDepsT, MadeOutputT]", made)

    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        fmt: Literal["yaml", "json"] | None = None,
        output_type: OutputSpec[MadeOutputT] = str,  # type: ignore[assignment]  # as pydantic-ai has it
        deps_type: type[MadeDepsT] = _NO_DEPS,  # type: ignore[assignment]  # as pydantic-ai has it
        config: AgentConfig | None = None,
        **options: Unpack[SpecKeywords],
    ) -> Agent[MadeDepsT, MadeOutputT]:
        """pydantic-ai's ``from_file``, with ``config``."""
        spec = AgentSpec.from_file(path, fmt=fmt)
        return cls.from_spec(spec, output_type=output_type, deps_type=deps_type, config=config, **options)

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
        if graceful_errors is not None:
            refuse_odd_flag("graceful_errors", graceful_errors)
        graceful = self.config.graceful_tool_errors if graceful_errors is None else graceful_errors

        def decorate(function: Callable[..., Any]) -> Any:
            words: dict[str, Any] = {**read_metadata(function.__name__, failsoft or {})}
            if words:
                tool_options(
                    function, None, words, Settings()
                )  # a mistake is reported here, not in the middle of a run
            if graceful_errors is not None:
                words["graceful_errors"] = graceful_errors
            if words:
                metadata = options.get("metadata") or {}
                options["metadata"] = {**metadata, KEY: {**metadata.get(KEY, {}), **words}}
            return register(**options)(make_graceful(function) if graceful else function)

        return decorate if func is None else decorate(func)


def _make_graceful(config: AgentConfig | None, tools: Sequence[Any], capabilities: Sequence[Any] | None) -> Any:
    """What the agent's constructor gets for these: the choice is told to the capability that converts errors.

    One is added where there is none. Without a config, a capability's own word counts.
    """
    if config is not None and not isinstance(config, AgentConfig):
        raise ManifestError(f"config: {brief(config)} is no AgentConfig: write AgentConfig(graceful_tool_errors=False)")
    default = config is None or config.graceful_tool_errors
    given = [*(capabilities or ())]
    if config is not None:
        given = [replace(one, graceful=default) if isinstance(one, Failsoft) else one for one in given]
    if not any(isinstance(one, Failsoft) for one in given):
        given.append(Graceful(default))
    return {"tools": [_graceful(tool) for tool in tools] if default else tools, "capabilities": given}


def _graceful(tool: Any) -> Any:
    """A graceful form of a tool that was given to the constructor. The user's own object is not changed."""
    if not isinstance(tool, Tool):
        return make_graceful(tool)
    if ((tool.metadata or {}).get(KEY) or {}).get("graceful_errors", True) is False:
        return tool
    return _GracefulTool(tool)


class _GracefulTool(Tool[Any]):
    """Another tool with its function made graceful. Everything else is read from that tool, and written to it.

    So what the user changes there later, such as ``requires_approval``, holds here as well.
    """

    def __init__(self, tool: Tool[Any]) -> None:
        object.__setattr__(self, "_tool", tool)
        object.__setattr__(self, "_made", (None, None))

    def __getattribute__(self, name: str) -> Any:
        tool = object.__getattribute__(self, "_tool")
        if name == "function":
            return make_graceful(tool.function)
        if name != "function_schema":
            return getattr(tool, name)
        schema, made = object.__getattribute__(self, "_made")
        if schema is not tool.function_schema:
            schema = tool.function_schema
            made = replace(schema, function=make_graceful(schema.function))
            object.__setattr__(self, "_made", (schema, made))
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_tool"), name, value)
