"""Classification: what an error is, from what it says of itself (S-spec 1, S-norm).

Rules
-----
- Overrides first; then what the exception says (status, code, body); then its type; then text on word boundaries; then
  unknown, which is transient (R11 - R13).
- A wrapper takes the label of what it wraps; a specific outer error beats a generic inner one.
- An exception group is permanent if any leaf is (R28).
- The fault of a guarded call inside is kept as it is: it has been classified where more was known (R24).
- Nothing is imported, awaited or asked of the outside; no error is so broken that classifying it raises.

Why tables: the rules are data in ``tables``, each with its source. Adding a library means adding rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from failsoft.core.classify.chain import examine, leaves
from failsoft.core.classify.engine import judge_text
from failsoft.core.classify.hints import find_delay
from failsoft.core.classify.kinds import KINDS
from failsoft.core.classify.lookup import Verdict
from failsoft.core.classify.overrides import AnyOverride, apply_overrides
from failsoft.core.fault import Fault
from failsoft.core.redact import sanitise
from failsoft.errors import CallFailed

__all__ = ["classify"]


def classify(
    error_or_text: BaseException | str,
    *,
    tool: str | None = None,  # noqa: ARG001 - part of the contract: texts may come to be read with it
    overrides: Iterable[AnyOverride] = (),
    now: float | None = None,
) -> Fault:
    """What went wrong, from an exception or from the text that a tool handed back."""
    fault = _classify(error_or_text, now)
    if overrides:
        fault = apply_overrides(fault, error_or_text, lambda: (), overrides)
    return fault


def _text(error: BaseException) -> str:
    try:
        return str.__getitem__(str(error), slice(None))
    except Exception:
        return ""


def _classify(subject: BaseException | str, now: float | None) -> Fault:
    if not isinstance(subject, BaseException):
        text = str(subject)
        verdict = judge_text(text)
        delay = find_delay({}, (), (text[:2000],), now=now)
        return _fault(verdict, sanitise(text), delay, None)
    if isinstance(subject, CallFailed) and isinstance(inner := subject.fault, Fault):
        return inner._replace(rule=f"nested: {inner.rule}", cause=subject)
    if isinstance(subject, BaseExceptionGroup):
        faults = [_classify(leaf, now) for leaf in leaves(subject)]
        worst = next((one for one in faults if one.classification == "permanent"), faults[0])
        effect = "unknown" if any(one.effect == "unknown" for one in faults) else worst.effect
        message = sanitise(f"{_text(subject)}: {worst.message}")
        return worst._replace(message=message, cause=subject, rule=f"group: {worst.rule}", effect=effect)
    finding = examine(subject, _text)
    delay = None
    for evidence in finding.evidence:
        delay = find_delay(evidence.headers, evidence.delays, (), now=now)
        if delay is not None:
            break
    else:
        delay = find_delay({}, (), [text[:2000] for text in finding.texts], now=now)
    return _fault(finding.verdict, sanitise(_text(subject) or type(subject).__name__), delay, subject)


def _fault(verdict: Verdict, message: str, delay: float | None, cause: BaseException | None) -> Fault:
    kind = KINDS[verdict.kind]
    return Fault(
        kind.code,
        kind.classification,
        kind.category,
        kind.effect,
        message,
        kind.reason,
        verdict.rule,
        delay,
        verdict.status,
        cause,
    )
