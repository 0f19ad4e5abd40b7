"""Admission before an attempt, and the verdict after it: availability, rate hold, circuit breaker, retry budget.

The order: availability, rate hold, rate limit, circuit. The decisions are pure functions of ``core.resilience``. This
module calls them with the lock held, and records each change of a circuit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.durations import MOMENT
from failsoft.core.model.outcome import Outcome
from failsoft.core.resilience import rate_hold as core
from failsoft.core.resilience.breaker_window import exceeds_rate, failure_rate
from failsoft.core.resilience.circuit_breaker import Ticket
from failsoft.observe import events
from failsoft.runtime.tools.framework_tool import is_runnable

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import Fallback
    from failsoft.core.resilience.circuit_breaker import CircuitState, Result
    from failsoft.runtime.call.candidate import Candidate
    from failsoft.runtime.call.model import Call
    from failsoft.runtime.call.ports import InPlaceServices, MisfitServices, RefusalServices
    from failsoft.runtime.call.steps import Admit
    from failsoft.runtime.tools.health import ToolHealth
    from failsoft.runtime.tools.rate_buckets import RateBuckets
    from failsoft.runtime.tools.tool import CachedRefusal, Tool

SHARED_REFUSAL = 1.0  # seconds for which callers of an open circuit share one refusal


def admit(rt: InPlaceServices, call: Call, step: Admit) -> Ticket | Fault:
    """Return the ticket of an admitted attempt, or the fault that refuses it. A fallback must take the arguments."""
    candidate = step.candidate
    tool, health = candidate.tool, candidate.health
    fault = check_availability(rt, call, tool)
    if fault is None and tool is not call.tool and not candidate.attempts.made:
        fault = tool.misfit(call.args, call.sent_arguments(rt.time, tool), typed=call.typed)
    if fault is None and tool.health.holds:
        fault = check_rate_hold(rt, call, tool)
    if fault is not None:
        return fault
    if tool.rate_buckets is not None and health.observe(rt.time.now()) != "open":
        fault = check_rate_limit(rt, call, candidate, tool.rate_buckets)
        if fault is not None:
            return fault
    if candidate.ticket is not None:
        return candidate.ticket
    now = rt.time.now()
    with rt.toolbox.lock:
        before = health.state.state
        answer = health.admit(now, candidate.timeout)
        after = health.state.state
    if not isinstance(answer, Ticket):
        return builtin_faults.circuit_open(tool.id, answer.retry_after, health.opened_by)
    if after != before:
        emit_transition(rt, call, candidate, after)
    return answer


def report_to_breaker(
    rt: InPlaceServices, call: Call, candidate: Candidate, ticket: Ticket, verdict: Result, fault: Fault | None = None
) -> CircuitState | None:
    """Hand a ticket back with the verdict on its attempt; return the new state of the circuit if it has changed."""
    with rt.toolbox.lock:
        changed = candidate.health.record(ticket, verdict, rt.time.now(), fault)
        candidate.tool.renew_ticket()
    if changed is not None:
        emit_transition(rt, call, candidate, changed, fault)
    return changed


def release_probe(rt: InPlaceServices, candidate: Candidate) -> None:
    """Free the half-open slot of an interrupted call, so that the next call can be the probe.

    Does nothing if the probe has reported its result: it then holds no slot.
    """
    if candidate.probe is not None:
        with rt.toolbox.lock:
            candidate.health.record(candidate.probe, "neutral", rt.time.now())


def can_replace(rt: InPlaceServices, call: Call, via: Fallback) -> bool:
    """True if this fallback is available and its circuit is not open."""
    tool = rt.toolbox.tools.get(via.tool)
    if tool is None or is_unavailable(rt, call, tool) or not is_runnable(tool.fn):
        return False
    return rt.toolbox.health_of(call.tool, tool, via).observe(rt.time.now()) != "open"


def is_unavailable(rt: MisfitServices, call: Call, tool: Tool) -> bool:
    """True if the tool is missing, in this deployment or in the call's thread."""
    return tool.unavailable_fault is not None or (
        call.thread is not None and rt.books.conversations.is_unavailable(call, tool)
    )


def check_availability(rt: InPlaceServices, call: Call, tool: Tool) -> Fault | None:
    """Return the fault that refuses a call before the breaker is asked; None if nothing refuses it."""
    if tool.unavailable_fault is not None or call.thread is None:
        return tool.unavailable_fault
    return rt.books.conversations.admit(call, tool)


def check_rate_hold(rt: InPlaceServices, call: Call, tool: Tool) -> Fault | None:
    """Return the fault of a call during a rate hold."""
    now = rt.time.now()
    seconds = core.remaining(tool.health.holds, call.tenant, now=now, thread=call.thread)
    if seconds:
        return builtin_faults.rate_hold(tool.id, seconds)
    with rt.toolbox.lock:
        tool.health.holds = core.release(tool.health.holds, now=now)
        tool.renew_ticket()
    return None


def check_rate_limit(rt: InPlaceServices, call: Call, candidate: Candidate, buckets: RateBuckets) -> Fault | None:
    """Take a token for the attempt, or reserve the next token and return a fault with the time until then."""
    now = rt.time.now()
    if candidate.token_at is None:
        with rt.toolbox.lock:
            candidate.token_at = now + buckets.take(call.tenant, now)
    wait = candidate.token_at - now
    if wait > MOMENT:
        return builtin_faults.rate_limit(candidate.tool.id, buckets.rate, wait)
    candidate.token_at = None  # the attempt uses the reserved token
    return None


def give_token_back(rt: InPlaceServices, call: Call, candidate: Candidate) -> None:
    """Give back the token that a candidate has reserved and will not use."""
    buckets = candidate.tool.rate_buckets
    at, candidate.token_at = candidate.token_at, None
    if at is not None and buckets is not None:
        with rt.toolbox.lock:
            buckets.give_back(call.tenant, at)


def set_rate_hold(rt: InPlaceServices, call: Call, tool: Tool, fault: Fault) -> None:
    """Set a rate hold for as long as the fault says: for all calls, or for the thread if only the error's text says so."""
    thread = call.thread if fault.hint_source == "words" else None
    if fault.retry_after is None or (thread is None and fault.hint_source == "words"):
        return
    with rt.toolbox.lock:
        tool.health.holds = core.hold(
            tool.health.holds, call.tenant, fault.retry_after, now=rt.time.now(), thread=thread
        )
        tool.renew_ticket()


def spend_retry(rt: InPlaceServices, tool: Tool, health: ToolHealth) -> bool:
    """Take one retry out of the tool's budget."""
    successes = count_successes(rt, tool, health)
    with rt.toolbox.lock:
        return health.spend(rt.time.now(), successes)


def count_successes(rt: RefusalServices, tool: Tool, health: ToolHealth) -> int:
    """Count the successes to credit the budget with, before it pays for a retry."""
    trace = rt.log.trace
    successes = trace.successes(tool.id)
    if health.can_spend(rt.time.now(), successes, len(trace.pending)):
        return successes
    return trace.metrics(tool.id).successes  # counts the pending events as well


# --- circuits ---------------------------------------------------------------------------------------------------------


def emit_transition(
    rt: InPlaceServices, call: Call, candidate: Candidate, state: CircuitState, fault: Fault | None = None
) -> None:
    """Record that a circuit has changed.

    The event names the primary if the circuit is a fallback's for that primary only.
    """
    event_type, message = TRANSITIONS[state]
    tool = candidate.tool
    fields: dict[str, Any] = {"message": f"{message} {tool.id}", "circuit_breaker_state": state}
    if state == "closed":
        fields["recovery_ms"] = round((rt.time.now() - candidate.health.opened_at) * 1000, 3)
    if candidate.health is not tool.health:
        fields["primary"] = call.tool.id
        if fault is not None and state == "open":
            fields |= {"code": fault.code.value, "error": fault.message}
            fields |= rate_fields(candidate.health)
        rt.log.emit(event_type, tool, call, fields)
        return
    if state == "open":
        if fault is not None:
            fields |= {"code": fault.code.value, "error": fault.message}
        fields |= rate_fields(candidate.health)
        alone = (
            not tool.options.fallbacks
            and rt.judgement.handler is None
            and rt.texts.phraser is None
            and not rt.judgement.policies
        )
        if alone and tool.fast_eligible and tool.unavailable_fault is None and not tool.health.holds:
            renew_refusal(rt, tool, rt.time.now())
    else:
        tool.cached_refusal = None
    rt.log.emit(event_type, tool, call, fields)


def rate_fields(health: ToolHealth) -> dict[str, Any]:
    """The fields of ``CircuitOpened`` about the breaker's window; none unless the window opened the circuit."""
    recent = health.state.recent
    if not exceeds_rate(recent, health.options):
        return {}
    return {"failure_rate": round(failure_rate(recent) or 0.0, 3), "window_calls": len(recent)}


def renew_refusal(rt: RefusalServices, tool: Tool, now: float) -> CachedRefusal | None:
    """Renew the refusal that callers of an open circuit share; None if the circuit is no longer open."""
    with rt.toolbox.lock:
        remaining = tool.health.open_for(now)
        if remaining is None:
            tool.cached_refusal = None
            return None
    fault = builtin_faults.circuit_open(tool.id, remaining, tool.health.opened_by)
    outcome: Outcome[Any] = Outcome(
        0,
        tool.id,
        "failed",
        fault=fault,
        decision=Decision("fail_gracefully", "Transient error (circuit open); no alternative", remaining),
        label=tool.label,
        explanation=rt.texts.explain,
    )
    tool.cached_refusal = (outcome, now + min(remaining, SHARED_REFUSAL), (events.CALL_REFUSED, tool.id))
    return tool.cached_refusal


TRANSITIONS: dict[CircuitState, tuple[str, str]] = {
    "open": (events.CIRCUIT_OPENED, "Circuit breaker opened for"),
    "half_open": (events.CIRCUIT_HALF_OPENED, "Circuit breaker half-opened for"),
    "closed": (events.CIRCUIT_CLOSED, "Circuit breaker closed for"),
}
