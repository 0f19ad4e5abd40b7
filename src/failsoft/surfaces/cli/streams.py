"""Make the standard streams usable: closed, full, cut off, or with a limited encoding.

Rules
-----
- A closed stream discards output. So does a stream whose reader has gone or whose disk is full, after that was reported
  once.
- Log lines printed during a command name their logger.
- If the encoding is not UTF-8, drawings use the nearest plain characters, one for one, so that columns stay aligned;
  other characters become question marks. Data (``--json``, exports) is never changed: JSON is escaped instead.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import sys
from contextlib import suppress

_NEAREST = dict(zip("█▒▓░▆╱╲┄≈✗†▶■◆╳○┃→…·↳’‘“”–—", "#%=.@/\\-~x+>@*Xo|>~.>''\"\"--", strict=True))
_HANDLER = "failsoft.nearest"


def prepare() -> None:
    """Make both streams writable."""
    codecs.register_error(_HANDLER, _nearest)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - never closed
        elif isinstance(stream, io.TextIOWrapper) and not is_utf8(stream):
            stream.reconfigure(errors=_HANDLER)
    if logging.lastResort is not None:  # the handler used if logging is not configured
        logging.lastResort.setFormatter(logging.Formatter("%(name)s: %(message)s"))


def is_utf8(stream: object) -> bool:
    """True if the stream can encode every character."""
    name = getattr(stream, "encoding", None)
    with suppress(LookupError):
        return name is None or codecs.lookup(name).name.startswith("utf-")
    return False


def give_up(*names: str) -> None:
    """Send further output of these streams to /dev/null, without errors for buffered text."""
    for name in names:
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, name).fileno())


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_NEAREST.get(char, "?") for char in error.object[error.start : error.end]), error.end
