"""Warn about comparisons that are never true: ``code == 503``, ``health.state == "OPEN"``.

Such a comparison is logged once if the other value is a misspelling or not a text. Any other text is ignored: it may
come from a list of words for several libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from failsoft.core.model.misspelt import find_meant

on_misuse: list[Callable[[str, str], object]] = []  # the runtime logs it


def doubt_comparison(name: str, other: Any, known: tuple[str, ...], number: str = "") -> None:
    """Report a comparison that is never true. ``number`` says what to compare with a number instead."""
    if type(other) is int and number:
        _report(name, f"== {other} is never true: write {number} == {other}")
    elif type(other) is str and other not in known and (meant := _find(other, known)):
        _report(name, f'== "{other}" is never true; did you mean "{meant}"?')


@lru_cache(256)
def _find(other: str, known: tuple[str, ...]) -> str | None:
    return find_meant(other, known)


def _report(name: str, mistake: str) -> None:
    for report in on_misuse:
        report(name, mistake)
