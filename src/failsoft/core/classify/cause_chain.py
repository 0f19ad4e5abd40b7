"""Walking chains and groups: which exceptions speak, and which of their verdicts stands.

Rules
-----
- The heaviest verdict stands; of equals the outermost. So a wrapper takes the label of what it wraps, and a specific
  outer error beats a generic inner one.
- What cannot weigh more than what has been found is not judged at all.
- Texts are read only when no exception of the chain carries anything that weighs more.
- A cancellation inside another error was its means, and a built-in programming error inside a library's own
  ``ValueError`` its way to find the input wrong: the outer one stands.
- What was merely being handled when the error was raised (``__context__``) is asked for the verdict only when nothing
  else has spoken; about the effect it is always asked (``doubts``).
- Who could not read an answer's body has seen its status: that stands.
- A failure in connecting has sent nothing, whatever the exceptions inside it are called.
- Cycles are cut; so many links are read, and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from failsoft.core.classify.contradictions import is_doubted, is_remote_doubt
from failsoft.core.classify.exception_reader import Evidence, gather, read
from failsoft.core.classify.lookup import FIRM_NAME, GENERIC_CODE, NAME, UNKNOWN, WEAK_TYPE, KindMatch
from failsoft.core.classify.tables import types
from failsoft.core.classify.text_reader import Reading
from failsoft.core.classify.weigh import PAGE, TEXT, UNSENT, WORDS, ceiling, judge, judge_text, read_codes
from failsoft.core.model.outcome import CallFailed

_LINKS: Final = 16
LEAVES: Final = 32
# a library's own ``ValueError`` over one of these says that it could not do with what it was given
_GIVEN: Final = frozenset(
    rule for name in types.ADOPTED for rule in (f"type: {name}", f"name: {name.removeprefix('builtins.')}")
)
_UNREADABLE: Final = frozenset({PAGE, "answer: not JSON"})

TextOf = Callable[[BaseException], str]


class Finding:
    """What a chain of exceptions brought forward."""

    __slots__ = ("cut", "evidence", "nested", "seen", "set_aside", "texts", "verdict")

    def __init__(self) -> None:
        self.verdict: KindMatch = UNKNOWN
        self.evidence: list[Evidence] = []  # outermost first
        self.texts: list[str] = []
        self.nested: BaseException | None = None  # one that carries a fault of its own, or several exceptions
        self.seen: dict[
            int, BaseException
        ] = {}  # by identity: equal ones are not the same, and some cannot be compared
        self.cut = False  # there is more than was read
        self.set_aside: list[BaseException] = []  # those of them that do not decide


def examine(error: BaseException, text_of: TextOf) -> Finding:
    """Judge an exception and those it came from."""
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
    """True if any part of the error, or of those that it came from, says that something may have happened after all."""
    if finding.cut or is_doubted(finding.verdict.kind, list(zip(finding.evidence, finding.texts, strict=True))):
        return True
    handled = _handled(error)
    return handled is None or any(
        is_remote_doubt(gather(link), text_of(link)) for link in handled if id(link) not in finding.seen
    )


def _handled(error: BaseException) -> list[BaseException] | None:
    """The exceptions that were only being handled, directly or further in; shown or not. None: too many to read."""
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
    """Collect what a chain carries, outermost first."""
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
        best = judge_text(links[0][1])  # whoever could not read the answer's body has seen its status
    if best.weight < NAME:
        heard = [link for link in links if not link[0].speechless and (link[0] is top or not _used(link[0]))]
        said = _hear(["\n".join([text, *one.texts]) for one, text in heard])
        firm = best.weight == FIRM_NAME and said.weight == WORDS
        best = said if said.weight > best.weight and not firm else best
    if best.rule in _GIVEN and top.facts.refuses:
        best = top.facts.verdict
    if best.weight > finding.verdict.weight:
        finding.verdict = best


def _used(evidence: Evidence) -> bool:
    """Whether it is a cancellation: one inside another error was its means, as asyncio.timeout's and anyio's."""
    return evidence.facts.verdict.kind == "cancelled"


def _hear(texts: list[str]) -> KindMatch:
    """The heaviest verdict on a text; when one weighs as much as a text can, the others need not be read."""
    best = UNKNOWN
    for text in texts:
        verdict = judge_text(text) if text else UNKNOWN
        best = verdict if verdict.weight > best.weight else best
        if best.weight >= TEXT:
            break
    return best


def codes_of(subject: BaseException | str) -> list[str]:
    """The codes that an error brings forward, as text: what an override may name."""
    if isinstance(subject, str):
        return [str(code) for _, code in read_codes(subject)]
    found = [evidence.codes for evidence in examine(subject, lambda _: "").evidence]
    return [str(code) for codes in found for _, code in codes]


def leaves(group: BaseException, depth: int = 0) -> list[BaseException]:
    """The exceptions of a group that are no groups themselves."""
    members = read(group, "exceptions")
    if depth >= _LINKS or not isinstance(members, tuple):
        return [group]
    found: list[BaseException] = []
    for member in members[:LEAVES]:
        found += leaves(member, depth + 1) if isinstance(member, BaseExceptionGroup) else [member]
    return found[:LEAVES]
