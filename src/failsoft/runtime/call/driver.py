"""The two drivers of the pipeline: one awaits its steps on an event loop, one blocks on them in this OS thread.

The pipeline yields steps; a driver performs each of them and sends the answer back. Both drivers answer the steps that
take no time in the same way (``in_place``). Before the first step a call's arguments are checked against its tool.

If a step that takes time is interrupted, the driver throws ``Interrupted`` into the pipeline, which may yield last
steps that take no time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from failsoft.core.model.outcome import Outcome
from failsoft.runtime.call.admission import release_probe
from failsoft.runtime.call.attempt import attempt, attempt_blocking
from failsoft.runtime.call.first_attempt import misfit_result
from failsoft.runtime.call.in_place import IN_PLACE, interrupt
from failsoft.runtime.call.model import NO_PROGRESS, AttemptResult, Call, Invoke, Progress
from failsoft.runtime.call.pipeline import Pipeline
from failsoft.runtime.call.steps import (
    Consult,
    Consulted,
    EndUnknown,
    Phrase,
    Recall,
    RecordWrite,
    Step,
    TakeOffer,
    Verify,
    VerifyReply,
    Wait,
)
from failsoft.runtime.call.user_text import phrase
from failsoft.runtime.execution.blocking_loop import is_on_loop, run_anywhere, running_loop
from failsoft.runtime.scope import SCOPE, reset_variable

if TYPE_CHECKING:
    from failsoft.core.model.decision import Decision
    from failsoft.core.model.ledger_entry import Recalled
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.runtime.call.ports import DriverServices
    from failsoft.runtime.persistence.write_record import Answer

    _Answer = AttemptResult | Consulted | VerifyReply | Answer | Recalled | bool | float | None


# --- on an event loop -------------------------------------------------------------------------------------------------


async def drive(
    rt: DriverServices,
    call: Call,
    first: AttemptResult | None = None,
    ticket: Ticket | None = None,
    progress: Progress = NO_PROGRESS,
) -> Outcome[Any]:
    """Drive a call through the pipeline to its outcome, on this event loop."""
    rt.places.deadlines_of(running_loop()).start_watch()
    pipeline = Pipeline(rt.runner.pipeline_options, call, ticket, progress)
    steps = pipeline.run(first or misfit_result(rt, call))
    token = SCOPE.set(call)
    try:
        rt.places.in_flight.calls[call] = None
        step = next(steps)
        while True:
            in_place = IN_PLACE.get(step.__class__)
            if in_place is not None:
                step = steps.send(in_place(rt, call, step))
                continue
            answer: _Answer
            try:
                if isinstance(step, Invoke):
                    asked = rt.time.now()
                    result = await attempt(rt, call, step)
                    answer = result.with_queue_time(result.started - asked)
                    del result
                else:
                    answer = await _perform(rt, call, step)
            except BaseException as error:
                rt.runner.on_caller_cancelled(call, error)
                interrupt(rt, call, steps)
                raise
            step = steps.send(answer)
            answer = None  # it may hold an error whose traceback refers to this frame
    except StopIteration as done:
        outcome: Outcome[Any] = done.value
        return outcome
    except BaseException:
        release_probe(rt, pipeline.candidate)
        raise
    finally:
        rt.places.in_flight.calls.pop(call, None)
        reset_variable(SCOPE, token)
        rt.log.drain_if_due()


async def _perform(rt: DriverServices, call: Call, step: Step) -> _Answer:
    if isinstance(step, TakeOffer):
        return await rt.books.conversations.take_offer(call, step.offer)
    if isinstance(step, RecordWrite):
        assert rt.books.ledger is not None
        return await rt.books.ledger.begin(call, replaces=step.replaces)
    if isinstance(step, Recall):
        return await rt.books.cases.recall(call)
    if isinstance(step, EndUnknown):
        await rt.books.cases.end_unknown(call, step.fault, runs_on=step.runs_on)
        return None
    if isinstance(step, Wait):
        await asyncio.sleep(step.delay)
        return rt.time.now()
    if isinstance(step, Phrase):
        await phrase(rt, call.turn, step.outcome)
        return None
    if isinstance(step, Verify):
        from failsoft.runtime.call.verify import verify  # start-up: few tools can be asked what happened

        return await verify(rt, call, step)
    assert isinstance(step, Consult)
    return _consulted(rt, call, await rt.judgement.consult(call, step.report))


# --- in this OS thread ------------------------------------------------------------------------------------------------


def drive_blocking(
    rt: DriverServices, call: Call, first: AttemptResult | None = None, ticket: Ticket | None = None
) -> Outcome[Any]:
    """Drive a call through the pipeline to its outcome, in this OS thread."""
    pipeline = Pipeline(rt.runner.pipeline_options, call, ticket)
    steps = pipeline.run(first or misfit_result(rt, call))
    before = SCOPE.get()
    try:  # an interrupt right after the scope was set must not leave it set
        SCOPE.set(call)
        rt.places.in_flight.calls[call] = None
        step = next(steps)
        while True:
            in_place = IN_PLACE.get(step.__class__)
            if in_place is not None:
                step = steps.send(in_place(rt, call, step))
                continue
            try:
                answer = _perform_blocking(rt, call, step)
            except BaseException as error:
                rt.runner.on_caller_cancelled(call, error)
                interrupt(rt, call, steps)
                raise
            step = steps.send(answer)
    except StopIteration as done:
        outcome: Outcome[Any] = done.value
        return outcome
    except BaseException:
        release_probe(rt, pipeline.candidate)
        raise
    finally:
        try:
            SCOPE.set(before)
        finally:
            rt.places.in_flight.calls.pop(call, None)
        rt.log.drain_if_due()


def _perform_blocking(rt: DriverServices, call: Call, step: Step) -> _Answer:
    if isinstance(step, Invoke):
        asked = rt.time.now()
        result = attempt_blocking(rt, call, step)
        return result.with_queue_time(result.started - asked)
    if isinstance(step, TakeOffer):
        return rt.books.conversations.take_offer_blocking(call, step.offer)
    if isinstance(step, RecordWrite):
        assert rt.books.ledger is not None
        return rt.books.ledger.begin_blocking(call, replaces=step.replaces)
    if isinstance(step, Recall):
        return rt.books.cases.recall_blocking(call)
    if isinstance(step, EndUnknown):
        rt.books.cases.end_unknown_blocking(call, step.fault, runs_on=step.runs_on)
        return None
    if isinstance(step, Wait):
        if is_on_loop():
            rt.toolbox.warn_once(
                f"{call.tool.id} blocks",
                "%s was called as a plain function on an event loop, which stands still while it waits to try again: "
                'use `await rt.call("%s", {…})` there',
                call.tool.id,
                call.tool.id,
            )
        rt.time.sleep(step.delay)
        return rt.time.now()
    if isinstance(step, Phrase):
        return run_anywhere(lambda: phrase(rt, call.turn, step.outcome))
    if isinstance(step, Verify):
        from failsoft.runtime.call.verify import verify

        return run_anywhere(lambda: verify(rt, call, step, blocking=True))
    assert isinstance(step, Consult)
    report = step.report
    return _consulted(rt, call, run_anywhere(lambda: rt.judgement.consult(call, report)))


def _consulted(rt: DriverServices, call: Call, decision: Decision | None) -> Consulted:
    return Consulted(decision, rt.time.now(), None if call.turn is None else call.turn.left(), call.abandoned)
