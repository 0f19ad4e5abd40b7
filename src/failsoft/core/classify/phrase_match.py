r"""Phrase matching: find the first row of ``tables.phrases`` that matches a text.

Rules
-----
- A row is tried if one of its keys begins a word of the text.
- A pattern is split into branches by their first letters: ``(?:no|unknown) tool|tool not found`` has branches for "no",
  "unkn" and "tool". A branch is tried if a word of the text begins with its letters.
- A branch that does not begin with letters is tried if the longest literal in it occurs in the text.
- An unbounded repeat gets a limit (``WORD``) when its branch is compiled, so that no text makes it slow.

A typical message has ten words. Looking them up selects a few short patterns, which is much faster than searching for
all patterns of the table. Patterns that are never needed are never compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from failsoft.core.classify.tables.phrases import PHRASES, Phrase
from failsoft.core.startup.lazy_pattern import lazy_pattern

WORD = 60  # maximum characters of a repeat in a phrase
_BEGINNING = lazy_pattern(r"([a-z]{2,4}+)[a-z]*+")  # of a word
_SYNTAX = lazy_pattern(
    r"\\.|\[\^?\]?(?:\\.|[^\\\]]){0,200}+\]|[()|]"
)  # of a pattern: escapes and classes are passed over
_START = lazy_pattern(r"[a-z]{3,4}(?![?*+{])|[a-z]{2}(?=(?:[ ':=/-]|\[ -\])(?![?*+{]))")
_NOT_PLAIN = lazy_pattern(r"\\.|\[\^?\]?(?:\\.|[^\\\]]){0,200}+\]")
_GROUP = lazy_pattern(r"\([^()]*\)|.\{[\d,]*\}")
_PIECE = lazy_pattern(r"[a-z0-9' ]+(?![?*+{])")
_REPEAT = lazy_pattern(
    r"(\\.|\[\^?\]?(?:\\.|[^\\\]]){0,200}+\]|[?}][?+]?)|([*+])([?+]?)"
)  # without a limit, and what only looks like one
_ASSERTED = lazy_pattern(r"\\b|\^|\(\?<?[!=](?:\\.|[^\\()])*\)")


@lru_cache(maxsize=64)
def _by_key(kinds: frozenset[str] | None, firm: bool) -> dict[str, list[int]]:
    """Return the wanted rows of the phrase table, by key."""
    found: dict[str, list[int]] = {}
    for index, phrase in enumerate(PHRASES):
        if (phrase.firm or not firm) and (kinds is None or phrase.kind in kinds):
            for key in phrase.keys.split():
                found.setdefault(key, []).append(index)
    return found


class _Row:
    """The pattern of one phrase, split into branches."""

    __slots__ = ("_branches", "_patterns", "_pieces", "starts")

    def __init__(self, pattern: str) -> None:
        self._branches: dict[str, list[str]] = {}
        for branch in _split(pattern):
            for start, rest in _begin(branch):
                self._branches.setdefault(start, []).append(rest)
        self.starts = frozenset(self._branches)
        self._pieces = [_longest_piece(branch) for branch in self._branches.get("", ())]
        self._patterns: dict[str, re.Pattern[str]] = {}  # compiled on first use

    def fits(self, text: str, starts: set[str]) -> bool:
        for start in self.starts & starts:
            if not start and not any(piece in text for piece in self._pieces):
                continue
            pattern = self._patterns.get(start)
            if pattern is None:
                pattern = self._patterns[start] = re.compile(self.pattern(start))
            if pattern.search(text):
                return True
        return False

    def pattern(self, start: str) -> str:
        """Return the branches that begin with these letters, as one pattern that runs in linear time."""
        return f"{start}(?:{'|'.join(map(_limit, self._branches[start]))})"


_ROWS: list[_Row | None] = [None] * len(PHRASES)  # built on first use


def find_phrase(
    spelled: str, kinds: frozenset[str] | None = None, *, firm: bool = False, rather_firm: bool = False
) -> Phrase | None:
    """Return the first matching phrase. ``kinds`` and ``firm`` restrict the search, or only set a preference."""
    starts = set(_BEGINNING.findall(spelled))
    by_key = _by_key(kinds, firm)
    rows = {row for start in starts if start in by_key for row in by_key[start]}
    if not rows:
        return None
    starts.update([start[:3] for start in starts])
    starts.add("")
    second: Phrase | None = None
    for index in sorted(rows):
        phrase = PHRASES[index]
        if second and not phrase.firm:
            continue
        row = _ROWS[index]
        if row is None:
            row = _ROWS[index] = _Row(phrase.pattern)
        if row.fits(spelled, starts):
            if phrase.firm or not rather_firm:
                return phrase
            second = phrase
    return second


def _split(pattern: str) -> list[str]:
    """Split a pattern at each ``|`` that is outside all groups."""
    depth, ends = 0, [-1]
    for found in _SYNTAX.finditer(pattern):
        sign = found[0]
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            ends.append(found.start())
    return [pattern[end + 1 : after] for end, after in zip(ends, [*ends[1:], None], strict=True)]


def _limit(branch: str) -> str:
    """Add a limit to every unbounded repeat."""
    return _REPEAT.sub(lambda found: found[1] or f"{{{int(found[2] == '+')},{WORD}}}{found[3]}", branch)


def _begin(branch: str, before: str = r"\b") -> Iterator[tuple[str, str]]:
    """Yield the beginnings of a branch: its first letters, and the pattern that follows them."""
    while asserted := _ASSERTED.match(branch):
        before, branch = before + asserted[0], branch[asserted.end() :]
    branch = branch.removeprefix(" ?")  # a word begins after a blank too
    if branch.startswith("(?:"):
        end = _end_of_group(branch)
        inside, tail = branch[3:end], branch[end + 1 :]
        options = _split(inside)
        if tail[:1] == "?":
            options, tail = [*options, ""], tail[1:]
        elif tail[:1] == "+":
            tail = f"(?:{inside})*{tail[1:]}"
        if tail[:1] not in ("?", "*", "+", "{"):
            for option in options:
                yield from _begin(option + tail, before)
            return
    found = _START.match(branch)
    if found is None:
        yield "", before + branch
    else:
        yield found[0], f"(?<={before}{found[0]}){branch[found.end() :]}"


def _longest_piece(branch: str) -> str:
    """Return the longest literal that every match of a branch contains."""
    plain, last = _NOT_PLAIN.sub("|", branch), ""
    while plain != last:
        plain, last = _GROUP.sub("|", plain), plain  # drop groups from the innermost outwards, and repeats
    return max(_PIECE.findall(plain), key=len, default="")


def _end_of_group(branch: str) -> int:
    depth = 0
    for found in _SYNTAX.finditer(branch):
        depth += (found[0] == "(") - (found[0] == ")")
        if not depth and found[0] == ")":
            return found.start()
    return len(branch)
