"""Hand the user's own tools to hooks and to ``tool_use_behavior``, which may compare them with ``is``.

Rules
-----
- While a run is under way the SDK calls hooks with the guarded tool. In its place they get the tool that was guarded.
- The hooks themselves are not changed. The SDK gets an object that passes everything on to them, of a subclass of theirs
  where there can be one.
- A guarded tool that was copied or unpickled has no original: hooks get the guarded one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from failsoft.adapters.openai_agents.twins import Twin

T = TypeVar("T")

_WITH_TOOLS = ("on_tool_start", "on_tool_end")


def own_tool(tool: Any) -> Any:
    """The tool that a guarded one was made from; any other tool itself."""
    return getattr(tool, "_original", tool) if isinstance(tool, Twin) else tool


class _Handing:
    """Hooks that pass everything on to the user's."""

    __slots__ = ("_hooks",)
    _hooks: Any

    def __getattribute__(self, name: str) -> Any:
        hooks = object.__getattribute__(self, "_hooks")
        found = getattr(hooks, name)
        return _hand(found) if name in _WITH_TOOLS else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_hooks"), name, value)


def hand_own_tools(hooks: T) -> T:
    """Hooks for the SDK that hand the user's own tools to these."""
    made: Any = object.__new__(_subclass(cast("Any", type(hooks))))
    object.__setattr__(made, "_hooks", hooks)
    return cast("T", made)


def own_hooks(hooks: Any) -> Any:
    """The user's hooks behind those that ``hand_own_tools`` made; any other object itself."""
    return object.__getattribute__(hooks, "_hooks") if issubclass(type(hooks), _Handing) else hooks


@lru_cache(maxsize=64)
def _subclass(kind: Any) -> Any:
    """Of the same name: the SDK knows the agents in a stored ``RunState`` by the names of their hooks' classes, too.

    A class with slots, or one that refuses subclasses, has none: ``isinstance`` then goes by ``__class__``.
    """
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    try:
        return type(kind)(kind.__name__, (_Handing, kind), names)
    except Exception:
        return _Handing


def _hand(hook: Callable[..., Any]) -> Callable[..., Any]:
    def call(context: Any, agent: Any, tool: Any, *more: Any) -> Any:
        return hook(context, agent, own_tool(tool), *more)

    return call


def with_own_results(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A ``tool_use_behavior`` function that gets results of the user's own tools."""

    @wraps(choose)
    def call(context: Any, results: list[Any]) -> Any:
        return choose(context, [replace(result, tool=own_tool(result.tool)) for result in results])

    return call
