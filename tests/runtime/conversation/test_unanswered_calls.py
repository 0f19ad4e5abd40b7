"""An abandoned call that must not be repeated: a framework that resumes it is informed and the call is not run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.fakes import DOWN, records, virtual

from failsoft import Outcome, Runtime
from failsoft.core.conversation.thread_state import DANGLES_FOR
from failsoft.integration.unanswered import explain_dangling

TEXT = "It may already have taken effect: check before calling again."
Make = Callable[["Desk", dict[str, Any]], Awaitable[Outcome[Any]]]


class Desk:
    """A tool that is run by a framework; the first time, its caller does not wait for its end."""

    def __init__(self, **options: Any) -> None:
        self.rt = Runtime()
        self.runs = 0
        if options:
            self.rt.declare("book", **options)

    async def _book(self, arguments: dict[str, Any]) -> str:
        self.runs += 1
        if self.runs == 1:
            await asyncio.sleep(20)
        return f"booked {arguments.get('city')}"

    def book(self, city: str = "Bern", *, id: str = "c1", thread: str | None = "t") -> Awaitable[Outcome[Any]]:
        return self.rt.run("book", {"city": city}, {"book": self._book}, id=id, thread=thread)

    async def leave(self, **said: Any) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await self.book(**said)
        assert self.runs == 1


@virtual
async def test_an_abandoned_call_is_not_repeated() -> None:
    desk = Desk()
    await desk.leave()
    again = await desk.book()
    assert again.fault is not None
    assert (desk.runs, again.status, again.attempts) == (1, "failed", 0)
    assert (again.fault.code, again.fault.effect) == ("CANCELLED", "unknown")
    assert TEXT in again.explanation.model
    assert records(desk.rt, "CallRefused")[-1]["call_id"] == "c1"


@virtual
async def test_an_abandoned_call_is_not_repeated_until_it_is_resolved() -> None:
    desk = Desk()
    await desk.leave()
    for _ in range(4):
        assert (await desk.book()).attempts == 0
    assert (await desk.book(id="c2")).value == "booked Bern"
    assert desk.rt.threads["t"].close_dangling() == []
    assert (await desk.book()).value == "booked Bern"


@virtual
async def test_an_abandoned_call_is_not_repeated_for_a_day() -> None:
    desk = Desk()
    await desk.leave()
    await asyncio.sleep(DANGLES_FOR - 60)
    assert (await desk.book()).attempts == 0
    await asyncio.sleep(120)
    assert (await desk.book()).value == "booked Bern"


@pytest.mark.parametrize(
    "said",
    [{"id": "c2"}, {"city": "Basel"}, {"thread": "other"}, {"thread": None}],
    ids=["another id", "other arguments", "another thread", "no thread"],
)
@virtual
async def test_a_different_call_runs(said: dict[str, Any]) -> None:
    desk = Desk()
    await desk.leave()
    assert (await desk.book(**said)).status == "succeeded"


@pytest.mark.parametrize("options", [{"read_only": True}, {"idempotent": True}], ids=["read-only", "idempotent"])
@virtual
async def test_a_repeatable_call_runs_again(options: dict[str, Any]) -> None:
    desk = Desk(**options)
    await desk.leave()
    assert (await desk.book()).status == "succeeded"
    assert desk.runs == 2


@virtual
async def test_a_framework_that_steers_itself_makes_the_call_again() -> None:
    rt, runs = Runtime(), []

    class Interrupt(Exception):
        pass

    async def book(_: dict[str, Any]) -> str:
        runs.append(1)
        if len(runs) == 1:
            raise Interrupt
        return "booked"

    async def call() -> Outcome[Any]:
        return await rt.run("book", {}, {"book": book}, control=(Interrupt,), id="c1", thread="t")

    with pytest.raises(Interrupt):
        await call()
    assert (await call()).value == "booked"


@virtual
async def test_a_call_cancelled_between_two_attempts_may_be_repeated() -> None:
    rt, runs = Runtime(), []
    rt.declare("book", retry={"initial_delay": "1s"})

    async def book(_: dict[str, Any]) -> str:
        runs.append(1)
        if len(runs) == 1:
            raise DOWN
        return "booked"

    async def call() -> Outcome[Any]:
        return await rt.run("book", {}, {"book": book}, id="c1", thread="t")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await call()
    assert (await call()).value == "booked"


@virtual
async def test_calls_of_a_cancelled_turn_are_not_repeated() -> None:
    rt, runs = Runtime(), []

    @rt.tool(idempotent=False)
    async def book(city: str) -> str:
        runs.append(city)
        await asyncio.sleep(20)
        return city

    with pytest.raises(KeyError):
        async with rt.turn(thread="t") as turn:
            turn.call("book", {"city": "Bern"}, id="c1")
            await asyncio.sleep(5)
            turn.call("book", {"city": "Basel"}, id="c2")  # it will not have begun
            raise KeyError
    async with rt.turn(thread="t") as turn:
        turn.call("book", {"city": "Bern"}, id="c1")
        turn.call("book", {"city": "Basel"}, id="c2")
    assert runs == ["Bern", "Basel"]
    assert TEXT in turn.report.outcomes["c1"].explanation.model
    assert turn.report.results == {"c2": "Basel"}


@virtual
async def test_an_abandoned_call_may_be_repeated_after_the_model_was_informed() -> None:
    desk = Desk()
    await desk.leave()
    (told,) = explain_dangling(desk.rt, [("c1", "book")], thread="t")
    assert TEXT in told.explanation.model
    assert (await desk.book()).status == "succeeded"


@virtual
async def test_an_abandoned_call_dangles_until_the_model_is_informed() -> None:
    desk = Desk()
    thread = desk.rt.threads["t"]
    await desk.leave()
    assert [(call.call_id, call.tool) for call in thread.dangling] == [("c1", "book")]
    await desk.book()
    assert thread.dangling == []


def test_a_call_of_an_interrupted_blocking_caller_is_not_repeated() -> None:
    rt, runs = Runtime(), []

    def book(_: dict[str, Any]) -> str:
        runs.append(1)
        raise KeyboardInterrupt

    def call() -> Outcome[Any]:
        return rt.run_sync("book", {}, {"book": book}, id="c1", thread="t")

    with pytest.raises(KeyboardInterrupt):
        call()
    assert TEXT in call().explanation.model
    assert len(runs) == 1


@virtual
async def test_the_number_of_remembered_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.core.conversation.thread_state.MOST_DANGLING", 2)
    rt = Runtime()

    async def book(_: dict[str, Any]) -> None:
        await asyncio.sleep(2)

    async def call(id: str) -> Outcome[Any]:
        return await rt.run("book", {}, {"book": book}, id=id, thread="t")

    for id in ("c1", "c2", "c3"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await call(id)
    assert [(await call(id)).status == "succeeded" for id in ("c1", "c2", "c3")] == [True, False, False]
