"""Exceptions that tell a call what the error of a framework's tool means. Adapters raise them."""

from __future__ import annotations

from collections.abc import Callable

from failsoft.core.model.fault import Fault


def is_any(error: BaseException, holds: Callable[[BaseException], bool]) -> bool:
    """True if ``holds`` is true of the exception, or of any in its group. Reads shared groups once."""
    links, seen = [error], set[int]()
    while links:
        link = links.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        if isinstance(link, BaseExceptionGroup):
            links += link.exceptions
        elif holds(link):
            return True
    return False


class ControlFlow(BaseException):
    """Carries a framework's control flow out of a call. Not an ``Exception``, so that it is never classified."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class BrokenOffError(Exception):
    """An agent inside a tool was interrupted. Its own tools may have acted before, whatever the error says."""


class MisfitError(ValueError):
    """The arguments do not fit the tool. Raised instead of running the tool."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class BrokenToolError(TypeError):
    """A validation failed inside a tool although its arguments fit: a bug of the tool, not a mistake of the model."""


def qualified_name(error: type[BaseException]) -> str:
    """Return the name of an exception type as classification overrides write it."""
    return f"{error.__module__}.{error.__qualname__}"
