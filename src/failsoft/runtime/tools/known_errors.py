"""Errors of a tool that have led to a retry before: what takes the short way (``runtime.fastpath.retry``).

Rules
-----
- Known is an error by its type and its text, and only where these are all there is to know of it.
- It is remembered by the long way, after that has decided on a retry, unless anything but attempts, time, budget and
  breaker had a say in it.
- So many of one tool, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.core.model.builtin_faults import is_client_timeout
from failsoft.core.model.fault import Fault

if TYPE_CHECKING:
    from failsoft.core.resilience.recovery_memory import Family
    from failsoft.observe.metrics import Retries
    from failsoft.runtime.tools.tool import Tool

MOST_KNOWN = 64  # errors of one tool


class KnownError:
    """An error of a tool that was retried before."""

    __slots__ = ("family", "fault", "retries", "timed_out")

    def __init__(self, fault: Fault, family: Family | None, retries: Retries) -> None:
        self.fault = fault._replace(cause=None)
        self.family = family
        self.retries = retries  # where the tool's are counted
        self.timed_out = is_client_timeout(fault)


def look_up(tool: Tool, error: Exception) -> KnownError | None:
    """Look up an error that is fully described by its type and text."""
    known = tool.known_errors
    if not known:
        return None
    try:
        found = known.get((error.__class__, error.args))
    except Exception:  # arguments that cannot be looked up
        return None
    if found is None or error.__context__ is not None or error.__cause__ is not None or error.__dict__:
        return None
    if isinstance(error, OSError) and (error.errno is not None or error.filename is not None):
        return None  # given to it beside its text
    return found
