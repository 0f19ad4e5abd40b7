"""The calls that a turn with limits may still make."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING

from failsoft.core.turn.call_limits import CallLimits, check_call

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import TurnOptions

_LOCK = Lock()  # calls of one turn may start in several OS threads; turns without limits never take it


class CallAllowance:
    """Counts the calls of a turn against its limits, and against those of the turn around it."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._outer: CallAllowance | None = None
        self._calls = 0
        self._by_tool = Counter[str]()

    def inside(self, outer: CallAllowance | None) -> CallAllowance:
        """Count the calls in ``outer`` as well. Returns this allowance."""
        self._outer = outer
        return self

    def take(self, tool: str) -> Fault | None:
        """Count a call that is about to run, or return the fault that refuses it. A refused call is not counted."""
        with _LOCK:
            chain: list[CallAllowance] = []
            allowance: CallAllowance | None = self
            while allowance is not None:
                fault = check_call(allowance._limits, tool, allowance._calls, allowance._by_tool)
                if fault is not None:
                    return fault
                chain.append(allowance)
                allowance = allowance._outer
            for each in chain:
                each._calls += 1
                each._by_tool[tool] += 1
            return None


def allow_calls(options: TurnOptions) -> CallAllowance | None:
    """The allowance of a turn with these options; None if they limit nothing."""
    if options.max_calls is None and options.max_calls_per_tool is None:
        return None
    return CallAllowance(CallLimits(options.max_calls, options.max_calls_per_tool))
