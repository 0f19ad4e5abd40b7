"""S-agent's wrapper: an exception of a tool becomes ``ModelRetry("ExceptionType: message")``, which the model reads.

Rules
-----
- The text is exactly that, masked only where a secret is found in it (R20). ``__cause__`` is the very same exception.
- What pydantic-ai steers itself with passes untouched, ``ModelRetry`` first of all (R21); so does all that is no
  ``Exception``: cancellation, ``KeyboardInterrupt`` …
- The ``ModelRetry`` made here carries a mark, so that the capability can take the original error out of it again. Those
  that pydantic-ai makes of a timeout or of an MCP server's error are known too, and its ``ToolFailed`` of the latter. One
  that a tool raised itself passes.
- An agent that ran inside a tool and broke off may have done something before, whatever its error says.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from pydantic_ai import exceptions

from failsoft.adapters.pydantic_ai.private import came_from_agent, came_from_server
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.redact.secret_formats import REDACTED
from failsoft.integration.framework_tool import BrokenOffError, ControlFlow

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("failsoft")

_NAMES = (
    "ModelRetry",
    "ToolFailed",
    "ToolRetryError",
    "ToolFailedError",
    "CallDeferred",
    "ApprovalRequired",
    "SkipToolExecution",
    "SkipToolValidation",
    "SkipModelRequest",
    "RetryModelRequest",  # newer than 2.16
    "AgentRunError",  # a sub-agent's: limits, cancellation, its provider's outage
    "UserError",
)
CONTROL: tuple[type[Exception], ...] = tuple(
    getattr(exceptions, name) for name in _NAMES if hasattr(exceptions, name)
)  # fmt: skip

_MARK = "_failsoft_original"
_FRAMEWORK = "_failsoft_framework"  # on an error of which pydantic-ai itself made a ``ModelRetry`` or ``ToolFailed``


class ServerError(Exception):
    """An MCP server's error, of which only the text is known."""


class FailedServerError(ServerError):
    """The same where the model is to be told by ``ToolFailed``: ``MCPToolset(tool_error_behavior="failed")``."""


def make_graceful(fn: F) -> F:
    """The function with its exceptions turned into ``ModelRetry``; same name, signature and documentation."""
    if not (inspect.isfunction(fn) or inspect.ismethod(fn)):
        return fn  # partials and callable objects have no annotations to copy: GracefulToolset sees to them
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def graceful(*args: Any, **kwargs: Any) -> Any:
            try:
                return await fn(*args, **kwargs)
            except Exception as error:
                if is_control(error):
                    raise
                raise retry_for(error, fn.__name__) from error

    else:

        @functools.wraps(fn)
        def graceful(*args: Any, **kwargs: Any) -> Any:
            try:
                return fn(*args, **kwargs)
            except Exception as error:
                if is_control(error):
                    raise
                raise retry_for(error, fn.__name__) from error

    return graceful  # type: ignore[return-value]  # functools.wraps keeps the signature


def is_control(error: BaseException) -> bool:
    """Does pydantic-ai steer itself with this one, or with one that is in this group?"""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(CONTROL) is not None
    return isinstance(error, CONTROL)


def retry_for(error: Exception, tool: str) -> exceptions.ModelRetry:
    """What the model is to read about an error."""
    text = describe(error)
    log.debug("%s failed; the model is told: %s", tool, sanitise(text))
    retry = exceptions.ModelRetry(text)
    setattr(retry, _MARK, error)
    return retry


def describe(error: Exception) -> str:
    """``ExceptionType: message``, masked only where there is a secret in it."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # a __str__ of its own that fails
        return f"{type(error).__name__}: {sanitise(error)}"
    safe = sanitise(text, limit=4 * len(text))  # bytes: nothing is cut
    return safe if safe.count(REDACTED) > text.count(REDACTED) else text


def meant(error: Exception) -> BaseException:
    """What an error stands for: control flow, what a ``ModelRetry`` was made of, an agent that broke off, or itself."""
    if isinstance(error, ExceptionGroup) and is_control(error):
        return ControlFlow(error)
    original: Exception | None = error
    if isinstance(error, exceptions.ModelRetry):
        original = original_of(error)
        if original is not None and marked(error) is None:
            with suppress(Exception):  # a class may refuse attributes: then hooks see it, too
                setattr(original, _FRAMEWORK, True)
    elif isinstance(error, exceptions.ToolFailed) and came_from_server(error):
        original = FailedServerError(error.message)
        setattr(original, _FRAMEWORK, True)
    if original is None or isinstance(original, CONTROL):
        return error
    if not came_from_agent(original):
        return original
    broken_off = BrokenOffError(sanitise(original))
    broken_off.__cause__ = original
    return broken_off


def original_of(retry: exceptions.ModelRetry) -> Exception | None:
    """The error that a ``ModelRetry`` stands for; None if a tool asked for the retry itself."""
    original = marked(retry) or _timeout_of(retry) or _server_error_of(retry)
    return original if isinstance(original, Exception) else None


def marked(error: Exception) -> Exception | None:
    """The error of which ``retry_for`` has made this one."""
    return getattr(error, _MARK, None)


def is_made_by_framework(error: BaseException | None) -> bool:
    """True if pydantic-ai made a ``ModelRetry`` or ``ToolFailed`` of this error: an MCP server's, or its own timeout."""
    return hasattr(error, _FRAMEWORK)


def _timeout_of(retry: exceptions.ModelRetry) -> TimeoutError | None:
    """pydantic-ai's own timeout, of which it makes a ``ModelRetry``: but nobody knows what the tool has done by then."""
    cause = retry.__context__
    if not isinstance(cause, TimeoutError) or not retry.message.startswith("Timed out after "):
        return None
    return cause if str(cause) else TimeoutError(retry.message)


def _server_error_of(retry: exceptions.ModelRetry) -> BaseException | None:
    """An MCP server's error, of which pydantic-ai makes one as well."""
    return retry.__cause__ or ServerError(retry.message) if came_from_server(retry) else None
