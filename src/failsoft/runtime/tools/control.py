"""Exceptions by which an adapter says what the error of a framework's tool means."""

from __future__ import annotations

from failsoft.core.model.fault import Fault


class ControlFlow(BaseException):
    """A framework's control flow on its way through. No ``Exception``: nobody here is to judge it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class BrokenOffError(Exception):
    """An agent that runs inside a tool has broken off. Whatever its error says: tools of its own may have acted before."""


class MisfitError(ValueError):
    """The arguments do not fit the tool. Raised in its place: the fault is known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class BrokenToolError(TypeError):
    """Something did not validate inside a tool, although its arguments fit: not the model's fault, but the tool's."""


def qualified_name(error: type[BaseException]) -> str:
    """The name by which an override of the classification knows an exception."""
    return f"{error.__module__}.{error.__qualname__}"
