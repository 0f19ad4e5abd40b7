"""Calls that nobody has answered: the process died, or the turn was cancelled, while they ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from failsoft.core import own_faults
from failsoft.core.outcome import Outcome
from failsoft.runtime.runtime import Runtime


def explain_dangling(
    runtime: Runtime, calls: Iterable[tuple[str, str]], *, thread: str | None = None, tenant: str | None = None
) -> list[Outcome[Any]]:
    """What to say about calls (id and tool) that were never answered. What the thread knows of them is told now."""
    known = (
        {}
        if thread is None
        else {call.call_id: call for call in runtime.threads(thread, tenant=tenant).close_dangling()}
    )
    outcomes: list[Outcome[Any]] = []
    for id, tool in calls:
        outcome: Outcome[Any] = Outcome(
            id, tool, "cancelled", fault=own_faults.cancelled(started=True), explanation=runtime.explain
        )
        if id in known:
            outcome = Outcome(
                id,
                tool,
                "cancelled",
                fault=outcome.fault,
                explanation=outcome.explanation._replace(model=known[id].text),
            )
        outcomes.append(outcome)
    return outcomes
