"""What is handed out as a value holds no frames.

An exception's traceback holds every frame that it came through, with all that was in them: requests, keys, the turn
itself. Outcomes are kept, in reports and by callers, so their faults' causes come without one. What a guarded function
raises keeps it: whoever sees that wants to know where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failsoft.core.outcome import Outcome

_LINKS = 8  # exceptions that one came from


def without_frames(outcome: Outcome[Any]) -> Outcome[Any]:
    """The outcome; the exception that is its fault's cause, and those that it came from, have lost their tracebacks."""
    if outcome.fault is not None:
        error = outcome.fault.cause
        for _ in range(_LINKS):
            if error is None:
                break
            error.__traceback__ = None
            error = error.__cause__ or error.__context__
    return outcome
