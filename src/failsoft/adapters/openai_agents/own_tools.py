"""Pass the user's own tools to the user's functions (hooks and the like), which may compare them with ``is``.

Rules
-----
- During a run the SDK calls hooks with the guarded tool. The hooks get the original tool instead.
- The hooks themselves are not changed. The SDK gets a wrapper that forwards everything to them. Its class is a subclass
  of theirs if possible.
- A guarded tool that was copied or unpickled has no original: hooks get the guarded one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from failsoft.adapters.openai_agents.proxies import GuardedProxy

T = TypeVar("T")

_WITH_TOOLS = ("on_tool_start", "on_tool_end")


def own_tool(tool: Any) -> Any:
    """Return the original of a guarded tool; any other tool unchanged."""
    return getattr(tool, "_original", tool) if isinstance(tool, GuardedProxy) else tool


class _HookWrapper:
    """A wrapper that forwards everything to the user's hooks."""

    __slots__ = ("_hooks",)
    _hooks: Any

    def __getattribute__(self, name: str) -> Any:
        hooks = object.__getattribute__(self, "_hooks")
        found = getattr(hooks, name)
        return _with_own_tool(found) if name in _WITH_TOOLS else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_hooks"), name, value)


def pass_own_tools(hooks: T) -> T:
    """Wrap hooks so that they get the user's own tools."""
    made: Any = object.__new__(_subclass(cast("Any", type(hooks))))
    object.__setattr__(made, "_hooks", hooks)
    return cast("T", made)


def own_hooks(hooks: Any) -> Any:
    """Unwrap hooks made by ``pass_own_tools``; return any other object unchanged."""
    return object.__getattribute__(hooks, "_hooks") if issubclass(type(hooks), _HookWrapper) else hooks


@lru_cache(maxsize=64)
def _subclass(hooks_class: Any) -> Any:
    """Make a subclass with the same name: a stored ``RunState`` identifies agents by their hooks' class names, too.

    A class that has slots or refuses subclasses gets the plain wrapper; ``isinstance`` then goes by ``__class__``.
    """
    names = {"__module__": hooks_class.__module__, "__qualname__": hooks_class.__qualname__}
    try:
        return type(hooks_class)(hooks_class.__name__, (_HookWrapper, hooks_class), names)
    except Exception:
        return _HookWrapper


def _with_own_tool(hook: Callable[..., Any]) -> Callable[..., Any]:
    def call(context: Any, agent: Any, tool: Any, *more: Any) -> Any:
        return hook(context, agent, own_tool(tool), *more)

    return call


def with_own_results(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a ``tool_use_behavior`` function so that it gets results with the user's own tools."""

    @wraps(choose)
    def call(context: Any, results: list[Any]) -> Any:
        return choose(context, [replace(result, tool=own_tool(result.tool)) for result in results])

    return call


def with_own_context(extract: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a ``custom_data_extractor`` so that its context has the user's own tool."""

    @wraps(extract)
    def call(context: Any) -> Any:
        return extract(replace(context, tool=own_tool(context.tool)))

    return call
