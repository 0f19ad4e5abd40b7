"""Blocking tools for S9, importable by worker processes. Each touches the given file, unless it is stopped."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

HOLD = 2.5  # seconds


def noop(arg: Any) -> Any:
    return arg


def spin(arg: str) -> None:
    """Loop in Python."""
    end = time.monotonic() + HOLD
    while time.monotonic() < end:
        pass
    Path(arg).touch()


def sleep(arg: str) -> None:
    """Block in C without the GIL, like a socket's read."""
    time.sleep(HOLD)
    Path(arg).touch()


def hog(arg: str) -> None:
    """Block in C with the GIL."""
    end = time.monotonic() + HOLD
    while time.monotonic() < end:
        sum(range(60_000_000))
    Path(arg).touch()
