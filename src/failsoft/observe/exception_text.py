"""Format an exception with its traceback: sanitised, short, and cheap for any exception."""

from __future__ import annotations

import traceback
from collections import deque
from types import CodeType, TracebackType

from failsoft.core.redact.sanitise import LIMIT, sanitise

_PACKAGE = __file__.removesuffix("observe/exception_text.py")
_LINKS = 8  # most exceptions in a chain
_TEXT = 1_000  # characters of each exception's text
_CONTINUED = "\n  "  # further lines of an exception's text are indented, so that none looks like a record of its own
_FRAMES = 100  # last frames of each traceback

Frames = tuple[tuple[CodeType, int], ...]  # code and line
Captured = tuple[tuple[BaseException, Frames], ...]  # an exception and its causes


def exception_text(error: BaseException) -> str:
    """Format an exception: its causes, then the end of its traceback."""
    return render(capture(error))


def capture(error: BaseException) -> Captured:
    """Keep an exception and its causes with their traceback positions, without the frames' variables."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(links) < _LINKS and not any(link is one for one in links):
        links.append(link)
        has_cause = link.__cause__ is not None or link.__suppress_context__  # compare with None: it may define __bool__
        link = link.__cause__ if has_cause else link.__context__
    return tuple((link, _places(link.__traceback__)) for link in links)


def render(captured: Captured) -> str:
    """Format a captured exception."""
    lines = [line for error, frames in reversed(captured) for line in _lines(error, frames)]
    kept = len(lines)
    size = 0
    while kept and (size := size + len(lines[kept - 1])) <= LIMIT:
        kept -= 1
    return sanitise("".join(lines[kept:]))


def _lines(error: BaseException, frames: Frames) -> list[str]:
    message = sanitise(error, limit=_TEXT).replace("\n", _CONTINUED)
    name = type(error).__qualname__
    head = "Traceback (most recent call last):\n"
    shown = traceback.StackSummary.from_list([(code.co_filename, line, code.co_name, None) for code, line in frames])
    return [head, *shown.format(), f"{name}: {message}\n" if message else f"{name}\n"]


def _places(trace: TracebackType | None) -> Frames:
    """The end of a traceback, without failsoft's own frames at its start unless there are no others."""
    found: deque[tuple[CodeType, int]] = deque(maxlen=_FRAMES)
    outside = False
    while trace is not None:
        code = trace.tb_frame.f_code
        if not outside and not code.co_filename.startswith(_PACKAGE):
            found.clear()
            outside = True
        found.append((code, trace.tb_lineno))
        trace = trace.tb_next
    return tuple(found)
