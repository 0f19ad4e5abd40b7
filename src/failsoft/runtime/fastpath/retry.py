"""The fast retry loop: plain retries of a known error, until an attempt succeeds.

Rules
-----
- An error is known if the pipeline (``runtime.call.pipeline``) has decided on a retry for the same error of the same tool
  before. Only attempts, time, budget and breaker could change that decision, and the loop checks these.
- It is used only for async tools that are nothing but a function and a deadline, called outside of turns, threads and
  other calls, if no policy, handler, fallback or retry rule could decide. Tools declared as not idempotent are excluded:
  calls inside such a tool must know of it.
- Anything but a plain retry (another error, the last attempt, a circuit that is about to open) continues in the
  pipeline with the ``Progress`` so far. So does a call whose attempt has made inner calls: the pipeline checks their
  effects.
- All attempts share one scope and one ``Call``, which inner calls find, also those in tasks of earlier attempts.
- Events are the same as the pipeline's. Their fields are computed when they are read.

Why: an agent's tools fail in the same few ways, and a full decision costs ten times as much.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from failsoft.core.classify.returned import is_plain
from failsoft.core.model.effect import worst_effect
from failsoft.core.model.outcome import Outcome, succeed
from failsoft.core.resilience.recovery_memory import QUOTABLE
from failsoft.core.resilience.retry import Attempts, plan_known
from failsoft.observe.events import CALL_SUCCEEDED, RETRY_SUCCEEDED, TOOL_ERROR, TOOL_TIMEOUT
from failsoft.observe.retry_fields import describe_retry
from failsoft.observe.sinks.log import INFO, is_logged
from failsoft.observe.success_runs import success_fields
from failsoft.runtime.call.admission import count_successes
from failsoft.runtime.call.event_fields import recovery_fields
from failsoft.runtime.call.first_attempt import error_result, value_result
from failsoft.runtime.call.model import NO_PROGRESS, AttemptResult, Progress
from failsoft.runtime.execution.deadline import finish
from failsoft.runtime.execution.stepping import step
from failsoft.runtime.scope import SCOPE, call_of, made_call_of, reset_variable
from failsoft.runtime.tools.known_errors import KnownError, look_up

if TYPE_CHECKING:
    from failsoft.core.resilience.circuit_breaker import Ticket
    from failsoft.core.resilience.recovery_memory import Family
    from failsoft.observe.raw_records import Raw
    from failsoft.runtime.fastpath.ports import FastServices
    from failsoft.runtime.scope import LightAttempt
    from failsoft.runtime.tools.tool import Tool


enter, reset = SCOPE.set, SCOPE.reset
_CLIENT = {"kind": "client"}  # the fields of a timeout that the tool's client has raised


async def retry_fast(  # noqa: C901, PLR0915 - one function: each call costs a tenth of a retry
    rt: FastServices, light: LightAttempt, ticket: Ticket, error: Exception, *, entered: bool
) -> Outcome[Any]:
    """Run a call to its outcome after its first attempt has failed, by fast retries as long as its errors are known.

    If not ``entered``, the arguments may not have fitted. If inner calls were made, the pipeline takes over.
    """
    _, id, began, (_, tool), args, kwargs, outer = light[:7]
    call = made_call_of(light) if outer is None else call_of(light)
    plain = entered and call is None and not is_logged(INFO)  # only the pipeline writes log lines
    known = look_up(tool, error) if plain else None
    now, wall, random, record = (
        rt.time.now,
        rt.time.wall,
        rt.time.random,
        rt.log.trace.record,
    )  # made once for all attempts
    options, fn, timeout = tool.options.retry, tool.fn, tool.timeout
    primary, started, ended = error, began, now()
    made, since, spent = 0, ended, 0.0
    met: list[KnownError] = []
    families: tuple[Family, ...] = ()
    first: AttemptResult | None = None
    key, retrying = (tool.id, id), rt.in_flight.retrying
    while known is not None:
        family = known.family
        new = None if family in families else family
        took = ended - started
        total = spent + took if made else 0.0
        delay = plan_known(options, made + 1, since, total, took, ended, random())
        if (
            delay is None
            or (new is not None and new.is_due(wall()))
            or not _count_failure(rt, tool, ticket, ended, known)
        ):
            first = AttemptResult(started, ended, error=error)
            break
        error.__traceback__ = None  # never shown; its frames keep the error alive
        evidence = None
        if family is not None and family.seen > QUOTABLE and rt.judgement.memory is not None:
            evidence = rt.judgement.memory.evidence(family)
        if known.timed_out:
            record((TOOL_TIMEOUT, ended, tool, id, None, _CLIENT))
        record((TOOL_ERROR, ended, tool, id, None, _retry_fields, known.fault, started, made, delay, evidence))
        met.append(known)
        made += 1
        spent = total
        if new is not None:
            families += (new,)
        invoked = False
        retrying[key] = (tool, began, made + 1)
        try:
            if delay:
                await asyncio.sleep(delay)
                if not tool.admits(ticket) or made_call_of(light) is not None:
                    break
            invoked = True
            started = now()
            token = enter(light)
            try:
                # FAST: this loop needs 94,000 instructions for three attempts of S3, the pipeline 564,000.
                stepper = step(fn(*args, **kwargs) if kwargs else fn(*args), light)
                for waiting in stepper:
                    await finish(stepper, waiting, tool, timeout, started, rt.places.deadline_queue, key)
            finally:
                try:
                    reset(token)
                except ValueError:  # an abandoned tool runs on in another context
                    reset_variable(SCOPE, token)
        except Exception as failed:
            call = made_call_of(light)
            error, known, ended = failed, look_up(tool, failed) if call is None else None, now()
            continue
        except BaseException as interruption:  # the caller was cancelled, or the interpreter is ending
            retrying.pop(key)
            whole = call_of(light)
            whole.attempts_ended, whole.invoked = made, invoked
            rt.runner.on_caller_cancelled(whole, interruption)
            raise
        ended = now()
        value = light[0]
        if ended - started <= timeout and is_plain(type(value)):
            retrying.pop(key)
            _count_recovery(rt, tool, id, ticket, known, families, made + 1, since, began, started, ended)
            return succeed(id, tool.id, value, made + 1, ended - began, tool.label)
        call = call_of(light)
        first = value_result(rt, call, started, ended, value)
        break
    else:
        call = call_of(light)
        first = error_result(rt, call, started, error, entered=entered)
    retrying.pop(key, None)
    progress = _progress(met, primary, Attempts(made, since, spent), families) if met else NO_PROGRESS
    call = call_of(light)
    call.set_id(id)
    call.admitted = True  # fast retries need a closed circuit
    rest = rt.runner.drive(call, first, None if first is None else ticket, progress)
    first = error = primary = None  # type: ignore[assignment]  # an error's traceback holds this frame
    return await rest


def _count_failure(rt: FastServices, tool: Tool, ticket: Ticket, now: float, known: KnownError) -> bool:
    """Count the failure and pay for its retry. False if the pipeline must decide: then nothing was counted."""
    health = tool.health
    if health.holds or tool.unavailable_fault is not None:
        return False
    successes = count_successes(rt, tool, health) if tool.options.retry.budget else None
    with rt.toolbox.lock:
        counted = health.count_failure(ticket, now, successes)
        if counted:
            tool.closed_ticket = None
            known.retries.made += 1
    return counted


def _count_recovery(
    rt: FastServices, tool: Tool, id: str | int, ticket: Ticket, known: KnownError, families: tuple[Family, ...], attempts: int,
    since: float, began: float, started: float, ended: float,
) -> None:  # fmt: skip
    """Report to breaker, metrics, memory and event stream that a retry has succeeded."""
    retries, trace = known.retries, rt.log.trace
    record = trace.record
    with rt.toolbox.lock:
        tool.health.count_success(ticket)
        tool.renew_ticket()
        retries.recovered += 1
        retries.seconds += ended - since
    if rt.judgement.memory is not None:
        for family in families:
            rt.judgement.memory.learn(family, None, True, ended - since)
    record((RETRY_SUCCEEDED, ended, tool, id, None, _recovery_fields, since, attempts))
    record((CALL_SUCCEEDED, ended, tool, id, None, _success_fields, started, attempts, began))
    if len(trace.pending) > trace.limit:
        trace.drain()


def _progress(met: list[KnownError], error: Exception, attempts: Attempts, families: tuple[Family, ...]) -> Progress:
    """Build the progress that the pipeline continues from."""
    fault = met[-1].fault._replace(cause=error)
    return Progress(fault, worst_effect([known.fault.effect for known in met]), attempts, families)


# --- fields of events, computed when they are read -------------------------------------------------------------------


def _retry_fields(raw: Raw) -> dict[str, Any]:
    _, ended, tool, _, _, _, fault, started, before, delay, evidence = raw
    return describe_retry(tool, fault, ended - started, before + 1, delay, evidence)


def _recovery_fields(raw: Raw) -> dict[str, Any]:
    _, ended, _, _, _, _, since, attempt = raw
    return recovery_fields(attempt, ended - since)


def _success_fields(raw: Raw) -> dict[str, Any]:
    _, ended, tool, _, _, _, started, attempts, began = raw
    return success_fields(tool.id, attempts, ended - started, ended - began)
