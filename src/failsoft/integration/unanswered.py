"""Calls without an answer: the process died, or the turn was cancelled, while they ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from failsoft.core.conversation.thread_state import Dangling
from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.sanitise import mask_id
from failsoft.runtime.persistence.store_reads import ask_store
from failsoft.runtime.runtime import Runtime


class Unanswered(NamedTuple):
    """A call without an answer."""

    id: str
    tool: str
    misfit: Fault | None = None  # why it cannot have run: its arguments were cut off or cannot be read


def explain_dangling(
    runtime: Runtime,
    calls: Iterable[Unanswered | tuple[str, str]],
    *,
    thread: str | None = None,
    tenant: str | None = None,
) -> list[Outcome[Any]]:
    """Return the outcomes of calls that were never answered, and forget them. Reads the store, so it may block.

    A call may have run, unless its arguments could not be read: no framework runs such a call.
    """
    closed = [] if not thread else runtime.threads(thread, tenant=tenant).close_dangling()
    return _explain_all(runtime, calls, closed)


async def explain_unanswered_async(
    runtime: Runtime,
    calls: Iterable[Unanswered | tuple[str, str]],
    *,
    thread: str | None = None,
    tenant: str | None = None,
) -> list[Outcome[Any]]:
    """``explain_dangling`` for an event loop: the store is read on another thread.

    A store that does not answer in time adds nothing to the texts.
    """
    closed: list[Dangling] = []
    if thread:
        closed = await ask_store(runtime.threads(thread, tenant=tenant).close_dangling, closed)
    return _explain_all(runtime, calls, closed)


def _explain_all(
    runtime: Runtime, calls: Iterable[Unanswered | tuple[str, str]], closed: Iterable[Dangling]
) -> list[Outcome[Any]]:
    known = {call.call_id: call.text for call in closed}
    return [_explain(runtime, Unanswered(*call), known.get(mask_id(call[0]))) for call in calls]


def _explain(runtime: Runtime, call: Unanswered, text: str | None) -> Outcome[Any]:
    _, tool, misfit = call
    id = mask_id(call.id)
    if misfit is not None and text is None:
        return Outcome(id, tool, "failed", fault=misfit, explanation=runtime.explain)
    fault = builtin_faults.cancelled(started=True)
    outcome: Outcome[Any] = Outcome(id, tool, "cancelled", fault=fault, explanation=runtime.explain)
    if text is None:
        return outcome
    return Outcome(id, tool, "cancelled", fault=fault, explanation=outcome.explanation._replace(model=text))
