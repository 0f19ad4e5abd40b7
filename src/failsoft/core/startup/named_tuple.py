"""``NamedTuple``, as in ``typing``, for classes that are made at every import of failsoft.

``typing.NamedTuple`` compiles a constructor for each class, which is most of its cost: 760,000 instructions, against
120,000 here. This one compiles the constructor when the first tuple of the class is made. From then on both cost the
same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from inspect import Signature
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported
else:
    from _collections import _tuplegetter
    from sys import intern, version_info

    _WRONG_FIELD = TypeError if version_info >= (3, 13) else ValueError  # as in ``collections.namedtuple``

    class _Signature:
        """The class attribute ``__signature__``: the constructor's parameters."""

        def __get__(self, _: object, owner: type[_Tuple]) -> Signature:
            from inspect import signature

            made = signature(_constructor(owner))
            return made.replace(parameters=[p for p in made.parameters.values() if p.name != "_cls"])

    class _Tuple(tuple):
        """The base of all named tuples, with the methods of ``collections.namedtuple``."""

        __slots__ = ()
        _fields = ()
        _field_defaults: ClassVar[dict[str, Any]] = {}
        __signature__ = _Signature()

        def __new__(cls, /, *args: Any, **kwargs: Any) -> Any:
            return _constructor(cls)(cls, *args, **kwargs)

        @classmethod
        def _make(cls, values: Any) -> Any:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes: Any) -> Any:
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise _WRONG_FIELD(f"Got unexpected field names: {list(changes)!r}")
            return made

        __replace__ = _replace

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{self.__class__.__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    def _constructor(cls: type[_Tuple]) -> Any:
        """Return the constructor of a class or of the named tuple that it extends, and keep it there."""
        owner = next(base for base in cls.__mro__ if "_fields" in vars(base))
        made = vars(owner).get("__new__")
        if made is None:
            names = "".join(f"{name}, " for name in owner._fields)
            text = f"lambda _cls, {names}: _new(_cls, ({names}))"
            made = eval(text, {"_new": tuple.__new__, "__builtins__": {}})  # noqa: S307 - the names are identifiers
            made.__name__, made.__qualname__ = "__new__", f"{owner.__name__}.__new__"
            made.__defaults__ = tuple(owner._field_defaults.values())
            owner.__new__ = staticmethod(made)
            return made
        return made.__func__

    class _Maker(type):
        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            fields = tuple(map(intern, namespace.get("__annotations__", ())))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            if len(bases) > 1 or list(defaults) != list(fields[len(fields) - len(defaults) :]):
                raise TypeError(f"{name} has a base beside NamedTuple, or a field without a default after one with")
            own = {
                **namespace,
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            }
            for index, field in enumerate(fields):
                own[field] = _tuplegetter(index, _ALIAS)
            return type(name, (_Tuple,), own)

    _ALIAS = "A field of the named tuple."
    _BASE = type.__new__(_Maker, "NamedTuple", (), {})

    class _Marker:
        def __mro_entries__(self, _: tuple[object, ...]) -> tuple[type, ...]:
            return (_BASE,)

    NamedTuple = _Marker()
