"""An exception with its traceback as text that is safe to keep: sanitised, short, and cheap however much it says (T16)."""

from __future__ import annotations

import traceback
from types import TracebackType

from failsoft.core.redact import LIMIT, sanitise

_PACKAGE = __file__.removesuffix("observe/describe.py")
_LINKS = 8  # exceptions that one came from
_TEXT = 1_000  # characters of what each of them says


Captured = tuple[tuple[BaseException, TracebackType | None], ...]  # an exception and those it came from


def describe(error: BaseException) -> str:
    """Format an exception: the end of its traceback, after the exceptions that it came from."""
    return render(capture(error))


def capture(error: BaseException) -> Captured:
    """Hold on to an exception and its causes with their tracebacks, which may be stripped before they are formatted."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(links) < _LINKS and not any(link is one for one in links):
        links.append(link)
        told = link.__cause__ is not None or link.__suppress_context__  # compare with None: it may define __bool__
        link = link.__cause__ if told else link.__context__
    return tuple((link, link.__traceback__) for link in links)


def render(captured: Captured) -> str:
    """Format a captured exception."""
    lines = [line for error, frames in reversed(captured) for line in _lines(error, frames)]
    kept = len(lines)
    size = 0
    while kept and (size := size + len(lines[kept - 1])) <= LIMIT:
        kept -= 1
    return sanitise("".join(lines[kept:]))


def _lines(error: BaseException, frames: TracebackType | None) -> list[str]:
    said = sanitise(error, limit=_TEXT)
    name = type(error).__qualname__
    head = "Traceback (most recent call last):\n"
    return [head, *traceback.format_tb(_outside(frames)), f"{name}: {said}\n" if said else f"{name}\n"]


def _outside(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is not failsoft's own; all of it if there is none."""
    found = frames
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        found = found.tb_next
    return frames if found is None else found
