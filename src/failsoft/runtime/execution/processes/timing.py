"""The time of an attempt in a process: its limits, and what is called when it begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from failsoft.runtime.progress import Activity


def ignore() -> None:
    """Do nothing: the caller does not need to know when the attempt begins."""


class Timing(NamedTuple):
    """The time of one attempt."""

    timeout: float | None  # seconds from its beginning until the process is ended; None: no limit
    begun: Callable[[], None] = ignore  # called when the tool's time begins
    activity: Activity | None = None  # its progress, if it has an idle timeout or a caller that watches it
