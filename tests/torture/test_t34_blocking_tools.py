"""T34: a blocking tool that ran was reported as "cancelled, 0 attempts, no effect". Here that is never said of one that began."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from typing import Any

import pytest
from tests.torture.scale import times

from failsoft import Runtime
from failsoft.runtime.call.model import Call

RUNS = times(10_000, 600)


class Till:
    """A blocking payment; it knows whom it was called by."""

    def __init__(self) -> None:
        self.rt = Runtime()
        self.paid: set[int] = set()
        self.rt.add(self.pay, id="pay", idempotent=False, timeout="5s", retry={"max_attempts": 1})

    def pay(self, order: int) -> str:
        self.paid.add(order)
        return "paid"


def is_wrong(outcome: Any, ran: bool) -> bool:
    """True if a payment that was made is reported as not made."""
    fault = outcome.fault
    return ran and fault is not None and (fault.effect == "none" or outcome.attempts == 0)


def test_t34_a_tool_that_began_is_never_reported_as_not_run_at_the_turns_deadline() -> None:
    till, chance = Till(), random.Random(34)
    outcomes: dict[int, Any] = {}

    async def run() -> None:
        for order in range(RUNS):
            async with till.rt.turn(timeout=f"{chance.randint(20, 400) / 1000}ms") as turn:
                turn.call("pay", {"order": order}, id="it")
            outcomes[order] = turn.report.outcomes["it"]
        await asyncio.sleep(0.2)

    asyncio.run(run())
    assert [order for order, outcome in outcomes.items() if is_wrong(outcome, order in till.paid)] == []
    assert any(outcome.status == "timed_out" for outcome in outcomes.values())


def test_t34_a_tool_that_began_is_never_reported_as_not_run_when_the_turn_is_cancelled() -> None:
    till, chance = Till(), random.Random(35)
    outcomes: dict[int, Any] = {}

    async def take_turn(order: int) -> None:
        turn = till.rt.turn()
        try:
            async with turn:
                turn.call("pay", {"order": order}, id="it")
                await asyncio.sleep(1)
        finally:
            outcomes[order] = turn.report.outcomes["it"]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for order in range(RUNS):
            task = asyncio.create_task(take_turn(order))
            until = time.perf_counter() + chance.random() * 3e-4
            while time.perf_counter() < until:  # noqa: ASYNC110 - time in which a thread may begin
                await asyncio.sleep(0)
            loop.call_soon(task.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await asyncio.sleep(0.2)

    asyncio.run(run())
    assert len(outcomes) == RUNS
    assert [order for order, outcome in outcomes.items() if is_wrong(outcome, order in till.paid)] == []


def test_t34_a_tool_that_began_is_never_reported_as_not_run_when_its_caller_is_cancelled() -> None:
    till, chance = Till(), random.Random(36)
    ends: dict[str, int] = {}
    till.rt.subscribe(
        lambda event: (
            ends.update({event.call_id: event.fields["attempts"]}) if event.event_type == "CallCancelled" else None
        )
    )

    async def run() -> None:
        for order in range(RUNS // 2):
            task = asyncio.create_task(till.rt.call("pay", {"order": order}, id=f"order-{order}"))
            until = time.perf_counter() + chance.random() * 3e-4
            while time.perf_counter() < until:  # noqa: ASYNC110 - time in which a thread may begin
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await asyncio.sleep(0.2)
        await till.rt.close()

    asyncio.run(run())
    told = {order for order in till.paid if ends.get(f"order-{order}") == 0}
    assert told == set()


@pytest.mark.parametrize("how", ["deadline", "cancel the rest", "cancelled"])
def test_t34_a_tool_is_reported_as_run_from_the_moment_its_thread_begins(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread has taken the job up, and has not yet said so."""
    begins, go_on = threading.Event(), threading.Event()
    begin = Call.begin

    def slow_begin(call: Call) -> None:
        if threading.current_thread().name == "failsoft tool":
            begins.set()
            go_on.wait(5)
        begin(call)

    monkeypatch.setattr(Call, "begin", slow_begin)
    till = Till()

    async def run() -> Any:
        options: Any = {"timeout": "50ms"} if how != "cancelled" else {}
        if how == "cancel the rest":
            options["on_timeout"] = "cancel"
        turn = till.rt.turn(**options)

        async def take_turn() -> None:
            async with turn:
                turn.call("pay", {"order": 1}, id="it")
                await asyncio.sleep(0.2)

        task = asyncio.create_task(take_turn())
        while not begins.is_set():  # noqa: ASYNC110 - set by a thread
            await asyncio.sleep(0.001)
        if how == "cancelled":
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.sleep(0.1)
        return turn.report.outcomes["it"]

    outcome = asyncio.run(run())
    assert till.paid == {1}
    assert not is_wrong(outcome, ran=True)
    assert "no effect" not in outcome.explanation.model


def test_t34_a_call_that_never_got_a_thread_is_reported_as_not_run_and_never_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("failsoft.runtime.execution.thread_pool.MOST_THREADS", 1)
    till = Till()
    free = threading.Event()
    till.rt.add(lambda: free.wait(5), id="hog", timeout="5s", idempotent=False)

    async def run() -> Any:
        async with till.rt.turn(timeout="50ms") as turn:
            turn.call("hog")
            await asyncio.sleep(0.01)
            turn.call("pay", {"order": 1}, id="it")
        free.set()
        await asyncio.sleep(0.1)
        return turn.report.outcomes["it"]

    outcome = asyncio.run(run())
    assert till.paid == set()
    assert (outcome.attempts, outcome.fault.effect) == (0, "none")
