"""A tool's health while the program runs: the state of its breaker, retry budget and rate holds.

Every method is called with the runtime's lock held, on the failure path only. ``ticket`` is what the happy path reads:
a ready-made ticket while the circuit is closed and has no counted failure, else None.
"""

from __future__ import annotations

from collections.abc import Callable

from failsoft.core.model.elsewhere import point_elsewhere
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import BreakerOptions
from failsoft.core.resilience import circuit_breaker, retry_budget
from failsoft.core.resilience.circuit_breaker import BreakerState, CircuitState, Refusal, Result, Ticket
from failsoft.core.resilience.rate_hold import Holds
from failsoft.core.startup.named_tuple import NamedTuple

LEASE = 5.0  # seconds after an attempt's timeout until the owner of a probe counts as dead
LONGEST_PROBE = 300.0  # seconds, for a tool without a timeout


class HealthView(NamedTuple):
    """The answer of ``Runtime.health``."""

    state: CircuitState
    failure_count: int
    available: bool
    retry_after: float | None = None  # seconds until the circuit admits a probe
    failure_rate: float | None = None  # in the breaker's window; None: it has none, or it is empty


point_elsewhere(
    HealthView, {"open is_open closed half_open": 'health.state == "open"', "failures": "health.failure_count"}
)


class ToolHealth:
    """One breaker and one budget."""

    __slots__ = (
        "budget",
        "credited_successes",
        "holds",
        "on_change",
        "opened_at",
        "opened_by",
        "options",
        "state",
        "ticket",
        "unsaved",
    )

    def __init__(self, options: BreakerOptions) -> None:
        self.options = options
        self.state: BreakerState = circuit_breaker.INITIAL
        self.ticket = self._ready_ticket()
        self.unsaved = 0  # successes in the window since ``on_change`` was called
        self.opened_by: Fault | None = None
        self.opened_at = 0.0  # when the circuit first opened; failed probes do not count
        self.holds: Holds = {}  # rate holds: until when, for which threads
        self.budget = retry_budget.Budget()
        self.credited_successes = 0  # successes that the budget has been credited for
        self.on_change: Callable[[], None] | None = (
            None  # called when the state or its count has changed; must not block
        )

    def admit(self, now: float, timeout: float) -> Ticket | Refusal:
        """Admit a call or refuse it. The state changes only if the call is a probe."""
        self.state, answer = circuit_breaker.admit(
            self.state, self.options, now=now, lease=min(timeout, LONGEST_PROBE) + LEASE
        )
        if self.on_change is not None and isinstance(answer, Ticket) and answer.probe is not None:
            self.on_change()
        return answer

    def record(self, ticket: Ticket, result: Result, now: float, fault: Fault | None = None) -> CircuitState | None:
        """Report a result to the breaker; return the new state if it has changed."""
        before = self.state
        after = self.state = circuit_breaker.record(before, self.options, ticket, result, now=now)
        if after is before:
            return None
        self.ticket = self._ready_ticket()
        changed: CircuitState | None = after.state if after.state != before.state else None
        if after.generation != before.generation:
            self.opened_by = fault
            if before.state == "closed":
                self.opened_at = now
            changed = "open"
        if self.on_change is not None and self._is_worth_saving(before, after):
            self.unsaved = 0
            self.on_change()
        return changed

    def _ready_ticket(self) -> Ticket | None:
        """The ticket that the happy path may use. With a window there is none: every result has to be recorded."""
        if self.options.window is not None or not circuit_breaker.is_pristine(self.state):
            return None
        return Ticket(self.state.generation, None)

    def _is_worth_saving(self, before: BreakerState, after: BreakerState) -> bool:
        """False for most successes that only fill the window: the store need not record each of them."""
        if before.failures or after.failures or after.state != before.state:
            return True
        self.unsaved += "-" in before.recent
        return self.unsaved * 4 >= (self.options.window or 0)

    def count_failure(self, ticket: Ticket, now: float, successes: int | None) -> bool:
        """Count a failure and pay for its retry. False, with nothing done, if it would open the circuit or exceed the budget.

        ``successes`` is the number that the budget is credited for; None if there is no budget.
        """
        after = circuit_breaker.count_failure(self.state, self.options.failure_threshold, ticket)
        if after is None or not (successes is None or self.spend(now, successes)):
            return False
        self.state, self.ticket = after, None
        if self.on_change is not None:
            self.on_change()
        return True

    def count_success(self, ticket: Ticket) -> None:
        """Count the success after such failures, unless its ticket is of an older generation."""
        after = circuit_breaker.count_success(self.state, ticket)
        if after is not None:
            counted, self.state, self.ticket = self.state.failures, after, ticket
            if counted and self.on_change is not None:
                self.on_change()

    def restore(self, state: BreakerState, opened_by: Fault | None) -> None:
        """Continue with the state of an earlier process, or of another one."""
        self.state, self.opened_by = state, opened_by
        self.ticket = self._ready_ticket()
        if state.state == "open":
            self.opened_at = state.since

    def reset(self) -> None:
        """Close the circuit, fill the retry budget and drop the rate holds. Calls under way no longer count."""
        self.restore(BreakerState(generation=self.state.generation + 1), None)
        self.budget, self.holds = retry_budget.Budget(), {}
        if self.on_change is not None:
            self.on_change()

    def observe(self, now: float) -> CircuitState:
        return circuit_breaker.observe(self.state, self.options, now=now)

    def open_for(self, now: float) -> float | None:
        """Seconds for which the circuit stays open."""
        if self.observe(now) != "open":
            return None
        return max(0.0, self.state.since + self.options.timeout - now)

    def can_spend(self, now: float, successes: int, more: int) -> bool:
        """True if the budget suffices, with or without up to ``more`` successes credited first."""
        return retry_budget.is_ample(self.budget, now=now, successes=successes - self.credited_successes, more=more)

    def budget_level(self, now: float, successes: int) -> float:
        """The level of the retry budget: 1.0 is full."""
        return retry_budget.level(self.budget, now=now, successes=max(0, successes - self.credited_successes))

    def spend(self, now: float, successes: int) -> bool:
        """Pay for a retry."""
        self.budget, paid = retry_budget.spend(self.budget, now=now, successes=successes - self.credited_successes)
        self.credited_successes = successes
        return paid
