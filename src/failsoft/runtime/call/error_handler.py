"""Ask the user's Error Handler, without depending on it.

Rules
-----
- It has ``PATIENCE`` seconds. A slower handler is cancelled, and the call continues without it.
- If it is slow, raises or returns no valid decision, the built-in handler decides, and an event says so.
- Its decision must be possible and safe. ``runtime.call.recovery`` refuses any other decision and records the refusal.
"""

from __future__ import annotations

import asyncio
import math
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, get_args

from failsoft.core.model.decision import Decision, Strategy
from failsoft.core.model.fault import show_fault
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience.backoff import LONGEST_HINT
from failsoft.core.resilience.circuit_breaker import show_state
from failsoft.core.resilience.error_handler import ErrorReport

if TYPE_CHECKING:
    from failsoft.runtime.call.ports import Judgement

PATIENCE = 2.0  # seconds


async def consult(rt: Judgement, report: ErrorReport) -> Decision | str:
    """Return the handler's decision, or the reason why there is none."""
    assert rt.handler is not None
    try:
        shown = report._replace(fault=show_fault(report.fault), breaker_state=show_state(report.breaker_state))
        answer: object = rt.handler.handle(shown)
        if not isawaitable(answer):
            raise TypeError(f"it returned {type(answer).__name__}, which cannot be awaited: write async def handle")
        asked = asyncio.ensure_future(answer)
        try:
            done, _ = await asyncio.wait({asked}, timeout=PATIENCE)
        except BaseException:
            asked.cancel()
            raise
        if not done:
            asked.cancel()
            asked.add_done_callback(_forget)  # it may take a while to end
            return "took longer than 2s"
        return _validate(asked.result())
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        return "cancelled itself"
    except Exception as error:
        return sanitise(f"{type(error).__name__}: {error}")


def _validate(decision: Any) -> Decision:
    if not isinstance(decision, Decision):
        raise TypeError(f"it returned {type(decision).__name__}, not a Decision")
    if decision.strategy not in get_args(Strategy):
        raise ValueError(f"there is no strategy {decision.strategy!r}: there are {', '.join(get_args(Strategy))}")
    delay: object = decision.delay
    if not (delay is None or (isinstance(delay, int | float) and math.isfinite(delay) and 0 <= delay <= LONGEST_HINT)):
        raise ValueError(f"a delay of {delay!r} seconds makes no sense: give 0 to {LONGEST_HINT:g}, or None")
    return decision._replace(reason=sanitise(decision.reason))


def _forget(asked: asyncio.Future[Any]) -> None:
    if not asked.cancelled():
        asked.exception()  # retrieve it, or asyncio logs a warning
