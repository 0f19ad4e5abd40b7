"""Limits of a turn: when one more call is refused."""

from __future__ import annotations

import pytest

from failsoft import Code
from failsoft.core.turn.call_limits import CallLimits, check_call


@pytest.mark.parametrize(
    ("limits", "calls", "by_tool", "rule"),
    [
        (CallLimits(), 1000, {"search": 1000}, None),
        (CallLimits(3), 2, {"search": 2}, None),
        (CallLimits(3), 3, {"pay": 3}, "turn_call_limit"),
        (CallLimits(None, 2), 9, {"search": 1, "pay": 8}, None),
        (CallLimits(None, 2), 2, {"search": 2}, "tool_call_limit"),
        (CallLimits(2, 2), 2, {"search": 2}, "turn_call_limit"),
    ],
)
def test_a_call_is_refused_once_a_limit_is_reached(
    limits: CallLimits, calls: int, by_tool: dict[str, int], rule: str | None
) -> None:
    fault = check_call(limits, "search", calls, by_tool)
    assert (fault and fault.rule) == rule
    if fault is not None:
        assert (fault.code, fault.effect) == (Code.RESOURCE_EXHAUSTED, "none")


def test_the_fault_names_the_limit_and_its_option() -> None:
    one, few = check_call(CallLimits(1), "search", 1, {}), check_call(CallLimits(None, 2), "search", 2, {"search": 2})
    assert one is not None
    assert one.message == "The turn may make 1 call (max_calls)"
    assert few is not None
    assert few.message == "The turn may make 2 calls of search (max_calls_per_tool)"
