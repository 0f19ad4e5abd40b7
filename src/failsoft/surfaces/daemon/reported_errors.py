"""Decide about errors that remote executors report, and count how their calls ended.

Rules
-----
- The decision is that of ``core.resilience.error_handler.decide``, on the same inputs as in process: classification,
  circuit, retries, turn, fallbacks, policies, recovery memory.
- The fallbacks of a tool that failed may follow those of the tool that replaced it, as in process. The executor says
  whether the call is required; if it does not, the options of the called tool do.
- A report that is sent again (same call, tool and attempt) gets the same answer and is counted once.
- A complete report of a failsoft runtime contains what is possible there. The daemon adds its policies and recovery
  memory; the circuit is that of the runtime.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any

from failsoft.core.effects.tool_effect import KnownEffect
from failsoft.core.model.decision import Decision
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import Fallback, RetryOptions
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience import rate_hold
from failsoft.core.resilience.error_handler import ErrorReport, decide, decision_fields, refuse_retry
from failsoft.core.resilience.fallback import alternatives, forbids_fallback, may_have_acted, would_act_again
from failsoft.core.resilience.policy import Policy, match
from failsoft.core.resilience.retry import (
    Attempts,
    NoRetry,
    Retry,
    Wish,
    add_failure,
    add_hinted_wait,
    add_unreported,
    plan_retry,
    veto_retry,
)
from failsoft.observe import events
from failsoft.observe.success_runs import success_fields
from failsoft.runtime.call.candidate import verdict_on
from failsoft.runtime.call.event_fields import milliseconds, recovery_fields
from failsoft.runtime.services import Services
from failsoft.surfaces.daemon.error_reading import ErrorReader
from failsoft.surfaces.daemon.escalations import Escalations
from failsoft.surfaces.daemon.messages import ReportBody, ReportedError, ReportedOutcome
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.reported_calls import ReportedCall, TriedTool
from failsoft.surfaces.daemon.reported_tools import ReportBook, ReportedTool
from failsoft.surfaces.daemon.scoping import scoped

MOST_REASONS = 512  # sanitised reasons in the cache
_BUDGET_SPENT = "the retry budget is spent"


class ErrorDesk:
    """Takes the reports of remote executors and runtimes."""

    def __init__(self, rt: Services, book: ReportBook, escalations: Escalations) -> None:
        self._rt = rt
        self._book = book
        self._escalations = escalations
        self.reader = ErrorReader(rt.time.wall)

    # -- errors --------------------------------------------------------------------------------------------------------

    def handle(self, said: ReportedError, tenant: str | None, reporter: str) -> dict[str, Any]:
        """Decide about a failed attempt, record the decision, and return it."""
        call = self._book.call(tenant, said.call_id, said.tool)
        now = self._rt.time.now()
        tried = call.tried.get(said.tool)
        if tried is None:
            if said.tried and not call.tried:
                known = (self._book.tool(tenant, id).options.fallbacks for id in said.tried)
                call.resume(said.tried[0], chain.from_iterable(known))
            tried = call.begin(said.tool, now - said.duration)
        elif tried.answer is not None and said.attempt == tried.attempts.made:
            return tried.answer
        tool = self._book.reach(tenant, call.primary, said.tool, tried.via)
        options = tried.retry_options(tool.options)
        fault = self.reader.classify(said, tool.options)
        tried.add_effect(fault.effect)
        tried.attempts = _count_attempt(tried.attempts, said, options, fault, now)
        report, retry = self._assess(said, call, tool, tried, fault)
        call.usable = self._find_fallbacks(said, call, tool, tried, report)
        report = report._replace(alternatives=tuple(fallback.tool for fallback in call.usable))
        decision = decide(report)
        if decision.strategy == "retry" and options.budget and not tool.spend_retry():
            report = refuse_retry(report, _BUDGET_SPENT)
            decision = decide(report)
        if decision.strategy == "retry" and tried.family is not None and tried.family not in tried.retried:
            tried.retried += (tried.family,)
        hinted = decision.strategy == "retry" and isinstance(retry, Retry) and retry.hinted
        if hinted and decision.delay:
            call.hinted += decision.delay
            tried.attempts = add_hinted_wait(tried.attempts, decision.delay)
        self._record(said, tool, report, decision, reporter, hinted=hinted)
        if decision.strategy != "retry":
            _report_verdict(tool, tried, fault, *_ids(said, tenant))
        tried.answer = _answer(report, decision, tool)
        return tried.answer

    def _assess(
        self, said: ReportedError, call: ReportedCall, tool: ReportedTool, tried: TriedTool, fault: Fault
    ) -> tuple[ErrorReport, Retry | NoRetry]:
        """Count a failure, plan the retry, and build the report that the decision is based on."""
        rt, made, tenant = self._rt, tried.attempts.made, tool.tenant
        call_id, turn_id = _ids(said, tenant)
        verdict = verdict_on(fault, entered=said.entered)
        before, opened = tool.observe(), False
        if tool.health.options.count == "calls" and before != "half_open":
            tried.verdict = verdict
        else:
            before, opened = tool.report(verdict, fault, call_id, turn_id)
        call.admitted |= before != "half_open"
        self._hold(said, tenant, tool, fault)
        state = "half_open" if before == "half_open" else tool.observe()
        evidence = None
        if (memory := rt.judgement.memory) is not None and said.entered:
            tried.family = memory.note_error(tenant, tool.id, fault)
            evidence = memory.evidence(tried.family)
        policy = self._match(tool, fault, made, state, said.turn_left)
        retry = self._plan(said, tool, tried, fault, policy, waited=call.hinted)
        if isinstance(retry, Retry):
            over = opened or state == "open"
            retry = veto_retry(retry, opened=over, nested=False, turn_left=said.turn_left, abandoned=False)
        if isinstance(retry, Retry) and tool.is_disabled:
            retry = NoRetry("the tool is disabled")
        if isinstance(retry, Retry) and memory is not None and tried.family is not None and policy is None:
            tally = memory.skips_retry(tried.family)
            if tally is not None:
                retry = NoRetry(f"retries {tally}")
        first = self._book.tool(tenant, call.primary).options
        may_be_partial = tool.options.accept_partial is not False and first.accept_partial is not False
        report = ErrorReport(
            fault, tool.id, call_id or "", made, made - 1, state,
            retry.delay if isinstance(retry, Retry) else None,
            "" if isinstance(retry, Retry) else retry.why,
            (), said.has_partial and may_be_partial,
            first.required if said.required is None else said.required,
            turn_id, said.turn_left, said.thread, tenant, policy, evidence,
        )  # fmt: skip
        if report.met_closed != call.admitted:
            report = report._replace(admitted=call.admitted)
        return report, retry

    def _match(
        self, tool: ReportedTool, fault: Fault, attempt: int, state: Any, turn_left: float | None
    ) -> Policy | None:
        return match(
            self._rt.judgement.policies, tool=tool.id, tags=tool.options.tags, fault=fault, attempt=attempt,
            breaker=state, turn_left=turn_left,
        )  # fmt: skip

    def _plan(
        self,
        said: ReportedError,
        tool: ReportedTool,
        tried: TriedTool,
        fault: Fault,
        policy: Policy | None,
        *,
        waited: float,
    ) -> Retry | NoRetry:
        wish = None
        if policy is not None and policy.then.strategy == "retry":
            wish = Wish(policy.then.delay, policy.even_if_effect_unknown)
        if not said.entered and fault.retryable is False:
            return NoRetry("permanent error")
        return plan_retry(
            tried.retry_options(tool.options), fault._replace(effect=tried.effect), tried.attempts,
            safe=known_effect(tool, said).safe, jitter=self._rt.time.random(),
            now=self._rt.time.now(), wish=wish, running=said.still_running, waited=waited,
        )  # fmt: skip

    def _hold(self, said: ReportedError, tenant: str | None, tool: ReportedTool, fault: Fault) -> None:
        """Set a rate hold for the daemon's own calls, for as long as the service asks."""
        if tool.tool is None or fault.retry_after is None or not fault.retryable or not said.entered:
            return
        thread = said.thread if fault.hint_source == "words" else None
        if thread is None and fault.hint_source == "words":
            return
        with self._rt.toolbox.lock:
            tool.health.holds = rate_hold.hold(
                tool.health.holds, tenant, fault.retry_after, now=self._rt.time.now(), thread=thread
            )
            tool.tool.renew_ticket()

    def _find_fallbacks(
        self, said: ReportedError, call: ReportedCall, tool: ReportedTool, tried: TriedTool, report: ErrorReport
    ) -> list[Fallback]:
        """Find the tools that may replace the failed one, best first: its own fallbacks, then those of earlier tools."""
        known = known_effect(tool, said)
        call.acted |= may_have_acted(tried.effect, known)
        first = tool if call.primary == tool.id else self._book.tool(tool.tenant, call.primary)
        if forbids_fallback(tried.effect, known, first.known):
            return []
        used = {said.tool, *said.tried, *call.tried}
        policy = report.policy
        wanted = None if policy is None or policy.then.tool is None or policy.then.tool in used else policy.then.tool
        opened_by = tool.health.opened_by if report.breaker_state == "open" else None
        found = list(alternatives(tool.options, report.fault, tried=used, opened_by=opened_by, wanted=wanted))
        later = call.later
        if said.alternatives is not None:
            later = ()
            handled = {fallback.tool: fallback for fallback in found}
            declined = {fallback.tool for fallback in tool.options.fallbacks} - handled.keys()
            offered = dict.fromkeys(said.alternatives)
            found = [handled.get(id) or Fallback(tool=id) for id in offered if id not in used and id not in declined]
        memory = self._rt.judgement.memory
        if memory is not None and memory.mode == "act" and tried.family is not None and wanted is None:
            found = list(memory.order(tried.family, found))
        usable = {
            each.tool: each
            for each in reversed([*found, *later])
            if each.tool not in used and self._is_usable(tool.tenant, call, each)
        }
        return [*reversed(usable.values())]

    def _is_usable(self, tenant: str | None, call: ReportedCall, fallback: Fallback) -> bool:
        other = self._book.reach(tenant, call.primary, fallback.tool, fallback)
        if other.is_disabled or other.observe() == "open":
            return False
        return not (call.acted and would_act_again(other.known, other.options))

    def _record(
        self,
        said: ReportedError,
        tool: ReportedTool,
        report: ErrorReport,
        decision: Decision,
        reporter: str,
        *,
        hinted: bool,
    ) -> None:
        fields = decision_fields(report, decision)
        fields |= {"duration_ms": milliseconds(said.duration), "reported_by": reporter}
        if decision.strategy == "retry":
            fields["delay_ms"] = milliseconds(decision.delay or 0.0)
            if hinted:
                fields["hinted"] = True
        call_id, turn_id = report.call_id or None, report.turn_id
        tool.emit(events.TOOL_ERROR, call_id, turn_id, fields)
        if decision.strategy == "alternative_tool":
            used = {"message": "Used alternative tool", "alternative": decision.tool, "reason": decision.reason}
            tool.emit(events.FALLBACK_USED, call_id, turn_id, used)
        elif decision.strategy == "escalate":
            fault = report.fault
            fields = {
                "message": f"Escalated {tool.id}", "code": fault.code.value, "attempts": report.attempt,
                "category": fault.category, "error": fault.message,
            }  # fmt: skip
            self._escalations.note(tool.tenant, tool.id, {**fields, "call_id": call_id, "turn_id": turn_id})
            tool.emit(events.ESCALATED, call_id, turn_id, fields)

    # -- complete reports ----------------------------------------------------------------------------------------------

    def review(self, said: ReportBody, tenant: str | None, reporter: str) -> dict[str, Any]:
        """Decide about a complete report of a remote runtime, with the policies and the memory of the daemon."""
        try:
            report = said.to_report(tenant)
        except (KeyError, TypeError, ValueError) as error:
            raise Problem(422, f"report: {sanitise(error)}") from None
        tool = self._book.tool(tenant, report.tool_id)
        memory = self._rt.judgement.memory
        if report.policy is None:
            policy = self._match(tool, report.fault, report.attempt, report.breaker_state, report.turn_left)
            report = report._replace(policy=policy)
        if report.evidence is None and memory is not None and report.attempt:
            report = report._replace(evidence=memory.evidence(memory.note_error(tenant, tool.id, report.fault)))
        if tool.is_disabled and report.retry_delay is not None:
            report = refuse_retry(report, "the tool is disabled")
        decision = decide(report)
        fields = {**decision_fields(report, decision), "reported_by": reporter}
        call_id, turn_id = scoped(tenant, report.call_id), report.turn_id and scoped(tenant, report.turn_id)
        if tenant is not None:
            fields["tenant"] = tenant
        self._rt.log.trace.record((events.REMOTE_DECISION, self._rt.time.now(), tool.id, call_id, turn_id, fields))
        answer = _answer(report, decision, tool)
        answer["circuit"]["state"] = report.breaker_state
        return answer

    # -- outcomes ------------------------------------------------------------------------------------------------------

    def conclude(self, said: ReportedOutcome, tenant: str | None, reporter: str) -> dict[str, Any]:
        """Count how a call ended: for circuits, metrics, recovery memory and the trace."""
        call = self._book.end_call(tenant, said.call_id)
        tool = self._book.tool(tenant, said.tool)
        last = said.via or said.tool
        tried = None if call is None else call.tried.get(last)
        via = self._book.reach(tenant, said.tool, last, _fallback_for(call, last))
        call_id, turn_id = _ids(said, tenant)
        worked, now = said.status == "succeeded", self._rt.time.now()
        for id, each in () if call is None else call.tried.items():
            if not (worked and id == last):
                _report_verdict(self._book.reach(tenant, said.tool, id, each.via), each, None, call_id, turn_id)
        if worked:
            via.report("success", None, call_id, turn_id)
            if tried is not None:
                recovered = recovery_fields(tried.attempts.made + 1, now - tried.attempts.first_failed_at)
                via.emit(events.RETRY_SUCCEEDED, call_id, turn_id, recovered)
            fields = success_fields(tool.id, max(said.attempts, 1), said.duration, said.duration)
            via.emit(events.CALL_SUCCEEDED, call_id, turn_id, {**fields, "reported_by": reporter})
        else:
            ended = events.CALL_FAILED if said.status == "failed" else events.CALL_CANCELLED
            tool.emit(ended, call_id, turn_id, _ended_fields(said, reporter, tried))
        if call is not None and said.status != "cancelled" and (memory := self._rt.judgement.memory) is not None:
            for id, each in call.tried.items():
                helped = worked and id == via.id
                for family in each.retried:
                    memory.learn(family, None, worked=helped, seconds=now - each.attempts.first_failed_at)
                if each.cause is not None:
                    memory.learn(each.cause, id, worked=helped, seconds=now - each.began)
            if via.id not in call.tried and call.tried:
                cause = next((each.family for each in reversed(call.tried.values()) if each.family is not None), None)
                if cause is not None:
                    memory.learn(cause, via.id, worked=worked, seconds=said.duration)
        return {"circuit": via.circuit()}


def _fallback_for(call: ReportedCall | None, tool: str) -> Fallback | None:
    """Return the fallback by which a call came to a tool; None for the tool that was called."""
    if call is None:
        return None
    if tool in call.tried:
        return call.tried[tool].via
    return next((fallback for fallback in call.usable if fallback.tool == tool), None)


def _report_verdict(
    tool: ReportedTool, tried: TriedTool, fault: Fault | None, call_id: str | None, turn_id: str | None
) -> None:
    """Report a tool whose attempts have ended to a breaker that counts calls."""
    if tried.verdict is not None:
        tool.report(tried.verdict, fault, call_id, turn_id)
        tried.verdict = None


def known_effect(tool: ReportedTool, said: ReportedError) -> KnownEffect:
    """Return a tool's effect: declared, else stated by its executor, else recognised by its name."""
    known = tool.known
    if known.is_declared or (said.read_only is None and said.idempotent is None):
        return known
    if said.read_only:
        return KnownEffect("read", "declared", "its executor says that it only reads", safe=True)
    if said.idempotent is not None:
        word = "idempotent" if said.idempotent else "not idempotent"
        return KnownEffect("write", "declared", f"its executor says that it is {word}", safe=said.idempotent)
    return known


def _count_attempt(before: Attempts, said: ReportedError, options: RetryOptions, fault: Fault, now: float) -> Attempts:
    """Count the failed attempt. The executor's statement about earlier attempts overrides its earlier reports."""
    if said.attempt is not None and said.attempt != before.made + 1:
        since = said.since_first_failure or 0.0
        started = before.first_failed_at if before.made else now - since
        before = add_unreported(before, options, fault, made=said.attempt - 1, first_failed_at=started)
    if said.since_first_failure is not None and before.made:
        before = before._replace(first_failed_at=now - said.since_first_failure)
    return add_failure(before, options, fault, duration=said.duration, now=now)


def _ids(said: ReportedError | ReportedOutcome, tenant: str | None) -> tuple[str | None, str | None]:
    """The ids under which a report is recorded."""
    return (
        None if said.call_id is None else scoped(tenant, said.call_id),
        None if said.turn_id is None else scoped(tenant, said.turn_id),
    )


def _ended_fields(said: ReportedOutcome, reporter: str, tried: TriedTool | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "attempts": said.attempts, "total_ms": milliseconds(said.duration), "escalated": False, "reported_by": reporter,
    }  # fmt: skip
    fault = None if tried is None or tried.answer is None else tried.answer["fault"]
    if fault is not None and tried is not None:
        fields |= {name: fault[name] for name in ("code", "category")}
        fields |= {"effect": tried.effect, "error": fault["message"]}
    return fields


def _answer(report: ErrorReport, decision: Decision, tool: ReportedTool) -> dict[str, Any]:
    fault = report.fault.to_dict()
    del fault["cause"]
    return {
        **decision.to_dict(),
        "reason": _sanitise_reason(decision.reason),
        "fault": fault,
        "circuit": tool.circuit(),
        "attempt": report.attempt,
        "retry_count": report.retry_count,
    }


_sanitise_reason = lru_cache(MOST_REASONS)(sanitise)  # the same few reasons come again and again
