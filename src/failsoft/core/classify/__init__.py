"""Classification: what an error is, from what it says of itself (S-spec 1, S-norm).

Rules
-----
- Overrides first; then what the exception says (status, code, body); then its type; then text on word boundaries; then
  unknown, which is transient (R11 - R13).
- A wrapper takes the label of what it wraps; a specific outer error beats a generic inner one.
- An exception group is permanent if any leaf is (R28).
- Nothing is imported, awaited or asked of the outside; no error is so broken that classifying it raises.

Why tables: the rules are data in ``tables``, each with its source. Adding a library means adding rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from failsoft.core.classify import engine
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.overrides import AnyOverride, apply_overrides
from failsoft.core.fault import Fault
from failsoft.core.redact import sanitise
from failsoft.errors import CallFailed

__all__ = ["classify"]


def classify(
    error_or_text: BaseException | str, *, tool: str | None = None, overrides: Iterable[AnyOverride] = ()
) -> Fault:
    """What went wrong, from an exception or from the text that a tool handed back."""
    fault = _classify(error_or_text)
    if overrides:
        fault = apply_overrides(fault, error_or_text, lambda: (), overrides)
    return fault


def _classify(subject: BaseException | str) -> Fault:
    message = sanitise(subject)
    if not isinstance(subject, BaseException):
        return _fault(engine.judge_text(message), message, None)
    if isinstance(subject, CallFailed) and isinstance(inner := engine.read(subject.outcome, "fault"), Fault):
        return inner._replace(rule=f"nested: {inner.rule}", cause=subject)
    if isinstance(subject, BaseExceptionGroup):
        leaves = [_classify(leaf) for leaf in subject.exceptions]
        worst = next((leaf for leaf in leaves if leaf.classification == "permanent"), leaves[0])
        return worst._replace(message=message, cause=subject, rule=f"group: {worst.rule}")
    links = engine.chain(subject)
    verdicts = [engine.judge_one(link, message if link is subject else sanitise(link)) for link in links]
    return _fault(max(verdicts, key=lambda verdict: verdict.weight), message, subject)


def _fault(verdict: engine.Verdict, message: str, cause: BaseException | None) -> Fault:
    kind = KINDS[verdict.kind]
    return Fault(
        kind.code,
        kind.classification,
        kind.category,
        kind.effect,
        message,
        kind.reason,
        verdict.rule,
        None,
        verdict.status,
        cause,
    )
