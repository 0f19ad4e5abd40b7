"""Contradictions: find evidence against the claim that nothing happened.

Rules
-----
- The status, codes, body, words and types of an exception and of its causes all count.
- A status that leaves the effect open (500, 502, 504), or that may come after the request was forwarded (507, 522), counts
  whatever the code and the words say.
- A body whose code or status is a success ("status": "captured") counts like such a status.
- Fields of a body count too ("charged": true). So does a refusal after a redirect: the redirect may have been the answer
  to the request that acted.
- Words that say that something was done ("payment captured, but …"), or may have been done ("may have been charged",
  "outcome unknown"), count like such a status. They count in the notes of an exception too.
- An error about several attempts or hosts is judged by the last one; the earlier ones count as ``__context__`` does. If
  the earlier ones are not known (tenacity), they may have acted.
- gRPC's UNKNOWN counts, whatever the words say: the server's program has raised something.
- Errors of bulk operations, and of replication after a write, count: a part of the work was done.
- An exception that was only being handled (``__context__``) counts only with remote evidence: a status, a remote code, a
  lost connection, a timeout. A cache miss before a refused connection does not count.
- A more general word for the same event is not a contradiction: a connect timeout is also a timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from failsoft.core.classify import lookup
from failsoft.core.classify.cache import cached, compiled
from failsoft.core.classify.evidence import Evidence, read
from failsoft.core.classify.evidence_source import UNCONNECTED
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.lookup import WEAK_TYPE
from failsoft.core.classify.phrase_match import find_phrase
from failsoft.core.classify.tables.acted import (
    ACTED,
    ACTED_FIRST,
    ALREADY_CODE,
    DONE_STATES,
    ELSEWHERE,
    ELSEWHERE_HINTS,
    FLAGGED,
    HINTS,
    UNDONE,
    UNSURE,
    UNSURE_HINTS,
)
from failsoft.core.classify.tables.http import PERHAPS_SENT, by_status
from failsoft.core.classify.text_reader import LENGTH, Reading
from failsoft.core.classify.weigh import UNSENT, judge_text
from failsoft.core.startup.lazy_pattern import lazy_pattern

# Specific kinds with an unknown effect
OPEN: Final = frozenset(
    name for name, kind in KINDS.items() if kind.effect != "none" and name not in ("unknown", "cancelled")
)
# Timeouts that a general "timed out" describes too
_TIMED_OUT: Final = frozenset(
    "connect_timeout lookup_timeout statement_timeout request_timeout pool_exhausted locked conflict query_cancelled".split()
)
_SAME_WORDS: Final = UNCONNECTED | _TIMED_OUT  # texts do not distinguish a lost connection from one never made
_QUOTED: Final = lazy_pattern(r"\"[^\"\n]{0,400}\"|`[^`\n]{0,400}`|(?<!\w)'[^'\n]{0,400}'(?!\w)")
# The texts in which httpx and aiohttp state a status
_CLIENTS: Final = lazy_pattern(r"\b((?:Client|Server) error|Redirect response) '(\d{3} [A-Za-z' -]{2,40})'")
MOST_WORDS: Final = 2000  # characters read in languages other than English
BEFORE: Final = 60  # characters searched for a negation before the word
_WORDS: Final = lazy_pattern(r"[a-z]+")
# Where clients quote the server's own words: gRPC and aiohttp
_STATEMENT: Final = lazy_pattern(
    r"\bdetails = \"([^\n]{1,2000})\"|^\d{3}, message=(?:'([^'\n]{1,2000})'|\"([^\"\n]{1,2000})\")"
)
_UNKNOWN: Final = ("grpc", "UNKNOWN")  # the server's program has raised something, whatever its words say
# Raised while connecting, but also while an answer is read
_PERHAPS_CONNECTED: Final = frozenset({"requests.SSLError", "urllib3.SSLError"})
_REDIRECTS: Final = (301, 302, 303)  # the client follows these with a GET
_HOPS: Final = 10


def is_doubted(kind: str, links: list[tuple[Evidence, str]]) -> bool:
    """True if the links of a chain contradict a match of this kind, which claims that nothing happened."""
    connecting = any(
        evidence.facts.connecting and evidence.facts.names[0] not in _PERHAPS_CONNECTED for evidence, _ in links
    )
    for evidence, _ in links:
        if evidence.status in PERHAPS_SENT or evidence.done or evidence.facts.in_part:
            return True
        if evidence.codes and (_UNKNOWN in evidence.codes or _says_success(evidence.codes)):
            return True
        for found, sent in _structured(evidence):
            unsent = connecting and found in UNSENT
            same = found == "timeout" and kind in _TIMED_OUT
            if found in OPEN and (sent or not (unsent or same)):
                return True
    texts = dict.fromkeys(said for evidence, text in links for said in (text, *evidence.texts, *_stated(text)))
    joined = "\n".join(texts)
    return any(doubts_text(text, kind) for text in ([joined] if len(joined) <= LENGTH else texts))


def _structured(evidence: Evidence) -> Iterator[tuple[str, bool]]:
    """Yield the kinds named by status, codes and type, and whether each proves that a request was sent."""
    facts, status = evidence.facts, evidence.status
    if status is not None and status >= 300:
        yield by_status(status) or "unknown", True
    for space, code in evidence.codes:
        yield lookup.by_code(space, code).kind, space != "errno" and not facts.tls
    if not evidence.codes and status is None and not evidence.adds_nothing:
        sent = facts.sent
        weak = facts.verdict.weight <= WEAK_TYPE  # many of these are base classes that only mean "network"
        if not weak or ((sent or facts.verdict.kind == "timeout") and not evidence.inner):
            yield facts.verdict.kind, sent


@cached
def is_only_quoted(text: str, kind: str) -> bool:
    """True if the words that match this kind occur only in quotation marks. JSON's own quotes do not count."""
    if "{" in text:
        return False
    unquoted = _QUOTED.sub("''", _CLIENTS.sub(r"\1 \2", text))
    return unquoted != text and judge_text(unquoted).kind != kind


@cached
def doubts_text(text: str, kind: str) -> bool:
    """True if a text contradicts a match of this kind, which claims that nothing happened."""
    reading = Reading(text)
    status = reading.status
    if status is not None and (status in PERHAPS_SENT or by_status(status) in OPEN):
        return True
    phrase = find_phrase(reading.bare, OPEN, firm=True)
    if phrase is not None and not reading.connecting and not (phrase.kind in UNSENT and kind in _SAME_WORDS):
        return True
    words = _WORDS.findall(reading.full)
    return (
        (not HINTS.isdisjoint(words) and says_done(reading.bare))
        or (not (ELSEWHERE_HINTS.isdisjoint(words) and reading.full.isascii()) and says_done_elsewhere(reading.full))
        or _is_flagged(reading.full)
        or (not UNSURE_HINTS.isdisjoint(words) and compiled(UNSURE).search(reading.full) is not None)
    )


def doubts_itself(error: BaseException, kind: str) -> bool:
    """True if the notes of an exception, or the redirects before its answer, contradict a match of this kind."""
    notes = read(error, "__notes__")
    if isinstance(notes, list) and any(doubts_text(note, kind) for note in notes[:_HOPS] if isinstance(note, str)):
        return True
    last = read(error, "last_attempt")
    tries = None if last is None else read(last, "attempt_number")
    if isinstance(tries, int) and tries > 1:  # tenacity has the error of the last attempt only
        return True
    for answer in (error, read(error, "response")):
        history = None if answer is None else read(answer, "history")
        if isinstance(history, (list, tuple)) and any(
            read(hop, name) in _REDIRECTS for hop in history[:_HOPS] for name in ("status_code", "status")
        ):
            return True
    return False


def _stated(text: str) -> Iterator[str]:
    """Yield the words of the server that a client's text quotes."""
    if 'details = "' not in text and ", message=" not in text:
        return
    found = _STATEMENT.search(text, 0, LENGTH)
    if found is not None and found.lastindex is not None:
        yield found[found.lastindex]


def _is_flagged(words: str) -> bool:
    """True if the words contain a flag for something done."""
    return ("true" in words or "yes" in words) and compiled(FLAGGED).search(words) is not None


def _says_success(codes: Iterable[tuple[str, object]]) -> bool:
    named = [str(code).lower() for space, code in codes if space == "provider"]
    return any(code in DONE_STATES or compiled(ALREADY_CODE).search(code) is not None for code in named)


def says_done(words: str) -> bool:
    """True if the words say that something was done before the error."""
    first = compiled(ACTED_FIRST).match(words)
    if first is not None and compiled(UNDONE).search(first[0]) is None:
        return True
    return any(compiled(UNDONE).search(found[0]) is None for found in compiled(ACTED).finditer(words))


def says_done_elsewhere(words: str) -> bool:
    """Like ``says_done``, for languages other than English."""
    words = words[:MOST_WORDS]
    return any(
        compiled(denied).search(words, max(0, found.start() - BEFORE), found.end()) is None
        for acted, denied in ELSEWHERE
        for found in compiled(acted).finditer(words)
    )


def is_remote_doubt(evidence: Evidence, text: str) -> bool:
    """True if an exception that was only being handled proves that a request was sent."""
    if any(found in OPEN for found, _ in _structured(evidence)):
        local = evidence.facts.verdict.kind == "garbled" and not evidence.codes and evidence.status is None
        return not local
    status = Reading(text).status
    return status is not None and by_status(status) in OPEN
