"""Cause chains and groups: decide which exceptions count, and which of their matches wins.

Rules
-----
- The heaviest match wins; between equals, the outermost. So a wrapper is classified like the error that it wraps, and a
  specific outer error beats a generic inner one.
- Evidence that cannot outweigh the current match is not judged.
- Texts are read only if no exception in the chain carries heavier evidence.
- A cancellation inside another error is ignored: the other error caused it. A built-in programming error inside a
  library's ``ValueError`` is ignored too: it is how the library noticed bad input.
- An exception that was only being handled (``__context__``) counts for the kind only if there is no other evidence. For
  the effect it always counts (``contradictions``).
- An error about an unreadable response body does not hide the response's status.
- A failed connection has sent nothing, whatever the names of the inner exceptions.
- Cycles are cut, and the number of links is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from failsoft.core.classify.contradictions import doubts_itself, is_doubted, is_remote_doubt
from failsoft.core.classify.evidence import Evidence, read
from failsoft.core.classify.exception_reader import gather
from failsoft.core.classify.lookup import FIRM_NAME, GENERIC_CODE, NAME, UNKNOWN, WEAK_TYPE, KindMatch
from failsoft.core.classify.tables import types
from failsoft.core.classify.text_reader import Reading
from failsoft.core.classify.weigh import PAGE, TEXT, UNSENT, WORDS, ceiling, judge, judge_text, read_codes
from failsoft.core.model.outcome import CallFailed

_LINKS: Final = 16
LEAVES: Final = 32
_GROUPS: Final = 64  # groups inside each other that are read
# a library's own ``ValueError`` caused by one of these means bad input
_GIVEN: Final = frozenset(
    rule for name in types.ADOPTED for rule in (f"type: {name}", f"name: {name.removeprefix('builtins.')}")
)
_UNREADABLE: Final = frozenset({PAGE, "answer: not JSON"})

TextOf = Callable[[BaseException], str]


class Finding:
    """The evidence found in a chain of exceptions."""

    __slots__ = ("cut", "evidence", "nested", "seen", "set_aside", "texts", "verdict")

    def __init__(self) -> None:
        self.verdict: KindMatch = UNKNOWN
        self.evidence: list[Evidence] = []  # outermost first
        self.texts: list[str] = []
        self.nested: BaseException | None = None  # an exception with a fault of its own, or a group
        self.seen: dict[
            int, BaseException
        ] = {}  # by identity: exceptions may compare equal, or not be comparable at all
        self.cut = False  # the chain is longer than what was read
        self.set_aside: list[BaseException] = []  # exceptions that do not decide


def examine(error: BaseException, text_of: TextOf) -> Finding:
    """Judge an exception and its causes."""
    finding = Finding()
    start: BaseException | None = error
    while start is not None and finding.verdict.weight < GENERIC_CODE and finding.nested is None:
        first = len(finding.evidence)
        _walk(start, text_of, finding)
        _weigh(finding, first)
        start = next((one.handled for one in finding.evidence[first:] if one.handled is not None), None)
    if finding.verdict.weight >= NAME and finding.nested is not None:
        finding.set_aside.append(finding.nested)
        finding.nested = None  # the outer error is specific
    kind = finding.verdict.kind
    if kind in UNSENT and any(evidence.facts.connecting for evidence in finding.evidence):
        finding.verdict = finding.verdict._replace(kind=UNSENT[kind])
    return finding


def find_doubt(error: BaseException, finding: Finding, text_of: TextOf) -> bool:
    """True if any part of the error or of its causes says that something may have happened."""
    if finding.cut or is_doubted(finding.verdict.kind, list(zip(finding.evidence, finding.texts, strict=True))):
        return True
    if any(doubts_itself(link, finding.verdict.kind) for link in (error, *finding.seen.values())):
        return True
    handled = _handled(error)
    if handled is None:
        return True
    handled += [link for evidence in finding.evidence for link in evidence.earlier]
    return any(is_remote_doubt(gather(link), text_of(link)) for link in handled if id(link) not in finding.seen)


def _handled(error: BaseException) -> list[BaseException] | None:
    """Return the exceptions that were only being handled, at any depth; None if there are too many to read."""
    if error.__cause__ is None and error.__context__ is None and not isinstance(error, BaseExceptionGroup):
        return []
    found: list[BaseException] = []
    links: list[tuple[BaseException, bool]] = [(error, False)]
    seen: dict[int, BaseException] = {}
    while links and len(seen) < 2 * _LINKS:
        link, handled = links.pop(0)
        if id(link) in seen:
            continue
        seen[id(link)] = link
        if handled:
            found.append(link)
        cause, context = link.__cause__, link.__context__
        if cause is not None:
            links.append((cause, handled))
        if context is not None and context is not cause:
            links.append((context, True))
        if isinstance(link, BaseExceptionGroup):
            links += [(leaf, handled) for leaf in leaves(link)]
    if any(id(link) not in seen for link, _ in links):
        return None
    return [link for link in found if not isinstance(link, BaseExceptionGroup | CallFailed)]


def _walk(start: BaseException, text_of: TextOf, finding: Finding) -> None:
    """Collect the evidence of a chain, outermost first."""
    seen = finding.seen
    links = [start]
    while links and len(seen) < _LINKS:
        link = links.pop(0)
        if id(link) in seen:
            continue
        seen[id(link)] = link
        if len(seen) > 1 and isinstance(link, (CallFailed, BaseExceptionGroup)):
            if finding.nested is None:
                finding.nested = link
            else:
                finding.set_aside.append(link)
            continue
        evidence = gather(link)
        links += evidence.inner
        finding.evidence.append(evidence)
        finding.texts.append(text_of(link))
    if links:
        finding.cut |= any(id(link) not in seen for link in links)


def _weigh(finding: Finding, first: int) -> None:
    links = list(zip(finding.evidence[first:], finding.texts[first:], strict=True))
    best, outer, top = UNKNOWN, True, finding.evidence[0]
    for evidence, text in links:
        if ceiling(evidence) <= best.weight:
            continue
        verdict = judge(evidence, text)
        if evidence is not top and _used(evidence):
            verdict = verdict._replace(weight=WEAK_TYPE)
        if verdict.weight > best.weight:
            best, outer = verdict, evidence is links[0][0]
    if best.rule in _UNREADABLE and not outer and Reading(links[0][1]).status is not None:
        best = judge_text(links[0][1])  # an error about an unreadable body still states the status
    if best.weight < NAME:
        judged = [link for link in links if not link[0].adds_nothing and (link[0] is top or not _used(link[0]))]
        said = _judge_texts(["\n".join([text, *one.texts]) for one, text in judged])
        firm = best.weight == FIRM_NAME and said.weight == WORDS
        best = said if said.weight > best.weight and not firm else best
    if best.rule in _GIVEN and top.facts.refuses:
        best = top.facts.verdict
    if best.weight > finding.verdict.weight:
        finding.verdict = best


def _used(evidence: Evidence) -> bool:
    """True for a cancellation. asyncio.timeout and anyio raise their errors from one."""
    return evidence.facts.verdict.kind == "cancelled"


def _judge_texts(texts: list[str]) -> KindMatch:
    """Return the heaviest match among the texts. Stops at the highest weight that a text can have."""
    best = UNKNOWN
    for text in texts:
        verdict = judge_text(text) if text else UNKNOWN
        best = verdict if verdict.weight > best.weight else best
        if best.weight >= TEXT:
            break
    return best


def codes_of(subject: BaseException | str) -> list[str]:
    """Return the codes that an error states, as text, for overrides."""
    if isinstance(subject, str):
        return [str(code) for _, code in read_codes(subject)]
    found = [evidence.codes for evidence in examine(subject, lambda _: "").evidence]
    return [str(code) for codes in found for _, code in codes]


def leaves(group: BaseException) -> list[BaseException]:
    """Return the exceptions in a group that are not groups themselves, each group read once.

    A group in the result was not read: there are too many of them, or its members cannot be read.
    """
    found: list[BaseException] = []
    links = [group]
    seen: dict[int, BaseException] = {}
    while links and len(found) < LEAVES:
        link = links.pop()
        if id(link) in seen:
            continue
        members = read(link, "exceptions") if isinstance(link, BaseExceptionGroup) else None
        if isinstance(members, tuple) and len(seen) < _GROUPS:
            seen[id(link)] = link
            links += reversed(members[:LEAVES])
        else:
            found.append(link)
    return found
