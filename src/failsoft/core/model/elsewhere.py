"""Attributes that other libraries have: the error says what to write here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn


class _Elsewhere:
    """An attribute that a class does not have. A ``__getattr__`` would slow down the attributes that it has."""

    __slots__ = ("_name", "_write")

    def __init__(self, name: str, write: str) -> None:
        self._name, self._write = name, write

    def __get__(self, owner: object, kind: type) -> NoReturn:
        text = f"{kind.__name__!r} object has no attribute {self._name!r}: write {self._write}"
        raise AttributeError(text, name=self._name, obj=owner)


def point_elsewhere(kind: type, places: Mapping[str, str]) -> None:
    """Add to errors about missing attributes what to write instead.

    ``places`` has what to write, by the names that people look for. A key may hold several names.
    """
    for names, write in places.items():
        for name in names.split():
            setattr(kind, name, _Elsewhere(name, write))
