"""Recovery in the pipeline: decide what follows a failure or a refusal.

The order: count the failure (``Assess``), plan a retry, find the usable fallbacks, ask the user's Error Handler or the
built-in one, pay for a retry, record the decision. Like the pipeline, this only yields steps; the decisions are pure
functions of ``core.resilience``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.classify.nested import has_failures_inside
from failsoft.core.effects.verification import can_verify
from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision, Strategy
from failsoft.core.model.effect import worst_effect
from failsoft.core.model.fault import Code, Effect, Fault
from failsoft.core.model.named_tuples import maker
from failsoft.core.resilience.error_handler import (
    RETRY,
    ErrorReport,
    accept_decision,
    decide,
    refresh_report,
    refuse_retry,
)
from failsoft.core.resilience.fallback import forbids_fallback
from failsoft.core.resilience.rate_limit import plan_turn
from failsoft.core.resilience.retry import NoRetry, Retry, Wish, veto_retry
from failsoft.observe import events
from failsoft.runtime.call.candidate import Candidate, verdict_on
from failsoft.runtime.call.event_fields import failure_fields, refusal_fields, refused_decision_fields
from failsoft.runtime.call.model import NO_PROGRESS, AttemptResult, Call, Progress
from failsoft.runtime.call.steps import (
    AskMemory,
    Assess,
    Consult,
    Consulted,
    Emit,
    EmitBug,
    FallbacksFound,
    FindFallbacks,
    Interrupted,
    PipelineOptions,
    Report,
    Spend,
    Standing,
    Step,
    make_assess,
    make_emit_retry,
    make_spend,
)
from failsoft.runtime.call.verification import Verification

if TYPE_CHECKING:
    from failsoft.core.model.options import Fallback
    from failsoft.core.model.partial import Partial
    from failsoft.core.model.verified import Verified
    from failsoft.core.resilience.circuit_breaker import Ticket

VERIFIED = Decision(cast("Strategy", "verified"), "It happened, as verify found out")  # only shown in the event
_ENDS_CALL = (  # refusals of the call, not of one tool: no other tool may run in its place
    builtin_faults.BEGUN_BEFORE,
    builtin_faults.NO_OFFER,
    builtin_faults.TURN_CALL_LIMIT,
    builtin_faults.TOOL_CALL_LIMIT,
)
_BUDGET_SPENT = "the retry budget is spent"
_make_decision: Callable[[tuple[Strategy, str, float | None, str | None]], Decision] = maker(Decision)

Steps = Generator[Step, Any, None]


class Recovery(Verification):
    """The state of one call in the pipeline, and the decision after a failure."""

    __slots__ = (
        "_best",
        "_effect",
        "_fallbacks",
        "_giver",
        "_later",
        "_options",
        "_part",
        "_primary",
        "_report",
        "_retry",
        "_runs_on",
        "_tried",
    )

    def __init__(
        self, options: PipelineOptions, call: Call, ticket: Ticket | None = None, progress: Progress = NO_PROGRESS
    ) -> None:
        self._options = options
        self._call = call
        candidate = Candidate(call, call.tool, call.tool.health, None, ticket)
        self._primary, candidate.effect, candidate.attempts, candidate.retried = progress
        self._candidate = candidate
        self._tried = frozenset((call.tool.id,))
        self._fallbacks: list[Fallback] = []  # usable after the latest failure
        self._later: list[Fallback] = []  # fallbacks of an earlier candidate that have not been tried
        self._effect: Effect = candidate.effect  # the worst of all attempts
        call.attempts_ended = candidate.attempts.made
        call.invoked = False
        self._part: Partial | None = None  # of the latest attempt
        self._best: Partial | None = None  # of all attempts
        self._giver = candidate  # of the best part
        self._retry: Retry | NoRetry = NoRetry("")  # planned after the latest failure
        self._report: ErrorReport | None = None  # on the latest failure
        self._now = call.started  # the time that the latest answer gave
        self._abandoned = False  # the turn continues without the call, as the latest answer said
        self._checked = None  # by ``verify``, after the latest failure
        self._runs_on = False  # an abandoned attempt may still act

    @property
    def candidate(self) -> Candidate:
        """The tool that is being tried."""
        return self._candidate

    def _decide(
        self, fault: Fault, result: AttemptResult | None
    ) -> Generator[Step, Any, tuple[Fault, Decision | Verified]]:
        """Decide what follows a failure or a refusal; return the decision and the updated fault.

        No decision is needed if the tool has acted: the answer of ``verify`` is returned in its place.
        """
        call, candidate = self._call, self._candidate
        fault, standing, retry = yield from self._plan(fault, result)
        verified = self._checked
        if verified is not None and verified.answer == "happened":
            self._report = self._make_report(fault, standing, retry)
            yield from self._emit_failure(fault, result, VERIFIED, handled=False)
            return fault, verified
        self._add_effect(fault)
        if not isinstance(retry, Retry) and retry.cut_off and fault.rule != builtin_faults.TOOL_TIMEOUT:
            fault = fault._replace(reason=f"{fault.reason}; {retry.why}")  # the text of a timeout is fixed
        own = result is not None and result.entered and candidate.tool is call.tool
        if own or fault.rule == builtin_faults.BEGUN_BEFORE or self._primary is None:
            self._primary = fault  # the last fault of the tool that was called
        candidate.absent = ()
        if candidate.tool.options.fallbacks or self._later or candidate.policy is not None:
            self._fallbacks = yield from self._find_fallbacks(fault, self._later)
        elif self._fallbacks:
            self._fallbacks = []
        if result is not None and isinstance(retry, Retry) and self._is_plain_retry(fault, standing, result):
            paid: bool = yield make_spend((candidate, fault, result.error))
            if paid:
                self._retry, self._report = retry, None
                seconds, made = result.ended - result.started, candidate.attempts.made
                yield make_emit_retry((candidate.tool, fault, seconds, made, retry.delay, standing.evidence))
                candidate.count_retry()
                return fault, _make_decision(("retry", RETRY, retry.delay, None))
            retry = NoRetry(_BUDGET_SPENT)
        report = self._make_report(fault, standing, retry)
        wanted = None
        if self._options.consults:
            report, wanted = yield from self._consult(report)
        decision = wanted or decide(report)
        if decision.strategy == "retry" and result is not None:
            paid = yield Spend(candidate, fault, result.error)
            if not paid:
                report = refuse_retry(report, _BUDGET_SPENT)
                decision = decide(report)
        self._retry, self._report = retry, report
        yield from self._emit_failure(fault, result, decision, handled=decision is wanted)
        if decision.strategy == "retry":
            candidate.count_retry()
        return fault, decision

    def _add_effect(self, fault: Fault) -> None:
        """Add the effect of the latest failure."""
        self._candidate.add_effect(fault.effect)
        if fault.effect != self._effect:
            self._effect = worst_effect((self._effect, fault.effect))
        self._call.in_doubt = self._effect != "none" and self._call.attempts_ended > 0

    def _is_plain_retry(self, fault: Fault, standing: Standing, result: AttemptResult) -> bool:
        """True if a planned retry needs no report: there is no other decision, and its event says nothing unusual."""
        call, candidate, options = self._call, self._candidate, self._options
        tool = candidate.tool
        return (
            not options.consults
            and not options.policies
            and not self._fallbacks
            and tool is call.tool
            and self._best is None
            and call.turn is None
            and call.thread is None
            and call.tenant is None
            and call.required is None
            and call.admitted
            and not result.notes
            and standing.breaker == "closed"
            and fault.classification == "transient"
            and fault.code is not Code.DEADLINE_EXCEEDED
            and not candidate.absent
            and not self._may_act_since(fault)
        )

    def _may_act_since(self, fault: Fault) -> bool:
        """True if a task that the failed attempt has started may still make a retry unsafe.

        A tool that must not be repeated is retried only after an attempt without effect. An undeclared tool is retried
        after other attempts too.
        """
        safe = self._candidate.tool.safe_to_repeat
        return safe is None or (safe is False and fault.effect == "none")

    def _plan(
        self, fault: Fault, result: AttemptResult | None
    ) -> Generator[Step, Any, tuple[Fault, Standing, Retry | NoRetry]]:
        """Count and verify a failure, and find out whether a retry is possible."""
        call, candidate = self._call, self._candidate
        if result is None:
            return (fault, *(yield from self._plan_refused(fault)))
        self._runs_on |= result.still_running
        nested = result.error is not None and has_failures_inside(result.error)
        ticket = candidate.count_failure(fault, result)
        call.admitted |= not candidate.probing
        hold = bool(fault.retry_after) and fault.retryable and result.entered and not nested
        verdict = verdict_on(fault, entered=result.entered)
        standing: Standing = yield make_assess((candidate, fault, result.entered, ticket, verdict, hold))
        self._now = standing.now
        if fault.effect == "unknown" and can_verify(candidate.tool.options, fault, candidate.tool.safe_to_repeat):
            fault, standing = yield from self._verify(fault, standing, running=result.still_running)
        wish = self._take_in(standing, fault)
        retry = candidate.plan_retry(fault, result, wish=wish, waited=call.hinted_wait, jitter=standing.jitter)
        if isinstance(retry, Retry):
            retry = veto_retry(
                retry,
                opened=standing.opened,
                nested=nested,
                turn_left=standing.turn_left,
                abandoned=standing.abandoned,
            )
        if isinstance(retry, Retry) and wish is None and candidate.family is not None and self._options.memory_acts:
            record = yield AskMemory(candidate.family)
            if record is not None:
                retry = NoRetry(f"retries {record}")
        if self._checked is not None and self._checked.reason and isinstance(retry, NoRetry):
            retry = retry._replace(why=f"{retry.why}; not verified: {self._checked.reason}")
        return fault, standing, retry

    def _plan_refused(self, fault: Fault) -> Generator[Step, Any, tuple[Standing, Retry | NoRetry]]:
        """Plan a wait for the end of a rate hold or the next token of a rate limit.

        No other refusal is worth a wait.
        """
        candidate = self._candidate
        candidate.probing = False
        standing: Standing = yield Assess(candidate, fault, None, None, "neutral", hold=False)
        self._take_in(standing, fault)
        if fault.rule == builtin_faults.CIRCUIT_OPEN:
            return standing, NoRetry("circuit open")
        if fault.rule == builtin_faults.RATE_LIMIT and fault.retry_after is not None and not standing.abandoned:
            return standing, plan_turn(fault.retry_after, turn_left=standing.turn_left)
        if fault.rule != builtin_faults.RATE_HOLD or fault.retry_after is None or standing.abandoned:
            return standing, NoRetry(fault.reason)
        retry = candidate.plan_wait(
            fault.retry_after,
            waited=self._call.hinted_wait,
            turn_left=standing.turn_left,
            jitter=standing.jitter,
        )
        return standing, retry

    def _take_in(self, standing: Standing, fault: Fault) -> Wish | None:
        """Note the driver's answer about a failure; return the retry that a policy asks for."""
        call, candidate = self._call, self._candidate
        self._now, self._abandoned = standing.now, standing.abandoned
        if call.failed_at is None:
            call.failed_at = standing.now
        candidate.family = standing.family
        candidate.wrote |= standing.wrote
        if standing.changed and (self._checked is None or self._checked.answer != "none"):
            self._effect = worst_effect((self._effect, "unknown"))
        if not self._options.policies:
            return None
        from failsoft.core.resilience.policy import match  # start-up: most runtimes have no policies

        policy = candidate.policy = match(
            self._options.policies,
            tool=candidate.tool.id,
            tags=candidate.tool.options.tags,
            fault=fault,
            attempt=candidate.attempts.made,
            breaker=standing.breaker,
            turn_left=standing.turn_left,
        )
        if policy is None or policy.then.strategy != "retry":
            return None
        return Wish(policy.then.delay, policy.even_if_effect_unknown)

    def _find_fallbacks(
        self, fault: Fault, later: list[Fallback], wanted: str | None = None
    ) -> Generator[Step, Any, list[Fallback]]:
        """The tools that may replace the candidate now, best first: none once the turn is over."""
        call, candidate = self._call, self._candidate
        policy, candidate.absent = candidate.policy, ()
        if wanted is None and policy is not None:
            wanted = policy.then.tool
        if self._abandoned or not (candidate.tool.options.fallbacks or later or wanted):
            return []
        forbidden = forbids_fallback(candidate.effect, candidate.known_effect, call.tool.known_effect)
        if forbidden or fault.rule in _ENDS_CALL:
            return []  # no fallback of an earlier candidate either
        acted = candidate.may_have_acted
        found: FallbacksFound = yield FindFallbacks(candidate, fault, acted, self._tried, later, wanted)
        candidate.absent = found.absent
        return found.usable

    def _make_report(self, fault: Fault, standing: Standing, retry: Retry | NoRetry) -> ErrorReport:
        """Build the report that a decision is based on."""
        call, candidate = self._call, self._candidate
        made = candidate.attempts.made
        report = ErrorReport(
            fault,
            candidate.tool.id,
            call.id,
            made,
            made - 1 if made else 0,
            standing.breaker,
            retry.delay if isinstance(retry, Retry) else None,
            "" if isinstance(retry, Retry) else retry.why,
            tuple([fallback.tool for fallback in self._fallbacks]) if self._fallbacks else (),
            self._best is not None and self._accepts_partial(),
            call.tool.options.required if call.required is None else call.required,
            None if call.turn is None else call.turn.id,
            standing.turn_left,
            call.thread,
            call.tenant,
            candidate.policy,
            standing.evidence,
        )
        if report.met_closed != call.admitted:
            report = report._replace(admitted=call.admitted)
        return report._replace(absent=candidate.absent) if candidate.absent else report

    def _accepts_partial(self) -> bool:
        """True if a partial result may end the call. The called tool or the tool that returned it may forbid that."""
        return (
            self._call.tool.options.accept_partial is not False and self._giver.tool.options.accept_partial is not False
        )

    def _consult(self, report: ErrorReport) -> Generator[Step, Any, tuple[ErrorReport, Decision | None]]:
        """Ask the user's Error Handler. Its decision counts if it is possible and safe; otherwise an event says so."""
        answer: Consulted = yield from self._wait_for(Consult(report))
        self._now, self._abandoned = answer.now, answer.abandoned
        if self._call.turn is not None:
            report = refresh_report(report, turn_left=answer.turn_left, abandoned=answer.abandoned)
        decision = answer.decision
        if decision is None:
            return report, None
        if decision.strategy == "alternative_tool" and decision.tool and decision.tool not in report.alternatives:
            found = yield from self._find_fallbacks(report.fault, [], decision.tool)
            accepted = decision if found and found[0].tool == decision.tool else None
        else:
            accepted = accept_decision(decision, report)
        if accepted is None:
            yield Emit(events.HANDLER_FAILED, self._call.tool, refused_decision_fields(decision, report))
        return report, accepted

    def _emit_failure(self, fault: Fault, result: AttemptResult | None, decision: Decision, *, handled: bool) -> Steps:
        """Record the failure and the decision about it."""
        candidate, report = self._candidate, self._report
        assert report is not None
        tool = candidate.tool
        if fault.rule == builtin_faults.TOOL_TIMEOUT:
            yield Emit(events.TOOL_TIMEOUT, tool, {"timeout_ms": round(candidate.timeout * 1000), "kind": "tool"})
        elif fault.rule == builtin_faults.IDLE_TIMEOUT:
            idle = tool.options.idle_timeout or 0.0
            yield Emit(events.TOOL_TIMEOUT, tool, {"timeout_ms": round(idle * 1000), "kind": "idle"})
        elif result is not None and builtin_faults.is_client_timeout(fault):
            yield Emit(events.TOOL_TIMEOUT, tool, {"kind": "client"})
        if result is None:
            waits = decision.strategy == "retry"
            fields: dict[str, Any] = refusal_fields(report, decision, handled=handled)
            yield Emit(events.CALL_HELD if waits else events.CALL_REFUSED, tool, fields)
            return
        decided = self._now - result.ended if self._options.consults or self._checked is not None else None
        self._checked = None
        yield Emit(events.TOOL_ERROR, tool, failure_fields(report, decision, result, handled=handled, decided=decided))
        if fault.category == "internal_contract_bug" and not fault.rule.startswith(builtin_faults.NESTED):
            yield EmitBug(tool, fault)

    def _wait_for(self, step: Step) -> Generator[Step, Any, Any]:
        """Let the driver perform a step that takes time while no attempt is under way."""
        try:
            return (yield step)
        except Interrupted:
            yield Report(self._candidate, self._candidate.take_ticket(), "neutral")
            raise

    def can_be_replaced(self, fault: Fault) -> Generator[Step, Any, bool]:
        """True if a fallback would replace the called tool after a refusal with this fault."""
        fault, standing, retry = yield from self._plan(fault, None)
        self._fallbacks = yield from self._find_fallbacks(fault, [])
        return decide(self._make_report(fault, standing, retry)).strategy == "alternative_tool"
