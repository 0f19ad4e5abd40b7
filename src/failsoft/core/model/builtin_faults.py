"""Faults that failsoft itself detects, without an exception from the tool.

Rules
-----
- One function per fault. The function's name is the fault's ``rule``, so a rule in a trace leads to its code.
- A call that never ran has the effect ``none``. A call that was stopped while running has ``unknown``. A value that
  came too late or in the wrong form has ``happened``.
- An error text of another caller is never repeated: an open circuit names only the code that opened it.
- Names from a model (unknown tools, arguments) are data: sanitised and cut before they are quoted.

Why one module: fallbacks, breakers and explanations match on these texts and codes. Here they read as one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from failsoft.core.model.durations import text
from failsoft.core.model.fault import Code, Effect, Fault
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.redact.printable import quote
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.startup.lazy_pattern import lazy_pattern

TOOL_TIMEOUT = "tool_timeout"
IDLE_TIMEOUT = "idle_timeout"
CIRCUIT_OPEN = "circuit_open"
UNKNOWN_TOOL = "unknown_tool"
TOOL_MARKED_UNAVAILABLE = "tool_marked_unavailable"
BAD_ARGUMENTS = "bad_arguments"
QUEUE_FULL = "queue_full"
THREAD_LIMIT = "thread_limit"
RATE_HOLD = "rate_hold"
RATE_LIMIT = "rate_limit"
DEPENDENCY_FAILED = "dependency_failed"
TURN_TIMED_OUT = "turn_timed_out"
TURN_CALL_LIMIT = "turn_call_limit"
TOOL_CALL_LIMIT = "tool_call_limit"
CANCELLED = "cancelled"
PASSED_ON = "passed_on"
OUTPUT_MISMATCH = "output_mismatch"
PARTIAL_RESULT = "partial_result"
BROKEN_FAILED_IF = "broken_failed_if"
LOOP_PREVENTED = "loop_prevented"
NO_PROGRESS = "no_progress"
STILL_MISCONFIGURED = "still_misconfigured"
TOOL_DISABLED = "tool_disabled"
UNPROTECTED = "unprotected"
NO_OFFER = "no_offer"
BEGUN_BEFORE = "begun_before"
NOT_RECORDED = "not_recorded"
NESTED = "nested: "  # prefix of the rule of a fault that comes from a nested call

_TIMEOUTS = frozenset({TOOL_TIMEOUT, IDLE_TIMEOUT})
_LIMITS = frozenset({TURN_CALL_LIMIT, TOOL_CALL_LIMIT, RATE_LIMIT})

REQUIRED_SKIPPED = "Required tool skipped due to dependency failure"  # the reason for the escalation; quoted text

_DEPENDENCY = "Dependency failed: "
_LOST = "Result not known: "
_MISFIT = "The arguments do not fit."
_NAMED = lazy_pattern(re.escape(_MISFIT) + r"(?: Missing: ([^.]+)\.)?(?: Invalid: ([^.]+)\.)?")
_NAME_ENDS = lazy_pattern("[.,]")


def _transient(
    rule: str, code: Code, effect: Effect, message: str, reason: str, *, retry_after: float | None = None
) -> Fault:
    return Fault(code, "transient", "tool_transient", effect, message, reason, rule, retry_after)


def _exhausted(rule: str, message: str, reason: str, *, retry_after: float | None = None) -> Fault:
    return _transient(rule, Code.RESOURCE_EXHAUSTED, "none", message, reason, retry_after=retry_after)


def _unavailable(rule: str, message: str, reason: str, *, retry_after: float | None = None) -> Fault:
    return Fault(Code.NOT_FOUND, "permanent", "tool_unavailable", "none", message, reason, rule, retry_after)


def _invalid(rule: str, code: Code, message: str, reason: str, *, cause: BaseException | None = None) -> Fault:
    return Fault(code, "permanent", "tool_validation", "none", message, reason, rule, cause=cause)


def _bug(rule: str, effect: Effect, message: str, reason: str, *, cause: BaseException | None = None) -> Fault:
    return Fault(Code.INTERNAL, "permanent", "internal_contract_bug", effect, message, reason, rule, cause=cause)


def tool_timeout(timeout: float, *, effect: Effect = "unknown", cause: BaseException | None = None) -> Fault:
    """An attempt exceeded its tool's own timeout. Use ``effect="happened"`` if its value came too late."""
    return Fault(
        Code.DEADLINE_EXCEEDED,
        "transient",
        "tool_transient",
        effect,
        f"Tool timeout after {text(timeout)}",
        "Timeout is temporary",
        TOOL_TIMEOUT,
        cause=cause,
    )


def idle_timeout(idle: float, *, last: str = "", effect: Effect = "unknown") -> Fault:
    """An attempt made no progress for its tool's ``idle_timeout``; ``last`` is the message of its latest progress."""
    latest = f"the last progress was {last!r}" if last else "none was reported"
    return _transient(
        IDLE_TIMEOUT, Code.DEADLINE_EXCEEDED, effect, f"No progress for {text(idle)}", f"Timeout is temporary; {latest}"
    )


def is_own_timeout(rule: object) -> bool:
    """True for the rules of attempts that failsoft has ended: by their timeout, or by their idle timeout."""
    return rule in _TIMEOUTS


def is_client_timeout(fault: Fault) -> bool:
    """True if the tool's own client gave up waiting, not failsoft's deadline and not a server that sent a status."""
    if fault.code is not Code.DEADLINE_EXCEEDED or fault.http_status is not None:
        return False
    return not (is_own_timeout(fault.rule) or fault.rule == TURN_TIMED_OUT) and not fault.rule.startswith(NESTED)


def circuit_open(tool: str, retry_after: float | None = None, opened_by: Fault | None = None) -> Fault:
    """Not run: the tool's circuit is open."""
    because = "" if opened_by is None else f" after {opened_by.code}"
    return _transient(
        CIRCUIT_OPEN,
        Code.UNAVAILABLE,
        "none",
        f"Circuit breaker open for {tool}{because}",
        "The tool kept failing and is given time to recover",
        retry_after=retry_after,
    )


def unknown_tool(name: object, known: Iterable[str] = ()) -> Fault:
    """Not run: no tool of this name is registered."""
    shown = quote(name)
    return _unavailable(
        UNKNOWN_TOOL,
        f"There is no tool named {shown!r} here{did_you_mean(shown, known)}",
        "A tool that is not registered stays missing on retry",
    )


def tool_marked_unavailable(tool: str, why: object = "", *, retry_after: float | None = None) -> Fault:
    """Not run: the tool was found missing before (its import, its program, or its remote service)."""
    detail = f": {sanitise(why)}" if why else ""
    return _unavailable(
        TOOL_MARKED_UNAVAILABLE,
        f"{tool} is not available here{detail}",
        "A missing tool stays missing on retry",
        retry_after=retry_after,
    )


def tool_disabled(tool: str, why: object = "") -> Fault:
    """Not run: the operator has disabled the tool."""
    return _unavailable(
        TOOL_DISABLED,
        f"{tool} is disabled" + (f": {sanitise(why)}" if why else ""),
        "A disabled tool stays disabled on retry",
    )


def still_misconfigured(fault: Fault) -> Fault:
    """Not run: the tool's setup has failed in this thread and has not changed since. The message stays the same."""
    why = "The tool's setup has failed before, whatever the arguments, and has not changed"
    return fault._replace(rule=STILL_MISCONFIGURED, reason=why, effect="none", cause=None)


def bad_arguments(
    *,
    missing: Iterable[str] = (),
    invalid: Iterable[str] = (),
    unexpected: Iterable[str] = (),
    detail: object = "",
    cause: BaseException | None = None,
) -> Fault:
    """Not run: the arguments do not fit the tool. ``asked_for`` parses the names from the message."""
    groups = (("Missing", tuple(missing)), ("Invalid", tuple(invalid)), ("Not known", tuple(unexpected)))
    parts = [f"{title}: {', '.join(map(_one_name, names))}." for title, names in groups if names]
    if detail:
        parts.append(sanitise(detail))
    return _invalid(
        BAD_ARGUMENTS,
        Code.INVALID_ARGUMENT,
        " ".join([_MISFIT, *parts]),
        "Invalid input won't change on retry",
        cause=cause,
    )


def asked_for(fault: Fault) -> tuple[str, ...]:
    """The names of the arguments that a ``bad_arguments`` fault reports as missing or invalid."""
    found = _NAMED.match(fault.message)
    return tuple(name for names in (found.groups() if found else ()) if names for name in names.split(", "))


def _one_name(name: object) -> str:
    return _NAME_ENDS.sub(" ", quote(name))


def queue_full(tool: str, waiting: int) -> Fault:
    """Not run: all slots of the tool are taken and its queue is full."""
    return _exhausted(
        QUEUE_FULL,
        f"Too many calls of {tool}: {waiting} are waiting already",
        "The queue empties over time",
    )


def thread_limit(tool: str, abandoned: int) -> Fault:
    """Not run: too many worker threads are still busy with abandoned attempts."""
    busy = f"{abandoned} are still busy with attempts that timed out" if abandoned else ""
    return _exhausted(
        THREAD_LIMIT,
        f"No worker thread is free for {tool}: {busy or 'the system cannot start another'}",
        "Threads become free when their attempts end; isolation: process stops them at once",
    )


def rate_hold(tool: str, retry_after: float) -> Fault:
    """Not run: the service has said when it may be called again."""
    return _exhausted(
        RATE_HOLD,
        f"{tool} is held back for {text(retry_after)}: the service asked for it",
        "Rate limits reset over time",
        retry_after=retry_after,
    )


def rate_limit(tool: str, rate: str, retry_after: float) -> Fault:
    """Not run: the tool's own rate limit has no token left."""
    return _exhausted(
        RATE_LIMIT,
        f"{tool} may run {rate}: the next attempt may start in {text(retry_after)}",
        "The rate limit allows it later",
        retry_after=retry_after,
    )


def dependency_failed(root: str, label: str, fault: Fault | None = None, *, lost: bool = False) -> Fault:
    """Not run: a dependency did not succeed, or its value is ``lost`` although ``verify`` found that it succeeded.

    The classification is inherited from the root cause. The category is not: this tool only lacks an input.
    """
    permanent = lost or (fault is not None and fault.classification == "permanent")
    return Fault(
        Code.FAILED_PRECONDITION,
        "permanent" if permanent else "transient",
        "tool_validation" if permanent else "tool_transient",
        "none",
        f"{_LOST if lost else _DEPENDENCY}{label} ({root})",
        "A call cannot run without what it depends on",
        DEPENDENCY_FAILED,
        None if fault is None else fault.retry_after,
    )


def is_dependency_lost(fault: Fault) -> bool:
    """True if the dependency has succeeded, and only its value is not known."""
    return fault.rule == DEPENDENCY_FAILED and fault.message.startswith(_LOST)


def failed_dependency(fault: Fault, root: str) -> str:
    """The label of the tool at the root of a ``dependency_failed`` fault; ``root`` for any other fault."""
    prefix, _, rest = fault.message.partition(": ")
    named = f"{prefix}: " in (_DEPENDENCY, _LOST) and rest.endswith(f" ({root})")
    return rest.removesuffix(f" ({root})") if named else root


def turn_timed_out(timeout: float | None, *, started: bool) -> Fault:
    """The turn's deadline came first. A running call may have acted; a call that never started has not."""
    after = "" if timeout is None else f" after {text(timeout)}"
    return _transient(
        TURN_TIMED_OUT,
        Code.DEADLINE_EXCEEDED,
        "unknown" if started else "none",
        f"Turn timeout{after}" + ("" if started else ": not started"),
        "The turn's deadline was reached",
    )


def turn_call_limit(limit: int) -> Fault:
    """Not run: the turn has made as many calls as it may."""
    return _exhausted(
        TURN_CALL_LIMIT,
        f"The turn may make {count_of(limit, 'call')} (max_calls)",
        "The limit holds until the turn ends",
    )


def tool_call_limit(tool: str, limit: int) -> Fault:
    """Not run: the turn has called this tool as often as it may."""
    return _exhausted(
        TOOL_CALL_LIMIT,
        f"The turn may make {count_of(limit, 'call')} of {tool} (max_calls_per_tool)",
        "The limit holds until the turn ends",
    )


def count_of(number: int, thing: str) -> str:
    """A number with its noun: "1 call", "3 calls"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def is_limit(fault: Fault) -> bool:
    """True if a limit that the user has set refused this call or an inner one: no tool has failed."""
    return fault.rule.removeprefix(NESTED) in _LIMITS


def cancelled(*, started: bool) -> Fault:
    """The caller cancelled. This says nothing about the tool."""
    return _transient(
        CANCELLED,
        Code.CANCELLED,
        "unknown" if started else "none",
        "Cancelled" if started else "Cancelled before it started",
        "The caller has left",
    )


def begun_before() -> Fault:
    """Not run: the same write was begun before and its result is unknown. It must not run twice."""
    return _transient(
        BEGUN_BEFORE,
        Code.CANCELLED,
        "unknown",
        "Begun before, and its result is not known",
        "The same call was begun before",
    )


def not_recorded(tool: str) -> Fault:
    """Not run: the store could not record the write before its start, and the runtime requires the record."""
    return _transient(
        NOT_RECORDED,
        Code.UNAVAILABLE,
        "none",
        f"{tool} could not be recorded before it starts: the store does not answer",
        "The store may answer again",
    )


def passed_on() -> Fault:
    """The tool raised an exception by which its agent framework controls the run: the framework continues."""
    return _transient(
        PASSED_ON, Code.CANCELLED, "unknown", "Passed on to the agent framework", "The framework goes on by itself"
    )


def output_mismatch(tool: str, detail: object) -> Fault:
    """The tool ran, but its value does not match the declared output."""
    return _bug(
        OUTPUT_MISMATCH,
        "happened",
        f"The result of {tool} does not have the declared form: {sanitise(detail)}",
        "A wrong form won't change on retry",
    )


def partial_result(missing: Any = None) -> Fault:
    """The tool ran, but returned only a part of its value."""
    parts = missing if isinstance(missing, list | tuple) else [missing]
    lacks = "" if missing is None else f": missing {quote(', '.join(map(sanitise, parts)))}"
    return _transient(
        PARTIAL_RESULT, Code.DATA_LOSS, "unknown", f"Partial result{lacks}", "A partial result may be complete on retry"
    )


def broken_failed_if(tool: str, detail: object, cause: BaseException | None = None) -> Fault:
    """The tool ran, but its ``failed_if`` could not say whether it failed. The value does not count as a success."""
    return _bug(
        BROKEN_FAILED_IF,
        "unknown",
        f"failed_if of {tool} {sanitise(detail)}",
        "A bug won't go away on retry",
        cause=cause,
    )


def unprotected(tool: str, write: str = "write it as async def") -> Fault:
    """The tool returned a coroutine: its failures would happen outside the call."""
    return _bug(
        UNPROTECTED,
        "unknown",  # the function ran before it returned
        f"{tool} returned a coroutine, which is not protected: {write}",
        "A bug won't go away on retry",
    )


def loop_prevented(fault: Fault, times: int) -> Fault:
    """Not run: the same call has just failed permanently ``times`` times in a row. Fault and message stay the same."""
    return fault._replace(rule=LOOP_PREVENTED, reason=f"The same call has failed {times} times in a row", cause=None)


def no_progress(tool: str, times: int) -> Fault:
    """Not run: the same call has just returned the same result ``times`` times, and the tool's ``max_repeats`` allows no more."""
    return _invalid(
        NO_PROGRESS,
        Code.FAILED_PRECONDITION,
        f"The same call of {tool} has returned the same result {times} times within a minute",
        "The same call returns the same result",
    )


def no_offer(tool: str, known: Iterable[str] = ()) -> Fault:
    """Not run: the thread has no open offer that "try again" could refer to."""
    return _invalid(
        NO_OFFER,
        Code.FAILED_PRECONDITION,
        f"There is no retry offer for {quote(tool)} in this thread{did_you_mean(tool, known)}",
        "An offer is used once, and a hard failure clears it",
    )
