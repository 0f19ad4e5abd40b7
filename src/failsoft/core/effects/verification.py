"""Verification: decide when a ``verify`` is asked about a write, and act on its answer.

Rules
-----
- It is asked after an attempt whose effect is unknown, and only about a tool that must not be repeated.
- It is not asked while the attempt may still act: while the tool, or a task that it started, runs after its deadline.
- It is asked ``verify_delay`` after the attempt, within the time that the turn has left. A command has ``COMMAND_ENDS``
  seconds at least: until it is killed, it may handle SIGTERM and act.
- ``happened``: the call has succeeded. Without a value, ``outcome.value_known`` is false.
- ``none``: the effect of the attempt is none. Retries and fallbacks follow as after any such failure.
- ``unknown``: nothing changes. The effect stays unknown, which prevents retries and fallbacks.
- An answer that is not a valid ``Verified`` means ``unknown``.
- ``none`` is about one tool. It is rejected if a fallback of the call may have written, if it was read from a part of
  the answer or by a fallback of the reading tool, and if the call is known to have acted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from failsoft.core.model.durations import seconds, text
from failsoft.core.model.options import ToolOptions
from failsoft.core.model.verified import NO_VALUE, Verified, VerifyAnswer
from failsoft.core.redact.sanitise import sanitise

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import RetryOptions

STILL_RUNS = "the attempt still runs"
TASK_RUNS = "a task of the attempt may still act"
ACTED_SINCE = "a task of the attempt may have acted meanwhile"
NO_TIME = "the turn's time is up"
ACTED_BEFORE = "the earlier call ended, and not without effect"
OTHER_TOOL = "another tool may have done it in place of this one"
ONLY_A_PART = "only a part of the answer was there"
COMMAND_ENDS = 1.25  # seconds after SIGTERM until a command and everything that it started have certainly ended


def can_verify(options: ToolOptions, fault: Fault, safe: bool | None) -> bool:
    """True if there is a ``verify`` to find out about this failure. ``safe``: the tool may be repeated."""
    return options.verify is not None and fault.effect == "unknown" and safe is False


def why_not_asked(*, running: bool, turn_left: float | None, abandoned: bool, delay: float) -> str | None:
    """Return the reason why ``verify`` is not asked; None if it is asked.

    ``running``: the abandoned attempt still runs. ``turn_left``: seconds until the turn's deadline. ``abandoned``: the
    turn has gone on without the call.
    """
    if running:
        return STILL_RUNS
    if abandoned or (turn_left is not None and turn_left <= delay):
        return NO_TIME
    return None


def delay_verify(options: ToolOptions, *, is_command: bool) -> float:
    """Return the seconds from an attempt until ``verify`` is asked about it."""
    return max(options.verify_delay, COMMAND_ENDS) if is_command else options.verify_delay


def limit_verify(timeout: float, turn_left: float | None) -> float:
    """Return the seconds that ``verify`` may take: its own timeout, or the turn's time if that is less."""
    return timeout if turn_left is None else max(0.0, min(timeout, turn_left))


def longest_call(
    options: ToolOptions, *, is_command: bool, timeout: float | None = None, retry: RetryOptions | None = None
) -> float:
    """Return the seconds that a call may take at most, with its retries, its waits for a slot and ``verify``.

    ``timeout`` and ``retry`` are the call's own, if it has any.
    """
    retry = retry or options.retry
    timeout = options.timeout if timeout is None else timeout
    if timeout is None or math.isinf(timeout):
        return math.inf
    if options.concurrency is not None:  # the calls before it in the queue, and those that run
        timeout *= options.queue // options.concurrency + 2
    delay = delay_verify(options, is_command=is_command)
    waits = retry.max_total_time + retry.max_hint_wait
    return retry.max_attempts * (timeout + delay + options.verify_timeout) + waits


def unused_without_verify(options: ToolOptions) -> Iterator[str]:
    """The options that were changed and have no meaning without a ``verify``."""
    for name in ("verify_delay", "verify_timeout"):
        if getattr(options, name) != seconds(ToolOptions._defaults[name]):
            yield name


def read_verified(answer: object) -> Verified:
    """Read the return value of a ``verify``. Anything but a ``Verified`` is ``unknown``, with the reason."""
    if not isinstance(answer, Verified):
        return Verified.unknown(
            f"verify returned {_name_type(answer)}: return Verified.happened(value), .none() or .unknown()"
        )
    said: object = answer.answer
    if not isinstance(said, str) or said not in get_args(VerifyAnswer):
        return Verified.unknown(f"verify returned a Verified with the answer {sanitise(said)}")
    return answer._replace(reason=sanitise(answer.reason) if answer.answer == "unknown" and answer.reason else "")


def doubt_none(verified: Verified, reason: str) -> Verified:
    """Return ``unknown`` in place of ``none`` if there is a reason; any other answer stays as it is."""
    return Verified.unknown(reason) if reason and verified.answer == "none" else verified


def late_verify(limit: float) -> Verified:
    """The answer of a ``verify`` that took too long."""
    return Verified.unknown(f"verify gave no answer within {text(limit)}")


def without_value(verified: Verified, reason: str) -> Verified:
    """Return the same answer without its value, which cannot be used."""
    return verified._replace(value=NO_VALUE, reason=reason)


def fault_after(fault: Fault, verified: Verified) -> Fault:
    """Return the fault with the effect that ``verify`` reported."""
    return fault if verified.answer == "unknown" else fault._replace(effect=verified.answer, source="stated")


def _name_type(answer: object) -> str:
    return "nothing" if answer is None else sanitise(type(answer).__name__)
