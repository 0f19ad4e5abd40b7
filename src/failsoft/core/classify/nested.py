"""Nested failures: find the failure of an inner guarded call and report it once.

Rules
-----
- A guarded tool called inside a tool raises ``CallFailed``. The outer call gets the fault of the innermost call, even
  if the exception was wrapped (``raise … from``) or grouped.
- If the outer tool raises an exception with another code or category, that exception counts.
- The rule gets the prefix ``nested: `` once, at any depth.
- "The inner call never ran" or "it did nothing" is true of the inner call only. The outer tool was entered and may have
  acted. Only its own ``NothingDone`` says that it did not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from failsoft.core.model.builtin_faults import NESTED
from failsoft.core.model.effect import NothingDone, weakest_effect, worst_effect
from failsoft.core.model.outcome import CallFailed, Outcome

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault

_LINKS = 32
_CARRIERS = (CallFailed, BaseExceptionGroup)


def failures_inside(error: BaseException | None) -> Iterator[CallFailed]:
    """Yield the failed calls in an exception's chain, nearest first, but not the causes of those calls."""
    links = [error]
    seen: list[BaseException] = []
    while links and len(seen) < _LINKS:
        link = links.pop(0)
        if link is None or any(link is one for one in seen):
            continue
        seen.append(link)
        if isinstance(link, CallFailed):
            yield link
        elif isinstance(link, BaseExceptionGroup):
            links += link.exceptions
        else:
            # compare with None: an exception may define __bool__
            links.append(link.__context__ if link.__cause__ is None else link.__cause__)


def has_failures_inside(error: BaseException) -> bool:
    """True if an exception's chain contains a failed call."""
    if error.__context__ is None and error.__cause__ is None and not isinstance(error, _CARRIERS):
        return False
    return any(True for _ in failures_inside(error))


def adopt_fault(fault: Fault, error: BaseException) -> Fault:
    """Return the fault of the inner call if ``error`` is the same failure; otherwise ``fault``."""
    if error.__context__ is None and error.__cause__ is None and not isinstance(error, _CARRIERS):
        return fault
    for failed in failures_inside(error):
        inner = failed.fault
        if inner is not None and (
            fault.rule == "unknown" or (fault.code, fault.category) == (inner.code, inner.category)
        ):
            inner = _restate(error, inner, _keep_doubts(fault, error, inner))
            return inner._replace(rule=NESTED + inner.rule.removeprefix(NESTED), cause=error)
    return fault


def _keep_doubts(fault: Fault, error: BaseException, inner: Fault) -> Fault:
    """Return the inner fault, with the outer error's doubts about the effect.

    With ``raise … from`` both are one failure. An error raised while the inner one was handled may come after other
    actions of the tool.
    """
    if isinstance(error, _CARRIERS) or (error.__cause__ is not None and fault.source != "disputed"):
        return inner
    return inner._replace(
        effect=worst_effect((fault.effect, inner.effect)), source=weakest_effect((fault.source, inner.source))
    )  # fmt: skip


def _restate(error: BaseException, inner: Fault, fault: Fault) -> Fault:
    """Turn the inner fault into a statement about the outer tool."""
    if isinstance(error, NothingDone) and inner.cause is not error:  # not the exception of the inner call, raised again
        return fault._replace(effect="none", source="stated")
    return fault._replace(source="local") if fault.source == "stated" else fault


def find_origin(outcome: Outcome[Any]) -> list[Outcome[Any]]:
    """Return the chain of calls that failed because of an inner call, innermost last; only this call without one."""
    path = [outcome]
    while len(path) < _LINKS:
        fault = path[-1].fault
        if fault is None or not fault.rule.startswith(NESTED):
            break
        failed = next((one for one in failures_inside(fault.cause) if _is_same(one.fault, fault)), None)
        if failed is None:
            break
        path.append(failed.outcome)
    return path


def _is_same(inner: Fault | None, outer: Fault) -> bool:
    return inner is not None and inner.rule.removeprefix(NESTED) == outer.rule.removeprefix(NESTED)
