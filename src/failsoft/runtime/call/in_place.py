"""The steps that every driver answers in the same way: at once, without waiting."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from failsoft.core.effects.verification import longest_call
from failsoft.core.model import builtin_faults
from failsoft.observe import events
from failsoft.observe.retry_fields import describe_retry, retry_fields
from failsoft.observe.sinks.log import INFO, is_logged
from failsoft.runtime.call.admission import admit, give_token_back, is_unavailable, report_to_breaker
from failsoft.runtime.call.assessment import assess, check_inside, classify_result, find_fallbacks, learn, spend
from failsoft.runtime.call.model import Call
from failsoft.runtime.call.pipeline import Pipeline
from failsoft.runtime.call.returned_value import read_value
from failsoft.runtime.call.steps import (
    Admit,
    AskMemory,
    Assess,
    BegunBefore,
    CallSteps,
    CheckBegun,
    CheckInside,
    Classify,
    CountCall,
    Emit,
    EmitBug,
    EmitRetry,
    EndRecord,
    Escalate,
    FindFallbacks,
    FindLoop,
    ForgetUnanswered,
    Interrupted,
    Learn,
    LoopFound,
    NoteAttempt,
    NoteHappened,
    NoteOutcome,
    ReadValue,
    Report,
    Spend,
    Step,
    Switched,
    SwitchTo,
    WarnMissing,
)
from failsoft.runtime.tools.counted_as_write import count_as_write

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.runtime.call.model import AttemptResult
    from failsoft.runtime.call.ports import InPlaceServices
    from failsoft.runtime.tools.tool import Tool

T = TypeVar("T")


def answer_in_place(rt: InPlaceServices, call: Call, step: Step) -> Any:
    """Perform a step that takes no time, and return the answer to it."""
    return IN_PLACE[type(step)](rt, call, step)


def interrupt(rt: InPlaceServices, call: Call, steps: CallSteps) -> None:
    """End a pipeline whose caller was cancelled, and perform its last steps."""
    try:
        step = steps.throw(Interrupted())
        while True:
            step = steps.send(answer_in_place(rt, call, step))
    except Interrupted:
        return


def can_be_replaced(rt: InPlaceServices, tool: Tool, thread: str | None, tenant: str | None) -> bool:
    """True if a fallback would replace this tool, which is missing."""
    call = Call("", tool, (), {}, rt.time.now(), thread=thread, tenant=tenant)
    fault = tool.unavailable_fault or builtin_faults.tool_marked_unavailable(tool.id)
    return _run_in_place(rt, call, Pipeline(rt.runner.pipeline_options, call).can_be_replaced(fault))


def _run_in_place(rt: InPlaceServices, call: Call, steps: Generator[Step, Any, T]) -> T:
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        answer = answer_in_place(rt, call, step)


def _count_call(_: InPlaceServices, call: Call, __: CountCall) -> Fault | None:
    allowance = None if call.turn is None else call.turn.allowance
    return None if allowance is None else allowance.take(call.tool.id)


def _find_loop(rt: InPlaceServices, call: Call, _: FindLoop) -> LoopFound:
    now, conversations = rt.time.now(), rt.books.conversations
    if is_unavailable(rt, call, call.tool):
        return LoopFound(None, now)
    return LoopFound(conversations.find_loop(call), now, conversations.count_refused_repeats(call))


def _check_begun(rt: InPlaceServices, call: Call, _: CheckBegun) -> BegunBefore:
    ledger = rt.books.ledger
    tool = call.tool
    longest = longest_call(tool.options, is_command=tool.command is not None, timeout=call.timeout, retry=call.retry)
    why = None if ledger is None else ledger.why_begun_may_run(call, longest)
    if why is None and not call.adopt_key((call.begun_record or {}).get("key")):
        why = "its key is not known"
    left = None if call.turn is None else call.turn.left()
    return BegunBefore(why, rt.time.now(), left, call.abandoned, bool((call.begun_record or {}).get("acted")))


def _ask_memory(rt: InPlaceServices, _: Call, step: AskMemory) -> str | None:
    record = None if rt.judgement.memory is None else rt.judgement.memory.skips_retry(step.family)
    return None if record is None else str(record)


def _switch_to(rt: InPlaceServices, call: Call, step: SwitchTo) -> Switched:
    tool = rt.toolbox.tools[step.via.tool]
    if call.by_agent:
        tool = count_as_write(tool)
    return Switched(tool, rt.toolbox.health_of(call.tool, tool, step.via), rt.time.now())


def _report(rt: InPlaceServices, call: Call, step: Report) -> None:
    candidate, ticket, verdict, fault, effect = step
    if ticket is not None:
        report_to_breaker(rt, call, candidate, ticket, verdict, fault)
    if candidate.token_at is not None:
        give_token_back(rt, call, candidate)
    if effect != "none":
        call.report_effect(candidate.tool, effect)


def _emit(rt: InPlaceServices, call: Call, step: Emit) -> None:
    rt.log.emit(step.event_type, step.tool, call, step.fields)


def _emit_retry(rt: InPlaceServices, call: Call, step: EmitRetry) -> None:
    tool, fault, seconds, attempt, delay, evidence = step
    if call.parent is not None or call.span is not None or is_logged(INFO):
        rt.log.emit(events.TOOL_ERROR, tool, call, describe_retry(*step))
        return
    known, retries = fault[:-1], rt.log.trace.retries(tool.id)  # without its cause
    with rt.toolbox.lock:
        retries.made += 1
    rt.log.trace.record(
        (events.TOOL_ERROR, rt.time.now(), tool, call.id, None, retry_fields, known, seconds, attempt, delay, evidence)
    )


def _emit_bug(rt: InPlaceServices, call: Call, step: EmitBug) -> None:
    rt.log.emit(events.INTERNAL_ERROR, step.tool, call, rt.log.debug_fields(step.fault))


def _end_record(rt: InPlaceServices, call: Call, step: EndRecord) -> None:
    if rt.books.ledger is not None and call.write_record is not None:
        rt.books.ledger.end(call, acted=step.acted)


def _note_happened(rt: InPlaceServices, call: Call, _: NoteHappened) -> None:
    if rt.books.ledger is not None:
        rt.books.ledger.note_happened(call)


def _note_outcome(rt: InPlaceServices, call: Call, step: NoteOutcome) -> None:
    if step.outcome.fault is None:
        rt.books.conversations.note_success(call)
        repeats = rt.books.conversations.note_value(call, step.outcome.value)
        if repeats:
            step.outcome.set_repeats(repeats)
    else:
        rt.books.conversations.note_failure(call, step.outcome)


def _read_value(rt: InPlaceServices, call: Call, step: ReadValue) -> AttemptResult:
    tool = step.candidate.tool
    return read_value(tool, step.result, answers_verify=lambda: _answers_verify(rt, call, tool))


def _answers_verify(rt: InPlaceServices, call: Call, tool: Tool) -> bool:
    """True if the ``verify`` of another tool may call this one: it is that function, or is called inside it."""
    asked = call.parent
    return (asked is not None and asked.tool.options.verify is not None) or any(
        other.options.verify is tool.guarded for other in [*rt.toolbox.tools.values()]
    )


IN_PLACE: dict[type, Callable[[Any, Call, Any], Any]] = {
    CountCall: _count_call,
    FindLoop: _find_loop,
    Admit: admit,
    CheckBegun: _check_begun,
    ReadValue: _read_value,
    Classify: classify_result,
    CheckInside: lambda _, call, step: check_inside(call, step.tool),
    NoteAttempt: lambda rt, call, step: rt.books.conversations.note_attempt(call, step.tool, step.fault, ran=step.ran),
    Assess: assess,
    FindFallbacks: find_fallbacks,
    AskMemory: _ask_memory,
    Spend: spend,
    SwitchTo: _switch_to,
    Report: _report,
    Learn: lambda rt, _, step: learn(rt, step.candidate, step.at, worked=step.worked),
    Emit: _emit,
    EmitRetry: _emit_retry,
    EmitBug: _emit_bug,
    WarnMissing: lambda rt, _, step: step.tool.warn_missing_fallbacks(step.absent, rt.toolbox.tools),
    EndRecord: _end_record,
    NoteHappened: _note_happened,
    NoteOutcome: _note_outcome,
    ForgetUnanswered: lambda rt, call, _: rt.books.conversations.forget_unanswered(call),
    Escalate: lambda rt, call, step: rt.log.escalate(call, step.outcome),
}
