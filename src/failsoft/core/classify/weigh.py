"""Weighing evidence: decide what one exception or text means, and how strong that evidence is.

Rules
-----
- The weights define the precedence: a provider's code, firm phrases that may overrule the status, the status, the type,
  the text, a weak word in a name, a weak type.
- The body beats the status only where the status allows it (``tables.http.OVERRULED``): an exhausted quota may come as a
  429 and a throttle as a 400, but nothing turns a 401 into a timeout.
- An error's statement about itself ("is_transient", ``non_retryable``) decides only against a status, a weak word or no
  evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from failsoft.core.classify import lookup
from failsoft.core.classify.body_reader import make_body, read_pairs
from failsoft.core.classify.cache import cached
from failsoft.core.classify.evidence import Evidence, StatedCode
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.lookup import CODE, GENERIC_CODE, NAME, STATUS, UNKNOWN, KindMatch
from failsoft.core.classify.phrase_match import find_phrase
from failsoft.core.classify.tables import http
from failsoft.core.classify.text_reader import Reading

FIRM_TYPE: Final = 95
PAGE: Final = "page"
FIRM_WORDS: Final = 80
TEXT: Final = 50
WORDS: Final = 45
GUESS: Final = 15

_FREE: Final = "jsonrpc: -320"  # codes that each server may define itself (JSON-RPC 2.0, 5.1)
_PER_MINUTE: Final = frozenset({"per_minute"})
_TEXT: Final = lookup.facts_of(Exception)
# kinds that change if connecting failed: nothing was sent
UNSENT: Final = {"timeout": "connect_timeout", "disconnected": "refused", "garbled": "refused"}


def _gather_text(reading: Reading) -> Evidence:
    evidence = Evidence(_TEXT)
    for space, code in reading.codes:
        if space == "page":
            evidence.page = True
        else:
            evidence.codes.append((space, code))
    evidence.status = reading.status
    if "{" in reading.text:
        body = make_body()
        read_pairs(reading.text, body)
        evidence.add_body(body)
    return evidence


def read_codes(text: str) -> list[StatedCode]:
    """Return the codes that a text states, each with its code space."""
    return _gather_text(Reading(text)).codes


@cached
def judge_text(text: str) -> KindMatch:
    """Judge a text on its own."""
    reading = Reading(text)
    evidence = _gather_text(reading)
    if evidence.page and evidence.status is None:
        return KindMatch(TEXT, "not_json", PAGE)
    words = Reading("\n".join(evidence.texts)) if evidence.texts else reading  # the body's texts
    verdict = _weigh(words, evidence.status, evidence.codes)
    if verdict.weight <= GENERIC_CODE:
        generic = verdict.weight == GENERIC_CODE
        phrase = words.phrase(firm=True) if words is not reading and not generic else None
        phrase = phrase or (find_phrase(reading.bare, firm=True) if generic else reading.phrase())
        if phrase is not None and phrase.kind == "quota":
            phrase = find_phrase(reading.full, _PER_MINUTE) or phrase  # Google quotes the name of the limit
        if phrase is not None:
            weight = TEXT if phrase.firm else GUESS if phrase.guess else WORDS
            verdict = KindMatch(weight, phrase.kind, f"phrase: {phrase.name}")
        elif not verdict.weight and (last := reading.last) is not None:
            verdict = KindMatch(GUESS, http.STATUS[last], f"http_status: {last}", last)
    if verdict.kind in UNSENT and reading.connecting:
        verdict = verdict._replace(kind=UNSENT[verdict.kind])
    return verdict._replace(weight=TEXT) if verdict.weight > TEXT else verdict


def ceiling(evidence: Evidence) -> int:
    """Return the highest weight that a match on this evidence can have."""
    facts = evidence.facts
    if facts.firm is not None or evidence.page or facts.verdict.kind == "garbled":
        return FIRM_TYPE
    if evidence.codes:
        return CODE
    return max(facts.verdict.weight, GENERIC_CODE if evidence.status is None else FIRM_WORDS)


def judge(evidence: Evidence, text: str) -> KindMatch:
    """Judge one exception by its data and type. Its text counts only where the status allows it."""
    verdict = _judge(evidence, text)
    retryable = evidence.retryable
    if (
        retryable is None
        or NAME <= verdict.weight != STATUS
        or retryable == (KINDS[verdict.kind].classification == "transient")
    ):
        return verdict
    kind = "unavailable" if retryable else "precondition"
    return KindMatch(
        max(verdict.weight, GENERIC_CODE), kind, f"says of itself: {'' if retryable else 'not '}to be retried"
    )


def _judge(evidence: Evidence, text: str) -> KindMatch:
    facts = evidence.facts
    status = evidence.status
    if facts.firm is not None:
        return KindMatch(FIRM_TYPE, facts.firm, facts.rule, status)
    if evidence.page:
        if status is None:
            status = evidence.status = Reading(text).status  # an HTML error page states its status
        if status is None or status < 300:
            return KindMatch(FIRM_TYPE, "not_json", PAGE)
        if status == 404 and not facts.fetcher:
            return KindMatch(FIRM_TYPE, "wrong_address", PAGE, status)
    if evidence.adds_nothing:
        return UNKNOWN
    if not evidence.codes and status is None:
        if facts.verdict.kind == "garbled" and "text/html" in text:
            return KindMatch(FIRM_TYPE, "not_json", PAGE)
        return _judge_name(facts.verdict, text)
    said = "\n".join(evidence.texts) or text
    verdict = _weigh_said(said, status, tuple(evidence.codes))
    begun = status is not None and status < 300 and verdict.kind in ("overloaded", "unavailable")
    if begun and not evidence.headers.get("content-type", "").startswith("application/json"):
        verdict = verdict._replace(kind="broken_stream")  # the response had begun; a JSON body arrives whole
    return facts.verdict if facts.verdict.weight > verdict.weight else verdict


def _judge_name(verdict: KindMatch, text: str) -> KindMatch:
    """Weigh a class name. A class named after a limit can be overruled like a 429."""
    room = http.OVERRULED[429] if verdict.weight == NAME and verdict.kind == "rate_limited" else None
    phrase = find_phrase(Reading(text).full, room, firm=True) if room else None
    return KindMatch(NAME, phrase.kind, f"phrase: {phrase.name}") if phrase else verdict


@cached
def _weigh_said(said: str, status: int | None, codes: tuple[StatedCode, ...]) -> KindMatch:
    return _weigh(Reading(said), status, codes)


def _weigh(reading: Reading, status: int | None, codes: Iterable[StatedCode]) -> KindMatch:
    """Weigh codes, then firm phrases where the status allows them, then the status, then unspecific codes."""
    if status is not None and status < 300:
        status = None
    generic = UNKNOWN
    for space, code in codes:
        verdict = lookup.by_code(space, code)
        if verdict.weight >= CODE and verdict.kind not in http.NOT_REPLACED_BY.get(status or 0, ()):
            room = http.OVERRULED_CODE.get(verdict.kind)
            if room and (phrase := find_phrase(reading.full, room, firm=True)):
                verdict = KindMatch(CODE, phrase.kind, f"phrase: {phrase.name}")
            return KindMatch(*verdict[:3], status)
        if verdict.weight > generic.weight:
            generic = verdict
    if generic.weight == STATUS and generic.kind in http.UNSPECIFIC and status is None:
        status = reading.status  # the status of the wrapped response
    if generic.weight == STATUS and (status is None or generic.kind not in http.UNSPECIFIC):
        free = generic.rule.startswith(_FREE)
        base = KindMatch(*generic[:3], status)
        room = http.ANYTHING if free else http.OVERRULED_KIND.get(generic.kind, http.NOTHING)
    elif status is not None:
        base = KindMatch(STATUS, http.by_status(status) or "unknown", f"http_status: {status}", status)
        room = http.OVERRULED.get(status, http.NOTHING)
    else:
        return generic
    if room:
        anything = room is http.ANYTHING
        phrase = reading.phrase(firm=True) if anything else find_phrase(reading.full, room, firm=True)
        agreed = status is not None and base.kind == "precondition"
        if phrase is not None and phrase.kind != base.kind and not (agreed and phrase.name in http.WEAK_PHRASES):
            kind = "in_progress" if status == 409 and phrase.kind in http.IN_PROGRESS else phrase.kind
            return KindMatch(FIRM_WORDS, kind, f"phrase: {phrase.name}", status)
    return base
