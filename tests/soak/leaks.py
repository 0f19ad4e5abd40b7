"""The resources of this process: memory, threads, descriptors, processes, tasks."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
MB = 1_000_000


class Held(NamedTuple):
    """A count of it all."""

    threads: int
    descriptors: int
    processes: int


def count() -> Held:
    return Held(threading.active_count(), len(list(Path("/proc/self/fd").iterdir())), len(descendants()))


def rss() -> float:
    """Megabytes of memory in use, as the machine sees it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / MB


def descendants() -> set[int]:
    """The pids of all processes below this one, zombies included."""
    parents = _parents()
    found: set[int] = set()
    todo = {os.getpid()}
    while todo:
        todo = {pid for pid, parent in parents.items() if parent in todo} - found
        found |= todo
    return found


def children() -> set[int]:
    """Those right below this one."""
    return {pid for pid, parent in _parents().items() if parent == os.getpid()}


def _parents() -> dict[int, int]:
    found: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # gone meanwhile
            continue
    return found


def settle(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether something comes true within a while."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        gc.collect()
        time.sleep(0.05)
    return True
