"""Read a tool's value: find out whether it is a failure (``core.classify.returned``), and ask the user's ``failed_if``.

Rules
-----
- An exception by which an agent framework controls its run passes through, returned as well as raised.
- A ``failed_if`` that raises or returns an illegal answer fails the call: it is not known then whether the tool did its
  work, so the value is not a success. The fault says what is wrong with the function.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from contextlib import suppress
from inspect import iscoroutine
from reprlib import repr as brief
from types import CoroutineType
from typing import TYPE_CHECKING, Any, get_args

from failsoft.core.classify.returned import (
    ReturnedFailure,
    doubt_pattern,
    failed_status,
    find_returned,
    flags_of,
    is_plain,
    is_response,
    match_pattern,
    text_of,
    value_inside,
)
from failsoft.core.model import builtin_faults
from failsoft.core.model.failed_if import FailurePattern
from failsoft.core.model.fault import Category, Classification, Code, Effect, Fault
from failsoft.core.model.outcome import Outcome
from failsoft.core.model.partial import Partial
from failsoft.core.model.verified import Verified
from failsoft.core.redact.sanitise import sanitise
from failsoft.runtime.call.attempt_result import unawaited
from failsoft.runtime.call.streams import AsyncStream, Stream
from failsoft.runtime.execution.processes.reply import WorkerError
from failsoft.runtime.tools.control import ControlFlow, MisfitError

if TYPE_CHECKING:
    from failsoft.runtime.call.model import AttemptResult
    from failsoft.runtime.tools.tool import Tool

_NOT_THE_TOOLS = (MisfitError, WorkerError, ControlFlow)  # these mean something only if they are raised
_EXPECTED = "return True, False, an error text or a Fault"


def is_success(tool: Tool, value: Any) -> bool:
    """True if a value can be returned as it is: a plain one, or a library's result that reports no failure.

    False if the value must be read. The tool has no ``failed_if``.
    """
    kind = type(value)
    if is_plain(kind):
        return True
    if is_response(kind):
        return failed_status(value) is None
    if not flags_of(kind):
        return False
    try:
        own = tool.own_value(value)
        return find_returned(value) is None and (own is value or is_plain(type(own)))
    except Exception:  # a value's own methods may raise anything
        return False


def read_value(tool: Tool, result: AttemptResult, *, answers_verify: Callable[[], bool]) -> AttemptResult:
    """Return the result of an attempt that returned a value; with its error or fault if the value is a failure.

    ``answers_verify``: the ``verify`` of another tool may call this one.
    """
    try:
        return _read(tool, result, answers_verify)
    except Exception as error:  # a value's own methods may raise anything
        if tool.options.failed_if is None:
            return result
        return _broken(tool, result._replace(value=None), f"could not be asked: {sanitise(error)}", error)


def _read(tool: Tool, result: AttemptResult, answers_verify: Callable[[], bool]) -> AttemptResult:
    own = tool.own_value(result.value)
    if tool.is_control_flow(own):
        return result
    error = find_returned(own)
    if error is None:
        error = None if own is result.value else find_returned(result.value)
    if error is not None:
        return result._replace(value=None, error=_as_raised(error, own))
    value = value_inside(result.value)
    if value is not result.value:
        result = result._replace(value=value)
    if isinstance(value, Fault) and _is_sound(value):
        return _with_fault(result, value, own)
    if isinstance(value, CoroutineType):
        return result._replace(value=None, fault=unawaited(tool, value))
    if isinstance(value, Future):
        Outcome._on_misuse(tool.id, f"it returned a {type(value).__name__}, not its result: write await before it")
    if isinstance(value, Verified) and not answers_verify():
        Outcome._on_misuse(
            tool.id, "it returned a Verified, which is the answer of a verify function: a tool returns what it found"
        )
    if tool.options.failed_if is None:
        _doubt_response(tool, value)
        return result
    if isinstance(value, Partial):
        return result
    return _ask(tool, result, value_inside(own))


def _doubt_response(tool: Tool, value: Any) -> None:
    """Log that a tool returned the response of a failed request, which counts as a success."""
    status = failed_status(value)
    if status is not None:
        Outcome._on_misuse(
            tool.id,
            f"it returned a {type(value).__name__} with status {status}, which counts as a success: call raise_for_status() on it, "
            "or declare failed_if",
        )


def _as_raised(error: BaseException, returned: Any) -> Exception:
    if isinstance(error, Exception) and not isinstance(error, _NOT_THE_TOOLS):
        return error
    made = ReturnedFailure(f"{type(error).__name__}: {sanitise(error)}", returned)
    made.__cause__ = error if not isinstance(error, _NOT_THE_TOOLS) else None
    return made


def _ask(tool: Tool, result: AttemptResult, own: Any) -> AttemptResult:
    if isinstance(own, Stream | AsyncStream):
        if own.is_empty:
            return result
        own = own.first
    failed_if = tool.options.failed_if
    if isinstance(failed_if, FailurePattern):
        failure = match_pattern(failed_if, tool.readings(result.value, own))
        if failure is None and tool.looks_at_values:
            tool.looks_at_values -= 1
            if doubt := doubt_pattern(failed_if, tool.readings(result.value, own)):
                tool.looks_at_values = 0
                Outcome._on_misuse(tool.id, f"failed_if: {doubt}")
        return result if failure is None else result._replace(value=None, error=failure)
    try:
        answer = failed_if(own)
    except Exception as error:  # user code
        return _broken(tool, result, f"raised {type(error).__name__}: {sanitise(error)}", error)
    if answer is None or answer is False or (isinstance(answer, str) and not answer):
        return result
    if answer is True or isinstance(answer, str):
        failure = ReturnedFailure(text_of(own if answer is True else answer), own)
        return result._replace(value=None, error=failure)
    if isinstance(answer, BaseException):
        return result._replace(value=None, error=_as_raised(answer, own))
    if isinstance(answer, Fault) and _is_sound(answer):
        return _with_fault(result, answer, own)
    if iscoroutine(answer):
        answer.close()
    return _broken(tool, result, f"returned {_shown(answer)}: {_EXPECTED}", None)


def _with_fault(result: AttemptResult, fault: Fault, returned: Any) -> AttemptResult:
    cause = fault.cause if isinstance(fault.cause, BaseException) else ReturnedFailure(text_of(returned), returned)
    return result._replace(value=None, fault=fault._replace(message=sanitise(fault.message), cause=cause))


def _broken(tool: Tool, result: AttemptResult, detail: str, error: Exception | None) -> AttemptResult:
    cause = ReturnedFailure(f"failed_if {detail}", result.value)
    cause.__cause__ = error
    return result._replace(value=None, fault=builtin_faults.broken_failed_if(tool.id, detail, cause))


def _is_sound(fault: Fault) -> bool:
    """True if the fields that decisions depend on have legal values."""
    return (
        isinstance(fault.code, Code)
        and fault.classification in get_args(Classification)
        and fault.category in get_args(Category)
        and fault.effect in get_args(Effect)
        and (fault.classification == "transient") == (fault.category == "tool_transient")
        and (fault.retry_after is None or (isinstance(fault.retry_after, int | float) and fault.retry_after >= 0))
    )


def _shown(answer: object) -> str:
    with suppress(Exception):  # its __repr__ may raise anything
        return brief(answer)
    return f"a {type(answer).__name__}"
