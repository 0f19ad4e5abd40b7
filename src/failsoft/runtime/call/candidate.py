"""One tool that the pipeline tries for a call: the tool that was called, or a fallback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.model.builtin_faults import is_limit
from failsoft.core.model.effect import worst_effect
from failsoft.core.model.fault import Effect, Fault
from failsoft.core.resilience.fallback import may_have_acted
from failsoft.core.resilience.rate_hold import plan_wait
from failsoft.core.resilience.retry import NoRetry, Retry, Wish, add_failure, add_hinted_wait, plan_retry
from failsoft.runtime.call.model import NO_ATTEMPTS, Invoke

if TYPE_CHECKING:
    from failsoft.core.effects.tool_effect import KnownEffect
    from failsoft.core.model.options import Fallback
    from failsoft.core.resilience.circuit_breaker import Result, Ticket
    from failsoft.core.resilience.policy import Policy
    from failsoft.core.resilience.recovery_memory import Family
    from failsoft.runtime.call.model import AttemptResult, Call
    from failsoft.runtime.tools.health import ToolHealth
    from failsoft.runtime.tools.tool import Tool


class Candidate:
    """A tool, with this call's notes on it. Only the pipeline and admission write here; drivers read."""

    __slots__ = (
        "absent",
        "acted_before",
        "attempts",
        "began",
        "cause",
        "effect",
        "family",
        "health",
        "invoke",
        "policy",
        "probe",
        "probing",
        "retried",
        "retry",
        "ticket",
        "timeout",
        "token_at",
        "tool",
        "wrote",
    )

    def __init__(
        self, call: Call, tool: Tool, health: ToolHealth, via: Fallback | None = None, ticket: Ticket | None = None
    ) -> None:
        self.token_at: float | None = None  # when the token that admission has reserved becomes available
        self.tool = tool
        self.health = health  # for the driver only: the pipeline does not read it
        self.retry = call.retry or (via.retry if via is not None and via.retry else tool.options.retry)
        self.timeout = tool.configured_timeout if call.timeout is None else call.timeout
        self.invoke = Invoke(tool, self.timeout)
        self.attempts = NO_ATTEMPTS
        self.effect: Effect = "none"  # the worst of its attempts
        self.acted_before = False  # an earlier candidate of this call may have acted, and was not a read
        self.wrote = False  # a known write inside one of its attempts may have acted
        self.ticket = ticket
        self.probe: Ticket | None = None  # the latest half-open probe: its slot is freed if the call is broken off
        self.absent: tuple[str, ...] = ()  # its fallbacks that do not exist
        self.probing = False  # the latest attempt was a half-open probe
        self.policy: Policy | None = None  # matches the latest failure
        self.family: Family | None = None  # of the latest failure
        self.retried: tuple[Family, ...] = ()  # families for which retries were made
        self.cause: Family | None = None  # of the failure that this candidate is a fallback for
        self.began = call.started

    @property
    def counts_calls(self) -> bool:
        """True if the breaker counts calls, so that it gets only the last attempt. A probe is always one attempt."""
        return self.health.options.count == "calls" and not self.probing

    @property
    def may_have_acted(self) -> bool:
        """True if this candidate or an earlier one may have acted, and was not a read."""
        return self.acted_before or may_have_acted(self.effect, self.known_effect)

    @property
    def known_effect(self) -> KnownEffect:
        """The effect of the tool, from its declaration and its attempts."""
        known = self.tool.known_effect
        return known.after_inner_write() if self.wrote else known

    @property
    def has_lesson(self) -> bool:
        """True if the recovery memory can learn from this candidate's result."""
        return bool(self.retried) or self.cause is not None

    def take_ticket(self) -> Ticket | None:
        """Return the ticket and drop it here, so that it is handed back only once."""
        ticket, self.ticket = self.ticket, None
        return ticket

    def add_effect(self, effect: Effect) -> None:
        """Add the effect of a failed attempt."""
        if effect != self.effect:
            self.effect = worst_effect((self.effect, effect))

    def count_failure(self, fault: Fault, result: AttemptResult) -> Ticket | None:
        """Count a failed attempt; return the ticket if the breaker gets it back now."""
        self.attempts = add_failure(
            self.attempts, self.retry, fault, duration=result.ended - result.started, now=result.ended
        )
        self.probing = self.ticket is not None and self.ticket.probe is not None
        return None if self.counts_calls else self.take_ticket()

    def count_retry(self) -> None:
        """Count a retry after the latest failure."""
        if self.family is not None and self.family not in self.retried:
            self.retried += (self.family,)

    def count_hinted_wait(self, seconds: float) -> None:
        """Count a wait that the server asked for."""
        self.attempts = add_hinted_wait(self.attempts, seconds)

    def plan_retry(
        self, fault: Fault, result: AttemptResult, *, wish: Wish | None, waited: float, jitter: float
    ) -> Retry | NoRetry:
        """Plan a retry by attempts, time and effect."""
        return plan_retry(
            self.retry,
            fault,
            self.attempts,
            safe=self.known_effect.safe if self.wrote else self.tool.safe_to_repeat,
            jitter=jitter,
            now=result.ended,
            wish=wish,
            running=result.still_running,
            waited=waited,
        )

    def plan_wait(self, seconds: float, *, waited: float, turn_left: float | None, jitter: float) -> Retry | NoRetry:
        """Plan the wait for the end of a rate hold."""
        return plan_wait(
            seconds,
            waited=waited,
            patience=self.retry.max_hint_wait,
            turn_left=turn_left,
            jitter=jitter,
            jitter_percent=self.retry.jitter_percent,
        )


def verdict_on(fault: Fault, *, entered: bool) -> Result:
    """The breaker's verdict on a failed attempt. An inner call that a limit refused is not a failure."""
    return "failure" if fault.retryable and entered and not is_limit(fault) else "neutral"


def may_have_spawned_tasks(candidate: Candidate, fault: Fault, result: AttemptResult) -> bool:
    """True if the attempt may have started tasks that have not begun and could act."""
    return (
        result.entered
        and fault.effect == "none"
        and candidate.tool.safe_to_repeat is False
        and candidate.tool.kind == "async"
    )
