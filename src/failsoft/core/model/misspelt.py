"""Misspelt names: find the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from failsoft.core.startup.lazy_pattern import lazy_pattern

_CLOSE = 0.8  # "mode" is not "code"
_SIGNS = lazy_pattern(r"[\W_]+")
_DIGITS = lazy_pattern(r"\d+")
_PARTS = lazy_pattern("[_-]")
_LONGEST = 100  # characters that are compared


def find_meant(written: str, known: Iterable[str]) -> str | None:
    """Return the known name that a name is a misspelling of, or None. ``search_v1`` is not a misspelt ``search_v2``."""
    from difflib import SequenceMatcher  # imported only after a mistake

    own = _plain(written)
    best, found = 0.0, None
    for name in known:
        other = _plain(name)
        if own == other:
            return name
        if _DIGITS.sub("", own) == _DIGITS.sub("", other):
            continue
        close = SequenceMatcher(None, own, other).ratio()
        if close >= _CLOSE and close > best:
            best, found = close, name
    return found


def _plain(name: str) -> str:
    return _SIGNS.sub("", name[:_LONGEST]).lower()


def did_you_mean(name: str, known: Iterable[str], *, before: str = "") -> str:
    """Complete a sentence about an unknown name: list similar names, and names that contain it as a word."""
    from difflib import get_close_matches  # imported only after a mistake

    known = list(known)
    near = get_close_matches(name, known, n=3, cutoff=0.75) or [one for one in known if name in _PARTS.split(one)][:3]
    return f"; did you mean {' or '.join(before + one for one in near)}?" if near else ""
