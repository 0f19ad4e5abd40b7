"""How often: the full count of each pass mark with ``FAILSOFT_TORTURE=full``, a part of the long ones otherwise."""

from __future__ import annotations

import os

FULL = os.environ.get("FAILSOFT_TORTURE") == "full"


def times(full: int, part: int) -> int:
    """The count that a long test runs with."""
    return full if FULL else part
