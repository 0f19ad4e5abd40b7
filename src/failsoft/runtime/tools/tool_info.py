"""The view behind ``rt.tools``: the ids of all tools, and the details of one by id."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, SupportsIndex, cast, get_args, overload

from failsoft.core.effects.names import ToolEffect
from failsoft.core.model.compared import Shown
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.redact.printable import quote

if TYPE_CHECKING:
    from failsoft.core.effects.tool_effect import EffectSource
    from failsoft.core.model.options import ToolOptions
    from failsoft.runtime.tools.tool import Tool


class ShownToolEffect(Shown):
    """The effect of a tool, as users see it."""

    __slots__ = ()

    name = 'rt.tools["…"].effect'
    known = get_args(ToolEffect)
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("read_only", "read-only", "readonly", "reads", "none", "safe"), "read"),
        **dict.fromkeys(("writes", "mutates", "unsafe"), "write"),
        **dict.fromkeys(("unknown", "undeclared"), "neither"),
    }
    closed = True


_EFFECTS = ShownToolEffect.every()


class ToolInfo:
    """One tool as a runtime knows it."""

    __slots__ = ("_tool",)

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    @property
    def id(self) -> str:
        return self._tool.id

    @property
    def description(self) -> str:
        """The function's docstring, or the framework's description."""
        return self._tool.description

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return dict(schema_of(self._tool))

    @property
    def options(self) -> ToolOptions:
        """The options as declared, with their defaults."""
        return self._tool.options

    @property
    def effect(self) -> ToolEffect:
        """``"read"``, ``"write"`` or ``"neither"``."""
        return cast("ToolEffect", _EFFECTS[self._tool.effect])

    @property
    def effect_source(self) -> EffectSource:
        """How the effect is known: ``"declared"``, ``"hinted"``, ``"recognised"`` or ``"unknown"``."""
        return self._tool.effect_source

    @property
    def effect_reason(self) -> str:
        """The reason for the effect."""
        return self._tool.effect_reason

    def __repr__(self) -> str:
        return f"ToolInfo(id={self.id!r}, effect={self.effect!r}, effect_source={self.effect_source!r})"


class ToolIds(tuple[str, ...]):  # noqa: SLOT001 - a tuple cannot have slots
    """The ids of a runtime's tools; ``tools["pay"]`` returns the details of one."""

    _tools: Mapping[str, Tool]

    def __new__(cls, tools: Mapping[str, Tool]) -> Self:
        made = super().__new__(cls, tools)
        made._tools = {**tools}
        return made

    @overload
    def __getitem__(self, key: str) -> ToolInfo: ...
    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[str, ...]: ...
    def __getitem__(self, key: str | SupportsIndex | slice) -> ToolInfo | str | tuple[str, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        tool = self._tools.get(key)
        if tool is None:
            raise KeyError(f"there is no tool {quote(key)}{did_you_mean(key, self)}")
        return ToolInfo(tool)

    def __getattr__(self, name: str) -> NoReturn:
        hint = f': write rt.tools["{name}"]' if name in self else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[str, ...]]]:
        return tuple, (tuple(self),)  # the tools themselves stay in their process


def schema_of(tool: Tool) -> Mapping[str, Any]:
    """The JSON Schema of a tool's arguments, without the key that failsoft fills in itself."""
    given = getattr(tool.fn, "schema", None)
    if isinstance(given, Mapping):
        return given
    signature = tool.signature()
    if tool.command is not None or signature is None:
        return {"type": "object"}
    parameters = [p for p in signature.parameters.values() if p.name != tool.options.key_parameter]
    return _typed(tool.fn, parameters) or _named(parameters)


def _typed(fn: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> dict[str, Any] | None:
    """Return the schema from the annotations; None if pydantic cannot read them."""
    from pydantic import PydanticUserError, create_model
    from pydantic.errors import PydanticSchemaGenerationError

    try:
        hints = inspect.get_annotations(inspect.unwrap(fn), eval_str=True) if inspect.isroutine(fn) else {}
    except Exception:  # annotations are user code
        return None
    fields: dict[str, Any] = {}
    loose = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            loose = loose or parameter.kind is parameter.VAR_KEYWORD
            continue
        annotation = hints.get(parameter.name, Any)
        fields[parameter.name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    try:
        schema = create_model("arguments", **fields).model_json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError, NameError, TypeError, ValueError):
        return None
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
    return {**schema, "additionalProperties": loose}


def _named(parameters: Iterable[inspect.Parameter]) -> dict[str, Any]:
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {
        "type": "object",
        "properties": {parameter.name: {} for parameter in named},
        "required": [parameter.name for parameter in named if parameter.default is parameter.empty],
    }
