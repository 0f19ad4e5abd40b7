"""Functions for worker processes, which must be able to import them."""

from __future__ import annotations

import os
import time
from pathlib import Path


def echo() -> str:
    return "flights"


def sleep_3() -> str:
    time.sleep(3)
    return "flights"


def sleep_60() -> str:
    time.sleep(60)
    return "flights"


def crash() -> str:
    os._exit(1)


def descendants() -> int:
    """Count the descendants of this process."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if after[0] != "Z":
            parents[int(stat.parent.name)] = int(after[1])
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return len(ours) - 1
