"""Strip tracebacks from exceptions kept in outcomes, and cut ``__context__`` links that lead out of the call.

An exception's traceback holds every frame that it came through, with all that was in them: requests, keys, the turn
itself. Outcomes are kept, in reports and by callers, so their faults' causes come without one. What a guarded function
raises keeps it: whoever sees that wants to know where it was.

Python notes with every exception which one was being handled at the time, however far out: for a tool that is called in
an ``except`` block, that is its caller's. It says nothing about the tool, least of all what its error has had for an
effect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome

E = TypeVar("E", bound=BaseException)

_LINKS = 8  # exceptions that one came from


def without_frames(outcome: Outcome[Any]) -> Outcome[Any]:
    """The outcome; the exception that is its fault's cause, and those that it came from, have lost their tracebacks."""
    if outcome.fault is not None:
        error = outcome.fault.cause
        for _ in range(_LINKS):
            if error is None:
                break
            error.__traceback__ = None
            error = error.__context__ if error.__cause__ is None else error.__cause__  # one may be false
    return outcome


def without_callers(error: E) -> E:
    """The error of a tool, without what is being handled here: its caller's. Not to be asked while handling the error."""
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
    """True if an exception came from inside a tool: arguments that do not fit are refused where the tool is called.

    ``caller`` is the function that called the tool; without it, the one that caught the exception did.
    """
    trace = error.__traceback__
    while caller is not None and trace is not None and trace.tb_frame.f_code is not caller.__code__:
        trace = trace.tb_next
    return trace is None or trace.tb_next is not None
