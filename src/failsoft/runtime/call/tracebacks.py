"""Strip tracebacks from exceptions kept in outcomes, and cut ``__context__`` links that lead out of the call.

A traceback keeps all its frames alive, with their variables: requests, keys, the turn itself. Reports and callers keep
outcomes, so the exceptions in outcomes have no traceback. Exceptions that a guarded function raises keep theirs, for
debugging.

Python sets ``__context__`` to the exception that is being handled, in any frame further out. If a tool is called in an
``except`` block, that is an exception of its caller. It says nothing about the tool or its effect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome

E = TypeVar("E", bound=BaseException)

_LINKS = 8  # most exceptions of a chain that are looked at


def without_frames(outcome: Outcome[Any]) -> Outcome[Any]:
    """Remove the tracebacks of the exception in an outcome, and of those that it came from. Return the outcome."""
    if outcome.fault is not None:
        error = outcome.fault.cause
        for _ in range(_LINKS):
            if error is None:
                break
            error.__traceback__ = None
            error = error.__context__ if error.__cause__ is None else error.__cause__  # not by truth: __bool__ may lie
    return outcome


def without_callers(error: E) -> E:
    """Cut the link from a tool's error to the exception that its caller handles. Call this outside of ``except``."""
    callers = sys.exception()
    link: BaseException | None = error if callers is not None else None
    for _ in range(_LINKS):
        if link is None:
            break
        if link.__context__ is callers:
            link.__context__ = None
        link = link.__context__ if link.__cause__ is None else link.__cause__
    return error


def was_entered(error: BaseException, caller: Callable[..., Any] | None = None) -> bool:
    """True if an exception was raised inside the tool. If the arguments do not fit, the call itself raises.

    ``caller`` is the function that called the tool; by default the one that caught the exception.
    """
    trace = error.__traceback__
    while caller is not None and trace is not None and trace.tb_frame.f_code is not caller.__code__:
        trace = trace.tb_next
    return trace is None or trace.tb_next is not None
