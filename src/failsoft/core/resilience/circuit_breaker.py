"""The circuit breaker: decide when calls to a failing tool are refused, and when they resume.

::

    closed ──failure_threshold consecutive failures──▶ open ──timeout──▶ half_open ──success_threshold──▶ closed
                                                         ▲                   │      successful probes
                                                         └──a probe failed───┘

Rules
-----
- An admitted call gets a ``Ticket`` and records its result with that ticket, once.
- ``failures`` counts consecutive transient failures; a success resets it. A ``neutral`` result (a permanent error, a
  cancellation) changes nothing, in any state.
- With a ``window``, the latest results are remembered as well, ``+`` and ``-``. A failure also opens the circuit if the
  window has at least ``min_calls`` results and the failures among them reach ``failure_rate``. A circuit that closes
  starts with an empty window.
- The open time ends without a call: ``observe`` then returns half_open.
- Half-open admits one probe at a time. The probe holds the only slot until its result is recorded or its lease ends.
  After the lease ends, the next call becomes the probe and a late result is ignored.
- A failed probe reopens the circuit for the full timeout. A neutral probe only returns the slot.
- Fencing: every opening starts a new generation. Results of calls admitted in an older generation are ignored.
- A clock that is set back lengthens a wait by at most one timeout or one lease.

It counts consecutive failures by default because an agent calls a tool a few times a minute, and a rate over so few
calls is noise. A window is for busy tools whose failures never come in a row. Slots are leased because the process that
runs a probe may die without returning its slot.

The caller applies ``BreakerOptions.count``: with ``attempts`` it records every attempt, with ``calls`` only the last
attempt of each call.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from failsoft.core.model.compared import Shown
from failsoft.core.model.durations import MOMENT
from failsoft.core.resilience.breaker_window import exceeds_rate, remember
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.model.options import BreakerOptions

CircuitState = Literal["closed", "open", "half_open"]
CIRCUIT_STATES: tuple[CircuitState, ...] = get_args(CircuitState)
Result = Literal["success", "failure", "neutral"]


class ShownState(Shown):
    """The state of a circuit, as users see it."""

    __slots__ = ()

    name = "health.state"
    known = CIRCUIT_STATES


_STATES = ShownState.every()


def show_state(state: CircuitState) -> CircuitState:
    """Return a state as users get it: a comparison with a misspelt state is logged."""
    return cast("CircuitState", _STATES[state])


class BreakerState(NamedTuple):
    """The complete state of a breaker. ``state`` is the stored state; ``observe`` adds the passage of time."""

    state: CircuitState = "closed"
    failures: int = 0  # consecutive transient failures
    successes: int = 0  # consecutive successful probes
    generation: int = 0  # how many times the circuit has opened
    since: float = 0.0  # open: when it opened; half_open: when the latest probe was admitted
    probe: int = 0  # number of the latest probe in this generation
    lease: float | None = None  # seconds for which that probe may hold the slot; None: the slot is free
    recent: str = ""  # with a window: the latest results in the closed circuit, oldest first; kept while it is open


INITIAL = BreakerState()
_PHASES: tuple[CircuitState, ...] = ("open", "half_open", "closed")  # of a generation, in order


class Ticket(NamedTuple):
    """An admitted call's right to report. Ordinary calls of one generation have equal tickets, so one can be cached."""

    generation: int
    probe: int | None  # number of the probe; None: an ordinary call


class Refusal(NamedTuple):
    """The refusal of a call. ``retry_after`` > 0: the rest of the open time, or of the running probe's lease.

    The lease is an upper bound: the probe usually ends sooner.
    """

    retry_after: float
    state: CircuitState


def is_pristine(state: BreakerState) -> bool:
    """True if closed without failures. Without a window, a success then needs neither ``admit`` nor ``record``."""
    return state.state == "closed" and not state.failures


def is_later(state: BreakerState, than: BreakerState) -> bool:
    """True if a shared circuit reaches ``state`` after ``than``. Counted failures and times do not matter.

    Each opening starts a generation, which goes from open to half_open, probe by probe, to closed. Processes that have
    changed their copies at the same time agree on the latest state.
    """
    return _place(state) > _place(than)


def is_same(state: BreakerState, other: BreakerState) -> bool:
    """True if neither state of a shared circuit is later than the other."""
    return _place(state) == _place(other)


def _place(state: BreakerState) -> tuple[int, int, int, bool]:
    return state.generation, _PHASES.index(state.state), state.probe, state.lease is None


def observe(state: BreakerState, options: BreakerOptions, *, now: float) -> CircuitState:
    """Return the state at the time ``now``."""
    if state.state == "open" and _remaining(state, options, now) <= MOMENT:
        return "half_open"
    return state.state


def admit(
    state: BreakerState, options: BreakerOptions, *, now: float, lease: float
) -> tuple[BreakerState, Ticket | Refusal]:
    """Admit or refuse a call. ``lease``: seconds after which a probe without a result loses its slot.

    The lease must exceed the longest possible attempt: the result of a probe that outlives its lease is ignored.
    """
    if state.state == "closed":
        return state, Ticket(state.generation, None)
    if now < state.since:  # the clock was set back: without this the wait would grow by the whole step
        state = state._replace(since=now)
    remaining = _remaining(state, options, now)
    if remaining > MOMENT:
        return state, Refusal(remaining, state.state)
    state = state._replace(state="half_open", since=now, probe=state.probe + 1, lease=lease)
    return state, Ticket(state.generation, state.probe)


def record(state: BreakerState, options: BreakerOptions, ticket: Ticket, result: Result, *, now: float) -> BreakerState:
    """Record the result of an admitted call. Returns the same object if nothing changes."""
    if not _is_current(state, options, ticket, now):
        return state
    if result == "success":
        return _succeed(state, options)
    if result == "failure":
        return _fail(state, options, now)
    return state if ticket.probe is None else state._replace(lease=None)


@lru_cache(maxsize=256)  # a failing tool repeats the same few transitions
def count_failure(state: BreakerState, failure_threshold: int, ticket: Ticket) -> BreakerState | None:
    """Return the state after a failure that only raises the count; None if ``record`` must decide."""
    if state.state != "closed" or ticket.generation != state.generation:
        return None
    failures = state.failures + 1
    return None if failures >= failure_threshold else _closed(failures, state.generation)


@lru_cache(maxsize=256)
def count_success(state: BreakerState, ticket: Ticket) -> BreakerState | None:
    """Return the state after a success in a closed circuit; None if ``record`` must decide."""
    if state.state != "closed" or ticket.generation != state.generation:
        return None
    return _closed(0, state.generation)


def _is_current(state: BreakerState, options: BreakerOptions, ticket: Ticket, now: float) -> bool:
    if ticket.generation != state.generation:
        return False  # admitted before the circuit opened
    if state.state == "closed":
        return ticket.probe is None  # a probe is late if another probe has closed the circuit
    return ticket.probe == state.probe and _remaining(state, options, now) > MOMENT  # the probe still holds the slot


def _succeed(state: BreakerState, options: BreakerOptions) -> BreakerState:
    if options.window is not None and state.state == "closed":
        return _closed(0, state.generation)._replace(recent=remember(state.recent, options.window, "+"))
    if is_pristine(state):
        return state
    successes = state.successes + 1
    if state.state == "closed" or successes >= options.success_threshold:
        return _closed(0, state.generation)
    return state._replace(failures=0, successes=successes, lease=None)


def _fail(state: BreakerState, options: BreakerOptions, now: float) -> BreakerState:
    failures, recent = state.failures + 1, state.recent
    if state.state == "closed":
        if options.window is not None:
            recent = remember(state.recent, options.window, "-")
        if failures < options.failure_threshold and not exceeds_rate(recent, options):
            return (
                _closed(failures, state.generation)._replace(recent=recent)
                if recent
                else _closed(failures, state.generation)
            )
    return BreakerState("open", failures=failures, generation=state.generation + 1, since=now, recent=recent)


@lru_cache(maxsize=256)
def _closed(failures: int, generation: int) -> BreakerState:
    return BreakerState("closed", failures, 0, generation)


def _remaining(state: BreakerState, options: BreakerOptions, now: float) -> float:
    """Return the rest of the open time, or of the running probe's lease; until then every call is refused."""
    wait = options.timeout if state.state == "open" else state.lease
    return 0.0 if wait is None else state.since + wait - now
