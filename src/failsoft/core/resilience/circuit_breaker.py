"""The circuit breaker: when a tool is cut off, and how it comes back (S-spec 3, S-tests 3, R1-R3, R16, R26).

::

    closed ──failure_threshold consecutive failures──▶ open ──timeout──▶ half_open ──success_threshold──▶ closed
                                                         ▲                   │      successful probes
                                                         └──a probe failed───┘

Rules
-----
- A call is admitted with a ``Ticket`` and its result is recorded with the same ticket, once per admission.
- ``failures`` counts consecutive transient failures: a failure adds one, a success takes all back. A ``neutral``
  result (a permanent error, a cancellation) does neither, in any state (R2, R3, R16, R26).
- The open time passes by itself: ``observe`` says half_open when it is over, no call is needed.
- Half-open admits one probe at a time. It holds the only slot until its result is recorded, or its lease ends: then
  its owner is taken for dead, the next call is the probe, and whatever the late owner still reports is ignored.
- A failed probe opens the circuit anew, with the full timeout. A neutral one only returns the slot.
- The fence: every opening starts a new generation. The result of a call admitted in an older one is ignored; it
  neither closes the circuit nor keeps it open (T4).
- A clock that is set back lengthens a wait by one timeout, or one lease, at most.

Why consecutive failures and no rate: a tool of an agent is called a few times a minute; a rate over so few is noise.
Why leases: the owner of a probe can be killed, in a fleet even with its whole machine, and nobody returns its slot.

``BreakerOptions.count`` is the caller's matter: with ``attempts`` each attempt is admitted and recorded, with
``calls`` each call with what became of its last attempt (R3).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from failsoft.core.model.durations import MOMENT

if TYPE_CHECKING:
    from failsoft.core.model.options import BreakerOptions

State = Literal["closed", "open", "half_open"]
Result = Literal["success", "failure", "neutral"]


class BreakerState(NamedTuple):
    """Everything a breaker knows. ``state`` is the stored one; ``observe`` adds what the clock has done since."""

    state: State = "closed"
    failures: int = 0  # consecutive transient failures
    successes: int = 0  # consecutive successful probes
    generation: int = 0  # how often the circuit has opened
    since: float = 0.0  # open: when it opened; half_open: when the latest probe was admitted
    probe: int = 0  # the number of the latest probe of this generation
    lease: float | None = None  # how long that probe may keep the slot; None: it has been returned


INITIAL = BreakerState()


class Ticket(NamedTuple):
    """An admitted call's right to report. Closed, all calls of a generation have equal tickets: one can be kept ready."""

    generation: int
    probe: int | None  # which probe it is; None: an ordinary call


class Refusal(NamedTuple):
    """Not admitted. ``retry_after`` > 0: the rest of the open time, or of the lease of the probe that is under way.

    The rest of the lease is the longest that the slot can be taken; the probe's answer usually comes sooner.
    """

    retry_after: float
    state: State


def is_pristine(state: BreakerState) -> bool:
    """Closed without a failure: a success changes nothing, so a call needs neither ``admit`` nor ``record`` for one."""
    return state.state == "closed" and not state.failures


def observe(state: BreakerState, options: BreakerOptions, *, now: float) -> State:
    """The state as it is now."""
    if state.state == "open" and _left(state, options, now) <= MOMENT:
        return "half_open"
    return state.state


def admit(
    state: BreakerState, options: BreakerOptions, *, now: float, lease: float
) -> tuple[BreakerState, Ticket | Refusal]:
    """Let a call through, or not. ``lease``: seconds after which a probe without a result is given up.

    Choose it longer than an attempt can take: a probe that outlives its lease has been in vain.
    """
    if state.state == "closed":
        return state, Ticket(state.generation, None)
    if now < state.since:  # the clock was set back: without this the wait would last as long as the step
        state = state._replace(since=now)
    left = _left(state, options, now)
    if left > MOMENT:
        return state, Refusal(left, state.state)
    state = state._replace(state="half_open", since=now, probe=state.probe + 1, lease=lease)
    return state, Ticket(state.generation, state.probe)


def record(state: BreakerState, options: BreakerOptions, ticket: Ticket, result: Result, *, now: float) -> BreakerState:
    """What an admitted call came to. The very same state comes back when nothing changes."""
    if not _is_current(state, options, ticket, now):
        return state
    if result == "success":
        return _succeed(state, options)
    if result == "failure":
        return _fail(state, options, now)
    return state if ticket.probe is None else state._replace(lease=None)


@lru_cache(maxsize=256)  # a failing tool goes through the same few again and again
def count_failure(state: BreakerState, failure_threshold: int, ticket: Ticket) -> BreakerState | None:
    """What ``record`` makes of a failure that does nothing but count; None: it does more, or nothing."""
    if state.state != "closed" or ticket.generation != state.generation:
        return None
    failures = state.failures + 1
    return None if failures >= failure_threshold else _closed(failures, state.generation)


@lru_cache(maxsize=256)
def count_success(state: BreakerState, ticket: Ticket) -> BreakerState | None:
    """What ``record`` makes of a success of a closed circuit's call; None: it is not closed any more."""
    if state.state != "closed" or ticket.generation != state.generation:
        return None
    return _closed(0, state.generation)


def _is_current(state: BreakerState, options: BreakerOptions, ticket: Ticket, now: float) -> bool:
    if ticket.generation != state.generation:
        return False  # admitted before the circuit opened
    if state.state == "closed":
        return ticket.probe is None  # a probe's result comes late when another one has closed the circuit
    return ticket.probe == state.probe and _left(state, options, now) > MOMENT  # it still has the slot


def _succeed(state: BreakerState, options: BreakerOptions) -> BreakerState:
    if is_pristine(state):
        return state
    successes = state.successes + 1
    if state.state == "closed" or successes >= options.success_threshold:
        return _closed(0, state.generation)
    return state._replace(failures=0, successes=successes, lease=None)


def _fail(state: BreakerState, options: BreakerOptions, now: float) -> BreakerState:
    failures = state.failures + 1
    if state.state == "closed" and failures < options.failure_threshold:
        return _closed(failures, state.generation)
    return BreakerState("open", failures=failures, generation=state.generation + 1, since=now)


@lru_cache(maxsize=256)
def _closed(failures: int, generation: int) -> BreakerState:
    return BreakerState("closed", failures, 0, generation)


def _left(state: BreakerState, options: BreakerOptions, now: float) -> float:
    """For how long nobody is admitted: the rest of the open time, or of the lease of the probe that is out."""
    wait = options.timeout if state.state == "open" else state.lease
    return 0.0 if wait is None else state.since + wait - now
