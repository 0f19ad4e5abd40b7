"""Turn a tool's exception into ``ModelRetry("ExceptionType: message")``, which the model reads.

Rules
-----
- The text is exactly that; only secrets are masked. ``__cause__`` is the original exception.
- pydantic-ai's control flow, such as ``ModelRetry``, passes through unchanged. So does everything that is not an
  ``Exception``: cancellation, ``KeyboardInterrupt`` …
- A ``ModelRetry`` made here carries a mark, so that the capability can recover the original error. The errors that
  pydantic-ai makes from a timeout or an MCP server's error (``ModelRetry``, ``ToolFailed``) are recognised too. A
  ``ModelRetry`` that a tool raised itself passes through.
- If an agent inside a tool broke off, its tools may have acted before, whatever its error says.
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
from failsoft.integration.api import REDACTED, ReturnedFailure, sanitise
from failsoft.integration.framework_tool import BrokenOffError, ControlFlow, is_any

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
    "AgentRunError",  # from a sub-agent: limits, cancellation, its provider's outage
    "UserError",
)
CONTROL: tuple[type[Exception], ...] = tuple(
    getattr(exceptions, name) for name in _NAMES if hasattr(exceptions, name)
)  # fmt: skip

_MARK = "_failsoft_original"
_FRAMEWORK = "_failsoft_framework"  # set on an error that pydantic-ai turned into ``ModelRetry`` or ``ToolFailed``


class ServerError(ReturnedFailure):
    """An MCP server's error. Only its text is known."""


class FailedServerError(ServerError):
    """A server error to be reported as ``ToolFailed``: ``MCPToolset(tool_error_behavior="failed")``."""


def make_graceful(fn: F) -> F:
    """Wrap a function so that its exceptions become ``ModelRetry``. Name, signature and docstring are kept."""
    if not (inspect.isfunction(fn) or inspect.ismethod(fn)):
        return fn  # partials and callable objects have no annotations to copy: GracefulToolset handles them
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
    """True if pydantic-ai uses this exception, or one in this group, for control flow."""
    return is_any(error, lambda one: isinstance(one, CONTROL))


def retry_for(error: Exception, tool: str) -> exceptions.ModelRetry:
    """Build the ``ModelRetry`` that describes an error to the model."""
    text = describe(error)
    log.debug("%s failed; the model is told: %s", tool, sanitise(text))
    retry = exceptions.ModelRetry(text)
    setattr(retry, _MARK, error)
    return retry


def describe(error: Exception) -> str:
    """Format as ``ExceptionType: message``, with secrets masked."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ fails
        return f"{type(error).__name__}: {sanitise(error)}"
    safe = sanitise(text, limit=4 * len(text))  # bytes, large enough that nothing is cut
    return safe if safe.count(REDACTED) > text.count(REDACTED) else text


def translate_error(error: Exception) -> BaseException:
    """Translate an error: control flow, a ``ModelRetry``'s origin, an inner agent that broke off, or the error itself."""
    if isinstance(error, ExceptionGroup) and is_control(error):
        return ControlFlow(error)
    original: Exception | None = error
    if isinstance(error, exceptions.ModelRetry):
        original = original_of(error)
        if original is not None and marked(error) is None:
            with suppress(Exception):  # a class may refuse attributes; hooks then see the error, too
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
    """Return the error behind a ``ModelRetry``; None if a tool asked for the retry itself."""
    original = marked(retry) or _timeout_of(retry) or _server_error_of(retry)
    return original if isinstance(original, Exception) else None


def marked(error: Exception) -> Exception | None:
    """Return the error from which ``retry_for`` made this one."""
    return getattr(error, _MARK, None)


def is_made_by_framework(error: BaseException | None) -> bool:
    """True if pydantic-ai turned this error (an MCP server's, or a timeout) into ``ModelRetry`` or ``ToolFailed``."""
    return hasattr(error, _FRAMEWORK)


def _timeout_of(retry: exceptions.ModelRetry) -> TimeoutError | None:
    """Return pydantic-ai's timeout behind a ``ModelRetry``. Unlike a real retry request, the tool may have acted."""
    cause = retry.__context__
    if not isinstance(cause, TimeoutError) or not retry.message.startswith("Timed out after "):
        return None
    return cause if str(cause) else TimeoutError(retry.message)


def _server_error_of(retry: exceptions.ModelRetry) -> BaseException | None:
    """Return an MCP server's error, from which pydantic-ai makes a ``ModelRetry`` as well."""
    return retry.__cause__ or ServerError(retry.message) if came_from_server(retry) else None
