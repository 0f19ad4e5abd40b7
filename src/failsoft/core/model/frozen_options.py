"""The base class of all options: frozen values with keyword-only fields.

To users and to ``dataclasses`` they are dataclasses. The methods are written here once: ``dataclass`` would compile them
for each class at every import, at three times the cost of the whole class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field
    from inspect import Signature

T = TypeVar("T")


class _Fresh:
    """A default that is made anew for each instance."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def fresh(make: Callable[[], T]) -> T:
    """Return a default that ``make`` makes for each instance."""
    return cast("T", _Fresh(make))


class _Fields:
    """The class attribute ``__dataclass_fields__``, made on first use: ``dataclasses`` and its functions need it."""

    def __get__(self, _: object, owner: type[Options]) -> dict[str, Field[Any]]:
        return cast("Any", _as_dataclass(owner)).__dataclass_fields__  # type: ignore[no-any-return]


class _Signature:
    """The class attribute ``__signature__``: the fields as keyword-only parameters."""

    def __get__(self, _: object, owner: type[Options]) -> Signature:
        from inspect import signature

        return signature(_as_dataclass(owner))


class Options:
    """Base class of options."""

    __slots__: tuple[str, ...] = ()
    __dataclass_fields__: ClassVar[Any] = _Fields()
    __signature__: ClassVar[Any] = _Signature()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: object, **given: Any) -> None:
        if args:
            self._refuse(f"takes 1 positional argument but {1 + len(args)} were given")
        missing = [name for name in self.__slots__ if name not in given and name not in self._defaults]
        if missing:
            self._refuse(f"missing {len(missing)} required keyword-only argument(s): {', '.join(missing)}")
        for name in self.__slots__:
            value = given.pop(name) if name in given else self._defaults[name]
            object.__setattr__(self, name, value.make() if isinstance(value, _Fresh) else value)
        if given:
            self._refuse(f"got an unexpected keyword argument {next(iter(given))!r}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the fields."""

    def _refuse(self, why: str) -> NoReturn:
        raise TypeError(f"{type(self).__name__}.__init__() {why}")

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field once. A second assignment is refused."""
        if hasattr(self, name):
            _refuse_change("assign to", name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _refuse_change("delete", name)

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self.__slots__, self._values(), strict=True))
        return f"{type(self).__name__}({fields})"


def _refuse_change(what: str, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _as_dataclass(cls: type[Options]) -> type:
    from dataclasses import dataclass, field

    defaults = {
        name: field(default_factory=value.make) if isinstance(value, _Fresh) else value
        for name, value in cls._defaults.items()
    }
    body = {"__annotations__": dict(cls.__annotations__), "__module__": cls.__module__, **defaults}
    return dataclass(kw_only=True)(type(cls.__name__, (), body))


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(made: type[T]) -> type[T]:
    """Make a class of options: its annotated names become keyword-only fields."""
    body: dict[str, Any] = dict(vars(made))
    names = tuple(body["__annotations__"])
    body["_defaults"] = {name: body.pop(name) for name in names if name in body}
    body["__slots__"] = names
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    return cast("type[T]", type(made.__name__, made.__bases__, body))


def replace(options: T, **changes: Any) -> T:
    """Return options with some fields changed, as ``dataclasses.replace`` does."""
    kept = {name: getattr(options, name) for name in cast("Any", options).__slots__}
    return type(options)(**{**kept, **changes})
