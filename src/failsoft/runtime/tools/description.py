"""The description of a tool, from its function's docstring."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def description_of(fn: Callable[..., Any]) -> str:
    """Return the docstring of a function; for an object, that of ``__call__``, not that of its class."""
    target: Any = fn
    while isinstance(target, functools.partial):
        target = target.func
    if inspect.isroutine(target) or inspect.isclass(target):
        return inspect.getdoc(target) or ""
    own = getattr(type(target).__call__, "__doc__", None)  # getdoc would find "Call self as a function."
    return inspect.cleandoc(own) if isinstance(own, str) else ""
