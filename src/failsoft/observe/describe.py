"""An exception with its traceback as text that is safe to keep: sanitised, short, and cheap however much it says (T16)."""

from __future__ import annotations

import traceback

from failsoft.core.redact import LIMIT, sanitise

_LINKS = 8  # exceptions that one came from
_TEXT = 1_000  # characters of what each of them says


def describe(error: BaseException) -> str:
    """The end of the traceback, where the fault is, and the exceptions that it came from before it."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(links) < _LINKS and not any(link is one for one in links):
        links.append(link)
        told = link.__cause__ is not None or link.__suppress_context__  # one may be false
        link = link.__cause__ if told else link.__context__
    lines = [line for one in reversed(links) for line in _lines(one)]
    kept = len(lines)
    size = 0
    while kept and (size := size + len(lines[kept - 1])) <= LIMIT:
        kept -= 1
    return sanitise("".join(lines[kept:]))


def _lines(error: BaseException) -> list[str]:
    said = sanitise(error, limit=_TEXT)
    name = type(error).__qualname__
    head = "Traceback (most recent call last):\n"
    return [head, *traceback.format_tb(error.__traceback__), f"{name}: {said}\n" if said else f"{name}\n"]
