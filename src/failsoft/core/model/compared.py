"""Warn about comparisons that are never true: ``code == 503``, ``health.state == "OPEN"``, ``status == "success"``.

Such a comparison is logged once, if the other value is not a text or is a misspelling. Any other text is ignored:
programs compare with words of several libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from failsoft.core.model.misspelt import find_meant

on_misuse: list[Callable[[str, str], object]] = []  # the runtime logs it
_equal = str.__eq__
_NONE: Mapping[str, str] = MappingProxyType({})


class Shown(str):
    """A text of which there are few, as users see it. A comparison with a misspelt one is logged."""

    __slots__ = ()

    name: ClassVar[str]  # how users read it
    known: ClassVar[tuple[str, ...]]
    synonyms: ClassVar[Mapping[str, str]] = _NONE  # other words, in lower case, for the known texts

    def __eq__(self, other: object) -> bool:
        equal = _equal(self, other)
        if equal is not True:
            doubt_comparison(self.name, other, self.known, synonyms=self.synonyms)
        return equal

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a plain text."""
        return str, (str(self),)


def doubt_comparison(
    name: str, other: Any, known: tuple[str, ...], number: str = "", synonyms: Mapping[str, str] = _NONE
) -> None:
    """Report a comparison that is never true. ``number`` says what to compare with a number instead."""
    if type(other) is int and number:
        report_misuse(name, f"== {other} is never true: write {number} == {other}")
    elif type(other) is bool:
        report_misuse(name, f"== {other} is never true: compare with a text, like {known[0]!r}")
    elif (
        type(other) is str
        and other not in known
        and (meant := synonyms.get(other.strip().lower()) or _find(other, known))
    ):
        report_misuse(name, f'== "{other}" is never true; did you mean "{meant}"?')


@lru_cache(256)
def _find(other: str, known: tuple[str, ...]) -> str | None:
    return find_meant(other, known)


def report_misuse(name: str, mistake: str) -> None:
    """Have a mistake logged, once."""
    for report in on_misuse:
        report(name, mistake)
