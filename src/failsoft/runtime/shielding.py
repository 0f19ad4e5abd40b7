"""A store as the runtime uses it: what goes wrong in it is never a caller's problem.

Rules
-----
- ``put``, ``delete``, ``get``, ``find`` and ``flush`` never raise. The first failure is logged, sanitised. Reading then
  finds nothing; what could not be put is lost, and ``flush`` says so: once, and to all who ask at that time.
- ``append`` may raise: the thread that feeds the store with events notes it, and counts what was lost.
- What is no store at all is refused where it is given, with the methods that it lacks.

Why our own stores are treated alike: one way for all, and nobody has to trust that they keep their word.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from failsoft.errors import ManifestError
from failsoft.observe.describe import describe
from failsoft.stores.base import Kind, Store
from failsoft.stores.open import open_store

METHODS = ("put", "get", "find", "delete", "append", "flush", "close")  # what a runtime needs of a store

R = TypeVar("R")
log = logging.getLogger("failsoft")


def open_shielded(store: str | Store, *, wall: Callable[[], float]) -> Store | None:
    """A store by its address, or somebody's own."""
    found = open_store(store, wall=wall) if isinstance(store, str) else store
    return None if found is None else cast("Store", Shielded(found))


class Shielded:
    """A store whose troubles stay its own. It has of ``Store`` what a runtime uses."""

    def __init__(self, store: Store) -> None:
        lacking = [name for name in METHODS if not callable(getattr(store, name, None))]
        if lacking:
            raise ManifestError(
                f"store: {type(store).__name__} is no store, it has no {', '.join(lacking)}: "
                'give an address like "sqlite:///failsoft.db", or an object that failsoft.testing.check_store accepts'
            )
        self._store = store
        self.append = store.append
        self._complained = False
        self._counts = isinstance(getattr(store, "lost", None), int)
        self._losses = 0  # what could not be put or deleted; and whatever one that does not count them might mean
        self._told = 0  # of these, what ``flush`` has told

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        self._try(lambda: self._store.put(kind, key, value, ttl=ttl), None, loses=True)

    def delete(self, kind: Kind, key: str) -> None:
        self._try(lambda: self._store.delete(kind, key), None, loses=True)

    def get(self, kind: Kind, key: str) -> Any:
        return self._try(lambda: self._store.get(kind, key), None)

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        return self._try(lambda: self._store.find(kind, scope), [])

    def flush(self, timeout: float) -> bool:
        told = self._told
        if not self._try(lambda: self._store.flush(timeout), False):
            self._losses += not self._counts
            return False
        lost = self._losses
        self._told = max(self._told, lost)
        return lost == told

    @property
    def lost(self) -> int:
        """What was given up for good."""
        return self._losses + (self._store.lost if self._counts else 0)

    def close(self) -> None:
        self._try(self._store.close, None)

    def _try(self, use: Callable[[], R], otherwise: R, *, loses: bool = False) -> R:
        try:
            return use()
        except Exception as error:
            self._losses += loses
            if not self._complained:
                self._complained = True
                name = type(self._store).__name__
                log.error("the store %s failed; calls go on without it\n%s", name, describe(error))  # noqa: TRY400 - sanitised
            return otherwise
