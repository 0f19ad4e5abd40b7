"""What a failed attempt means for the rest of its call: the books that are kept, and what there is to choose from.

Each function serves one step of ``runtime.call.pipeline``, in this order: ``plan`` (count the failure, ask policies and memory,
work out whether there can be a retry), ``find_options``, ``report_on``, ``accept`` (somebody else's decision) and
``settle``, ``learn`` and ``leave``. ``can_be_replaced`` takes the same steps for a call that nobody has made. The
decisions themselves are the core's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from failsoft.core.classify.nested import failures_inside
from failsoft.core.effects.call_effect import worst
from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Decision
from failsoft.core.resilience.circuit_breaker import Result, State
from failsoft.core.resilience.error_handler import ErrorReport, decide
from failsoft.core.resilience.fallback import alternatives, bars_others, does_it_again, may_have_acted
from failsoft.core.resilience.rate_hold import plan_wait
from failsoft.core.resilience.retry import NoRetry, Retry, Wish, add_failure, plan_retry
from failsoft.observe import events
from failsoft.runtime.call.admission import can_serve, hold, pay, transition
from failsoft.runtime.call.error_handler import handler_failed, turned_down
from failsoft.runtime.call.model import Call, Stop
from failsoft.runtime.tools.tool import count_as_write

if TYPE_CHECKING:
    from failsoft.core.model.partial import Partial
    from failsoft.runtime.call.model import Ended
    from failsoft.runtime.services import Engine
    from failsoft.runtime.tools.tool import Tool


def plan(rt: Engine, call: Call, stop: Stop, fault: Fault, ended: Ended | None) -> Retry | NoRetry:
    """Keep the books of a failed attempt and work out whether there can be another."""
    if call.failed_at is None:
        call.failed_at = rt.now()
    if ended is None:
        return _plan_refused(rt, call, stop, fault)
    now = ended.ended
    stop.attempts = add_failure(stop.attempts, stop.retry, fault, duration=now - ended.started, now=now)
    nested = ended.error is not None and any(failures_inside(ended.error))
    if fault.retry_after and fault.retryable and ended.ran and not nested:
        hold(rt, call, stop.tool, fault)
    stop.probing = stop.ticket is not None and stop.ticket.probe is not None
    call.admitted |= not stop.probing
    calls = stop.health.options.count == "calls" and not stop.probing  # a probe is one attempt, whatever is counted
    opened = None if calls else record(rt, call, stop, _result(fault, ended), fault)
    wish = _consider(rt, call, stop, fault, fault if ended.ran else None)
    retry = plan_retry(
        stop.retry, fault, stop.attempts,
        safe=stop.tool.safe, jitter=rt.random(), now=now, wish=wish, running=ended.running, waited=call.hinted,
    )  # fmt: skip
    if isinstance(retry, NoRetry):
        return retry
    if opened == "open":
        return NoRetry("circuit open")
    if nested:
        return NoRetry("the call inside has had its retries")
    left = None if call.turn is None else call.turn.left()
    if call.left_behind or (left is not None and left < retry.delay):
        return NoRetry("the turn's time is up")
    if stop.family is not None and wish is None and rt.memory is not None and (vain := rt.memory.spares(stop.family)):
        return NoRetry(f"retries {vain}")
    if not calls:
        stop.ticket = None  # the next attempt asks the breaker again
    return retry


def _plan_refused(rt: Engine, call: Call, stop: Stop, fault: Fault) -> Retry | NoRetry:
    """A gate is shut: only the end of a rate hold is worth waiting for."""
    stop.probing = False
    _consider(rt, call, stop, fault, stop.health.opened_by if fault.rule == builtin_faults.CIRCUIT_OPEN else None)
    if fault.rule == builtin_faults.CIRCUIT_OPEN:
        return NoRetry("circuit open")
    if fault.rule != builtin_faults.RATE_HOLD or fault.retry_after is None or call.left_behind:
        return NoRetry(fault.reason)
    return plan_wait(
        fault.retry_after,
        waited=call.hinted,
        patience=stop.retry.max_hint_wait,
        turn_left=None if call.turn is None else call.turn.left(),
        jitter=rt.random(),
        jitter_percent=stop.retry.jitter_percent,
    )


def _consider(rt: Engine, call: Call, stop: Stop, fault: Fault, known_by: Fault | None) -> Wish | None:
    """Look up what the policy book says and what the memory knows; a policy may wish for a retry."""
    if rt.memory is not None and known_by is not None:
        stop.family = rt.memory.meet(call.tenant, stop.tool.id, known_by)
    else:
        stop.family = None
    if not rt.policies:
        return None
    from failsoft.core.resilience.policy import match  # only who has policies pays for it

    policy = stop.policy = match(
        rt.policies,
        tool=stop.tool.id,
        tags=stop.tool.options.tags,
        fault=fault,
        attempt=stop.attempts.made,
        breaker=_state_met(rt, stop),
        turn_left=None if call.turn is None else call.turn.left(),
    )
    if policy is None or policy.then.strategy != "retry":
        return None
    return Wish(policy.then.delay, policy.even_if_effect_unknown)


def _state_met(rt: Engine, stop: Stop) -> State:
    """The circuit's state as a decision needs it: ``half_open`` for a probe, although its failure has opened the circuit."""
    return "half_open" if stop.probing else stop.health.observe(rt.now())


def find_options(
    rt: Engine, call: Call, stop: Stop, fault: Fault, tried: set[str], later: list[Fallback], wanted: str | None = None
) -> list[Fallback]:
    """The tools that may stand in now, best first: none once the turn is over (R7)."""
    policy, stop.absent = stop.policy, ()
    if wanted is None and policy is not None:
        wanted = policy.then.tool
    if call.left_behind or not (stop.tool.options.fallbacks or later or wanted):
        return []
    not_run = fault.rule in (builtin_faults.BEGUN_BEFORE, builtin_faults.NO_OFFER)
    effect = worst((stop.effect, fault.effect))
    if not_run or bars_others(
        effect, stop.tool.known_effect, call.tool.known_effect
    ):  # those left from before included
        return []
    opened_by = stop.health.opened_by if fault.rule == builtin_faults.CIRCUIT_OPEN else None
    found = [*alternatives(stop.tool.options, fault, tried=tried, opened_by=opened_by, wanted=wanted)]
    if rt.memory is not None and rt.memory.mode == "act" and stop.family is not None and wanted is None:
        found = [*rt.memory.order(stop.family, found)]
    stop.absent = tuple([option.tool for option in found if option.tool not in rt.tools])
    acted = stop.acted_before or may_have_acted(effect, stop.tool.known_effect)
    return [*_able(rt, call, [*found, *later], tried, acted=acted)]


def _able(rt: Engine, call: Call, options: list[Fallback], tried: set[str], *, acted: bool) -> Iterator[Fallback]:
    """Those that are there, not cut off, and have not had their turn; each once, also where two chains name it.

    ``acted``: a tool of this call may have acted; then no write is among them.
    """
    seen = set(tried)
    for option in options:
        if option.tool in seen or not can_serve(rt, call, option):
            continue
        tool = rt.tools[option.tool]
        if acted and does_it_again((count_as_write(tool) if call.by_agent else tool).known_effect):
            continue
        seen.add(option.tool)
        yield option


def can_be_replaced(rt: Engine, tool: Tool, thread: str | None, tenant: str | None) -> bool:
    """Would another tool stand in for this one, which is missing?"""
    call = Call("", tool, (), {}, rt.now(), thread=thread, tenant=tenant)
    stop, fault = Stop(rt, call, tool, None), tool.unavailable or builtin_faults.tool_marked_unavailable(tool.id)
    retry, options = plan(rt, call, stop, fault, None), find_options(rt, call, stop, fault, {tool.id}, [])
    return decide(report_on(rt, call, stop, fault, retry, options, None)).strategy == "alternative_tool"


def report_on(
    rt: Engine, call: Call, stop: Stop, fault: Fault, retry: Retry | NoRetry, options: list[Fallback],
    best: Partial | None,
) -> ErrorReport:  # fmt: skip
    """All that a decision rests on."""
    turn = call.turn
    made = stop.attempts.made
    report = ErrorReport(
        fault,
        stop.tool.id,
        call.id,
        made,
        max(0, made - 1),
        _state_met(rt, stop),
        retry.delay if isinstance(retry, Retry) else None,
        retry.why if isinstance(retry, NoRetry) else "",
        tuple([option.tool for option in options]),
        best is not None,
        call.tool.options.required if call.required is None else call.required,
        None if turn is None else turn.id,
        None if turn is None else turn.left(),
        call.thread,
        call.tenant,
        stop.policy,
        None if stop.family is None or rt.memory is None else rt.memory.evidence(stop.family),
    )
    if report.met_closed != call.admitted:
        report = report._replace(admitted=call.admitted)
    return report._replace(absent=stop.absent) if stop.absent else report


def renew(call: Call, report: ErrorReport) -> ErrorReport:
    """The report when somebody has thought about it: the turn has gone on meanwhile, and may be over (R7)."""
    if call.turn is None:
        return report
    if call.left_behind:
        report = report._replace(retry_delay=None, no_retry="the turn's time is up", alternatives=())
    return report._replace(turn_left=call.turn.left())


def accept(
    rt: Engine, call: Call, stop: Stop, decision: Decision | None, report: ErrorReport, tried: set[str]
) -> Decision | None:
    """A decision of somebody else's handler, unless it asks for what cannot or must not be done: the stream says so."""
    if decision is None:
        return None
    accepted = _possible(rt, call, stop, decision, report, tried)
    if accepted is None:
        why = report.no_retry if decision.strategy == "retry" else ""
        rt.emit(events.HANDLER_FAILED, call.tool, call, handler_failed(turned_down(decision, why)))
    return accepted


def _possible(
    rt: Engine, call: Call, stop: Stop, decision: Decision, report: ErrorReport, tried: set[str]
) -> Decision | None:
    if decision.strategy == "retry":
        if report.retry_delay is None:
            return None
        delay = report.retry_delay if decision.delay is None else max(decision.delay, report.fault.retry_after or 0.0)
        late = report.turn_left is not None and delay > report.turn_left
        return None if late else decision._replace(delay=delay)  # a hint is never shortened (R6)
    if decision.strategy == "alternative_tool" and decision.tool not in report.alternatives:
        found = decision.tool and find_options(rt, call, stop, report.fault, tried, [], decision.tool)
        return decision if found and found[0].tool == decision.tool else None
    if decision.strategy == "partial_success" and not report.has_partial:
        return None
    return decision


def settle(
    rt: Engine, stop: Stop, ended: Ended | None, report: ErrorReport, wanted: Decision | None
) -> tuple[ErrorReport, Decision]:
    """What is done: somebody else's decision, or the built-in one. A retry must be paid for (R25), waiting need not."""
    made = wanted or decide(report)
    if made.strategy != "retry" or ended is None or not stop.retry.budget or pay(rt, stop.tool, stop.health):
        return report, made
    report = report._replace(retry_delay=None, no_retry="the retry budget is spent")
    return report, decide(report)


def learn(rt: Engine, stop: Stop, now: float, *, worked: bool) -> None:
    """Tell the memory what came of the retries made here, and of standing in."""
    if rt.memory is None:
        return
    for family in stop.retried:
        rt.memory.learn(family, None, worked=worked, seconds=now - stop.attempts.first_failed_at)
    if stop.cause is not None:
        rt.memory.learn(stop.cause, stop.tool.id, worked=worked, seconds=now - stop.began)


def record(rt: Engine, call: Call, stop: Stop, result: Result, fault: Fault | None = None) -> State | None:
    """Hand the ticket back with what the attempt came to; the breaker's new state, if that has changed."""
    ticket, stop.ticket = stop.ticket, None
    if ticket is None:
        return None
    with rt.lock:
        changed = stop.health.record(ticket, result, rt.now(), fault)
        stop.tool.renew_ticket()
    if changed is not None:
        transition(rt, call, stop, changed, fault)
    return changed


def _result(fault: Fault, ended: Ended) -> Result:
    return "failure" if fault.retryable and ended.ran else "neutral"


def leave(rt: Engine, call: Call, stop: Stop, fault: Fault, ended: Ended | None) -> None:
    """No further attempt of this tool: with ``count: calls`` the breaker hears of it now."""
    if stop.absent:
        stop.tool.warn_absent(stop.absent, rt.tools)
    if ended is not None:
        record(rt, call, stop, _result(fault, ended), fault)
        learn(rt, stop, ended.ended, worked=False)
    elif stop.ticket is not None:  # a gate was shut between two attempts
        record(rt, call, stop, "failure" if stop.attempts.made else "neutral", fault)
