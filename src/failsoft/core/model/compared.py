"""Warn about comparisons that are never true: ``code == 503``, ``health.state == "OPEN"``, ``status == "success"``.

Such a comparison is logged once, if the other value is not a text or is a misspelling. Any other text is ignored, because
programs compare with words of several libraries. Only for a ``closed`` text any other word is a mistake, and is logged.

Only values that users get are ``Shown``. failsoft itself compares plain texts, which costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from failsoft.core.model.misspelt import find_meant
from failsoft.core.startup.lazy_pattern import lazy_pattern

on_misuse: list[Callable[[str, str], object]] = []  # the runtime logs it
_equal = str.__eq__
_NONE: Mapping[str, str] = MappingProxyType({})
_WORD = lazy_pattern(r"[\w .-]{1,40}")


class Shown(str):
    """A text from a small set, as users see it. A comparison with a misspelling is logged."""

    __slots__ = ()

    name: ClassVar[str]  # how users read it
    known: ClassVar[tuple[str, ...]]
    synonyms: ClassVar[Mapping[str, str]] = _NONE  # other words, in lower case, for the known texts
    closed: ClassVar[bool] = False  # whether any other word is a mistake

    @classmethod
    def every(cls) -> dict[str, Any]:
        """Return the known texts as users see them, by the plain text."""
        return {text: cls(text) for text in cls.known}

    def __eq__(self, other: object) -> bool:
        equal = _equal(self, other)
        if equal is not True:
            doubt_comparison(self.name, other, self.known, synonyms=self.synonyms, closed=self.closed)
        return equal

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a plain text."""
        return str, (str(self),)


def doubt_comparison(
    name: str,
    other: Any,
    known: tuple[str, ...],
    *,
    number: str = "",
    synonyms: Mapping[str, str] = _NONE,
    closed: bool = False,
) -> None:
    """Report a comparison that is never true. ``number`` says what to compare with a number instead."""
    if type(other) is int and number:
        report_misuse(name, f"== {other} is never true: write {number} == {other}")
    elif type(other) is bool:
        report_misuse(name, f"== {other} is never true: compare with a text, like {known[0]!r}")
    elif type(other) is str and other not in known:
        meant = synonyms.get(other.strip().lower()) or _find(other, known)
        if meant:
            report_misuse(name, f'== "{other}" is never true; did you mean "{meant}"?')
        elif closed and _WORD.fullmatch(other):
            report_misuse(name, f'== "{other}" is never true: it is {_either(known)}')


def _either(known: Iterable[str]) -> str:
    *others, last = [f'"{text}"' for text in known]
    return f"{', '.join(others)} or {last}"


@lru_cache(256)
def _find(other: str, known: tuple[str, ...]) -> str | None:
    return find_meant(other, known)


def report_misuse(name: str, mistake: str) -> None:
    """Log a mistake, once."""
    for report in on_misuse:
        report(name, mistake)
