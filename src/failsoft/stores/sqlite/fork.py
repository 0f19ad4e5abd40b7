"""Forks while SQLite is in use.

SQLite's own locks stay locked in a child that is forked while another thread holds them. So a fork waits until every
store is idle, at most ``FORK_SECONDS``; the child then renews what it has inherited.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

FORK_SECONDS = 0.5


class Forked(Protocol):
    """A store, as a fork sees it."""

    def locks(self) -> tuple[threading.Lock, threading.Lock]:
        """The locks that keep the store from using SQLite while they are held."""
        ...

    def renew_after_fork(self) -> None:
        """Replace the locks, threads and connections inherited from the parent process."""
        ...


_stores: WeakSet[Forked] = WeakSet()
_held: dict[int, list[threading.Lock]] = {}  # locks held around a fork, by thread


def hold_at_fork(store: Forked) -> None:
    """Hold the store's locks around every fork, and renew it in the child."""
    _stores.add(store)


def _before_fork() -> None:
    until = time.monotonic() + FORK_SECONDS
    locks = [lock for store in list(_stores) for lock in store.locks()]
    _held[threading.get_ident()] = [lock for lock in locks if lock.acquire(timeout=max(0.0, until - time.monotonic()))]


def _after_fork_in_parent() -> None:
    for lock in _held.pop(threading.get_ident(), ()):
        lock.release()


def _after_fork() -> None:
    _held.clear()
    for store in list(_stores):
        store.renew_after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
