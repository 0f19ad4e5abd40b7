"""Reading text: spell names out as words, find a status, find the first phrase that fits.

Rules
-----
- A status counts only on word boundaries and where a status is written ("(503)", "HTTP 503", "503 Service ..."), never
  inside another word or number: "Request 503abc" has none.
- What stands in quotation marks is data first: phrases are sought outside them, and inside only when that finds nothing.
- At most ``LENGTH`` characters are read: the beginning and the end, where errors say what they are.

Why keys before patterns: a typical message has ten words; looking them up leaves two or three patterns to try out of
a hundred, and patterns that nobody needs are never compiled.
"""

from __future__ import annotations

import re
from functools import lru_cache

from failsoft.core.classify.tables.http import by_status
from failsoft.core.classify.tables.phrases import PHRASES, Phrase

LENGTH = 2000
_TAIL = 600

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")
_WORD = re.compile(r"[a-z]{3,}")
_QUOTED = re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`")
_STATUS = re.compile(
    r"\b(?:http(?:/[\d.]+)?|status(?:[ _]?code)?|error(?: code)?|code|returned|response)[\s:=\"'(\[]{1,4}([1-5]\d\d)\b(?![\w.]*\d)"
    r"|[(\[]([1-5]\d\d)[)\]]"
    r"|(?:^|[\s:'\"])([1-5]\d\d)[:,]? (?:client error|server error|[A-Z][a-z]+(?: [A-Z][a-z]+)*\b)",
    re.IGNORECASE,
)

_BY_KEY: dict[str, list[int]] = {}
for _index, _phrase in enumerate(PHRASES):
    for _key in _phrase.keys.split():
        _BY_KEY.setdefault(_key, []).append(_index)


def spell(text: str) -> str:
    """Names as words: ``RateLimitError`` and ``rate_limit_error`` both become "rate limit error"."""
    return _HUMP.sub(" ", text).lower()


def window(text: str) -> str:
    """The part of a long text that is read."""
    return text if len(text) <= LENGTH else text[: LENGTH - _TAIL] + "\n" + text[-_TAIL:]


def find_status(text: str) -> int | None:
    """An HTTP error status that the text states."""
    for match in _STATUS.finditer(text):
        status = int(match[match.lastindex or 1])
        if status >= 300 and by_status(status):
            return status
    return None


@lru_cache(maxsize=len(PHRASES))
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def find_phrase(spelled: str) -> Phrase | None:
    """The first phrase of the table that fits."""
    rows: set[int] = set()
    for word in _WORD.findall(spelled):
        found = _BY_KEY.get(word[:4])
        if found:
            rows.update(found)
    for index in sorted(rows):
        if _compiled(PHRASES[index].pattern).search(spelled):
            return PHRASES[index]
    return None


def find_phrase_in_text(text: str) -> Phrase | None:
    """As ``find_phrase``; what is quoted counts only when the rest says nothing."""
    bare = _QUOTED.sub("''", text)
    return find_phrase(spell(bare)) or (find_phrase(spell(text)) if bare != text else None)
