"""The process's default runtime, for one-file users: ``@failsoft.tool``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from failsoft.runtime.runtime import Runtime

if TYPE_CHECKING:
    from failsoft.runtime.tool_keywords import ToolKeywords

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def default_runtime() -> Runtime:
    """The runtime that ``failsoft.tool`` registers with; made on first use."""
    return Runtime()


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(
    fn: None = None, /, *, id: str | None = None, replace: bool = False, **options: Unpack[ToolKeywords]
) -> Callable[[F], F]: ...
def tool(fn: Any = None, /, **options: Any) -> Any:
    """Register a function as a tool of the default runtime: ``@failsoft.tool``, with the options of ``Runtime.tool``."""
    runtime = default_runtime()
    return runtime.tool(**options) if fn is None else runtime.tool(fn)
