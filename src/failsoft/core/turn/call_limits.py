"""Limits of a turn: how many calls it may make, in all and of one tool.

Rules
-----
- Logical calls count: retries and fallbacks belong to the call that they serve. A call counts when it is about to run,
  whatever its outcome. A call that is skipped because a dependency failed does not count.
- Calls that tools make inside the turn count, and so do the calls of a turn inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from failsoft.core.model import builtin_faults
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault


class CallLimits(NamedTuple):
    """The limits of one turn; None: no limit."""

    max_calls: int | None = None
    max_calls_per_tool: int | None = None


def check_call(limits: CallLimits, tool: str, calls: int, by_tool: Mapping[str, int]) -> Fault | None:
    """Return the fault that refuses one more call of ``tool``; None if the turn may make it.

    ``calls`` is the number of calls so far, ``by_tool`` has them by tool.
    """
    if limits.max_calls is not None and calls >= limits.max_calls:
        return builtin_faults.turn_call_limit(limits.max_calls)
    if limits.max_calls_per_tool is not None and by_tool.get(tool, 0) >= limits.max_calls_per_tool:
        return builtin_faults.tool_call_limit(tool, limits.max_calls_per_tool)
    return None
