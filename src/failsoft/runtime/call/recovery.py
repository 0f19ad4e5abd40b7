"""Recovery after a failed attempt: update breaker, budget and memory, and collect the choices.

Each function serves one step of ``runtime.call.pipeline``, in this order: ``plan`` (count the failure, ask policies and memory,
work out whether there can be a retry), ``available_fallbacks``, ``make_report``, ``validate_handler_decision`` (somebody else's decision) and
``choose_decision``, ``learn`` and ``stop_retrying``. ``can_be_replaced`` takes the same steps for a call that nobody has made. The
decisions themselves are the core's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from failsoft.core.classify import key_of
from failsoft.core.classify.exception_reader import read
from failsoft.core.classify.nested import failures_inside
from failsoft.core.model import builtin_faults
from failsoft.core.model.effect import worst_effect
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Decision
from failsoft.core.resilience.circuit_breaker import CircuitState, Result
from failsoft.core.resilience.error_handler import ErrorReport, decide
from failsoft.core.resilience.fallback import alternatives, does_it_again, forbids_fallback, may_have_acted
from failsoft.core.resilience.rate_hold import plan_wait
from failsoft.core.resilience.retry import NoRetry, Retry, Wish, add_failure, plan_retry
from failsoft.observe import events
from failsoft.runtime.call.admission import can_replace, emit_transition, set_rate_hold, spend_retry
from failsoft.runtime.call.error_handler import handler_failed_fields, refusal_reason
from failsoft.runtime.call.model import Call, Candidate
from failsoft.runtime.tools.known_errors import MOST_KNOWN, KnownError
from failsoft.runtime.tools.tool import count_as_write

if TYPE_CHECKING:
    from failsoft.core.model.partial import Partial
    from failsoft.runtime.call.model import AttemptResult
    from failsoft.runtime.call.ports import PipelineServices
    from failsoft.runtime.tools.tool import Tool


def plan(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, ended: AttemptResult | None
) -> Retry | NoRetry:
    """Keep the books of a failed attempt and work out whether there can be another."""
    if call.failed_at is None:
        call.failed_at = rt.now()
    if ended is None:
        return _plan_refused(rt, call, candidate, fault)
    now = ended.ended
    candidate.attempts = add_failure(candidate.attempts, candidate.retry, fault, duration=now - ended.started, now=now)
    nested = ended.error is not None and any(failures_inside(ended.error))
    if fault.retry_after and fault.retryable and ended.entered and not nested:
        set_rate_hold(rt, call, candidate.tool, fault)
    candidate.probing = candidate.ticket is not None and candidate.ticket.probe is not None
    call.admitted |= not candidate.probing
    calls = (
        candidate.health.options.count == "calls" and not candidate.probing
    )  # a probe is one attempt, whatever is counted
    opened = None if calls else report_to_breaker(rt, call, candidate, _result(fault, ended), fault)
    wish = _consider_fallbacks(rt, call, candidate, fault, fault if ended.entered else None)
    retry = plan_retry(
        candidate.retry, fault, candidate.attempts,
        safe=candidate.tool.safe_to_repeat, jitter=rt.random(), now=now, wish=wish, running=ended.still_running, waited=call.hinted_wait,
    )  # fmt: skip
    if isinstance(retry, NoRetry):
        return retry
    if opened == "open":
        return NoRetry("circuit open")
    if nested:
        return NoRetry("the call inside has had its retries")
    left = None if call.turn is None else call.turn.left()
    if call.abandoned or (left is not None and left < retry.delay):
        return NoRetry("the turn's time is up")
    if (
        candidate.family is not None
        and wish is None
        and rt.memory is not None
        and (vain := rt.memory.skips_retry(candidate.family))
    ):
        return NoRetry(f"retries {vain}")
    if not calls:
        candidate.ticket = None  # the next attempt asks the breaker again
    return retry


def _plan_refused(rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault) -> Retry | NoRetry:
    """A gate is shut: only the end of a rate hold is worth waiting for."""
    candidate.probing = False
    _consider_fallbacks(
        rt, call, candidate, fault, candidate.health.opened_by if fault.rule == builtin_faults.CIRCUIT_OPEN else None
    )
    if fault.rule == builtin_faults.CIRCUIT_OPEN:
        return NoRetry("circuit open")
    if fault.rule != builtin_faults.RATE_HOLD or fault.retry_after is None or call.abandoned:
        return NoRetry(fault.reason)
    return plan_wait(
        fault.retry_after,
        waited=call.hinted_wait,
        patience=candidate.retry.max_hint_wait,
        turn_left=None if call.turn is None else call.turn.left(),
        jitter=rt.random(),
        jitter_percent=candidate.retry.jitter_percent,
    )


def _consider_fallbacks(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, known_by: Fault | None
) -> Wish | None:
    """Look up what the policy book says and what the memory knows; a policy may wish for a retry."""
    if rt.memory is not None and known_by is not None:
        candidate.family = rt.memory.meet(call.tenant, candidate.tool.id, known_by)
    else:
        candidate.family = None
    if not rt.policies:
        return None
    from failsoft.core.resilience.policy import match  # only who has policies pays for it

    policy = candidate.policy = match(
        rt.policies,
        tool=candidate.tool.id,
        tags=candidate.tool.options.tags,
        fault=fault,
        attempt=candidate.attempts.made,
        breaker=_breaker_state(rt, candidate),
        turn_left=None if call.turn is None else call.turn.left(),
    )
    if policy is None or policy.then.strategy != "retry":
        return None
    return Wish(policy.then.delay, policy.even_if_effect_unknown)


def _breaker_state(rt: PipelineServices, candidate: Candidate) -> CircuitState:
    """The circuit's state as a decision needs it: ``half_open`` for a probe, although its failure has opened the circuit."""
    return "half_open" if candidate.probing else candidate.health.observe(rt.now())


def available_fallbacks(
    rt: PipelineServices,
    call: Call,
    candidate: Candidate,
    fault: Fault,
    tried: set[str],
    later: list[Fallback],
    wanted: str | None = None,
) -> list[Fallback]:
    """The tools that may stand in now, best first: none once the turn is over (R7)."""
    policy, candidate.absent = candidate.policy, ()
    if wanted is None and policy is not None:
        wanted = policy.then.tool
    if call.abandoned or not (candidate.tool.options.fallbacks or later or wanted):
        return []
    not_run = fault.rule in (builtin_faults.BEGUN_BEFORE, builtin_faults.NO_OFFER)
    effect = worst_effect((candidate.effect, fault.effect))
    if not_run or forbids_fallback(
        effect, candidate.tool.known_effect, call.tool.known_effect
    ):  # those left from before included
        return []
    opened_by = candidate.health.opened_by if fault.rule == builtin_faults.CIRCUIT_OPEN else None
    found = [*alternatives(candidate.tool.options, fault, tried=tried, opened_by=opened_by, wanted=wanted)]
    if rt.memory is not None and rt.memory.mode == "act" and candidate.family is not None and wanted is None:
        found = [*rt.memory.order(candidate.family, found)]
    candidate.absent = tuple([option.tool for option in found if option.tool not in rt.tools])
    acted = candidate.acted_before or may_have_acted(effect, candidate.tool.known_effect)
    return [*_is_usable(rt, call, [*found, *later], tried, acted=acted)]


def _is_usable(
    rt: PipelineServices, call: Call, options: list[Fallback], tried: set[str], *, acted: bool
) -> Iterator[Fallback]:
    """Those that are there, not cut off, and have not had their turn; each once, also where two chains name it.

    ``acted``: a tool of this call may have acted; then no write is among them.
    """
    seen = set(tried)
    for option in options:
        if option.tool in seen or not can_replace(rt, call, option):
            continue
        tool = rt.tools[option.tool]
        if acted:
            known = (count_as_write(tool) if call.by_agent else tool).known_effect
            if does_it_again(known, tool.options, tool.description):
                continue
        seen.add(option.tool)
        yield option


def can_be_replaced(rt: PipelineServices, tool: Tool, thread: str | None, tenant: str | None) -> bool:
    """Would another tool stand in for this one, which is missing?"""
    call = Call("", tool, (), {}, rt.now(), thread=thread, tenant=tenant)
    candidate, fault = (
        Candidate(rt, call, tool, None),
        tool.unavailable_fault or builtin_faults.tool_marked_unavailable(tool.id),
    )
    retry, options = (
        plan(rt, call, candidate, fault, None),
        available_fallbacks(rt, call, candidate, fault, {tool.id}, []),
    )
    return decide(make_report(rt, call, candidate, fault, retry, options, None)).strategy == "alternative_tool"


def make_report(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, retry: Retry | NoRetry, options: list[Fallback],
    best: Partial | None,
) -> ErrorReport:  # fmt: skip
    """All that a decision rests on."""
    turn = call.turn
    made = candidate.attempts.made
    report = ErrorReport(
        fault,
        candidate.tool.id,
        call.id,
        made,
        max(0, made - 1),
        _breaker_state(rt, candidate),
        retry.delay if isinstance(retry, Retry) else None,
        retry.why if isinstance(retry, NoRetry) else "",
        tuple([option.tool for option in options]),
        best is not None,
        call.tool.options.required if call.required is None else call.required,
        None if turn is None else turn.id,
        None if turn is None else turn.left(),
        call.thread,
        call.tenant,
        candidate.policy,
        None if candidate.family is None or rt.memory is None else rt.memory.evidence(candidate.family),
    )
    if report.met_closed != call.admitted:
        report = report._replace(admitted=call.admitted)
    return report._replace(absent=candidate.absent) if candidate.absent else report


def refresh_report(call: Call, report: ErrorReport) -> ErrorReport:
    """The report when somebody has thought about it: the turn has gone on meanwhile, and may be over (R7)."""
    if call.turn is None:
        return report
    if call.abandoned:
        report = report._replace(retry_delay=None, no_retry="the turn's time is up", alternatives=())
    return report._replace(turn_left=call.turn.left())


def validate_handler_decision(
    rt: PipelineServices,
    call: Call,
    candidate: Candidate,
    decision: Decision | None,
    report: ErrorReport,
    tried: set[str],
) -> Decision | None:
    """A decision of somebody else's handler, unless it asks for what cannot or must not be done: the stream says so."""
    if decision is None:
        return None
    accepted = _possible(rt, call, candidate, decision, report, tried)
    if accepted is None:
        why = report.no_retry if decision.strategy == "retry" else ""
        rt.emit(events.HANDLER_FAILED, call.tool, call, handler_failed_fields(refusal_reason(decision, why)))
    return accepted


def _possible(
    rt: PipelineServices, call: Call, candidate: Candidate, decision: Decision, report: ErrorReport, tried: set[str]
) -> Decision | None:
    if decision.strategy == "retry":
        if report.retry_delay is None:
            return None
        delay = report.retry_delay if decision.delay is None else max(decision.delay, report.fault.retry_after or 0.0)
        late = report.turn_left is not None and delay > report.turn_left
        return None if late else decision._replace(delay=delay)  # a hint is never shortened (R6)
    if decision.strategy == "alternative_tool" and decision.tool not in report.alternatives:
        found = decision.tool and available_fallbacks(rt, call, candidate, report.fault, tried, [], decision.tool)
        return decision if found and found[0].tool == decision.tool else None
    if decision.strategy == "partial_success" and not report.has_partial:
        return None
    return decision


def choose_decision(
    rt: PipelineServices,
    candidate: Candidate,
    ended: AttemptResult | None,
    report: ErrorReport,
    wanted: Decision | None,
) -> tuple[ErrorReport, Decision]:
    """Choose the decision: the user's handler's, or the built-in one. A retry costs a token of the budget, waiting does not."""
    made = wanted or decide(report)
    if (
        made.strategy != "retry"
        or ended is None
        or not candidate.retry.budget
        or spend_retry(rt, candidate.tool, candidate.health)
    ):
        return report, made
    report = report._replace(retry_delay=None, no_retry="the retry budget is spent")
    return report, decide(report)


def learn(rt: PipelineServices, candidate: Candidate, now: float, *, worked: bool) -> None:
    """Tell the memory what came of the retries made here, and of standing in."""
    if rt.memory is None:
        return
    for family in candidate.retried:
        rt.memory.learn(family, None, worked=worked, seconds=now - candidate.attempts.first_failed_at)
    if candidate.cause is not None:
        rt.memory.learn(candidate.cause, candidate.tool.id, worked=worked, seconds=now - candidate.began)


def report_to_breaker(
    rt: PipelineServices, call: Call, candidate: Candidate, result: Result, fault: Fault | None = None
) -> CircuitState | None:
    """Hand the ticket back with what the attempt came to; the breaker's new state, if that has changed."""
    ticket, candidate.ticket = candidate.ticket, None
    if ticket is None:
        return None
    with rt.lock:
        changed = candidate.health.record(ticket, result, rt.now(), fault)
        candidate.tool.renew_ticket()
    if changed is not None:
        emit_transition(rt, call, candidate, changed, fault)
    return changed


def remember_error(rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, error: Exception) -> None:
    """This failure has led to a retry: the next one like it can take the short way, if nothing about it was special."""
    known = candidate.tool.known_errors
    if known is None or rt.handler is not None or rt.policies:
        return
    if rt.memory is not None and rt.memory.mode == "act":
        return
    if call.turn is not None or call.tenant is not None or fault.retry_after is not None:
        return
    if candidate.retry is not candidate.tool.options.retry:
        return  # the call, or the chain that it stands in, has rules of its own
    key = key_of(error)
    if key is None or type(key[1]) is not str or key[1] != fault.message:
        return  # there is more to it, or something was masked in it: not to be kept
    if read(error, "fault") is not None or read(error, "remote_fault") is not None:
        return  # it has been judged elsewhere
    if isinstance(error, OSError) and (error.errno is not None or error.filename is not None):
        return
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[type(error), error.args] = KnownError(fault, candidate.family, rt.trace.retries(candidate.tool.id))


def _result(fault: Fault, ended: AttemptResult) -> Result:
    return "failure" if fault.retryable and ended.entered else "neutral"


def stop_retrying(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, ended: AttemptResult | None
) -> None:
    """No further attempt of this tool: with ``count: calls`` the breaker hears of it now."""
    if candidate.absent:
        candidate.tool.warn_absent(candidate.absent, rt.tools)
    if ended is not None:
        report_to_breaker(rt, call, candidate, _result(fault, ended), fault)
        learn(rt, candidate, ended.ended, worked=False)
    elif candidate.ticket is not None:  # a gate was shut between two attempts
        report_to_breaker(rt, call, candidate, "failure" if candidate.attempts.made else "neutral", fault)
