"""The fast path of a call that is refused because the circuit of its tool is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.outcome import refuse_alike
from failsoft.observe.events import CALL_REFUSED, REFUSED
from failsoft.runtime.call.admission import renew_refusal

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.call.ports import RefusalServices
    from failsoft.runtime.tools.tool import CachedRefusal, Tool


def refuse_from_cache(rt: RefusalServices, tool: Tool, cached: CachedRefusal) -> Outcome[Any] | None:
    """Refuse a call of an open circuit with a fault that all callers share; None if the circuit may admit a call."""
    now, trace = rt.time.now(), rt.log.trace
    shared, until = cached
    if now >= until:
        renewed = renew_refusal(rt, tool, now)
        if renewed is None:
            return None
        shared, _ = renewed
    id = next(trace.numbers)
    # FAST: saves 7,100 of 17,400 instructions. The outcome is a copy of the shared one, and the record refers to that
    # one: the ring would keep the call's own alive.
    trace.pending.append((CALL_REFUSED, now, tool.id, id, None, REFUSED, shared))
    if id >= trace.due:
        trace.drain_if_many(id)
    return refuse_alike(id, shared)
