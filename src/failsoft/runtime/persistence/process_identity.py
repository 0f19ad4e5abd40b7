"""Identify the process that began a write, and find out whether the write may still run there.

Rules
-----
- A process is named by machine, process id and start, so that another one with the same id is not mistaken for it.
- On the same machine the process is looked up. On another machine, the write may run until its tool's timeout has passed.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

STILL_RUNS = "the process that began it still runs"
ELSEWHERE = "it may still run on another machine"
HERE = "an attempt of this process may still run"
NO_RECORD = "the same call has just begun"


_OVER = ("resolved", "abandoned", "acted", "ended")  # marks in the record of a write that does not run any more


def own_process() -> str:
    """Return the name of this process."""
    return _name(os.getpid())


@lru_cache(4)  # a forked child has another id
def _name(pid: int) -> str:
    return f"{_machine()}/{pid}/{_start_of(pid)}"


@lru_cache(1)
def _machine() -> str:
    """Name the machine, and the container if there is one: process ids mean nothing outside."""
    parts = [platform.node()]
    for file in ("/proc/sys/kernel/random/boot_id",):
        try:
            parts.append(Path(file).read_text().strip())
        except OSError:
            parts.append("")
    try:
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append("")
    return "|".join(parts).replace("/", "_")


def _start_of(pid: int) -> str:
    """Return when a process started, in the system's own unit; empty if that cannot be found out."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def runs_in_process(record: Mapping[str, Any]) -> int | None:
    """Return the id of another process of this machine in which a write runs; None if none is known to run it."""
    machine, _, process = str(record.get("process", "")).partition("/")
    pid, _, start = process.partition("/")
    if machine != _machine() or not pid.isdecimal() or int(pid) == os.getpid() or any(mark in record for mark in _OVER):
        return None
    return int(pid) if _is_alive(int(pid), start) else None


def _is_alive(pid: int, start: str) -> bool:
    if start and _start_of(pid):
        return _start_of(pid) == start and not _is_zombie(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def may_still_run(record: Mapping[str, Any], run: str, now: float, longest: float) -> str | None:
    """Return why a write that was begun before may still run; None if it cannot.

    ``run`` names this runtime, ``now`` is the wall clock, ``longest`` the seconds that a call of the tool can take.
    """
    if not record:
        return NO_RECORD
    if "resolved" in record:
        return None
    if record.get("run") == run:
        return HERE
    machine, _, process = str(record.get("process", "")).partition("/")
    pid, _, start = process.partition("/")
    if machine == _machine() and pid.isdecimal():
        return STILL_RUNS if _is_alive(int(pid), start) else None
    at = record.get("at")
    over = isinstance(at, int | float) and now > at + longest
    return None if over else ELSEWHERE
