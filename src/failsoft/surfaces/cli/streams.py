"""The standard streams as they are found: closed, full, cut off, or unable to show a box.

Rules
-----
- A stream that is closed swallows what is written to it. So does one whose reader has left, or whose disk is full,
  once that has been said: nothing is said again when the program ends.
- What is logged while a command runs says who says it.
- Where the encoding is not UTF-8, drawings are made of the nearest plain characters, one for one, so that columns stay
  columns; what has none is a question mark. Data (``--json``, exports) is never changed: JSON is escaped instead.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import sys
from contextlib import suppress

_NEAREST = dict(zip("█▒▓░▆╱╲┄✗†▶■◆╳○┃→…·↳’‘“”–—", "#%=.@/\\-x+>@*Xo|>~.>''\"\"--", strict=True))
_HANDLER = "failsoft.nearest"


def prepare() -> None:
    """Make both streams fit to be written to."""
    codecs.register_error(_HANDLER, _nearest)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the program's whole life
        elif isinstance(stream, io.TextIOWrapper) and not is_utf8(stream):
            stream.reconfigure(errors=_HANDLER)
    if logging.lastResort is not None:  # which writes to stderr where nobody has set up anything else
        logging.lastResort.setFormatter(logging.Formatter("%(name)s: %(message)s"))


def is_utf8(stream: object) -> bool:
    """Can everything be written to it?"""
    name = getattr(stream, "encoding", None)
    with suppress(LookupError):
        return name is None or codecs.lookup(name).name.startswith("utf-")
    return False


def give_up(*names: str) -> None:
    """Nothing more goes to these streams, and nobody complains about what is still on its way."""
    for name in names:
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, name).fileno())


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_NEAREST.get(char, "?") for char in error.object[error.start : error.end]), error.end
