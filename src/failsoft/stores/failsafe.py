"""Keep a store's failures away from calls.

Rules
-----
- ``put``, ``delete``, ``get``, ``find``, ``take``, ``claim`` and ``flush`` never raise. The first failure is logged,
  sanitised. A failed read finds nothing; a failed ``take`` or ``claim`` gets nothing. A failed ``put`` is a loss: the
  next ``flush`` (and every one already waiting) returns False.
- A store written for version 0.1.0 has no ``take``, ``claim`` and ``swap``. They are then composed of ``get``, ``put``
  and ``delete``, which is atomic only within this process; a warning says so.
- ``swap`` raises ``TimeoutError`` if the store fails, because an operator waits for its result.
- ``append`` may raise: the thread that writes events counts the loss.
- On the thread of an event loop, a read is made by another thread. It blocks the loop for at most ``PATIENCE`` seconds,
  even if the store hangs. Calls never read there (``runtime.persistence.store_reads``).
- An object that does not implement the protocol is refused, naming the missing methods.

Why failsoft's own stores are wrapped too: one code path, and no store has to be trusted.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from failsoft.errors import ManifestError
from failsoft.observe.exception_text import exception_text
from failsoft.stores.circuit_record import RecordBreakers
from failsoft.stores.ports import BreakerStore, Kind, Store
from failsoft.stores.url import open_store

METHODS = ("put", "get", "find", "delete", "append", "flush", "close")  # required by a runtime

PATIENCE = 5.0  # seconds

R = TypeVar("R")
log = logging.getLogger("failsoft")


def open_failsafe(store: str | Store, *, wall: Callable[[], float]) -> Store | None:
    """Open a store by its address, or wrap the user's own store."""
    found = open_store(store, wall=wall) if isinstance(store, str) else store
    return None if found is None else cast("Store", FailsafeStore(found, wall))


class FailsafeStore:
    """A wrapper whose methods do not raise. It has the methods of ``Store`` that a runtime uses."""

    def __init__(self, store: Store, wall: Callable[[], float] = time.time) -> None:
        lacking = [name for name in METHODS if not callable(getattr(store, name, None))]
        if lacking:
            raise ManifestError(
                f'store: expected an address such as "sqlite:///failsoft.db" or an object that '
                f"failsoft.testing.check_store accepts, got {type(store).__name__}, which has no {', '.join(lacking)}"
            )
        self._store = store
        self._wall = wall
        self.append = store.append
        self._complained = False
        self._counts = isinstance(getattr(store, "lost", None), int)
        self._losses = 0  # failed puts and deletes; failed flushes too, if the store does not count its losses
        self._reported = 0  # losses already reported by ``flush``
        self._made = threading.RLock()  # held while a method performs several steps
        self._lacking = [name for name in ("take", "claim", "swap") if not callable(getattr(store, name, None))]
        if self._lacking:
            log.warning(
                "the store %s has no %s: two processes may use one retry offer, or begin or resolve one write",
                type(store).__name__,
                " and no ".join(self._lacking),
            )

    @property
    def breakers(self) -> BreakerStore:
        """The store's circuits, shared by the store itself or kept as records. Their methods may raise."""
        own: BreakerStore | None = getattr(self._store, "breakers", None)
        return RecordBreakers(self._store, self._wall) if own is None else own

    @property
    def kind(self) -> str:
        """The name of the store's class."""
        return type(self._store).__name__

    def renew_after_fork(self) -> None:
        self._made = threading.RLock()

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        self._try(lambda: self._store.put(kind, key, value, ttl=ttl), None, loses=True)

    def delete(self, kind: Kind, key: str) -> None:
        self._try(lambda: self._store.delete(kind, key), None, loses=True)

    def get(self, kind: Kind, key: str) -> Any:
        return self._read(lambda: self._store.get(kind, key), None)

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        return self._read(lambda: self._store.find(kind, scope), [])

    def find_or_raise(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        """``find`` for output to people. A failure raises ``TimeoutError``: it must not look like an empty list."""
        found: list[tuple[str, Any]] | None = self._read(lambda: self._store.find(kind, scope), None)
        if found is None:
            raise TimeoutError("the store failed")
        return found

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
        """Keep the values whose keys are free; return the values of the others, or None if durability is not known."""
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

    def swap(
        self, kind: Kind, changes: Mapping[str, tuple[Any, Any]], *, ttl: float | None = None, timeout: float
    ) -> bool:  # fmt: skip
        """Replace several values if all are as expected; raise ``TimeoutError`` if that is not known to be durable."""
        try:
            return self._swap(kind, changes, ttl, timeout)
        except TimeoutError:
            raise
        except Exception as error:
            self._complain(error)
            raise TimeoutError("the store failed") from error

    def _swap(
        self, kind: Kind, changes: Mapping[str, tuple[Any, Any]], ttl: float | None, timeout: float
    ) -> bool:  # fmt: skip
        if "swap" not in self._lacking:
            return self._store.swap(kind, changes, ttl=ttl, timeout=timeout)
        with self._made:
            if any(self._store.get(kind, key) != expected for key, (expected, _) in changes.items()):
                return False
            for key, (_, new) in changes.items():
                if new is None:
                    self._store.delete(kind, key)
                else:
                    self._store.put(kind, key, new, ttl=ttl)
        if not self._store.flush(timeout):
            raise TimeoutError
        return True

    def flush(self, timeout: float) -> bool:
        reported = self._reported
        if not self._try(lambda: self._store.flush(timeout), False):
            self._losses += not self._counts
            return False
        lost = self._losses
        self._reported = max(self._reported, lost)
        return lost == reported

    @property
    def lost(self) -> int:
        """The number of records and events lost so far."""
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

    def _read(self, use: Callable[[], R], otherwise: R) -> R:
        """Read; on an event loop's thread, read on another thread and wait for at most ``PATIENCE`` seconds."""
        if not _is_on_loop():
            return self._try(use, otherwise)
        found: list[R] = []
        reader = threading.Thread(
            target=lambda: found.append(self._try(use, otherwise)), name="failsoft store", daemon=True
        )
        try:
            reader.start()
        except RuntimeError:  # the interpreter is about to end
            return self._try(use, otherwise)
        reader.join(PATIENCE)
        if not found:
            self._complain(TimeoutError(f"a read took longer than {PATIENCE:g} s"))
        return found[0] if found else otherwise

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            name = type(self._store).__name__
            log.error("the store %s failed; calls go on without it\n%s", name, exception_text(error))


def _is_on_loop() -> bool:
    """True if an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
