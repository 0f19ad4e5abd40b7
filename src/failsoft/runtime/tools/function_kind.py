"""A tool's function: what calling it returns, and which arguments fit its signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal

from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.errors import ManifestError

ToolKind = Literal["async", "sync", "async stream", "stream"]


def unguarded(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside a guard. Wrappers around the guard belong to the user and stay."""
    while (tool := getattr(fn, "__failsoft__", None)) is not None and tool.guarded is fn:
        fn = tool.fn
    return fn


def kind_of(fn: Callable[..., Any]) -> ToolKind:
    """Determine what calling the function returns. Refuse functions that cannot be protected."""
    target: Any = fn
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(target, staticmethod | classmethod):
        raise ManifestError(f"{target!r}: put @staticmethod or @classmethod outside of the tool decorator")
    if not callable(target):
        named = f"; if it is the tool's name, write id={fn!r}" if isinstance(fn, str) else ""
        if hasattr(fn, "name") and hasattr(fn, "description"):
            named = "; of a framework's tool, decorate the function first and make that tool of the result"
        what = f"{fn!r:.80}"
        raise ManifestError(f"{what} is not callable: a tool is a function, a method or an object with __call__{named}")
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target).__call__
    if inspect.iscoroutinefunction(target):
        return "async"
    if inspect.isasyncgenfunction(target):
        return "async stream"
    if inspect.isgeneratorfunction(target):
        return "stream"
    return "sync"


def signature_misfit(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError, wrong: Fault | None
) -> Fault:
    """Return the fault of arguments that do not fit; ``wrong`` is that of their types, if these are wrong too."""
    parameters = signature.parameters.values()
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = {p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    given = set(positional[: len(args)]) | set(kwargs)
    loose = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return builtin_faults.bad_arguments(
        missing=[name for name in signature.parameters if name in required - given],
        invalid=() if wrong is None else builtin_faults.asked_for(wrong),
        unexpected=[] if loose else [name for name in kwargs if name not in named],
        detail="" if required - given or set(kwargs) - named else error,
        cause=error,
    )
