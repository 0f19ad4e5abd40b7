"""Whether a failed attempt is repeated, and when (S-spec 2.3, R4, R11, R16, R18).

Rules, in this order
--------------------
1. A cancelled call is not repeated: its caller has left (R16). Nor is a bug: the same code meets it again.
2. Without ``rules`` (None) a permanent error is not repeated. With them the first rule that lists the error's code
   decides, whatever the classification; no rule, no retry, so an empty list turns retries off.
3. Effects (R11). An attempt that may have acted (``unknown``) is repeated unless the tool is declared as not
   idempotent. One that surely has (``happened``: its value came after the deadline) is repeated only if the tool is
   declared safe to repeat: nobody asked for it to act twice. The same holds for one that still runs (R8): a thread, or
   a coroutine that swallowed its cancellation.
4. At most ``max_attempts``; with ``rules`` the rule's own, counted over the failures that it decided about.
5. A server's hint that is longer than the backoff is waited for if the sum of such waits in the call stays within
   ``max_hint_wait``; one of more than ``LONGEST_HINT`` never is.
6. ``max_total_time`` runs from the end of the first failed attempt (R4). A retry must (a) start within it, and (b) the
   retries so far and one more like the last attempt must fit into it; the first retry is exempt from (b). A retry in
   flight is not cut off. Time waited because the server asked for it does not count.

A policy of the user's can wish for a retry (``Wish``). That beats the classification and the ``rules``, and a delay that
it names beats rule 6; nothing else. Where the effect is unknown and nobody has declared the tool safe, such a retry is
made only if the policy says that it may be.

Why (b) takes the last attempt as its measure: S-tests 2.4 stops before the attempt that would not fit, and how long
an attempt takes is best foretold by the one before. Why the first is exempt: a 30 s timeout is to be retried although
2 s are all the time there is (S-tests 4.1, 7.3).

Breaker and budget are not asked here: a retry that is planned is then paid for and admitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from failsoft.core.model.durations import MOMENT, text
from failsoft.core.model.fault import Code
from failsoft.core.resilience.backoff import LONGEST_HINT, delay

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import RetryOptions, RetryRule


CUT_OFF = "max total retry time"  # how the reason begins when retries end although attempts are left
_STILL_RUNS = "the attempt still runs and the tool is not declared idempotent"


class Attempts(NamedTuple):
    """One tool's failed attempts within one call so far."""

    made: int = 0  # the one that just failed included
    first_failed_at: float = 0.0  # when the first of them ended
    retry_time: float = 0.0  # running time of all but the first
    last_duration: float = 0.0  # of the one that just failed
    matched: tuple[int, ...] = ()  # failures that each of options.rules decided about; () while there are none
    hinted: float = 0.0  # seconds waited since the first failure because the server asked for it


class Retry(NamedTuple):
    """Repeat the attempt after so many seconds."""

    delay: float
    hinted: bool = False  # the server asked for the wait


class NoRetry(NamedTuple):
    """Leave it; ``why`` is short and in words."""

    why: str
    cut_off: bool = False  # max_total_time is over, and attempts are left


class Wish(NamedTuple):
    """A policy asks for a retry."""

    delay: float | None = None  # seconds, instead of the backoff's
    even_if_unknown: bool = False  # though the effect is unknown


def add_failure(attempts: Attempts, options: RetryOptions, fault: Fault, *, duration: float, now: float) -> Attempts:
    """Count the attempt that ended in ``fault`` just now; ``Attempts()`` is what a call starts with."""
    matched = _matched(attempts, options.rules, fault) if options.rules else ()
    if not attempts.made:
        return Attempts(1, now, 0.0, duration, matched)
    spent = attempts.retry_time + duration
    return Attempts(attempts.made + 1, attempts.first_failed_at, spent, duration, matched, attempts.hinted)


def add_hinted_wait(attempts: Attempts, seconds: float) -> Attempts:
    """Count a wait that the server asked for; before the first failure no clock runs that it could be taken from."""
    return attempts._replace(hinted=attempts.hinted + seconds) if attempts.made else attempts


def _matched(attempts: Attempts, rules: tuple[RetryRule, ...], fault: Fault) -> tuple[int, ...]:
    rule = _find_rule(rules, fault)
    counts = attempts.matched or (0,) * len(rules)
    return tuple(count + (number == rule) for number, count in enumerate(counts))


def plan_retry(
    options: RetryOptions,
    fault: Fault,
    attempts: Attempts,
    *,
    safe: bool | None,
    jitter: float,
    now: float,
    wish: Wish | None = None,
    running: bool = False,
    waited: float = 0.0,
) -> Retry | NoRetry:
    """Decide about the failure that was added last.

    ``safe`` is whether the tool can be repeated, None: unsaid; ``running``, whether the attempt goes on unheard;
    ``waited``, for how many seconds the call has waited so far because a server asked for it.
    """
    why = (
        _bars(options, fault, safe, wish)
        or (_STILL_RUNS if running and not safe else None)
        or _used_up(options, fault, attempts)
    )
    if why:
        return NoRetry(why)
    hint = fault.retry_after
    if hint is not None and hint > LONGEST_HINT:
        return NoRetry(f"the service asks for a wait of more than {text(LONGEST_HINT)}")
    wished = None if wish is None else wish.delay
    backoff = delay(options, attempts.made, jitter=jitter, hint=hint)
    wait = backoff if wished is None else max(wished, hint or 0.0)  # a hint is never shortened (R6)
    hinted = wait == hint
    if hinted and waited + wait > options.max_hint_wait + MOMENT:
        return NoRetry(f"the service asks for a wait of {text(wait)}, max_hint_wait is {text(options.max_hint_wait)}")
    if wished is None and not _is_in_time(options, 0.0 if hinted else wait, attempts, now):
        return NoRetry(_cut_off(options, fault, attempts), cut_off=True)
    return Retry(wait, hinted)


def plan_known(
    options: RetryOptions, made: int, since: float, spent: float, took: float, now: float, jitter: float
) -> float | None:
    """The delay before a retry of a failure that may be repeated and carries no hint; None: not any more.

    It is what ``plan_retry`` says where only attempts and time are still to be asked about. The numbers are those of
    ``Attempts``, in its order.
    """
    if made >= options.max_attempts:
        return None
    wait = delay(options, made, jitter=jitter) if options.initial_delay else 0.0
    limit = options.max_total_time + MOMENT
    if wait > limit or now - since + wait > limit:
        return None
    if made > 1 and spent + took > limit:
        return None
    return wait


def _is_in_time(options: RetryOptions, wait: float, attempts: Attempts, now: float) -> bool:
    limit = options.max_total_time + MOMENT
    if wait > limit or now - attempts.first_failed_at - attempts.hinted + wait > limit:
        return False
    return attempts.made == 1 or attempts.retry_time + attempts.last_duration <= limit


def _bars(options: RetryOptions, fault: Fault, safe: bool | None, wish: Wish | None) -> str | None:
    """Why this failure must not be repeated, however few the attempts."""
    if fault.code is Code.CANCELLED:
        return "the caller has left"
    if fault.category == "internal_contract_bug":
        return "a bug is not cured by repeating"
    if wish is None:
        if options.rules is not None and _find_rule(options.rules, fault) is None:
            return f"no retry rule lists {fault.code}"
        if options.rules is None and not fault.retryable:
            return "permanent error"
    if fault.effect == "unknown" and not (wish is not None and wish.even_if_unknown):
        if safe is False:
            return "the effect is unknown and the tool is not idempotent"
        if safe is None and wish is not None and not fault.retryable:
            return "the effect is unknown and the tool is not declared idempotent"
    if fault.effect == "happened" and not safe:
        return "the effect has happened and the tool is not declared idempotent"
    return None


def _used_up(options: RetryOptions, fault: Fault, attempts: Attempts) -> str | None:
    rules = options.rules or ()
    number = _find_rule(rules, fault)
    if number is None:
        return f"max attempts reached ({options.max_attempts})" if attempts.made >= options.max_attempts else None
    most = rules[number].max_attempts
    return f"max attempts reached ({most} for {fault.code})" if attempts.matched[number] >= most else None


def _cut_off(options: RetryOptions, fault: Fault, attempts: Attempts) -> str:
    """Why retries end although attempts are left, with the setting to change."""
    rules = options.rules or ()
    number = _find_rule(rules, fault)
    made, most = (
        (attempts.made, options.max_attempts)
        if number is None
        else (attempts.matched[number], rules[number].max_attempts)
    )
    return f"{CUT_OFF} of {text(options.max_total_time)} reached after {made} of {most} attempts"


def _find_rule(rules: tuple[RetryRule, ...], fault: Fault) -> int | None:
    """The number of the first rule that lists the fault's code."""
    return next((number for number, rule in enumerate(rules) if fault.code in rule.handle_errors), None)
