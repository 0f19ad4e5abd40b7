"""The way of one call, from its first failure (or its first obstacle) to its outcome.

``run_pipeline`` is a generator: it asks the core, keeps the books and yields only what takes time (``Invoke``, ``Wait``,
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
from failsoft.core.effects.call_effect import effect_of_call
from failsoft.core.model import builtin_faults
from failsoft.core.model.effect import worst_effect
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback
from failsoft.core.model.outcome import Decision, Outcome, Status
from failsoft.core.model.partial import Partial, more_complete
from failsoft.core.resilience.circuit_breaker import Refusal, Ticket
from failsoft.core.resilience.error_handler import ErrorReport, decide, decision_fields
from failsoft.core.resilience.fallback import may_have_acted
from failsoft.core.resilience.retry import NoRetry, Retry, add_hinted_wait
from failsoft.errors import CallFailed
from failsoft.observe import events
from failsoft.runtime.call.admission import check_availability, check_rate_hold, emit_transition, is_absent
from failsoft.runtime.call.model import (
    NO_PROGRESS,
    AttemptResult,
    Call,
    CallSteps,
    Candidate,
    Consult,
    Phrase,
    Progress,
    RecordWrite,
    Step,
    TakeOffer,
    Wait,
)
from failsoft.runtime.call.recovery import (
    available_fallbacks,
    choose_decision,
    learn,
    make_report,
    plan,
    refresh_report,
    remember_error,
    report_to_breaker,
    stop_retrying,
    validate_handler_decision,
)
from failsoft.runtime.call.tracebacks import without_callers
from failsoft.runtime.execution.processes.reply import WorkerError
from failsoft.runtime.tools.control import MisfitError
from failsoft.runtime.tools.tool import count_as_write

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Failure, Offer
    from failsoft.runtime.call.ports import PipelineServices
    from failsoft.runtime.persistence.effect_ledger import Answer

_PARTIAL = Decision("partial_success", "A partial result is acceptable")
_QUEUED = 0.001  # seconds: less is not worth a word
_ROUNDS = 3  # of the event loop: what a task starts in another task has begun by then
_ACTED_SINCE = "a task of the failed attempt may have acted since"


def run_pipeline(  # noqa: C901 - the whole order, in one place
    rt: PipelineServices,
    call: Call,
    first: AttemptResult | None = None,
    ticket: Ticket | None = None,
    past: Progress = NO_PROGRESS,
) -> CallSteps:
    """Take the call to its outcome. ``first`` is an attempt that has been made already, with its ticket."""
    candidate = Candidate(rt, call, call.tool, None, ticket)
    tried = {call.tool.id}
    later: list[Fallback] = []  # alternatives of an earlier stop that are still to be asked
    primary, candidate.effect, candidate.attempts, candidate.retried = past
    effect = candidate.effect
    total = call.attempts_ended = candidate.attempts.made
    call.invoked, giver = False, candidate
    best: Partial | None = None  # which ``giver`` gave
    looping = _find_loop(rt, call) if first is None and call.thread is not None else None
    if looping is not None:
        return _loop_outcome(rt, call, looping)
    while True:
        ended, first = first, None
        fault = None if ended is not None else (yield from _enter(rt, call, candidate))
        if fault is None and ended is None:
            ended = yield from _invoke(rt, call, candidate)
        if ended is not None:
            ended, part = _split_partial(ended)
            total += ended.entered
            call.attempts_ended, call.invoked = total, False
            fault = _classify_result(rt, call, candidate, ended)
            if fault is not None and _may_have_spawned_tasks(candidate, fault, ended):
                fault = yield from _wait_for_spawned_tasks(rt, call, candidate, fault)
            _note_attempt(rt, call, candidate, fault, ended)
            if fault is None:
                report_to_breaker(rt, call, candidate, "success")
                learn(rt, candidate, ended.ended, worked=True)
                return _succeeded(rt, call, candidate, ended, total, part and _PARTIAL)
            kept = more_complete(best, part)
            best, giver = kept, giver if kept is best else candidate
        assert fault is not None
        effect, candidate.effect = worst_effect((effect, fault.effect)), worst_effect((candidate.effect, fault.effect))
        own = (
            ended is not None and ended.entered and candidate.tool is call.tool
        ) or fault.rule == builtin_faults.BEGUN_BEFORE
        retry = plan(rt, call, candidate, fault, ended)
        if (
            isinstance(retry, NoRetry) and retry.cut_off and fault.rule != builtin_faults.TOOL_TIMEOUT
        ):  # its words are fixed
            fault = fault._replace(reason=f"{fault.reason}; {retry.why}")
        primary = fault if own else primary or fault  # what went wrong last with the tool that was asked for
        options = available_fallbacks(rt, call, candidate, fault, tried, later)
        report = make_report(
            rt, call, candidate, fault, retry, options, best if _accepts_partial(call, giver) else None
        )
        wanted = None
        if rt.handler is not None:
            answer = yield from _consult(rt, call, candidate, report)
            report = refresh_report(call, report)
            wanted = validate_handler_decision(rt, call, candidate, answer, report, tried)
        report, decision = choose_decision(rt, candidate, ended, report, wanted)
        _emit_failure(rt, call, candidate, fault, ended, report, decision, handled=decision is wanted)
        if decision.strategy == "retry":
            _prepare_retry(rt, call, candidate, fault, ended)
            if decision.delay:
                yield from _pause(rt, call, candidate, decision.delay, retry)
            if not _has_acted_since(call, candidate, fault):
                continue
            effect = "unknown"
            decision = decide(report._replace(retry_delay=None, no_retry=_ACTED_SINCE, alternatives=()))
        stop_retrying(rt, call, candidate, fault, ended)
        if decision.strategy == "alternative_tool" and decision.tool is not None:
            candidate, later = _switch_to_fallback(rt, call, candidate, decision, options)
            tried.add(candidate.tool.id)
            continue
        if decision.strategy == "partial_success" and best is not None:
            now = rt.now()
            return _succeeded(rt, call, giver, AttemptResult(now, now, best), total, decision)
        return (yield from _fail(rt, call, candidate, primary._replace(effect=effect), decision, best))


def with_queue_time(ended: AttemptResult, seconds: float) -> AttemptResult:
    """An attempt that had to wait for a slot, a thread or a process says so."""
    if seconds < _QUEUED:
        return ended
    return ended._replace(notes={**ended.notes, "queued_ms": round(seconds * 1000, 3)})


def _split_partial(ended: AttemptResult) -> tuple[AttemptResult, Partial | None]:
    """How an attempt has ended, and the part that it has got. Where its arguments were refused, the tool never ran."""
    if isinstance(ended.error, MisfitError):
        return ended._replace(entered=False), None
    return ended, ended.value if isinstance(ended.value, Partial) else None


def _pause(
    rt: PipelineServices, call: Call, candidate: Candidate, delay: float, retry: Retry | NoRetry
) -> Generator[Step, None, None]:
    """Wait for the next attempt. A probe whose caller leaves meanwhile has come to no verdict (T2)."""
    if isinstance(retry, Retry) and retry.hinted:
        call.hinted_wait += delay
        candidate.attempts = add_hinted_wait(candidate.attempts, delay)
    call.waiting = True
    try:
        yield Wait(delay)
    except BaseException:
        report_to_breaker(rt, call, candidate, "neutral")
        raise
    call.waiting = False


def _invoke(rt: PipelineServices, call: Call, candidate: Candidate) -> Generator[Step, Any, AttemptResult]:
    """Make an attempt."""
    asked = rt.now()
    call.invoked, call.acted = True, False
    try:
        ended: AttemptResult = yield candidate.invoke
    except BaseException:
        _on_interrupted_attempt(rt, call, candidate)
        raise
    return with_queue_time(ended, ended.started - asked)


def _enter(rt: PipelineServices, call: Call, candidate: Candidate) -> Generator[Step, Any, Fault | None]:
    """Pass the gates, use up the retry offer, have a write recorded. A fault keeps the attempt from starting."""
    fault = _admit(rt, call, candidate)
    if fault is None and call.offer is not None and not call.offer_taken:
        fault = yield from _take_offer(rt, call, candidate, call.offer)
    if fault is None and rt.ledger is not None and rt.ledger.wants(call, candidate.tool):
        fault = yield from _record_write(rt, call, candidate)
    return fault


def _take_offer(
    rt: PipelineServices, call: Call, candidate: Candidate, offer: Offer
) -> Generator[Step, Any, Fault | None]:
    """Use up the offer that a user's retry makes use of, once: the retry is about to run."""
    call.waiting = True
    try:
        taken: bool | None = yield TakeOffer(offer)
    except BaseException:
        report_to_breaker(rt, call, candidate, "neutral")
        raise
    call.waiting = False
    if not taken:
        return builtin_faults.no_offer(call.tool.id)
    call.offer_taken = True
    fields = {"message": f"Retry offer taken for {call.tool.id}", "thread": call.thread}
    rt.emit(events.OFFER_TAKEN, call.tool, call, fields)
    return None


def _record_write(rt: PipelineServices, call: Call, candidate: Candidate) -> Generator[Step, Any, Fault | None]:
    """Have a write recorded before it starts; a fault keeps it from starting."""
    call.waiting = True
    try:
        answer: Answer = yield RecordWrite()
    except BaseException:
        report_to_breaker(rt, call, candidate, "neutral")
        raise
    call.waiting = False
    if answer == "begun":
        return builtin_faults.begun_before()
    call.write_recorded = answer == "kept"
    if call.write_recorded:
        return None
    fields = {"message": f"{call.tool.id} could not be recorded before it starts", "refused": rt.store_required}
    rt.emit(events.NOT_RECORDED, call.tool, call, fields)
    return builtin_faults.not_recorded(call.tool.id) if rt.store_required else None


def _consult(
    rt: PipelineServices, call: Call, candidate: Candidate, report: ErrorReport
) -> Generator[Step, Any, Decision | None]:
    """Let somebody else's Error Handler decide; None if it fails."""
    try:
        answer: Decision | None = yield Consult(report)
    except BaseException:
        report_to_breaker(rt, call, candidate, "neutral")
        raise
    return answer


def _prepare_retry(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, ended: AttemptResult | None
) -> None:
    """Another attempt of this tool follows."""
    if candidate.family is not None and candidate.family not in candidate.retried:
        candidate.retried += (candidate.family,)
    if ended is not None and ended.error is not None:
        remember_error(rt, call, candidate, fault, ended.error)
        ended.error.__traceback__ = None  # nobody will see it; it holds the frames that hold it


def _switch_to_fallback(
    rt: PipelineServices, call: Call, candidate: Candidate, decision: Decision, options: list[Fallback]
) -> tuple[Candidate, list[Fallback]]:
    """The next stop, and what is left of the alternatives."""
    assert decision.tool is not None
    via = next((option for option in options if option.tool == decision.tool), Fallback(tool=decision.tool))
    rt.emit(
        events.FALLBACK_USED, candidate.tool, call,
        {"message": "Used alternative tool", "alternative": via.tool, "reason": decision.reason},
    )  # fmt: skip
    tool = rt.tools[via.tool]
    other = Candidate(rt, call, count_as_write(tool) if call.by_agent else tool, via)
    other.cause, other.began = candidate.family, rt.now()
    other.acted_before = candidate.acted_before or may_have_acted(candidate.effect, candidate.tool.known_effect)
    return other, [option for option in options if option is not via]


def _admit(rt: PipelineServices, call: Call, candidate: Candidate) -> Fault | None:
    """Pass the gates in R14's order, or say which is shut. Who stands in must take the arguments."""
    fault = check_availability(rt, call, candidate.tool)
    if fault is None and candidate.tool is not call.tool and not candidate.attempts.made:
        fault = candidate.tool.misfit(call.args, call.arguments(rt, candidate.tool), typed=call.typed)
    if fault is None and candidate.tool.health.holds:
        fault = check_rate_hold(rt, call, candidate.tool)
    if fault is not None or candidate.ticket is not None:
        return fault
    now = rt.now()
    with rt.lock:
        before = candidate.health.state.state
        answer = candidate.health.admit(now, candidate.timeout)
        after = candidate.health.state.state
    if isinstance(answer, Refusal):
        return builtin_faults.circuit_open(candidate.tool.id, answer.retry_after, candidate.health.opened_by)
    candidate.ticket = answer
    if after != before:
        emit_transition(rt, call, candidate, after)
    return None


def _on_interrupted_attempt(rt: PipelineServices, call: Call, candidate: Candidate) -> None:
    """The caller has left an attempt that was under way."""
    report_to_breaker(rt, call, candidate, "neutral")
    call.report_effect(candidate.tool, "unknown")


def _classify_result(rt: PipelineServices, call: Call, candidate: Candidate, ended: AttemptResult) -> Fault | None:
    """The fault of an attempt that has ended, with the effect that the call had; None if it succeeded."""
    fault = _find_fault(rt, candidate, ended)
    if fault is not None:
        many = candidate.tool.options.requests == "many" or _has_asked_elsewhere(rt, fault)
        effect = effect_of_call(fault, entered=ended.entered, acted_inside=call.may_have_acted_inside, many=many)
        if effect != fault.effect:
            fault = fault._replace(effect=effect)
    call.report_effect(candidate.tool, "happened" if fault is None else fault.effect)
    return fault


def _has_asked_elsewhere(rt: PipelineServices, fault: Fault) -> bool:
    """True if what failed is an inner call that is safe to repeat: whatever else the tool does is another request."""
    if fault.source != "remote" or not fault.rule.startswith(builtin_faults.NESTED):
        return False
    inner = [rt.tools.get(failed.tool) for failed in failures_inside(fault.cause)]
    return not inner or any(tool is None or tool.safe_to_repeat for tool in inner)  # none: it was in another process


def _may_have_spawned_tasks(candidate: Candidate, fault: Fault, ended: AttemptResult) -> bool:
    """True if it matters whether the attempt has left tasks behind that have not begun yet."""
    return (
        ended.entered
        and fault.effect == "none"
        and candidate.tool.safe_to_repeat is False
        and candidate.tool.kind == "async"
    )


def _wait_for_spawned_tasks(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault
) -> Generator[Step, None, Fault]:
    """Let tasks begin that the attempt has made: guarded calls in them may act, whatever its own error says."""
    try:
        for _ in range(_ROUNDS):
            yield Wait(0.0)
    except BaseException:
        report_to_breaker(rt, call, candidate, "neutral")
        raise
    if not call.may_have_acted_inside:
        return fault
    call.report_effect(candidate.tool, "unknown")
    return fault._replace(effect="unknown")


def _has_acted_since(call: Call, candidate: Candidate, fault: Fault) -> bool:
    """True if a task that the failed attempt left behind makes a retry unsafe after all."""
    return fault.effect == "none" and candidate.tool.safe_to_repeat is False and call.may_have_acted_inside


def _find_fault(rt: PipelineServices, candidate: Candidate, ended: AttemptResult) -> Fault | None:
    options = candidate.tool.options
    if ended.error is not None:
        error = without_callers(ended.error)
        if isinstance(error, MisfitError | WorkerError):  # failsoft's own: the fault is known
            return error.fault._replace(cause=error)
        judged = read(error, "remote_fault")  # by the worker, where the error was whole
        if isinstance(judged, Fault) and not options.classification:
            return judged._replace(cause=error)
        fault = classify(error, tool=candidate.tool.id, overrides=options.classification, now=rt.wall())
        if isinstance(judged, Fault):
            fault = fault._replace(effect=worst_effect((fault.effect, judged.effect)))
        return adopt_fault(fault, error)
    if ended.fault is not None:
        return ended.fault
    if isinstance(ended.value, Partial):
        return None if options.accept_partial is True else builtin_faults.partial_result(ended.value.missing)
    return candidate.tool.check_output(ended.value)


def _note_attempt(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault | None, ended: AttemptResult
) -> None:
    """Remember whether the tool is there at all."""
    if call.thread is not None or (fault is not None and fault.category == "tool_unavailable"):
        rt.conversations.note_attempt(call, candidate.tool, fault, ran=ended.entered)


def _emit_failure(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, ended: AttemptResult | None, report: ErrorReport, decision: Decision, *,
    handled: bool,
) -> None:  # fmt: skip
    """Write the failure and the decision about it into the stream."""
    if fault.rule == builtin_faults.TOOL_TIMEOUT:
        rt.emit(
            events.TOOL_TIMEOUT, candidate.tool, call, {"timeout_ms": round(candidate.timeout * 1000), "kind": "tool"}
        )
    elif ended is not None and builtin_faults.is_client_timeout(fault):
        rt.emit(events.TOOL_TIMEOUT, candidate.tool, call, {"kind": "client"})
    fields = decision_fields(report, decision)
    if handled:
        fields["handled"] = True  # by somebody else's Error Handler
    if rt.handler is not None and ended is not None:
        fields["decided_ms"] = round((rt.now() - ended.ended) * 1000, 3)
    if ended is None:
        waits = decision.strategy == "retry"
        if waits:
            fields["delay_ms"] = round((decision.delay or 0.0) * 1000, 3)
        rt.emit(events.CALL_HELD if waits else events.CALL_REFUSED, candidate.tool, call, fields)
        return
    fields |= ended.notes
    if isinstance(ended.error, CallFailed):
        fields["inner_call_id"] = ended.error.outcome.id
    fields["duration_ms"] = round((ended.ended - ended.started) * 1000, 3)
    if decision.strategy == "retry":
        fields["delay_ms"] = round((decision.delay or 0.0) * 1000, 3)
        if fault.effect == "unknown" and candidate.tool.safe_to_repeat is None:
            candidate.tool.warn_undeclared()
    rt.emit(events.TOOL_ERROR, candidate.tool, call, fields)
    if fault.category == "internal_contract_bug" and not fault.rule.startswith(builtin_faults.NESTED):
        rt.emit(events.INTERNAL_ERROR, candidate.tool, call, rt.debug_fields(fault))


def _succeeded(
    rt: PipelineServices, call: Call, candidate: Candidate, ended: AttemptResult, total: int, decision: Decision | None
) -> Outcome[Any]:
    """``decision`` is what took a partial result for good enough; None: the value is whole."""
    now = ended.ended
    tool = candidate.tool
    part = ended.value if isinstance(ended.value, Partial) else None
    if candidate.attempts.made and part is None:
        made = candidate.attempts
        rt.emit(events.RETRY_SUCCEEDED, tool, call, recovery_fields(made.made + 1, now - made.first_failed_at))
    if part is not None:
        rt.emit(events.PARTIAL_USED, tool, call, {"message": "Used partial result"})
    duration = now - call.started
    fields = success_fields(call.tool.id, total, ended.ended - ended.started, duration) | dict(ended.notes)
    if tool is not call.tool and call.failed_at is not None:
        fields["recovery_ms"] = round((now - call.failed_at) * 1000, 3)
    rt.emit(events.CALL_SUCCEEDED, tool, call, fields)
    if call.thread is not None:
        rt.conversations.note_success(call)
    value = ended.value if part is None else part.value
    missing = None if part is None else part.missing
    status: Status = "succeeded"
    outcome: Outcome[Any] = Outcome(
        call.id, call.tool.id, status, value, total, tool.id, duration, None, decision, missing, call.tool.label
    )
    _close_record(rt, call, outcome)
    return outcome


def _close_record(rt: PipelineServices, call: Call, outcome: Outcome[Any]) -> None:
    """A call that may have been recorded has ended."""
    outcome.recorded = call.write_recorded
    if rt.ledger is not None and call.write_record is not None:
        rt.ledger.end(call, acted=outcome.fault is None or outcome.fault.effect != "none")


def recovery_fields(attempt: int, seconds: float) -> dict[str, Any]:
    """The fields of ``RetrySucceeded``."""
    return {
        "message": f"Tool succeeded on retry {attempt}",
        "attempt": attempt,
        "recovery_ms": round(seconds * 1000, 3),
    }


def success_fields(primary: str, attempts: int, seconds: float, total: float) -> dict[str, Any]:
    """The fields of ``CallSucceeded``, where it was not plain."""
    return {
        "duration_ms": round(seconds * 1000, 3),
        "attempts": attempts,
        "total_ms": round(total * 1000, 3),
        "primary": primary,
    }


def _accepts_partial(call: Call, giver: Candidate) -> bool:
    """True if a partial result may end the call: neither the tool asked for nor the tool that returned it forbids that."""
    return call.tool.options.accept_partial is not False and giver.tool.options.accept_partial is not False


def _fail(
    rt: PipelineServices, call: Call, candidate: Candidate, fault: Fault, decision: Decision, best: Partial | None
) -> CallSteps:
    message = None if candidate.policy is None else candidate.policy.then.message
    total = call.attempts_ended
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
    if rt.phraser is not None and message is None and not call.is_inner:
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
                "safe_to_repeat": call.tool.safe_to_repeat,
                "error": fault.message,
                "escalated": outcome.escalated,
            },
        )  # fmt: skip
    if call.thread is not None:
        rt.conversations.note_failure(call, outcome)
    if outcome.escalated:
        rt.escalate(call, outcome)
    return outcome


def _find_loop(rt: PipelineServices, call: Call) -> Failure | None:
    """Has this very call just failed for good, and again? Whether its tool is there comes first (R14)."""
    return None if is_absent(rt, call, call.tool) else rt.conversations.find_loop(call)


def _loop_outcome(rt: PipelineServices, call: Call, failure: Failure) -> Outcome[Any]:
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
