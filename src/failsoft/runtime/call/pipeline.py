"""The way of one call, from its first failure (or its first obstacle) to its outcome.

``way`` is a generator: it asks the core, keeps the books and yields only what takes time (``Invoke``, ``Wait``,
``Consult``). One driver awaits those, one blocks on them, so there is one algorithm for both.

The order is R14's: availability, rate hold, breaker, (slot and attempt: the driver's), retry within its budget,
fallback chain. A call that succeeds at once never comes here.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from failsoft.core.classify import classify
from failsoft.core.classify.exception_reader import read
from failsoft.core.classify.nested import adopt_fault, failures_inside
from failsoft.core.effects.call_effect import effect_of_call, worst
from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Decision, Outcome, Status
from failsoft.core.model.partial import Partial, better
from failsoft.core.resilience.circuit_breaker import Refusal, Ticket
from failsoft.core.resilience.error_handler import ErrorReport, decide, describe
from failsoft.core.resilience.fallback import may_have_acted
from failsoft.core.resilience.retry import NoRetry, Retry, add_hinted_wait
from failsoft.errors import CallFailed
from failsoft.integration.arguments import MisfitError
from failsoft.observe import events
from failsoft.runtime.call.admission import gate, held, is_absent, transition
from failsoft.runtime.call.model import (
    NOTHING,
    Begin,
    Call,
    Consult,
    Ended,
    Past,
    Phrase,
    Step,
    Stop,
    TakeOffer,
    Wait,
    Way,
)
from failsoft.runtime.call.recovery import accept, find_options, learn, leave, plan, record, renew, report_on, settle
from failsoft.runtime.call.tracebacks import without_callers
from failsoft.runtime.execution.processes.reply import WorkerError
from failsoft.runtime.fastpath.known_errors import remember
from failsoft.runtime.tools.tool import count_as_write

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Failure, Offer
    from failsoft.runtime.persistence.effect_ledger import Answer
    from failsoft.runtime.services import Engine

_PARTIAL = Decision("partial_success", "A partial result is acceptable")
_QUEUED = 0.001  # seconds: less is not worth a word
_ROUNDS = 3  # of the event loop: what a task starts in another task has begun by then
_ACTED_SINCE = "a task of the failed attempt may have acted since"


def way(rt: Engine, call: Call, first: Ended | None = None, ticket: Ticket | None = None, past: Past = NOTHING) -> Way:  # noqa: C901 - the whole order, in one place
    """Take the call to its outcome. ``first`` is an attempt that has been made already, with its ticket."""
    stop = Stop(rt, call, call.tool, None, ticket)
    tried = {call.tool.id}
    later: list[Fallback] = []  # alternatives of an earlier stop that are still to be asked
    primary, stop.effect, stop.attempts, stop.retried = past
    effect = stop.effect
    total = call.made = stop.attempts.made
    call.invoked, giver = False, stop
    best: Partial | None = None  # which ``giver`` gave
    looping = _find_loop(rt, call) if first is None and call.thread is not None else None
    if looping is not None:
        return _answer(rt, call, looping)
    while True:
        ended, first = first, None
        fault = None if ended is not None else (yield from _enter(rt, call, stop))
        if fault is None and ended is None:
            ended = yield from _invoke(rt, call, stop)
        if ended is not None:
            ended, part = _look(ended)
            total += ended.ran
            call.made, call.invoked = total, False
            fault = _understand(rt, call, stop, ended)
            if fault is not None and _may_leave_tasks(stop, fault, ended):
                fault = yield from _look_for_tasks(rt, call, stop, fault)
            _note_attempt(rt, call, stop, fault, ended)
            if fault is None:
                record(rt, call, stop, "success")
                learn(rt, stop, ended.ended, worked=True)
                return _succeeded(rt, call, stop, ended, total, part and _PARTIAL)
            kept = better(best, part)
            best, giver = kept, giver if kept is best else stop
        assert fault is not None
        effect, stop.effect = worst((effect, fault.effect)), worst((stop.effect, fault.effect))
        own = (ended is not None and ended.ran and stop.tool is call.tool) or fault.rule == builtin_faults.BEGUN_BEFORE
        retry = plan(rt, call, stop, fault, ended)
        if (
            isinstance(retry, NoRetry) and retry.cut_off and fault.rule != builtin_faults.TOOL_TIMEOUT
        ):  # its words are fixed
            fault = fault._replace(reason=f"{fault.reason}; {retry.why}")
        primary = fault if own else primary or fault  # what went wrong last with the tool that was asked for
        options = find_options(rt, call, stop, fault, tried, later)
        report = report_on(rt, call, stop, fault, retry, options, best if _takes_parts(call, giver) else None)
        wanted = None
        if rt.handler is not None:
            answer = yield from _ask(rt, call, stop, report)
            report = renew(call, report)
            wanted = accept(rt, call, stop, answer, report, tried)
        report, decision = settle(rt, stop, ended, report, wanted)
        _note(rt, call, stop, fault, ended, report, decision, handled=decision is wanted)
        if decision.strategy == "retry":
            _turn_back(rt, call, stop, fault, ended)
            if decision.delay:
                yield from _pause(rt, call, stop, decision.delay, retry)
            if not _has_acted_since(call, stop, fault):
                continue
            effect = "unknown"
            decision = decide(report._replace(retry_delay=None, no_retry=_ACTED_SINCE, alternatives=()))
        leave(rt, call, stop, fault, ended)
        if decision.strategy == "alternative_tool" and decision.tool is not None:
            stop, later = _stand_in(rt, call, stop, decision, options)
            tried.add(stop.tool.id)
            continue
        if decision.strategy == "partial_success" and best is not None:
            now = rt.now()
            return _succeeded(rt, call, giver, Ended(now, now, best), total, decision)
        return (yield from _fail(rt, call, stop, primary._replace(effect=effect), decision, best))


def tell_queue(ended: Ended, seconds: float) -> Ended:
    """An attempt that had to wait for a slot, a thread or a process says so."""
    if seconds < _QUEUED:
        return ended
    return ended._replace(notes={**ended.notes, "queued_ms": round(seconds * 1000, 3)})


def _look(ended: Ended) -> tuple[Ended, Partial | None]:
    """How an attempt has ended, and the part that it has got. Where its arguments were refused, the tool never ran."""
    if isinstance(ended.error, MisfitError):
        return ended._replace(ran=False), None
    return ended, ended.value if isinstance(ended.value, Partial) else None


def _pause(rt: Engine, call: Call, stop: Stop, delay: float, retry: Retry | NoRetry) -> Generator[Step, None, None]:
    """Wait for the next attempt. A probe whose caller leaves meanwhile has come to no verdict (T2)."""
    if isinstance(retry, Retry) and retry.hinted:
        call.hinted += delay
        stop.attempts = add_hinted_wait(stop.attempts, delay)
    call.waiting = True
    try:
        yield Wait(delay)
    except BaseException:
        record(rt, call, stop, "neutral")
        raise
    call.waiting = False


def _invoke(rt: Engine, call: Call, stop: Stop) -> Generator[Step, Any, Ended]:
    """Make an attempt."""
    asked = rt.now()
    call.invoked, call.acted = True, False
    try:
        ended: Ended = yield stop.invoke
    except BaseException:
        _break_off(rt, call, stop)
        raise
    return tell_queue(ended, ended.started - asked)


def _enter(rt: Engine, call: Call, stop: Stop) -> Generator[Step, Any, Fault | None]:
    """Pass the gates, use up the retry offer, have a write recorded. A fault keeps the attempt from starting."""
    fault = _admit(rt, call, stop)
    if fault is None and call.offer is not None and not call.asked:
        fault = yield from _take(rt, call, stop, call.offer)
    if fault is None and rt.ledger is not None and rt.ledger.wants(call, stop.tool):
        fault = yield from _begin(rt, call, stop)
    return fault


def _take(rt: Engine, call: Call, stop: Stop, offer: Offer) -> Generator[Step, Any, Fault | None]:
    """Use up the offer that a user's retry makes use of, once: the retry is about to run."""
    call.waiting = True
    try:
        taken: bool | None = yield TakeOffer(offer)
    except BaseException:
        record(rt, call, stop, "neutral")
        raise
    call.waiting = False
    if not taken:
        return builtin_faults.no_offer(call.tool.id)
    call.asked = True
    fields = {"message": f"Retry offer taken for {call.tool.id}", "thread": call.thread}
    rt.emit(events.OFFER_TAKEN, call.tool, call, fields)
    return None


def _begin(rt: Engine, call: Call, stop: Stop) -> Generator[Step, Any, Fault | None]:
    """Have a write recorded before it starts; a fault keeps it from starting."""
    call.waiting = True
    try:
        answer: Answer = yield Begin()
    except BaseException:
        record(rt, call, stop, "neutral")
        raise
    call.waiting = False
    if answer == "begun":
        return builtin_faults.begun_before()
    call.kept = answer == "kept"
    if call.kept:
        return None
    fields = {"message": f"{call.tool.id} could not be recorded before it starts", "refused": rt.store_required}
    rt.emit(events.NOT_RECORDED, call.tool, call, fields)
    return builtin_faults.not_recorded(call.tool.id) if rt.store_required else None


def _ask(rt: Engine, call: Call, stop: Stop, report: ErrorReport) -> Generator[Step, Any, Decision | None]:
    """Let somebody else's Error Handler decide; None if it fails."""
    try:
        answer: Decision | None = yield Consult(report)
    except BaseException:
        record(rt, call, stop, "neutral")
        raise
    return answer


def _turn_back(rt: Engine, call: Call, stop: Stop, fault: Fault, ended: Ended | None) -> None:
    """Another attempt of this tool follows."""
    if stop.family is not None and stop.family not in stop.retried:
        stop.retried += (stop.family,)
    if ended is not None and ended.error is not None:
        remember(rt, call, stop, fault, ended.error)
        ended.error.__traceback__ = None  # nobody will see it; it holds the frames that hold it


def _stand_in(
    rt: Engine, call: Call, stop: Stop, decision: Decision, options: list[Fallback]
) -> tuple[Stop, list[Fallback]]:
    """The next stop, and what is left of the alternatives."""
    assert decision.tool is not None
    via = next((option for option in options if option.tool == decision.tool), Fallback(tool=decision.tool))
    rt.emit(
        events.FALLBACK_USED, stop.tool, call,
        {"message": "Used alternative tool", "alternative": via.tool, "reason": decision.reason},
    )  # fmt: skip
    tool = rt.tools[via.tool]
    other = Stop(rt, call, count_as_write(tool) if call.by_agent else tool, via)
    other.cause, other.began = stop.family, rt.now()
    other.acted_before = stop.acted_before or may_have_acted(stop.effect, stop.tool.known_effect)
    return other, [option for option in options if option is not via]


def _admit(rt: Engine, call: Call, stop: Stop) -> Fault | None:
    """Pass the gates in R14's order, or say which is shut. Who stands in must take the arguments."""
    fault = gate(rt, call, stop.tool)
    if fault is None and stop.tool is not call.tool and not stop.attempts.made:
        fault = stop.tool.misfit(call.args, call.arguments(rt, stop.tool), typed=call.typed)
    if fault is None and stop.tool.health.holds:
        fault = held(rt, call, stop.tool)
    if fault is not None or stop.ticket is not None:
        return fault
    now = rt.now()
    with rt.lock:
        before = stop.health.state.state
        answer = stop.health.admit(now, stop.timeout)
        after = stop.health.state.state
    if isinstance(answer, Refusal):
        return builtin_faults.circuit_open(stop.tool.id, answer.retry_after, stop.health.opened_by)
    stop.ticket = answer
    if after != before:
        transition(rt, call, stop, after)
    return None


def _break_off(rt: Engine, call: Call, stop: Stop) -> None:
    """The caller has left an attempt that was under way."""
    record(rt, call, stop, "neutral")
    call.tell_caller(stop.tool, "unknown")


def _understand(rt: Engine, call: Call, stop: Stop, ended: Ended) -> Fault | None:
    """The fault of an attempt that has ended, with the effect that the call had; None if it succeeded."""
    fault = _find_fault(rt, stop, ended)
    if fault is not None:
        many = stop.tool.options.requests == "many" or _has_asked_elsewhere(rt, fault)
        effect = effect_of_call(fault, entered=ended.ran, acted_inside=call.may_have_acted_inside, many=many)
        if effect != fault.effect:
            fault = fault._replace(effect=effect)
    call.tell_caller(stop.tool, "happened" if fault is None else fault.effect)
    return fault


def _has_asked_elsewhere(rt: Engine, fault: Fault) -> bool:
    """True if what failed is an inner call that is safe to repeat: whatever else the tool does is another request."""
    if fault.source != "remote" or not fault.rule.startswith(builtin_faults.NESTED):
        return False
    inner = [rt.tools.get(failed.tool) for failed in failures_inside(fault.cause)]
    return not inner or any(tool is None or tool.safe for tool in inner)  # none: it was in another process


def _may_leave_tasks(stop: Stop, fault: Fault, ended: Ended) -> bool:
    """True if it matters whether the attempt has left tasks behind that have not begun yet."""
    return ended.ran and fault.effect == "none" and stop.tool.safe is False and stop.tool.kind == "async"


def _look_for_tasks(rt: Engine, call: Call, stop: Stop, fault: Fault) -> Generator[Step, None, Fault]:
    """Let tasks begin that the attempt has made: guarded calls in them may act, whatever its own error says."""
    try:
        for _ in range(_ROUNDS):
            yield Wait(0.0)
    except BaseException:
        record(rt, call, stop, "neutral")
        raise
    if not call.may_have_acted_inside:
        return fault
    call.tell_caller(stop.tool, "unknown")
    return fault._replace(effect="unknown")


def _has_acted_since(call: Call, stop: Stop, fault: Fault) -> bool:
    """True if a task that the failed attempt left behind makes a retry unsafe after all."""
    return fault.effect == "none" and stop.tool.safe is False and call.may_have_acted_inside


def _find_fault(rt: Engine, stop: Stop, ended: Ended) -> Fault | None:
    options = stop.tool.options
    if ended.error is not None:
        error = without_callers(ended.error)
        if isinstance(error, MisfitError | WorkerError):  # failsoft's own: the fault is known
            return error.fault._replace(cause=error)
        judged = read(error, "remote_fault")  # by the worker, where the error was whole
        if isinstance(judged, Fault) and not options.classification:
            return judged._replace(cause=error)
        fault = classify(error, tool=stop.tool.id, overrides=options.classification, now=rt.wall())
        if isinstance(judged, Fault):
            fault = fault._replace(effect=worst((fault.effect, judged.effect)))
        return adopt_fault(fault, error)
    if ended.fault is not None:
        return ended.fault
    if isinstance(ended.value, Partial):
        return None if options.accept_partial is True else builtin_faults.partial_result(ended.value.missing)
    return stop.tool.check_output(ended.value)


def _note_attempt(rt: Engine, call: Call, stop: Stop, fault: Fault | None, ended: Ended) -> None:
    """Remember whether the tool is there at all."""
    if call.thread is not None or (fault is not None and fault.category == "tool_unavailable"):
        rt.notebook.note_attempt(call, stop.tool, fault, ran=ended.ran)


def _note(
    rt: Engine, call: Call, stop: Stop, fault: Fault, ended: Ended | None, report: ErrorReport, decision: Decision, *,
    handled: bool,
) -> None:  # fmt: skip
    """Write the failure and the decision about it into the stream."""
    if fault.rule == builtin_faults.TOOL_TIMEOUT:
        rt.emit(events.TOOL_TIMEOUT, stop.tool, call, {"timeout_ms": round(stop.timeout * 1000), "kind": "tool"})
    elif ended is not None and builtin_faults.is_client_timeout(fault):
        rt.emit(events.TOOL_TIMEOUT, stop.tool, call, {"kind": "client"})
    fields = describe(report, decision)
    if handled:
        fields["handled"] = True  # by somebody else's Error Handler
    if rt.handler is not None and ended is not None:
        fields["decided_ms"] = round((rt.now() - ended.ended) * 1000, 3)
    if ended is None:
        waits = decision.strategy == "retry"
        if waits:
            fields["delay_ms"] = round((decision.delay or 0.0) * 1000, 3)
        rt.emit(events.CALL_HELD if waits else events.CALL_REFUSED, stop.tool, call, fields)
        return
    fields |= ended.notes
    if isinstance(ended.error, CallFailed):
        fields["inner_call_id"] = ended.error.outcome.id
    fields["duration_ms"] = round((ended.ended - ended.started) * 1000, 3)
    if decision.strategy == "retry":
        fields["delay_ms"] = round((decision.delay or 0.0) * 1000, 3)
        if fault.effect == "unknown" and stop.tool.safe is None:
            stop.tool.warn_undeclared()
    rt.emit(events.TOOL_ERROR, stop.tool, call, fields)
    if fault.category == "internal_contract_bug" and not fault.rule.startswith(builtin_faults.NESTED):
        rt.emit(events.INTERNAL_ERROR, stop.tool, call, rt.debugging(fault))


def _succeeded(rt: Engine, call: Call, stop: Stop, ended: Ended, total: int, decision: Decision | None) -> Outcome[Any]:
    """``decision`` is what took a partial result for good enough; None: the value is whole."""
    now = ended.ended
    tool = stop.tool
    part = ended.value if isinstance(ended.value, Partial) else None
    if stop.attempts.made and part is None:
        made = stop.attempts
        rt.emit(events.RETRY_SUCCEEDED, tool, call, tell_recovery(made.made + 1, now - made.first_failed_at))
    if part is not None:
        rt.emit(events.PARTIAL_USED, tool, call, {"message": "Used partial result"})
    duration = now - call.started
    fields = tell_success(call.tool.id, total, ended.ended - ended.started, duration) | dict(ended.notes)
    if tool is not call.tool and call.failed_at is not None:
        fields["recovery_ms"] = round((now - call.failed_at) * 1000, 3)
    rt.emit(events.CALL_SUCCEEDED, tool, call, fields)
    if call.thread is not None:
        rt.notebook.note_success(call)
    value = ended.value if part is None else part.value
    missing = None if part is None else part.missing
    status: Status = "succeeded"
    outcome: Outcome[Any] = Outcome(
        call.id, call.tool.id, status, value, total, tool.id, duration, None, decision, missing, call.tool.label
    )
    _close_record(rt, call, outcome)
    return outcome


def _close_record(rt: Engine, call: Call, outcome: Outcome[Any]) -> None:
    """A call that may have been recorded has ended."""
    outcome.recorded = call.kept
    if rt.ledger is not None and call.record is not None:
        rt.ledger.end(call, acted=outcome.fault is None or outcome.fault.effect != "none")


def tell_recovery(attempt: int, seconds: float) -> dict[str, Any]:
    """The fields of ``RetrySucceeded``."""
    return {
        "message": f"Tool succeeded on retry {attempt}",
        "attempt": attempt,
        "recovery_ms": round(seconds * 1000, 3),
    }


def tell_success(primary: str, attempts: int, seconds: float, total: float) -> dict[str, Any]:
    """The fields of ``CallSucceeded``, where it was not plain."""
    return {
        "duration_ms": round(seconds * 1000, 3),
        "attempts": attempts,
        "total_ms": round(total * 1000, 3),
        "primary": primary,
    }


def _takes_parts(call: Call, giver: Stop) -> bool:
    """Whether a part may end the call: neither the tool that was asked for nor the one that gave it rules that out."""
    return call.tool.options.accept_partial is not False and giver.tool.options.accept_partial is not False


def _fail(rt: Engine, call: Call, stop: Stop, fault: Fault, decision: Decision, best: Partial | None) -> Way:
    message = None if stop.policy is None else stop.policy.then.message
    total = call.made
    outcome: Outcome[Any] = Outcome(
        call.id,
        call.tool.id,
        "failed",
        attempts=total,
        duration=rt.now() - call.started,
        fault=fault,
        decision=decision,
        label=call.tool.label,
        escalated=decision.strategy == "escalate",
        explanation=partial(rt.explain, known=call.tool.known_effect) if call.by_agent else rt.explain,
        told=message,
        missing=None if best is None else best.missing,
        partial=None if best is None else best.value,
    )
    _close_record(rt, call, outcome)
    if rt.phraser is not None and message is None and not call.inner:
        yield Phrase(outcome)
    if total:
        rt.emit(
            events.CALL_FAILED, call.tool, call,
            {
                "code": fault.code.value,
                "category": fault.category,
                "effect": fault.effect,
                "attempts": total,
                "total_ms": round(outcome.duration * 1000, 3),
                "safe_to_repeat": call.tool.safe,
                "error": fault.message,
                "escalated": outcome.escalated,
            },
        )  # fmt: skip
    if call.thread is not None:
        rt.notebook.note_failure(call, outcome)
    if outcome.escalated:
        rt.escalate(call, outcome)
    return outcome


def _find_loop(rt: Engine, call: Call) -> Failure | None:
    """Has this very call just failed for good, and again? Whether its tool is there comes first (R14)."""
    return None if is_absent(rt, call, call.tool) else rt.notebook.find_loop(call)


def _answer(rt: Engine, call: Call, failure: Failure) -> Outcome[Any]:
    """This very call has just failed, and would again: say the same without running it."""
    fault = builtin_faults.loop_prevented(failure.fault, len(failure.times))
    outcome: Outcome[Any] = Outcome(
        call.id,
        call.tool.id,
        "failed",
        duration=rt.now() - call.started,
        fault=fault,
        decision=failure.decision and failure.decision._replace(reason=fault.reason),
        label=call.tool.label,
        escalated=failure.escalated,
        explanation=lambda made: rt.explain(made)._replace(
            user=failure.explanation.user, operator=failure.explanation.operator
        ),
        told=failure.told,
    )
    fields = {
        "message": f"Loop prevented for {call.tool.id}",
        "error": fault.message,
        "code": fault.code.value,
        "category": fault.category,
        "reason": fault.reason,
        "thread": call.thread,
    }
    rt.emit(events.LOOP_PREVENTED, call.tool, call, fields)
    return outcome
