"""Methods that read like conditions: ``if handle.done:`` is always true, and is logged."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from failsoft.core.model.compared import report_misuse

F = TypeVar("F", bound=Callable[..., Any])


class _BoundPredicate:
    __slots__ = ("__func__", "__self__")

    def __init__(self, function: Callable[..., Any], owner: object) -> None:
        self.__func__, self.__self__ = function, owner

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__func__(self.__self__, *args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)  # its name and signature

    def __bool__(self) -> bool:
        """True, as of every method."""
        name = self.__func__.__name__
        report_misuse(f"{type(self.__self__).__name__}.{name}", f"a method is always true: write {name}()")
        return True


class _Predicate:
    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(cast("Any", self), function)
        self._function = function

    def __get__(self, owner: object, _: object = None) -> Any:
        return self._function if owner is None else _BoundPredicate(self._function, owner)


def predicate(function: F) -> F:
    """Log that a method is used as a condition without being called."""
    return cast("F", _Predicate(function))
