"""Reading text: find codes, statuses and the first matching phrase.

Rules
-----
- A status counts only on word boundaries and in the form of a status ("(503)", "HTTP 503", "503 Service Unavailable"),
  never inside another word or number: "Request 503abc" has none.
- Quoted text is data. Phrases are searched outside quotation marks first, and inside only if that finds nothing. A delay
  or a missing tool is never read inside quotation marks: a user's text must not hold back a tool. Addresses, paths and
  statements echoed by a database are not read at all.
- In a traceback only the lines that name exceptions are read.
- At most ``LENGTH`` characters are read: the start and the end, where errors state their cause.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from failsoft.core.classify.cache import compiled
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.phrase_match import find_phrase
from failsoft.core.classify.tables.errnos import ERRNO
from failsoft.core.classify.tables.http import REASONS, STATUS
from failsoft.core.classify.tables.phrases import Phrase
from failsoft.core.classify.tables.providers import PROVIDERS
from failsoft.core.classify.tables.text_patterns import TEXT_PATTERNS
from failsoft.core.startup.lazy_pattern import lazy_pattern

LENGTH = 1600
_TAIL = 500
_HUGE = 8192
_GLANCE = 700  # characters read of longer texts: they are not messages, and reading must stay cheap
_CODES = 6  # per code space and text
_NAME_LENGTH = 100
_PREFIX = 40

# Patterns begin with a rare character and check what precedes it with a lookbehind. This is ten times as fast as a
# pattern that begins with a word boundary.
_HUMP = lazy_pattern(r"[A-Z](?:(?<=[a-z].)|(?<=[A-Z0-9].)(?=[a-z]))")
_QUOTATION = r"\"[^\"]*\"|`[^`]*`|“[^“”]*”|«[^«»]*»|‘[^‘’]*’|(?<!\w)'[^'\n]*'(?!\w)"
_NOISE = (
    # text that must occur, pattern
    ("://", r"[a-z](?<=\b.)[a-z0-9+.-]{1,20}+://[^\s'\")\]>]*"),  # addresses
    (
        "/",
        r"/(?<![\w<].)(?!bin/\w{2,4}: )[\w.@%+-]+(?:/[\w.@%+-]+)+/?",
    ),  # paths, except a shell's name before its message
    ("\n[", r"\n\[(?:SQL|parameters): [^\n]*"),  # SQLAlchemy
    ("(Background", r"\(Background on this error at:[^\n]*"),
    (" information", r"For (?:more|further) information[^\n]*"),  # httpx, pydantic
    ("(configured", r"\(configured [^()\n]*\)"),  # PyMongo's settings
)
# gRPC: the call's own message, inside the library's text
_DETAILS = 'details = "'
_AFTER_DETAILS = r"\"\s+debug_error_string"
# prefixes with which MCP servers and frameworks announce a tool's error
_WRAPPED = (
    r"(?i)^\W{0,3}(?:tool ?)?(?:error|exception|failure|failed)?[: ]{0,2}(?:while |when )?(?:executing|calling|running|invoking|in)"
    r" (?:the )?tool\W{1,3}[\w.-]{1,80}\W{0,2}: "
)
_TRACE = r"Traceback \(most recent call last\)|\n(?:[^\S\n]+|[^\S\n]*\n)(?:at [\w.$<]|File \")"
_FRAME = (
    r"(?m)^[ \t]+File \".*\n(?:    .*\n)*"  # Python
    r"|^[ \t]+(?:at |\.\.\. \d+ more).*\n?"  # Java, JavaScript, .NET
    r"|^(?:Traceback \(most recent call last\):|During handling of .*|The above exception .*)$\n?"
)
# an exception's repr: its name, and its text in quotation marks, which do not make it a quotation
_REPR = r"^(?:\w+\.)*([A-Z]\w*)\((b?)(['\"])([\s\S]+)\3(?=, |\)\Z)"
# the text of an exception with several arguments is the repr of a tuple; the first is the message
_ARGUMENTS = r"^\((['\"])([\s\S]+?)\1, ([\s\S]+)\)\Z"
_ANGLED = r"<([A-Z]\w*)[^'\"<>]{0,20}: (['\"])([\s\S]+)\2>\Z"
_CAPITAL = lazy_pattern(r"[A-Z](?<!\w.)\w{2,60}")
_PATH = r"(?<!\w)(?<!\w\.)(?:[^\Wa-z_]++\.)*+[^\Wa-z_]*+([a-z_]\w*+)(?:\.\w++)*+\.$"
_DIGITS = lazy_pattern(r"[3-5](?<!\d.)\d\d(?!\d)")
_WRITTEN = frozenset(map(str, STATUS))
_AFTER = r"[\"']?[\s:=\"'(\[-]{1,3}"
_STATUS = (
    rf"(?i)\bhttp(?:/[\d.]+)?(?: error| status| response)?(?: code)?{_AFTER}([3-5]\d\d)\b"
    rf"|(?:\b|\bhttp_)status(?:[ _-]?code)?(?: of| was| is)?{_AFTER}([3-5]\d\d)\b"
    rf"|\b(?:error|code|errors?[ _]code|returned|received|got|(?:answered|replied|responded)(?: with)?|response(?: code)?|failed(?: with)?){_AFTER}"
    r"([45]\d\d)\b(?![.:]?\d)"
    r"|[(\[]([45]\d\d)[)\]]"
    r"|\b([3-5]\d\d) (?:client error|server error|redirect)"
    r"|\btoo many ([45]\d\d) error responses|<(?:title|h1)>\s*([45]\d\d)\b"
    r"|^(?:\[[\w.-]{1,60}\] |\W{0,2})([45]\d\d)(?=\s*[:,{-]|[.!]?\s*$| for\b| error\b| (?:GET|POST|PUT|PATCH|DELETE)\b|(?-i: [A-Z][a-z]))|(?:error|exception)(?:\(|: )([45]\d\d)\b(?![.:]?\d)|: ([45]\d\d) \{|httperror ([45]\d\d)\b"
    r"|\b(?=([3-5]\d\d) [a-z])(?:" + "|".join(f"{status} {words}" for status, words in REASONS.items()) + ")"
)

# at the end of the text, unless the word before it names a counted thing
_LAST = (
    r":"
    + "".join(f"(?<!{word}:)" for word in "column count id length limit line max min offset page port row size".split())
    + r" ([45]\d\d)\W?$"
)

_CONNECTING = (
    r"c(?<=\b.)onnect e(?!rror or disc)[a-z]{4,}|s(?<=\b.)yscall\W{1,4}connect\b|\(connect[,)]|tcp connect|dial tcp"
    r"|connect (?:error(?! or disc)|exception|timeout)|connection to [^\n]{1,60} failed|handshak|k(?<=\b.)ex |key exchange"
    r"|ssh banner|protocol banner|"
    + "|".join(
        f"{word} (?:open|establish|connect)"
        for word in ("while", "when", "error", "trying to", "during", "failed to", "could not")
    )
)

_PATTERNS = [
    (each.hint, re.sub(r"^\\b(\(?(?:\[\w+\]|\w))(?![?*+{])", r"\1(?<=\\b.)", each.pattern), each.space)
    for each in TEXT_PATTERNS
]


class Reading:
    """A text and the evidence in it. Its words are computed once, on demand."""

    __slots__ = ("_bare", "_full", "text")

    def __init__(self, text: str) -> None:
        if "tool" in text[:_PREFIX]:
            text = compiled(_WRAPPED).sub("", text, count=1)
        if len(text) > LENGTH:
            read, tail = (LENGTH, _TAIL) if len(text) <= _HUGE else (_GLANCE, _GLANCE // 2)
            joint = "\n" if "\n" in text[:LENGTH] else " "
            text = f"{text[: read - tail]}{joint}{text[-tail:]}"
        if "\n" in text and compiled(_TRACE).search(text):
            text = compiled(_FRAME).sub("", text)
        if text[-1:] == ")" and (written := compiled(_REPR).match(text)):
            text = f"{written[1]}: {written[4]}"
        elif text[-1:] == ")" and text[:2] in ("('", '("') and (written := compiled(_ARGUMENTS).match(text)):
            text = f"{written[2]}, {written[3]}"
        elif text[:1] == "<" and text[-1:] == ">" and (written := compiled(_ANGLED).match(text)):
            text = f"{written[1]}: {written[3]}"
        self.text = text
        self._full: str | None = None
        self._bare: str | None = None

    @property
    def full(self) -> str:
        """The words, with names spelled out, without addresses, paths and the like."""
        if self._full is None:
            text = self.text
            if "debug_error_string" in text and (told := text.find(_DETAILS)) >= 0:
                told += len(_DETAILS)
                end = compiled(_AFTER_DETAILS).search(text, told)
                text = text[told : end.start()] if end else text
            if "/" in text or "[SQL: " in text or "(con" in text:
                noise = "|".join([pattern for hint, pattern in _NOISE if hint in text])
                text = compiled(noise).sub(" ", text) if noise else text
            self._full = spell(text).rstrip(" :\n")
        return self._full

    @property
    def bare(self) -> str:
        """Like ``full``, without quoted text."""
        if self._bare is None:
            bare = unquoted(self.full)
            self._bare = self.full if bare == self.full else bare
        return self._bare

    @property
    def status(self) -> int | None:
        """The HTTP error status that the text states."""
        if _WRITTEN.isdisjoint(_DIGITS.findall(self.text)):
            return None  # similar numbers: a port, an FTP reply, a database's error code
        for text in dict.fromkeys([unquoted(self.text), self.text]):
            for match in compiled(_STATUS).finditer(text):
                status = int(match[match.lastindex or 0])
                if status in STATUS:
                    return status
        return None

    @property
    def last(self) -> int | None:
        """An unmarked status at the end of the text."""
        if _WRITTEN.isdisjoint(_DIGITS.findall(self.text[-_PREFIX:])):
            return None
        match = compiled(_LAST).search(self.text[-_PREFIX:])
        return int(match[1]) if match and int(match[1]) in STATUS else None

    @property
    def codes(self) -> list[tuple[str, str]]:
        """The codes that the text states, each with its space."""
        text = self.text
        low = text.lower()
        found: list[tuple[str, str]] = []
        for hint, pattern, space in _PATTERNS:
            if hint not in low:
                continue
            compiled_pattern = compiled(pattern)
            if pattern[0] != "^":
                found += [
                    (space, match[match.lastindex or 0]) for match in islice(compiled_pattern.finditer(text), _CODES)
                ]
            elif match := compiled_pattern.match(text):
                found.append((space, match[match.lastindex or 0]))
        return found + _name_codes(text)

    @property
    def connecting(self) -> bool:
        """True if the text says that connecting failed."""
        return compiled(_CONNECTING).search(self.full) is not None

    def phrase(self, *, firm: bool = False) -> Phrase | None:
        """Return the first matching phrase, preferring firm ones; only firm ones with ``firm``. Quotations come last."""
        found = find_phrase(self.bare, firm=firm, rather_firm=True)
        if found is None and self.full is not self.bare:
            found = find_phrase(self.full, firm=firm)
            if found is not None and KINDS[found.kind].category == "tool_unavailable":
                return None
        return found


def unquoted(text: str) -> str:
    """Return the text without quotations of any length."""
    if text.isascii() and "'" not in text and '"' not in text and "`" not in text:
        return text
    return compiled(_QUOTATION).sub("''", text)


def spell(text: str) -> str:
    """Write names as words: ``RateLimitError`` and ``rate_limit_error`` both become "rate limit error"."""
    return _HUMP.sub(_set_apart, text).replace("_", " ").replace("’", "'").lower()


def _set_apart(capital: re.Match[str]) -> str:
    return f" {capital[0]}"


def _name_codes(text: str) -> list[tuple[str, str]]:
    """Return names in capitals (C, Node.js, libuv, SQLite) and names of exceptions (Python, JavaScript, Java, .NET)."""
    found: list[tuple[str, str]] = []
    for match in _CAPITAL.finditer(text):
        name = match[0]
        if name in ERRNO:
            found.insert(0 if name == "EACCES" else len(found), ("errno", name))  # EACCES is the cause of the others
        elif name.startswith("SQLITE_"):
            found.append(("sqlite", name))
        elif text[(start := match.start()) - 1 : start] == ".":
            path = compiled(_PATH).search(text, max(text.rfind(" ", 0, start), start - _NAME_LENGTH, 0), start)
            if path or name.endswith(("Error", "Exception")):
                found.append(("type", f"{path[1]}.{name}") if path else ("name", name))
        elif name.endswith(("Error", "Exception")) and text[match.end() : match.end() + 1] in ("", ":", "(", "\n"):
            found.append(("name", name))
        elif text[match.end() : match.end() + 2] == ": " and name.lower() in PROVIDERS:
            found.append(("provider", name))
    return found


@lru_cache(maxsize=512)
def phrase_of_name(name: str) -> Phrase | None:
    """Read a class name or a provider's code as words, and return the matching phrase."""
    return find_phrase(spell(name[:_NAME_LENGTH]))
