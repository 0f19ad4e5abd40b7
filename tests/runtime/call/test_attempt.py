"""One attempt follows the same rules on an event loop and for a caller that blocks."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.observe import events
from failsoft.runtime.execution.processes.pool import Workers
from failsoft.runtime.execution.processes.process_handle import Process
from failsoft.runtime.execution.processes.readiness import Waiting


def call_blocking(rt: Runtime) -> Any:
    return rt.call_sync("work")


def call_on_loop(rt: Runtime) -> Any:
    async def main() -> Any:
        return await rt.call("work")

    return asyncio.run(main())


WAYS = pytest.mark.parametrize("call", [call_on_loop, call_blocking])


def until(condition: Callable[[], bool]) -> None:
    """Wait until another OS thread has come that far."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it has not come that far"
        time.sleep(0.002)


@WAYS
def test_a_call_that_waits_for_a_slot_has_made_no_attempt(call: Callable[[Runtime], Any]) -> None:
    rt = Runtime()
    entered, leave = threading.Event(), threading.Event()

    def work() -> str:
        entered.set()
        leave.wait(10)
        return "done"

    rt.add(work, concurrency=1, read_only=True)
    outcomes: list[Any] = []
    callers = [threading.Thread(target=lambda: outcomes.append(call(rt))) for _ in range(2)]
    callers[0].start()
    entered.wait(10)
    callers[1].start()
    until(lambda: len(rt.running()) == 2 and rt.running()[1].waits_for != "tool")
    first, second = rt.running()
    assert (first.waits_for, second.waits_for) == ("tool", "next attempt")
    leave.set()
    for caller in callers:
        caller.join()
    assert [outcome.attempts for outcome in outcomes] == [1, 1]


@WAYS
def test_a_tool_that_an_interrupt_leaves_running_in_its_thread_is_recorded(call: Callable[[Runtime], Any]) -> None:
    rt = Runtime()
    leave, main = threading.Event(), threading.get_ident()

    def work() -> None:
        until(lambda: sys._current_frames()[main].f_code.co_name in ("_wait", "select"))
        signal.pthread_kill(main, signal.SIGINT)
        leave.wait(10)

    rt.add(work, read_only=True, timeout="5s")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            call(rt)
    finally:
        signal.signal(signal.SIGINT, before)
        leave.set()
    abandoned = [event for event in rt.events() if event.event_type == events.ATTEMPT_ABANDONED]
    assert [event.fields["message"] for event in abandoned] == ["work goes on in its thread"]


@pytest.mark.slow
@WAYS
def test_a_call_that_waits_for_a_process_has_made_no_attempt(
    call: Callable[[Runtime], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = Runtime()
    rt.add(time.perf_counter, id="work", read_only=True, isolation="process")
    seen: list[str] = []
    take = Workers.take

    async def look(self: Workers, waiting: Waiting) -> Process | None:
        seen.append(rt.running()[0].waits_for)
        return await take(self, waiting)

    monkeypatch.setattr(Workers, "take", look)
    assert call(rt).status == "succeeded"
    assert seen == ["next attempt"]
