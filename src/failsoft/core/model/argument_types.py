"""Check the JSON arguments that a model sends against a function's annotations.

Rules
-----
- Supported: ``str int float bool None``, ``list tuple set frozenset dict`` and their abstract classes, ``TypedDict``,
  ``Optional``, unions, ``Literal``, ``Any``, ``object``, type variables, new types, aliases, and ``Annotated`` that only
  describes. Any other annotation needs a library: ``reader`` passes it to ``other``, or raises ``Richer``. A union with
  such a member is passed on as a whole.
- A value is converted only without loss: ``"40"`` and ``40.0`` become the integer 40, ``"true"`` becomes ``True``, an
  array becomes a tuple or a set. A boolean is not a number; a number is not a text.
- A union first looks for a member that accepts the value unchanged, and converts only if there is none.
- An object that is not JSON passes unchanged, also inside a container. So do keys that a ``TypedDict`` does not declare.
- A value that needs no conversion is returned as the same object.
"""

from __future__ import annotations

import math
import re
import typing
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypeVar, Union, get_args, get_origin

JSON = frozenset({NoneType, bool, int, float, str, list, dict})

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_EXACT = 2**53  # the largest range in which a float represents every integer

_ARRAYS = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable, abc.Reversible, abc.Container)
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)
_CONTAINERS = (tuple, *_ARRAYS, *_SETS, *_OBJECTS)
_ALIAS = getattr(typing, "TypeAliasType", None)  # since Python 3.12


class Richer(Exception):
    """An annotation that this module does not support."""


class Misfit(ValueError):
    """A value that does not fit. ``path`` leads to it from the argument."""

    def __init__(self, wanted: str, value: Any, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.value = value
        self.path = path

    def at(self, step: str | int) -> Misfit:
        """The same misfit, with a path from the container around it."""
        self.path = (step, *self.path)
        return self

    def explain(self, name: str) -> str:
        """Say what is wrong with the argument ``name``."""
        return f"{self.place(name)} must be {self.wanted}, not {describe(self.value)}."

    def place(self, name: str) -> str:
        """Say where in the argument ``name`` the value is."""
        return name + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)


class Reader(NamedTuple):
    """Reads values for one annotation."""

    wanted: str  # the expected type, in words
    exact: frozenset[type]  # values of these classes pass unchanged
    read: Callable[[Any, bool], Any]  # returns the value to use, or raises ``Misfit``; with True it does not convert


def describe(value: Any) -> str:
    """The JSON type of the value, in words. The value itself is left out: it may be a secret."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {str: "a text", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


Other = Callable[[Any], Reader | None]


def reader(annotation: Any, other: Other | None = None) -> Reader | None:
    """The reader for this annotation; None if every value fits. ``other`` reads annotations that are not supported."""
    annotation = _plain(annotation)
    if annotation in (Any, object) or isinstance(annotation, TypeVar):
        return None
    if annotation is None or annotation in _SCALARS:
        return _SCALARS[annotation or NoneType]
    try:
        return _compound(annotation, other)
    except Richer:
        if other is None:
            raise
        return other(annotation)


def _compound(annotation: Any, other: Other | None) -> Reader | None:
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal(members)
    if origin in (Union, UnionType):
        return _union([reader(member) for member in members])
    kind = origin or annotation
    inner = [reader(member, other) for member in members if member is not Ellipsis] if kind in _CONTAINERS else []
    if kind is tuple:
        return _tuple(inner, fixed=origin is not None and members[-1:] != (Ellipsis,))
    if kind in _ARRAYS:
        return _array(list, *inner)
    if kind in _SETS:
        return _array(frozenset if kind is frozenset else set, *inner)
    if kind in _OBJECTS:
        return _object(*inner)
    if origin is None and _is_typed_dict(annotation):
        return _typed_dict(annotation, other)
    raise Richer(annotation)


def _is_typed_dict(annotation: Any) -> bool:
    """True for a ``TypedDict``, of ``typing`` or of ``typing_extensions``."""
    return isinstance(annotation, type) and issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")


def _plain(annotation: Any) -> Any:
    """Resolve new types and aliases, and remove what only describes."""
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif _ALIAS is not None and isinstance(annotation, _ALIAS):
            annotation = annotation.__value__
        elif annotation is typing.LiteralString:
            return str
        elif _describes_only(annotation):
            annotation = get_args(annotation)[0]
        else:
            try:
                hash(annotation)
            except TypeError:
                raise Richer(annotation) from None
            return annotation


def _describes_only(annotation: Any) -> bool:
    """True for ``Required``, ``NotRequired`` and ``ReadOnly``, and for ``Annotated`` with nothing but descriptions."""
    if get_origin(annotation) is Annotated:
        return all(map(_is_description, annotation.__metadata__))
    return bool(_qualifier(annotation))


def _qualifier(annotation: Any) -> str:
    """Return ``Required``, ``NotRequired`` or ``ReadOnly`` if that is what surrounds the type of a field."""
    name: str = getattr(get_origin(annotation), "_name", None) or ""
    return name if name in ("Required", "NotRequired", "ReadOnly") else ""


def _is_description(note: Any) -> bool:
    """True for a note in ``Annotated`` that does not restrict values: a text, ``Doc``, pydantic's ``Field`` without limits."""
    kind = type(note).__name__
    if kind == "FieldInfo":
        return not getattr(note, "metadata", True) and getattr(note, "discriminator", None) is None
    return isinstance(note, str) or kind == "Doc"


# --- one value ------------------------------------------------------------------------------------------------------------


def _scalar(kind: type, wanted: str, convert: Callable[[Any], Any] | None = None, *also: type) -> Reader:
    exact = frozenset({kind, *also})

    def read(value: Any, strict: bool) -> Any:
        if value.__class__ in exact or value.__class__ not in JSON:
            return value
        made = None if strict or convert is None else convert(value)
        if made is None:
            raise Misfit(wanted, value)
        return made

    return Reader(wanted, exact, read)


def _to_integer(value: Any) -> int | None:
    if value.__class__ is float:
        return int(value) if math.isfinite(value) and value.is_integer() and abs(value) <= _EXACT else None
    return int(value) if value.__class__ is str and _INTEGER.fullmatch(value) else None


def _to_number(value: Any) -> float | None:
    if value.__class__ is not str or not _NUMBER.fullmatch(value):
        return None
    made = float(value)
    return made if math.isfinite(made) else None


def _to_flag(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(value) if value.__class__ is str else None


_SCALARS: dict[Any, Reader] = {
    str: _scalar(str, "a text"),
    int: _scalar(int, "an integer", _to_integer),
    float: _scalar(float, "a number", _to_number, int),
    bool: _scalar(bool, "true or false", _to_flag),
    NoneType: _scalar(NoneType, "null"),
}


def _literal(choices: tuple[Any, ...]) -> Reader:
    if any(choice.__class__ not in JSON for choice in choices):
        raise Richer(choices)  # such as members of an Enum, or bytes
    wanted = _either(map(repr, choices))
    by_text = {str(choice): choice for choice in choices if choice.__class__ is int}

    def read(value: Any, strict: bool) -> Any:
        if value.__class__ not in JSON:
            return value
        if any(value == choice and value.__class__ is choice.__class__ for choice in choices):
            return value
        text = value if value.__class__ is str else str(_to_integer(value))
        if strict or text not in by_text:
            raise Misfit(wanted, value)
        return by_text[text]

    return Reader(wanted, frozenset(), read)


def _union(members: list[Reader | None]) -> Reader | None:
    known = [member for member in members if member is not None]
    if len(known) < len(members):
        return None  # one member accepts everything
    wanted = _either(member.wanted for member in known)
    exact = frozenset[type]().union(*(member.exact for member in known))

    def read(value: Any, strict: bool) -> Any:
        if value.__class__ in exact:
            return value
        closest = Misfit(wanted, value)
        for only_exact in (True,) if strict else (True, False):
            for member in known:
                try:
                    return member.read(value, only_exact)
                except Misfit as misfit:
                    if len(misfit.path) > len(closest.path):
                        closest = misfit  # the container fits, something inside it does not
        raise closest

    return Reader(wanted, exact, read)


def _either(words: Iterable[str]) -> str:
    named = [*dict.fromkeys(words)]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"


# --- containers -----------------------------------------------------------------------------------------------------------


def _array(make: type, items: Reader | None = None) -> Reader:
    def read(value: Any, strict: bool) -> Any:
        if value.__class__ is not list:
            if value.__class__ in JSON:
                raise Misfit("an array", value)
            return value
        made = value if items is None or _all_exact(value, items) else _read_items(value, items, strict)
        if make is list:
            return made
        if strict:
            raise Misfit("an array", value)  # another member of the union may accept the list unchanged
        try:
            return make(made)
        except TypeError:
            raise Misfit("an array of plain values", value) from None

    return Reader("an array", frozenset({list}) if make is list and items is None else frozenset(), read)


def _tuple(readers: Sequence[Reader | None], *, fixed: bool) -> Reader:
    if not fixed:
        return _array(tuple, *readers)
    wanted = f"an array of {len(readers)}"

    def read(value: Any, strict: bool) -> Any:
        if value.__class__ is not list and value.__class__ not in JSON:
            return value
        if value.__class__ is not list or len(value) != len(readers) or strict:
            raise Misfit(wanted, value)
        return tuple(_each(value, readers, strict))

    return Reader(wanted, frozenset(), read)


def _object(keys: Reader | None = None, values: Reader | None = None) -> Reader:
    def read(value: Any, strict: bool) -> Any:
        if value.__class__ is not dict:
            if value.__class__ in JSON:
                raise Misfit("an object", value)
            return value
        if keys is _SCALARS[str] and (values is None or _all_exact(value.values(), values)):
            return value  # keys in JSON are always text
        made = {}
        for key, item in value.items():
            try:
                name = key if keys is None else keys.read(key, strict)
                made[name] = item if values is None else values.read(item, strict)
            except Misfit as misfit:
                raise misfit.at(str(key)) from None
        if len(made) < len(value):
            raise Misfit("an object whose keys are different", value)
        same = all(a is b and made[a] is value[b] for a, b in zip(made, value, strict=True))
        return value if same else made

    plain = keys is None and values is None
    return Reader("an object", frozenset({dict}) if plain else frozenset(), read)


def _typed_dict(annotation: Any, other: Other | None) -> Reader:
    hints = typing.get_type_hints(annotation, include_extras=True)
    fields = {name: reader(hint, other) for name, hint in hints.items()}
    required = [name for name, hint in hints.items() if _is_required(hint, name in annotation.__required_keys__)]

    def read(value: Any, strict: bool) -> Any:
        if value.__class__ is not dict:
            if value.__class__ in JSON:
                raise Misfit("an object", value)
            return value
        missing = [name for name in required if name not in value]
        if missing:
            raise Misfit(f"an object with {', '.join(missing)}", value)
        made = {}
        for name, item in value.items():
            each = fields.get(name)
            try:
                made[name] = item if each is None else each.read(item, strict)
            except Misfit as misfit:
                raise misfit.at(str(name)) from None
        return value if all(made[name] is item for name, item in value.items()) else made

    return Reader("an object", frozenset(), read)


def _is_required(hint: Any, by_default: bool) -> bool:
    """True if the field must be given. ``__required_keys__`` is wrong where annotations are text (PEP 563)."""
    marks = {_qualifier(hint)}
    while _qualifier(hint) or get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
        marks.add(_qualifier(hint))
    return "NotRequired" not in marks and (by_default or "Required" in marks)


def _all_exact(values: Iterable[Any], items: Reader) -> bool:
    exact = items.exact
    for value in values:  # noqa: SIM110 - a generator expression would cost twice as much
        if value.__class__ not in exact:
            return False
    return True


def _read_items(values: list[Any], items: Reader, strict: bool) -> list[Any]:
    made = [*_each(values, [items] * len(values), strict)]
    return values if all(a is b for a, b in zip(values, made, strict=True)) else made


def _each(values: list[Any], readers: Sequence[Reader | None], strict: bool) -> Iterator[Any]:
    for place, (value, each) in enumerate(zip(values, readers, strict=True)):
        try:
            yield value if each is None else each.read(value, strict)
        except Misfit as misfit:
            raise misfit.at(place) from None
