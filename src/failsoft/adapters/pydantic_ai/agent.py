"""``Agent``: pydantic-ai's agent with graceful tool errors. It keeps all keywords and overloads of pydantic-ai's."""

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

from failsoft.adapters.pydantic_ai.capability import Failsoft, Graceful
from failsoft.adapters.pydantic_ai.graceful import make_graceful
from failsoft.adapters.pydantic_ai.toolset import KEY, Failures
from failsoft.errors import ManifestError
from failsoft.integration.api import Settings, refuse_odd_flag, tool_options
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
    from failsoft.integration.api import ToolKeywords

    MadeDepsT = TypeVar("MadeDepsT", default=object)  # for the class methods that make an agent
    MadeOutputT = TypeVar("MadeOutputT", default=str)

_NO_DEPS = cast("type[object]", NoneType)  # pydantic-ai's default in from_spec


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """Settings for all tools of an agent."""

    graceful_tool_errors: bool = True  # turn exceptions of tools into text for the model

    def __post_init__(self) -> None:
        refuse_odd_flag("graceful_tool_errors", self.graceful_tool_errors)


class Agent(pydantic_ai.Agent[AgentDepsT, OutputDataT]):
    """A pydantic-ai agent that turns tools' exceptions into ``ModelRetry``, unless a tool or ``config`` opts out."""

    tool_failed: ClassVar[Failures] = "never"  # default for a ``Failsoft`` that does not set it

    def __init__(
        self,
        model: Model | KnownModelName | str | None = None,
        *,
        output_type: OutputSpec[OutputDataT] = str,  # type: ignore[assignment]  # as in pydantic-ai
        deps_type: type[AgentDepsT] | TypeForm[AgentDepsT] = object,  # type: ignore[assignment]  # as in pydantic-ai
        config: AgentConfig | None = None,
        **options: Unpack[AgentKeywords[AgentDepsT]],
    ) -> None:
        options.update(_make_graceful(config, options.get("tools", ()), options.get("capabilities")))
        self.config = config or AgentConfig()
        super().__init__(model, output_type=output_type, deps_type=deps_type, **options)

    @property
    def graceful_tool_errors(self) -> bool:
        """The agent's setting for tools that say nothing, for a ``Failsoft`` added for one run."""
        return self.config.graceful_tool_errors

    @classmethod
    def from_spec(
        cls,
        spec: dict[str, Any] | AgentSpec,
        *,
        output_type: OutputSpec[MadeOutputT] = str,  # type: ignore[assignment]  # as in pydantic-ai
        deps_type: type[MadeDepsT] = _NO_DEPS,  # type: ignore[assignment]  # as in pydantic-ai
        config: AgentConfig | None = None,
        **options: Unpack[SpecKeywords],
    ) -> Agent[MadeDepsT, MadeOutputT]:
        """pydantic-ai's ``from_spec``, with ``config``."""
        options.update(_make_graceful(config, options.get("tools", ()), options.get("capabilities")))
        made: Any = super().from_spec(spec, output_type=output_type, deps_type=deps_type, **options)
        made.__class__ = cls  # super() creates pydantic-ai's own class
        made.config = config or AgentConfig()
        return cast("Agent[MadeDepsT, MadeOutputT]", made)

    @classmethod
    def from_file(
        cls,
        path: Path | str,
        *,
        fmt: Literal["yaml", "json"] | None = None,
        output_type: OutputSpec[MadeOutputT] = str,  # type: ignore[assignment]  # as in pydantic-ai
        deps_type: type[MadeDepsT] = _NO_DEPS,  # type: ignore[assignment]  # as in pydantic-ai
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
        """Register a tool that takes the ``RunContext``.

        ``graceful_errors`` decides what happens to its exceptions: they become text for the model (True), end the run
        (False) or follow the agent's ``config`` (None). ``failsoft`` holds options for the ``Failsoft`` capability,
        such as ``{"read_only": True}``.
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
        """Register a tool that does not take the ``RunContext``, with the options of ``tool``."""
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
            if not callable(function):
                raise ManifestError(f"{function!r:.80} is not callable: decorate a function; name= names its tool")
            tool_settings: dict[str, Any] = {**read_metadata(function.__name__, failsoft or {})}
            if tool_settings:
                tool_options(function, None, tool_settings, Settings())  # report mistakes now, not during a run
            if graceful_errors is not None:
                tool_settings["graceful_errors"] = graceful_errors
            if tool_settings:
                metadata = options.get("metadata") or {}
                options["metadata"] = {**metadata, KEY: {**metadata.get(KEY, {}), **tool_settings}}
            return register(**options)(make_graceful(function) if graceful else function)

        return decorate if func is None else decorate(func)


def _make_graceful(config: AgentConfig | None, tools: Sequence[Any], capabilities: Sequence[Any] | None) -> Any:
    """Prepare tools and capabilities for the constructor, and pass the setting to the capability that converts
    errors.

    A capability is added if there is none. Without a config, the capability's own setting applies.
    """
    if config is not None and not isinstance(config, AgentConfig):
        raise ManifestError(
            f"config: {brief(config)} is not an AgentConfig: write AgentConfig(graceful_tool_errors=False)"
        )
    default = config is None or config.graceful_tool_errors
    given = [*(capabilities or ())]
    if config is not None:
        given = [replace(one, graceful=default) if isinstance(one, Failsoft) else one for one in given]
    if not any(isinstance(one, Failsoft) for one in given):
        given.append(Graceful(default))
    return {"tools": [_wrap_tool(tool) for tool in tools] if default else tools, "capabilities": given}


def _wrap_tool(tool: Any) -> Any:
    """Wrap a tool given to the constructor. The user's own object is not changed."""
    if not isinstance(tool, Tool):
        return make_graceful(tool)
    if ((tool.metadata or {}).get(KEY) or {}).get("graceful_errors", True) is False:
        return tool
    return _GracefulTool(tool)


class _GracefulTool(Tool[Any]):
    """A tool with a graceful function. All other attributes are read from and written to the wrapped tool.

    So later changes to the wrapped tool, such as ``requires_approval``, apply here as well.
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
