"""Workers for tests, and ways to see whether anything is left of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failsoft.core.model.options import Isolation
from failsoft.runtime.execution.processes.pool import Workers
from failsoft.runtime.execution.processes.reply import Reply
from failsoft.runtime.execution.processes.target import target_of

PROCESS = Isolation(kind="process")


class Bench:
    """Workers with short ways to use them."""

    def __init__(self, **options: Any) -> None:
        self.workers = Workers(**options)

    def run(self, fn: Callable[..., Any], *args: Any, timeout: float | None = 20, **kwargs: Any) -> Reply:
        return self.workers.run_blocking(target_of(fn), args, kwargs, timeout=timeout)

    def run_with(self, options: Isolation, fn: Callable[..., Any], *args: Any, timeout: float | None = 20) -> Reply:
        return self.workers.run_blocking(target_of(fn), args, {}, timeout=timeout, options=options)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One set of workers for a whole file: whatever a test does to them, the next one must not notice."""
    made = Bench()
    yield made
    made.workers.close()


@pytest.fixture
def fresh() -> Iterator[Callable[..., Bench]]:
    """Workers for one test."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(**options))
        return made[-1]

    yield make
    for one in made:
        one.workers.close()


def descendants(root: int | None = None) -> set[int]:
    """The pids below a process, zombies included."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: set[int] = set()
    todo = [root or os.getpid()]
    while todo:
        parent = todo.pop()
        children = {pid for pid, above in parents.items() if above == parent} - found
        found |= children
        todo += children
    return found


def family(workers: Workers) -> set[int]:
    """The supervisor of these workers, and everything below it."""
    supervisor = workers._supervisor.pid
    return set() if supervisor is None else {supervisor} | descendants(supervisor)


def is_running(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(holds: Callable[[], Any], seconds: float = 5.0) -> bool:
    """Whether something comes true within a while."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def holdings() -> tuple[int, int]:
    """Threads and descriptors of this process."""
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


def has_grown(held: tuple[int, int]) -> bool:
    """True if this process holds more than before. It may hold less: threads of earlier tests end at any time."""
    return any(now > before for now, before in zip(holdings(), held, strict=True))
