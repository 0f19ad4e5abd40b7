"""The two drivers of the pipeline: one awaits its steps on an event loop, one blocks on them in this OS thread.

The pipeline yields what takes time; a driver performs it and sends the answer back. Before the first step a call's
arguments are checked against its tool.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from failsoft.core.model.outcome import Decision, Outcome
from failsoft.runtime.call.attempt import attempt
from failsoft.runtime.call.attempt_blocking import attempt_blocking
from failsoft.runtime.call.first_attempt import misfit_result
from failsoft.runtime.call.model import (
    NO_PROGRESS,
    AttemptResult,
    Call,
    Consult,
    Invoke,
    Phrase,
    Progress,
    RecordWrite,
    Step,
    TakeOffer,
    Wait,
)
from failsoft.runtime.call.pipeline import run_pipeline
from failsoft.runtime.call.user_text import phrase
from failsoft.runtime.execution.blocking_loop import is_on_loop, run_anywhere, running_loop
from failsoft.runtime.scope import SCOPE, leave

if TYPE_CHECKING:
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.ports import DriverServices
    from failsoft.runtime.persistence.effect_ledger import Answer


# --- on an event loop -------------------------------------------------------------------------------------------------


async def drive(
    rt: DriverServices,
    call: Call,
    first: AttemptResult | None = None,
    ticket: Ticket | None = None,
    past: Progress = NO_PROGRESS,
) -> Outcome[Any]:
    """Drive a call through the pipeline to its outcome, on this event loop."""
    rt.deadlines_of(running_loop()).start_watch()
    steps = run_pipeline(rt, call, first or misfit_result(rt, call), ticket, past)
    rt.calls[call] = None
    token = SCOPE.set(call)
    answer: AttemptResult | Decision | Answer | bool | None
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, Invoke):
                    answer = await attempt(rt, call, step)
                else:
                    answer = await _perform(rt, call, step)
            except BaseException as error:
                rt.on_caller_cancelled(call, error)
                step = steps.throw(error)
            else:
                step = steps.send(answer)
                answer = None  # it may hold an error, whose traceback holds this frame
    except StopIteration as done:
        outcome: Outcome[Any] = done.value
        return outcome
    finally:
        rt.calls.pop(call, None)
        leave(SCOPE, token)
        rt.drain_if_due()


async def _perform(
    rt: DriverServices, call: Call, step: RecordWrite | TakeOffer | Wait | Consult | Phrase
) -> Decision | Answer | bool | None:
    if isinstance(step, TakeOffer):
        return await rt.conversations.take_offer(call, step.offer)
    if isinstance(step, RecordWrite):
        assert rt.ledger is not None
        return await rt.ledger.begin(call)
    if isinstance(step, Wait):
        await asyncio.sleep(step.delay)
        return None
    if isinstance(step, Phrase):
        await phrase(rt, call.turn, step.outcome)
        return None
    return await rt.consult(call, step.report)


# --- in this OS thread ------------------------------------------------------------------------------------------------


def drive_blocking(
    rt: DriverServices, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None
) -> Outcome[Any]:
    """Drive a call through the pipeline to its outcome, in this OS thread."""
    steps = run_pipeline(rt, call, first or misfit_result(rt, call), ticket)
    before = SCOPE.get()
    try:  # an interrupt right after the scope was set must not leave it set
        SCOPE.set(call)
        rt.calls[call] = None
        step = next(steps)
        while True:
            try:
                answer = _perform_blocking(rt, call, step)
            except BaseException as error:
                rt.on_caller_cancelled(call, error)
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        outcome: Outcome[Any] = done.value
        return outcome
    finally:
        try:
            SCOPE.set(before)
        finally:
            rt.calls.pop(call, None)
        rt.drain_if_due()


def _perform_blocking(rt: DriverServices, call: Call, step: Step) -> AttemptResult | Decision | Answer | bool | None:
    if isinstance(step, Invoke):
        return attempt_blocking(rt, call, step)
    if isinstance(step, TakeOffer):
        return rt.conversations.take_offer_blocking(call, step.offer)
    if isinstance(step, RecordWrite):
        assert rt.ledger is not None
        return rt.ledger.begin_blocking(call)
    if isinstance(step, Wait):
        if is_on_loop():
            rt.warn_once(
                f"{call.tool.id} blocks",
                "%s was called as a plain function on an event loop, which stands still while it waits to try again: "
                'use `await rt.call("%s", {…})` there',
                call.tool.id,
                call.tool.id,
            )
        rt.clock.sleep(step.delay)
        return None
    if isinstance(step, Phrase):
        return run_anywhere(lambda: phrase(rt, call.turn, step.outcome))
    report = step.report
    return run_anywhere(lambda: rt.consult(call, report))
