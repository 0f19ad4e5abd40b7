"""Event loops after an interrupt inside asyncio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from failsoft.runtime.execution.interrupted_loop import sort_timers


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def interrupt_comparisons(frame: FrameType, _event: str, _arg: Any) -> None:
    if frame.f_code is asyncio.TimerHandle.__lt__.__code__:
        raise KeyboardInterrupt


def test_a_timer_fires_in_time_after_an_interrupt_while_another_was_set(loop: asyncio.AbstractEventLoop) -> None:
    fired: list[str] = []
    loop.call_later(60, fired.append, "late")
    sys.settrace(interrupt_comparisons)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.call_later(0, fired.append, "set when the interrupt came")
    finally:
        sys.settrace(None)
    sort_timers(loop)
    loop.call_later(0.001, loop.stop)
    loop.run_forever()
    assert fired == ["set when the interrupt came"]


def test_timers_of_a_loop_that_hides_them_are_left_alone() -> None:
    sort_timers(asyncio.AbstractEventLoop())
