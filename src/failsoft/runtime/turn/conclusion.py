"""The end of a turn: ask the Error Handler about skipped calls, and phrase the texts.

Rules
-----
- The Error Handler is asked about required calls that were skipped. They escalate unless it lets them fail gracefully;
  other strategies are impossible for a call that lacks an input. They are recorded and escalated after the decision and
  its texts are made.
- The phraser (``explain=``) phrases skipped, timed-out and cancelled calls here, and the turn's message if anything went
  wrong. The texts of policies are kept: those that the phrased message omits follow it.
- All questions are asked at once. They have ``PATIENCE``, or half of the turn's remaining time if that is less. They have
  at least ``LATE``, even after the deadline: a text about a timeout cannot be made before it. Then the defaults are used.
- A turn inside a call is not phrased: the outermost call is.
"""

from __future__ import annotations

import asyncio
from typing import Any

from failsoft.analysis.turn_report import TurnReport
from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.outcome import Outcome
from failsoft.core.resilience.error_handler import ErrorReport, decide
from failsoft.observe import events
from failsoft.runtime.call.error_handler import consult
from failsoft.runtime.call.event_fields import handler_failed_fields, refusal_reason
from failsoft.runtime.call.user_text import PATIENCE, phrase, phrase_turn
from failsoft.runtime.turn.commands import report_skip
from failsoft.runtime.turn.turn_state import Skipped, TurnState

LATE = 0.5  # seconds


async def conclude(turn: TurnState) -> str | None:
    """Decide about skipped calls and phrase the texts; the turn's message, or None for the built-in one."""
    if turn.services.judgement.handler is not None:
        await asyncio.gather(*[_judge(turn, one) for one in turn.undecided_skips])
    message = await _phrase_all(turn)
    skipped, turn.undecided_skips = turn.undecided_skips, []
    for one in skipped:
        report_skip(turn, one)
    return message


async def _phrase_all(turn: TurnState) -> str | None:
    if turn.services.texts.phraser is None or turn.parent is not None:
        return None
    outcomes = {id: handle.outcome for id, handle in turn.machine.calls.items() if handle.outcome is not None}
    if all(_went_well(outcome) for outcome in outcomes.values()):
        return None
    patience = patience_of(turn)
    silent = [one for one in outcomes.values() if one.status in ("skipped", "timed_out", "cancelled") and _is_ours(one)]
    asking = [phrase(turn.services, turn, outcome, patience) for outcome in silent]
    report = TurnReport(
        turn.id, outcomes, thread=turn.thread, timed_out=turn.expired, message=turn.services.texts.compose_turn_message
    )
    *_, message = await asyncio.gather(*asking, phrase_turn(turn.services, report, patience))
    return message if isinstance(message, str) else None


def patience_of(turn: TurnState) -> float:
    """Seconds to wait for the last texts of a turn."""
    remaining = turn.left()
    return PATIENCE if remaining is None else min(PATIENCE, max(remaining / 2, LATE))


def _went_well(outcome: Outcome[Any]) -> bool:
    return not _is_ours(outcome) or (outcome.status == "succeeded" and outcome.missing is None)


def _is_ours(outcome: Outcome[Any]) -> bool:
    """True if the turn phrases this outcome. A call that the agent framework continues has not ended."""
    return outcome.fault is None or outcome.fault.rule != builtin_faults.PASSED_ON


async def _judge(turn: TurnState, skipped: Skipped) -> None:
    """Let the Error Handler decide about a required call that was skipped."""
    services, handle, outcome = turn.services, skipped.handle, skipped.outcome
    tool, fault = handle.tool, outcome.fault
    assert fault is not None
    report = ErrorReport(
        fault,
        outcome.tool,
        outcome.id,
        0,
        0,
        tool.health.observe(services.time.now()),
        None,
        fault.reason,
        (),
        required=True,
        turn_id=turn.id,
        turn_left=turn.left(),
        thread=turn.thread,
        tenant=turn.tenant,
    )
    answer = await consult(services.judgement, report)
    decision = answer if isinstance(answer, Decision) else decide(report)
    if isinstance(answer, str):
        turn.emit(events.HANDLER_FAILED, tool, outcome.id, handler_failed_fields(answer))
    elif decision.strategy not in ("escalate", "fail_gracefully"):
        why = handler_failed_fields(refusal_reason(decision, "the call lacks an input"))
        turn.emit(events.HANDLER_FAILED, tool, outcome.id, why)
        decision = decide(report)
    outcome.decision, outcome.escalated = decision, decision.strategy == "escalate"
