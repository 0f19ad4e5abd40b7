"""References to a runtime in pickles and copies: a copy of an object that holds a runtime holds the same runtime."""

from __future__ import annotations

from os import urandom
from typing import Any
from weakref import WeakValueDictionary

from failsoft.errors import FailsoftError

_ALIVE: WeakValueDictionary[str, Any] = WeakValueDictionary()


class Reference:
    """The name of an object, by which this process finds it again."""

    __slots__ = ("_key",)

    def __init__(self, referent: object) -> None:
        self._key = urandom(16).hex()
        _ALIVE[self._key] = referent

    def reduce(self) -> tuple[Any, ...]:
        """Return the result of ``__reduce__``."""
        return find, (self._key,)


def find(key: str) -> Any:
    """The object of this name; raise in another process, or when the object is gone."""
    found = _ALIVE.get(key)
    if found is not None:
        return found
    raise FailsoftError(
        "a Runtime stays in its process: it cannot be unpickled in another one, or when it is gone. Pickle the bare agent, "
        "and guard the agent again where it is loaded"
    )
