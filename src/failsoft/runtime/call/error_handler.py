"""Ask the Error Handler that the user has put in, without depending on it.

Rules
-----
- It has ``PATIENCE``. One that is slower is cancelled and not waited for any more; one that raises, or answers with
  anything but a decision that makes sense, has not decided. The built-in handler decides then, and the stream says so.
- What it asks for must be possible and safe: ``runtime.call.recovery`` turns down the rest, and the stream says that too.
- Calls of tools that do not exist reach it too; escalating or failing gracefully is all there is to choose from.
"""

from __future__ import annotations

import asyncio
import math
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, get_args

from failsoft.core.model.outcome import Decision, Outcome, Strategy
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience.backoff import LONGEST_HINT
from failsoft.core.resilience.error_handler import ErrorReport, decide, decision_fields
from failsoft.observe import events
from failsoft.runtime.call.event_fields import handler_failed_fields, refusal_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.fault import Fault
    from failsoft.runtime.call.model import HandleTurn
    from failsoft.runtime.call.ports import Judgement

PATIENCE = 2.0  # seconds


async def consult(rt: Judgement, report: ErrorReport) -> Decision | str:
    """The handler's decision, or why there is none."""
    assert rt.handler is not None
    try:
        answer: object = rt.handler.handle(report)
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
            asked.add_done_callback(_forget)  # it may not stop; nobody waits for it
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
        asked.exception()  # looked at, so that nobody is warned of it


def unknown_tool_outcome(
    explain: Callable[[Outcome[Any]], Explanation], call_id: str | int, name: str, fault: Fault
) -> Outcome[Any]:
    """The outcome of a call of a tool that does not exist, before anything is decided about it."""
    return Outcome(
        call_id, name, "failed", fault=fault, decision=Decision("escalate", "Permanent error (no retry)"),
        escalated=True, explanation=explain,
    )  # fmt: skip


async def decide_unknown_tool(
    rt: Judgement, outcome: Outcome[Any], turn: HandleTurn | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Decide about a call of a tool that does not exist; the events that tell of it."""
    fault = outcome.fault
    assert fault is not None
    left = None if turn is None else turn.left()
    policy = None
    if rt.policies:
        from failsoft.core.resilience.policy import match

        policy = match(
            rt.policies, tool=outcome.tool, tags=(), fault=fault, attempt=0, breaker="closed", turn_left=left
        )
    report = ErrorReport(
        fault,
        outcome.tool,
        outcome.id,
        0,
        0,
        "closed",
        None,
        "permanent error",
        (),
        turn_id=None if turn is None else turn.id,
        turn_left=left,
        thread=None if turn is None else turn.thread,
        tenant=None if turn is None else turn.tenant,
        policy=policy,
    )
    answer = None if rt.handler is None else await consult(rt, report)
    told = [(events.HANDLER_FAILED, handler_failed_fields(answer))] if isinstance(answer, str) else []
    usual = decide(report)
    decision = answer if isinstance(answer, Decision) else usual
    if decision.strategy not in ("escalate", "fail_gracefully"):
        told.append((events.HANDLER_FAILED, handler_failed_fields(refusal_reason(decision, "there is no such tool"))))
        decision = usual
    outcome.decision, outcome.escalated = decision, decision.strategy == "escalate"
    return [*told, (events.CALL_REFUSED, decision_fields(report, decision))]
