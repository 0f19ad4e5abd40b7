"""Assessment after an attempt: classify its result, count its failure, look up what a decision depends on.

Each function performs one step of the pipeline. The decisions themselves are pure functions of ``core``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from failsoft.core.classify import classify_failure, key_of
from failsoft.core.classify.evidence import read
from failsoft.core.classify.nested import adopt_fault, failures_inside
from failsoft.core.classify.request_method import answers_a_read
from failsoft.core.effects.call_effect import effect_of_call
from failsoft.core.effects.verification import can_verify
from failsoft.core.model import builtin_faults
from failsoft.core.model.effect import worst_effect
from failsoft.core.model.fault import Fault
from failsoft.core.model.partial import Partial
from failsoft.core.resilience.fallback import alternatives, would_act_again
from failsoft.runtime.call.admission import can_replace, report_to_breaker, set_rate_hold, spend_retry
from failsoft.runtime.call.steps import FallbacksFound, make_standing
from failsoft.runtime.call.tracebacks import without_callers
from failsoft.runtime.execution.processes.reply import WorkerError
from failsoft.runtime.execution.running_tasks import note_running_tasks
from failsoft.runtime.tools.control import MisfitError
from failsoft.runtime.tools.counted_as_write import count_as_write
from failsoft.runtime.tools.known_errors import MOST_KNOWN, KnownError

if TYPE_CHECKING:
    from failsoft.core.model.options import Fallback
    from failsoft.runtime.call.candidate import Candidate
    from failsoft.runtime.call.model import AttemptResult, Call
    from failsoft.runtime.call.ports import InPlaceServices
    from failsoft.runtime.call.steps import Assess, Classify, FindFallbacks, Spend, Standing
    from failsoft.runtime.tools.tool import Tool


_OWN_ERRORS = (MisfitError, WorkerError)


# --- the fault --------------------------------------------------------------------------------------------------------


def classify_result(rt: InPlaceServices, call: Call, step: Classify) -> Fault | None:
    """Return the fault of an attempt, with the effect that the call had; None if it succeeded."""
    tool, result = step.candidate.tool, step.result
    fault = _find_fault(rt, tool, result)
    if fault is not None:
        if fault.effect == "none" and tool.safe_to_repeat is None and result.entered and tool.kind == "async":
            note_running_tasks(call)
        many = tool.options.requests == "many" or _is_of_another_request(rt, tool, fault)
        effect = effect_of_call(fault, entered=result.entered, acted_inside=call.may_have_acted_inside, many=many)
        if effect != fault.effect:
            fault = fault._replace(effect=effect)
    if fault is None or not can_verify(tool.options, fault, tool.safe_to_repeat):  # else: once it is verified
        call.report_effect(tool, "happened" if fault is None else fault.effect)
    return fault


def _find_fault(rt: InPlaceServices, tool: Tool, result: AttemptResult) -> Fault | None:
    options = tool.options
    if result.error is not None:
        error = without_callers(result.error)
        if isinstance(error, _OWN_ERRORS):  # these errors carry their fault
            return error.fault._replace(cause=error)
        judged = read(error, "remote_fault")  # classified by the worker process, which had the whole error
        remote = judged if judged is not None and isinstance(judged, Fault) else None
        if remote is not None and not options.classification:
            return remote._replace(cause=error)
        fault = classify_failure(error, overrides=options.classification, now=rt.time.wall())
        if remote is not None:
            fault = fault._replace(effect=worst_effect((fault.effect, remote.effect)))
        return adopt_fault(fault, error)
    if result.fault is not None:
        return result.fault
    value = result.value
    if isinstance(value, Partial):
        return None if options.accept_partial is True else builtin_faults.partial_result(value.missing)
    return tool.check_output(value)


def _is_of_another_request(rt: InPlaceServices, tool: Tool, fault: Fault) -> bool:
    """True if the refused request may not be the one that acts.

    A request that can only read is not the action of a write. Nor is a failed inner call that is safe to repeat.
    """
    if fault.source != "remote":
        return False
    if not fault.rule.startswith(builtin_faults.NESTED):
        return fault.effect == "none" and tool.known_effect.effect == "write" and answers_a_read(fault.cause)
    inner = [rt.toolbox.tools.get(failed.tool) for failed in failures_inside(fault.cause)]
    return not inner or any(tool is None or tool.safe_to_repeat for tool in inner)  # empty: it ran in another process


def check_inside(call: Call, tool: Tool) -> bool:
    """True if an inner call or a task of the latest attempt may have acted, or may still act. Reports it to the outer call.

    For an undeclared tool, only inner calls of known writes count.
    """
    undeclared = tool.safe_to_repeat is None
    if not undeclared:
        note_running_tasks(call)
    acted = call.may_have_written_inside if undeclared else call.may_have_acted_inside
    if acted:
        call.report_effect(tool, "unknown")
        if undeclared:
            tool.known_errors = None  # retries of known errors do not look for tasks that act late
    return acted


# --- after a failure --------------------------------------------------------------------------------------------------


def assess(rt: InPlaceServices, call: Call, step: Assess) -> Standing:
    """Count a failure, and gather everything that the decision depends on."""
    candidate, fault, entered, ticket, verdict, hold = step
    tool, health, memory = candidate.tool, candidate.health, rt.judgement.memory
    if rt.judgement.policies and not tool.was_looked_up_in_policies:
        _look_up_policies(rt, tool)
    if hold:
        set_rate_hold(rt, call, tool, fault)
    opened = ticket is not None and report_to_breaker(rt, call, candidate, ticket, verdict, fault) == "open"
    family = evidence = None
    if memory is not None:
        if entered:
            family = memory.note_error(call.tenant, tool.id, fault)
        elif entered is None and fault.rule == builtin_faults.CIRCUIT_OPEN and health.opened_by is not None:
            family = memory.family_of(call.tenant, tool.id, health.opened_by)
        if family is not None:
            evidence = memory.evidence(family)
    now, turn = rt.time.now(), call.turn
    draws = entered is not None or (fault.rule == builtin_faults.RATE_HOLD and not call.abandoned)
    return make_standing((
        now,
        "half_open" if candidate.probing else health.observe(now),
        opened,
        None if turn is None else turn.left(),
        call.abandoned,
        rt.time.random() if draws else 0.0,
        family,
        evidence,
        bool(entered) and call.may_have_written_inside,
        call.changed,
    ))  # fmt: skip


def _look_up_policies(rt: InPlaceServices, tool: Tool) -> None:
    """Log once that a policy names an unknown tool with a name like this one. Tools may be registered in any order."""
    from failsoft.core.resilience.policy import find_misspelt  # start-up: most runtimes have no policies

    tool.was_looked_up_in_policies = True
    for policy, name in find_misspelt(rt.judgement.policies, tool.id, rt.toolbox.tools):
        rt.toolbox.warn_once(
            f"policy {policy.name} {name}",
            "policies: %r: there is no tool %s; did you mean %s?",
            policy.name,
            name,
            tool.id,
        )


def find_fallbacks(rt: InPlaceServices, call: Call, step: FindFallbacks) -> FallbacksFound:
    """Find the tools that may replace a candidate now, best first."""
    candidate, fault, memory = step.candidate, step.fault, rt.judgement.memory
    opened_by = candidate.health.opened_by if fault.rule == builtin_faults.CIRCUIT_OPEN else None
    options = candidate.tool.options
    found = [*alternatives(options, fault, tried=step.tried, opened_by=opened_by, wanted=step.wanted)]
    if memory is not None and memory.mode == "act" and candidate.family is not None and step.wanted is None:
        found = [*memory.order(candidate.family, found)]
    absent = tuple([fallback.tool for fallback in found if fallback.tool not in rt.toolbox.tools])
    return FallbacksFound([*_usable(rt, call, [*found, *step.later], step)], absent)


def _usable(rt: InPlaceServices, call: Call, fallbacks: list[Fallback], step: FindFallbacks) -> Iterator[Fallback]:
    """Yield the available fallbacks that were not tried, each once, although two chains may name it."""
    seen = set(step.tried)
    for fallback in fallbacks:
        if fallback.tool in seen or not can_replace(rt, call, fallback):
            continue
        tool = rt.toolbox.tools[fallback.tool]
        if step.acted:
            known = (count_as_write(tool) if call.by_agent else tool).known_effect
            if would_act_again(known, tool.options, tool.description):
                continue
        seen.add(fallback.tool)
        yield fallback


def spend(rt: InPlaceServices, call: Call, step: Spend) -> bool:
    """Pay for a retry and remember its error; False if the retry budget is spent."""
    candidate, fault, error = step
    tool = candidate.tool
    if candidate.retry.budget and not spend_retry(rt, tool, candidate.health):
        return False
    if fault.effect == "unknown" and tool.safe_to_repeat is None:
        tool.warn_undeclared()
    if error is not None:
        if tool.known_errors is not None:
            _remember_error(rt, call, candidate, fault, error)
        error.__traceback__ = None  # it holds the frames that hold the error
    return True


def _remember_error(rt: InPlaceServices, call: Call, candidate: Candidate, fault: Fault, error: Exception) -> None:
    """Let the fast path retry the next error like this one, if only attempts, time, budget and breaker decided."""
    known = candidate.tool.known_errors
    if known is None or rt.judgement.handler is not None or rt.judgement.policies:
        return
    if rt.judgement.memory is not None and rt.judgement.memory.mode == "act":
        return
    if call.turn is not None or call.tenant is not None or fault.retry_after is not None:
        return
    if candidate.retry is not candidate.tool.options.retry:
        return  # the call, or the fallback, has its own retry options
    key = key_of(error)
    if key is None or type(key[1]) is not str or key[1] != fault.message:
        return  # the error has more than a type and a text, or its text was masked
    if read(error, "fault") is not None or read(error, "remote_fault") is not None:
        return  # it was classified elsewhere
    if isinstance(error, OSError) and (error.errno is not None or error.filename is not None):
        return
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[type(error), error.args] = KnownError(fault, candidate.family, rt.log.trace.retries(candidate.tool.id))


def learn(rt: InPlaceServices, candidate: Candidate, now: float, *, worked: bool) -> None:
    """Tell the recovery memory whether a candidate's retries, or the switch to it, have helped."""
    if rt.judgement.memory is None:
        return
    for family in candidate.retried:
        rt.judgement.memory.learn(family, None, worked=worked, seconds=now - candidate.attempts.first_failed_at)
    if candidate.cause is not None:
        rt.judgement.memory.learn(candidate.cause, candidate.tool.id, worked=worked, seconds=now - candidate.began)
