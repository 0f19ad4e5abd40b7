"""From evidence to a verdict."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from failsoft.core.classify import words
from failsoft.core.classify.tables import types
from failsoft.core.classify.tables.errnos import ERRNO, LOOKUP
from failsoft.core.classify.tables.http import by_status


class Verdict(NamedTuple):
    """What one exception of a chain says, and how much that weighs."""

    weight: int
    kind: str
    rule: str
    status: int | None = None


STRUCTURED, STATUS, TYPE, TEXT, WEAK, NOTHING = 90, 70, 60, 50, 20, 0

_STATUS_NAMES = ("status_code", "status", "http_status", "code")
_DEPTH = 16
UNKNOWN = Verdict(NOTHING, "unknown", "unknown")


def read(subject: Any, name: str) -> Any:
    """An attribute, or None: what it does when it is read must not matter."""
    try:
        return getattr(subject, name, None)
    except Exception:  # noqa: BLE001 - a property of somebody else's class
        return None


def _status_of(error: BaseException) -> int | None:
    for holder in (error, read(error, "response")):
        if holder is None:
            continue
        for name in _STATUS_NAMES:
            value = read(holder, name)
            if type(value) is int and 300 <= value <= 599:
                return value
    return None


def _errno_of(error: BaseException) -> str | None:
    if not isinstance(error, OSError):
        return None
    number = read(error, "errno")
    if type(number) is not int:
        return None
    if type(error).__name__ in ("gaierror", "herror"):
        return LOOKUP.get(number)
    return errno.errorcode.get(number)


def _names(error: BaseException) -> list[str]:
    return [f"{str(cls.__module__).partition('.')[0]}.{cls.__name__}" for cls in type(error).__mro__[:-1]]


def judge_text(text: str) -> Verdict:
    """What a text says by itself."""
    text = words.window(text)
    status = words.find_status(text)
    phrase = words.find_phrase_in_text(text)
    if status is not None:
        return Verdict(TEXT, by_status(status) or "unknown", f"http_status: {status}", status)
    if phrase is not None:
        return Verdict(TEXT, phrase.kind, f"phrase: {phrase.name}")
    return UNKNOWN


def judge_one(error: BaseException, text: str) -> Verdict:
    """What one exception says, without those it came from."""
    name = _errno_of(error)
    if name in ERRNO:
        return Verdict(STRUCTURED, ERRNO[name], f"errno: {name}")
    status = _status_of(error)
    if status is not None:
        return Verdict(STATUS, by_status(status) or "unknown", f"http_status: {status}", status)
    names = _names(error)
    for name in names:
        if name in types.STRONG:
            return Verdict(TYPE, types.STRONG[name], f"type: {name}")
    verdict = judge_text(text)
    if verdict.weight == NOTHING:
        phrase = words.find_phrase(words.spell(type(error).__name__))
        if phrase is not None:
            return Verdict(WEAK, phrase.kind, f"name: {phrase.name}")
        for name in names:
            if name in types.WEAK:
                return Verdict(WEAK, types.WEAK[name], f"type: {name}")
    return verdict


def chain(error: BaseException) -> list[BaseException]:
    """The exception and what it was raised from, outermost first; cycles are cut."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(links) < _DEPTH and not any(link is seen for seen in links):
        links.append(link)
        cause = link.__cause__
        link = cause if cause is not None or link.__suppress_context__ else link.__context__
    return links
