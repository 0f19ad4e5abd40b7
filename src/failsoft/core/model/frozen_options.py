"""The base class of all options: frozen values with keyword-only fields."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class Options:
    """Base class with the methods that ``dataclass`` would otherwise generate per class at every import."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field once. A second assignment is refused."""
        if hasattr(self, name):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self.__slots__, self._values(), strict=True))
        return f"{type(self).__name__}({fields})"


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(made: type[T]) -> type[T]:
    """Make a class of options: a dataclass with slots that takes the methods of ``Options``."""
    return dataclass(kw_only=True, slots=True, eq=False, repr=False)(made)
