"""Walking chains and groups: which exceptions speak, and which of their verdicts stands.

Rules
-----
- The heaviest verdict stands; of equals the outermost. So a wrapper takes the label of what it wraps, and a specific
  outer error beats a generic inner one.
- What was merely being handled when the error was raised (``__context__``) is asked only when nothing else has spoken.
- A group is permanent if any leaf is (R28); its effect is unknown if any leaf's is.
- Cycles are cut; so many links are read and no more.
"""

from __future__ import annotations

from collections.abc import Callable

from failsoft.core.classify.engine import UNSENT, judge
from failsoft.core.classify.evidence import Evidence, gather, inner, read
from failsoft.core.classify.lookup import GENERIC_CODE, UNKNOWN, Verdict

_LINKS = 16


class Finding:
    """What a chain of exceptions brought forward."""

    __slots__ = ("evidence", "texts", "verdict")

    def __init__(self) -> None:
        self.verdict: Verdict = UNKNOWN
        self.evidence: list[Evidence] = []  # outermost first
        self.texts: list[str] = []


def examine(error: BaseException, text_of: Callable[[BaseException], str]) -> Finding:
    """Judge an exception and those it came from."""
    finding = Finding()
    connecting = False
    explicit: list[BaseException] = [error]
    implicit: list[BaseException] = []
    seen: list[BaseException] = []
    while (explicit or implicit) and len(seen) < _LINKS:
        if not explicit:
            if finding.verdict.weight >= GENERIC_CODE:
                break
            explicit.append(implicit.pop(0))
        link = explicit.pop(0)
        if any(link is one for one in seen):
            continue
        seen.append(link)
        carried = list(inner(link))
        explicit += [one for one, handled in carried if not handled]
        implicit += [one for one, handled in carried if handled]
        text = text_of(link)
        evidence = gather(link)
        verdict = judge(evidence, text, wraps=bool(carried))
        finding.evidence.append(evidence)
        finding.texts += [text, *evidence.texts]
        if verdict.weight > finding.verdict.weight:
            finding.verdict = verdict
        connecting = connecting or evidence.facts.connecting
    kind = finding.verdict.kind
    if connecting and kind in UNSENT:
        finding.verdict = finding.verdict._replace(kind=UNSENT[kind])
    return finding


def leaves(group: BaseException, depth: int = 0) -> list[BaseException]:
    """The exceptions of a group that are no groups themselves."""
    members = read(group, "exceptions")
    if depth >= _LINKS or not isinstance(members, tuple):
        return [group]
    found: list[BaseException] = []
    for member in members[: _LINKS * 2]:
        found += leaves(member, depth + 1) if isinstance(member, BaseExceptionGroup) else [member]
    return found[: _LINKS * 2]
