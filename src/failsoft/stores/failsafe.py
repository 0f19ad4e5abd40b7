"""A store as the runtime uses it: what goes wrong in it is never a caller's problem.

Rules
-----
- ``put``, ``delete``, ``get``, ``find``, ``take``, ``claim`` and ``flush`` never raise. The first failure is logged,
  sanitised. Reading then finds nothing, and nothing is taken or claimed; what could not be put is lost, and ``flush``
  says so: once, and to all who ask at that time.
- A store that was written for version 0.1.0 has neither ``take`` nor ``claim``. Both are made of ``get``, ``put`` and
  ``delete`` then, which is atomic in this process only; a warning says so.
- ``append`` may raise: the thread that feeds the store with events notes it, and counts what was lost.
- What is no store at all is refused where it is given, with the methods that it lacks.

Why our own stores are treated alike: one way for all, and nobody has to trust that they keep their word.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from failsoft.errors import ManifestError
from failsoft.observe.exception_text import exception_text
from failsoft.stores.ports import Kind, Store
from failsoft.stores.url import open_store

METHODS = ("put", "get", "find", "delete", "append", "flush", "close")  # what a runtime needs of a store

R = TypeVar("R")
log = logging.getLogger("failsoft")


def open_failsafe(store: str | Store, *, wall: Callable[[], float]) -> Store | None:
    """A store by its address, or somebody's own."""
    found = open_store(store, wall=wall) if isinstance(store, str) else store
    return None if found is None else cast("Store", FailsafeStore(found))


class FailsafeStore:
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
        self._made = threading.RLock()  # while ``take`` or ``claim`` is made of several steps
        self._lacking = [name for name in ("take", "claim") if not callable(getattr(store, name, None))]
        if self._lacking:
            log.warning(
                "the store %s has no %s: two processes may use one retry offer, or begin one write",
                type(store).__name__,
                " and no ".join(self._lacking),
            )

    def renew_after_fork(self) -> None:
        self._made = threading.RLock()

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        self._try(lambda: self._store.put(kind, key, value, ttl=ttl), None, loses=True)

    def delete(self, kind: Kind, key: str) -> None:
        self._try(lambda: self._store.delete(kind, key), None, loses=True)

    def get(self, kind: Kind, key: str) -> Any:
        return self._try(lambda: self._store.get(kind, key), None)

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        return self._try(lambda: self._store.find(kind, scope), [])

    def take(self, kind: Kind, key: str) -> Any:
        return self._try(lambda: self._take(kind, key), None)

    def _take(self, kind: Kind, key: str) -> Any:
        if "take" not in self._lacking:
            return self._store.take(kind, key)
        with self._made:
            found = self._store.get(kind, key)
            self._store.delete(kind, key)
        return found

    def claim(
        self, kind: Kind, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float
    ) -> Mapping[str, Any] | None:  # fmt: skip
        """Keep the values whose keys are free; the values of the others. None: nobody knows whether they are durable."""
        try:
            return self._claim(kind, values, ttl, timeout)
        except TimeoutError:
            return None
        except Exception as error:
            self._complain(error)
            return None

    def _claim(
        self, kind: Kind, values: Mapping[str, Any], ttl: float | None, timeout: float
    ) -> Mapping[str, Any]:  # fmt: skip
        if "claim" not in self._lacking:
            return self._store.claim(kind, values, ttl=ttl, timeout=timeout)
        with self._made:
            found = {key: self._store.get(kind, key) for key in values}
            taken = {key: value for key, value in found.items() if value is not None}
            for key in values.keys() - taken.keys():
                self._store.put(kind, key, values[key], ttl=ttl)
        if not self._store.flush(timeout):
            raise TimeoutError
        return taken

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
            self._complain(error)
            return otherwise

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            name = type(self._store).__name__
            log.error("the store %s failed; calls go on without it\n%s", name, exception_text(error))
