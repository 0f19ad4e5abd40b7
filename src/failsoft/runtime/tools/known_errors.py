"""Errors of a tool that were retried before: the fast path (``runtime.fastpath.retry``) may retry them.

Rules
-----
- An error is identified by its type and its text. An error that carries anything else is never known.
- The pipeline adds an error after it has decided on a retry, if only attempts, time, budget and breaker decided that.
- A tool has at most ``MOST_KNOWN`` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from failsoft.core.model.builtin_faults import is_client_timeout
from failsoft.core.model.fault import Fault

if TYPE_CHECKING:
    from failsoft.core.resilience.recovery_memory import Family
    from failsoft.observe.metrics import Retries

MOST_KNOWN = 64  # errors of one tool


class KnownError:
    """An error of a tool that was retried before."""

    __slots__ = ("family", "fault", "retries", "timed_out")

    def __init__(self, fault: Fault, family: Family | None, retries: Retries) -> None:
        self.fault = fault._replace(cause=None)
        self.family = family
        self.retries = retries  # the counter of the tool's retries
        self.timed_out = is_client_timeout(fault)


KnownErrors = dict[tuple[type, tuple[str, ...]], KnownError]  # by type and arguments


class RetriedTool(Protocol):
    """A tool that has known errors."""

    @property
    def known_errors(self) -> Mapping[tuple[type, tuple[str, ...]], KnownError] | None: ...


def look_up(tool: RetriedTool, error: Exception) -> KnownError | None:
    """Look up an error that is fully described by its type and text."""
    known = tool.known_errors
    if not known:
        return None
    try:
        found = known.get((error.__class__, error.args))
    except Exception:  # arguments that cannot be hashed or compared
        return None
    if found is None or error.__context__ is not None or error.__cause__ is not None or error.__dict__:
        return None
    if isinstance(error, OSError) and (error.errno is not None or error.filename is not None):
        return None  # it carries more than its text
    return found
