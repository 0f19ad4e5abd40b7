"""Retry planning: decide whether a failed attempt is repeated, and after which delay.

Rules, in this order
--------------------
1. A cancelled call is not repeated, because its caller is gone. A bug is not repeated, because it would recur.
2. If ``rules`` is None, a permanent error is not repeated. Otherwise the first rule that lists the error's code applies,
   whatever the classification. Without a matching rule there is no retry, so an empty list turns retries off.
3. An attempt whose effect is ``unknown`` is repeated unless the tool is declared not idempotent. An attempt whose effect
   ``happened`` (its value came after the deadline) is repeated only if the tool is declared safe to repeat. The same
   applies to an attempt that is still running: a thread, or a coroutine that swallowed its cancellation.
4. ``max_attempts`` limits the attempts. A matching rule has its own limit, counted over the failures that it matched.
5. A server's hint that exceeds the backoff replaces it, if the sum of such waits in the call stays within
   ``max_hint_wait``. A hint longer than ``LONGEST_HINT`` means no retry.
6. ``max_total_time`` starts when the first attempt fails. A retry must start within it, and the retries so far plus one
   more of the last attempt's duration must fit. The first retry is exempt from the second condition, so that a call
   with a 30 s timeout is retried although the limit is 2 s. A running retry is never cut off. Waits that the server
   asked for do not count.

A policy can ask for a retry (``Wish``). The wish overrides the classification and the ``rules``; a delay in it overrides
rule 6. If the effect is unknown and the tool is not declared safe, the policy must allow the retry explicitly.

Circuit breaker and retry budget are checked later, when the planned retry is about to run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from failsoft.core.model.durations import MOMENT, text
from failsoft.core.model.fault import Code
from failsoft.core.model.named_tuples import maker
from failsoft.core.resilience.backoff import LONGEST_HINT, delay
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import RetryOptions, RetryRule


CUT_OFF = "max total retry time"  # start of the reason when time runs out before the attempts do
_STILL_RUNS = "the attempt still runs and the tool is not declared idempotent"


class Attempts(NamedTuple):
    """The failed attempts of one tool within one call."""

    made: int = 0  # including the latest failure
    first_failed_at: float = 0.0
    retry_time: float = 0.0  # total duration of all attempts but the first
    last_duration: float = 0.0  # duration of the latest attempt
    matched: tuple[int, ...] = ()  # per rule in options.rules: the failures that it matched; () without rules
    hinted: float = 0.0  # seconds waited since the first failure on the server's request


class Retry(NamedTuple):
    """Repeat the attempt after ``delay`` seconds."""

    delay: float
    hinted: bool = False  # the server asked for the wait


class NoRetry(NamedTuple):
    """Do not repeat the attempt."""

    why: str
    cut_off: bool = False  # max_total_time ran out before the attempts did


_make_attempts: Callable[[tuple[int, float, float, float, tuple[int, ...], float]], Attempts] = maker(Attempts)
_make_retry: Callable[[tuple[float, bool]], Retry] = maker(Retry)


class Wish(NamedTuple):
    """A retry requested by a policy."""

    delay: float | None = None  # seconds; replaces the backoff
    even_if_unknown: bool = False  # allowed although the effect is unknown


def add_failure(attempts: Attempts, options: RetryOptions, fault: Fault, *, duration: float, now: float) -> Attempts:
    """Add the attempt that just ended in ``fault``. A call starts with ``Attempts()``."""
    matched = _matched(attempts, options.rules, fault) if options.rules else ()
    if not attempts.made:
        return _make_attempts((1, now, 0.0, duration, matched, 0.0))
    spent = attempts.retry_time + duration
    return _make_attempts((attempts.made + 1, attempts.first_failed_at, spent, duration, matched, attempts.hinted))


def add_hinted_wait(attempts: Attempts, seconds: float) -> Attempts:
    """Add a wait that the server asked for. Ignored before the first failure, when ``max_total_time`` has not started."""
    return attempts._replace(hinted=attempts.hinted + seconds) if attempts.made else attempts


def add_unreported(
    attempts: Attempts, options: RetryOptions, fault: Fault, *, made: int, first_failed_at: float
) -> Attempts:
    """Set the number of failed attempts to ``made``. Attempts that were not reported count as failures like ``fault``."""
    missing = max(made - attempts.made, 0)
    matched = _matched(attempts, options.rules, fault, missing) if options.rules else ()
    return attempts._replace(made=made, first_failed_at=first_failed_at, matched=matched)


def _matched(attempts: Attempts, rules: tuple[RetryRule, ...], fault: Fault, times: int = 1) -> tuple[int, ...]:
    rule = _find_rule(rules, fault)
    counts = attempts.matched or (0,) * len(rules)
    return tuple(count + times * (number == rule) for number, count in enumerate(counts))


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
    """Decide whether to repeat the attempt that was added last.

    ``safe``: the tool may be repeated; None if undeclared. ``running``: the abandoned attempt is still running.
    ``waited``: seconds that the call has already waited on a server's request.
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
    at_once = hint is None and not options.initial_delay
    backoff = 0.0 if at_once else delay(options, attempts.made, jitter=jitter, hint=hint)
    wait = backoff if wished is None else max(wished, hint or 0.0)  # a hint is never shortened
    hinted = wait == hint
    if hinted and waited + wait > options.max_hint_wait + MOMENT:
        return NoRetry(f"the service asks for a wait of {text(wait)}, max_hint_wait is {text(options.max_hint_wait)}")
    if wished is None and not _is_in_time(options, 0.0 if hinted else wait, attempts, now):
        return NoRetry(_cut_off(options, fault, attempts), cut_off=True)
    return _make_retry((wait, hinted))


def veto_retry(
    retry: Retry, *, opened: bool, nested: bool, turn_left: float | None, abandoned: bool
) -> Retry | NoRetry:
    """Return the retry, or the reason why the call's surroundings forbid it.

    ``opened``: the failure has opened the circuit. ``nested``: an inner guarded call failed, which was retried already.
    ``turn_left``: seconds until the turn's deadline. ``abandoned``: the turn has gone on without the call.
    """
    if opened:
        return NoRetry("circuit open")
    if nested:
        return NoRetry("the call inside has had its retries")
    if abandoned or (turn_left is not None and turn_left < retry.delay):
        return NoRetry("the turn's time is up")
    return retry


def plan_known(
    options: RetryOptions, made: int, since: float, spent: float, took: float, now: float, jitter: float
) -> float | None:
    """Return the delay before repeating a retryable failure without a hint; None if attempts or time are used up.

    Agrees with ``plan_retry`` when only attempts and time can prevent the retry. The parameters are the fields of
    ``Attempts``, in the same order.
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
    """Return the reason why this failure must never be repeated, regardless of attempts and time; None if it may be."""
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
    """Return the reason when time runs out before the attempts do; it names the setting to change."""
    rules = options.rules or ()
    number = _find_rule(rules, fault)
    made, most = (
        (attempts.made, options.max_attempts)
        if number is None
        else (attempts.matched[number], rules[number].max_attempts)
    )
    return f"{CUT_OFF} of {text(options.max_total_time)} reached after {made} of {most} attempts"


def _find_rule(rules: tuple[RetryRule, ...], fault: Fault) -> int | None:
    """Return the index of the first rule that lists the fault's code."""
    if not rules:
        return None
    return next((number for number, rule in enumerate(rules) if fault.code in rule.handle_errors), None)
