"""Failures that come from a guarded call further in: found, and told once (R24).

Rules
-----
- Whoever calls a guarded tool inside a tool meets ``CallFailed``. Left alone, wrapped (``raise … from``) or in a group,
  it is the same failure: the call around it has the fault of the innermost one, not a text about a text about it.
- A tool that makes something else of it keeps its word: an exception that says another code or category is its own.
- ``nested: `` stands before the rule, once, however deep the failure was.
- That the inner call never ran, or its author's word that it did nothing, is about the inner call alone. The tool around
  it was entered and may have acted by itself. Only its own ``NothingDone`` says that it has not.
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
    """The failed calls that an exception comes from, the nearest first; not those that they come from in turn."""
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
            links.append(link.__context__ if link.__cause__ is None else link.__cause__)  # one may be false


def adopt_fault(fault: Fault, error: BaseException) -> Fault:
    """The fault of a call in whose tool ``error`` came up: that of the call further in, where it is the same one."""
    if error.__context__ is None and error.__cause__ is None and not isinstance(error, _CARRIERS):
        return fault
    for failed in failures_inside(error):
        inner = failed.fault
        if inner is not None and (
            fault.rule == "unknown" or (fault.code, fault.category) == (inner.code, inner.category)
        ):
            inner = _speak_for(error, inner, _keep_doubts(fault, error, inner))
            return inner._replace(rule=NESTED + inner.rule.removeprefix(NESTED), cause=error)
    return fault


def _keep_doubts(fault: Fault, error: BaseException, inner: Fault) -> Fault:
    """The inner fault, as far as the error around it agrees about the effect.

    ``raise … from`` says that the two are one failure. An error that was raised while the inner one was handled came
    after whatever the tool did in between.
    """
    if isinstance(error, _CARRIERS) or (error.__cause__ is not None and fault.source != "disputed"):
        return inner
    return inner._replace(
        effect=worst_effect((fault.effect, inner.effect)), source=weakest_effect((fault.source, inner.source))
    )  # fmt: skip


def _speak_for(error: BaseException, inner: Fault, fault: Fault) -> Fault:
    """The fault as the word of the tool around the inner call."""
    if isinstance(error, NothingDone) and inner.cause is not error:  # not the inner one's, raised again
        return fault._replace(effect="none", source="stated")
    return fault._replace(source="local") if fault.source == "stated" else fault


def find_origin(outcome: Outcome[Any]) -> list[Outcome[Any]]:
    """The calls that failed because of one further in, the innermost last; just this one if there is none."""
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
