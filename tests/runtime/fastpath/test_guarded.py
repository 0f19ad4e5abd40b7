"""Guarded functions: whatever is callable is protected in its own shape, or refused at once (T15)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from contextvars import copy_context
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, RESET, Scripted, real, records, virtual

import failsoft
from failsoft import CallFailed, CircuitOpen, ManifestError, Runtime
from failsoft.runtime.scope import SCOPE, watch_alone


class Hotels:
    """A class whose methods are tools."""

    def __init__(self) -> None:
        self.calls = 0

    async def search(self, city: str) -> str:
        self.calls += 1
        if self.calls == 1:
            raise RESET
        return f"hotel in {city}"

    def book(self, city: str) -> str:
        self.calls += 1
        if self.calls == 1:
            raise RESET
        return f"booked in {city}"

    async def __call__(self, city: str) -> str:
        return await self.search(city)


class BlockingHotels(Hotels):
    """The same, called without an await."""

    def __call__(self, city: str) -> str:  # type: ignore[override]
        return self.book(city)


ASYNC = {
    "bound method": lambda: (Hotels().search, "hotel in PAR"),
    "callable object": lambda: (Hotels(), "hotel in PAR"),
    "partial of a bound method": lambda: (functools.partial(Hotels().search), "hotel in PAR"),
    "partial of a callable object": lambda: (functools.partial(Hotels()), "hotel in PAR"),
}
BLOCKING = {
    "bound method": lambda: (Hotels().book, "booked in PAR"),
    "callable object": lambda: (BlockingHotels(), "booked in PAR"),
    "partial of a bound method": lambda: (functools.partial(Hotels().book), "booked in PAR"),
}


@pytest.mark.parametrize("make", ASYNC.values(), ids=ASYNC.keys())
@virtual
async def test_async_callables_of_every_kind_are_protected(make: Any) -> None:
    tool, expected = make()
    rt = Runtime()
    guarded = rt.add(tool, id="hotels")
    assert await guarded("PAR") == expected
    assert (await rt.call("hotels", {"city": "PAR"})).value == expected
    assert rt.metrics("hotels")["retry_count"] == 1


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@pytest.mark.parametrize("make", BLOCKING.values(), ids=BLOCKING.keys())
def test_blocking_callables_of_every_kind_are_protected(make: Any, limit: str | None) -> None:
    tool, expected = make()
    rt = Runtime()
    guarded = rt.add(tool, id="hotels", timeout=limit)
    assert guarded("PAR") == expected
    assert rt.call_sync("hotels", {"city": "PAR"}).value == expected
    assert rt.metrics("hotels")["retry_count"] == 1


@virtual
async def test_partial_arguments_stay_bound() -> None:
    rt = Runtime()

    async def price(currency: str, city: str) -> str:
        return f"{city}: 10 {currency}"

    rt.add(functools.partial(price, "EUR"), id="price")
    assert (await rt.call("price", {"city": "PAR"})).value == "PAR: 10 EUR"
    outcome = await rt.call("price", {"currency": "USD", "city": "PAR"})
    assert (outcome.status, outcome.attempts) == ("failed", 0)


@virtual
async def test_methods_can_be_decorated_in_their_class() -> None:
    rt = Runtime()

    class Trains:
        def __init__(self, line: str) -> None:
            self.line = line

        @rt.tool
        async def search(self, city: str) -> str:
            return f"{self.line} to {city}"

    assert await Trains("TGV").search("PAR") == "TGV to PAR"


def test_a_guarded_function_looks_like_the_tool() -> None:
    rt = Runtime()

    @rt.tool(label="hotel finder")
    async def find(city: str, *, stars: int = 3) -> str:
        """Find a hotel."""
        return f"{city} {stars}"

    assert (find.__name__, find.__doc__) == ("find", "Find a hotel.")
    assert str(inspect.signature(find)) == "(city: 'str', *, stars: 'int' = 3) -> 'str'"
    assert inspect.iscoroutinefunction(find)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (3, "is not callable"),
        ("search", "if it is the tool's name, write id='search'"),
        (staticmethod(len), "put @staticmethod or @classmethod outside"),
        (classmethod(len), "put @staticmethod or @classmethod outside"),
        (functools.partial(staticmethod(len)), "put @staticmethod or @classmethod outside"),
    ],
    ids=["number", "name", "staticmethod", "classmethod", "partial of staticmethod"],
)
def test_callables_that_cannot_be_guarded_are_rejected_at_decoration(thing: Any, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        Runtime().add(thing, id="thing")


def test_a_callable_object_is_called_after_its_class() -> None:
    rt = Runtime()
    rt.add(Hotels())
    assert list(rt.tools) == ["Hotels"]


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@real
async def test_a_plain_function_that_returns_a_coroutine_fails_with_advice_in_sync_calls(limit: str | None) -> None:
    rt = Runtime()

    async def inner() -> str:
        raise AssertionError("it must not run")

    def lazy() -> Any:
        return inner()

    guarded = rt.add(lazy, timeout=limit)
    outcome = await asyncio.to_thread(rt.call_sync, "lazy")
    assert outcome.fault is not None
    assert outcome.fault.category == "internal_contract_bug"
    assert "write it as async def" in outcome.fault.message
    with pytest.raises(CallFailed, match="write it as async def"):
        guarded()


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@real
async def test_a_plain_function_that_returns_a_coroutine_has_it_awaited(limit: str | None) -> None:
    rt = Runtime()
    search = Scripted(DOWN, "found")
    rt.add(lambda: search(), id="lazy", timeout=limit)
    outcome = await rt.call("lazy")
    assert (outcome.value, outcome.attempts, search.attempts) == ("found", 2, 2)
    async with rt.turn() as turn:
        turn.call("lazy")
    assert turn.report.results == {"lazy-1": "found"}


@real
async def test_the_deadline_of_a_coroutine_begins_with_the_function_that_returned_it() -> None:
    rt = Runtime()

    def lazy() -> Any:
        time.sleep(0.1)
        return asyncio.sleep(5)

    rt.add(lazy, timeout="200ms", retry={"max_attempts": 1})
    outcome = await rt.call("lazy")
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 200ms"
    assert 0.2 <= outcome.duration < 0.29


@virtual
async def test_guarding_twice_guards_once() -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    once = rt.add(search, id="search", retry={"max_attempts": 2})
    twice = rt.add(once, id="again", retry={"max_attempts": 3})
    with pytest.raises(CallFailed):
        await twice()
    assert search.attempts == 3


@virtual
async def test_a_failure_carries_the_outcome_and_the_tools_own_exception() -> None:
    rt = Runtime()

    @rt.tool
    async def search() -> None:
        raise INVALID

    with pytest.raises(CallFailed, match="search: Invalid airport code: XYZ") as caught:
        await search()
    assert caught.value.__cause__ is INVALID
    assert caught.value.outcome.status == "failed"
    assert caught.value.tool == "search"


@virtual
async def test_a_refusal_is_an_exception_of_its_own_each_time() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1})
    with pytest.raises(CallFailed):
        await guarded()
    refusals = []
    for _ in range(3):
        with pytest.raises(CircuitOpen) as caught:
            await guarded()
        refusals.append(caught.value)
    assert len({id(refusal) for refusal in refusals}) == 3
    assert {refusal.outcome.attempts for refusal in refusals} == {0}
    assert refusals[-1].retry_after is not None
    assert 0 < refusals[-1].retry_after <= 30
    assert rt.metrics("search")["refused_count"] == 3
    assert rt.metrics("search")["error_count"] == 1


@virtual
async def test_an_open_circuit_is_tried_again_after_its_time() -> None:
    rt = Runtime()
    search = Scripted(DOWN, "flights")
    guarded = rt.add(search, id="search", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "10s"})
    with pytest.raises(CallFailed):
        await guarded()
    await asyncio.sleep(9.9)
    with pytest.raises(CircuitOpen):
        await guarded()
    await asyncio.sleep(0.1)
    assert await guarded() == "flights"
    assert rt.health("search").state == "closed"


@virtual
async def test_successes_at_once_are_in_the_trace_and_the_figures() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted("flights"), id="search")
    for _ in range(3):
        await guarded()
    assert rt.metrics("search")["success_count"] == 3
    ids = [record["call_id"] for record in records(rt, "CallSucceeded")]
    assert len(set(ids)) == 3


def test_the_default_runtime_serves_one_file_users() -> None:
    @failsoft.tool(timeout=None)
    def of_one_file(number: int) -> int:
        return number + 1

    assert of_one_file(1) == 2
    assert "of_one_file" in failsoft.default_runtime().tools


def test_a_read_inside_a_tool_of_another_process_has_no_parent_in_this_one() -> None:
    rt = Runtime()
    look = rt.add(lambda: "seen", id="look", read_only=True, timeout=None)

    def tool() -> str:
        SCOPE.set(watch_alone())
        return look()

    assert copy_context().run(tool) == "seen"
    [done] = records(rt)
    assert (done["event_type"], done.get("parent_id")) == ("CallSucceeded", None)


@pytest.mark.parametrize("way", ["guarded", "by name"])
@virtual
async def test_reads_inside_reads_are_children_at_every_depth(way: str) -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def leaf() -> int:
        return 1

    @rt.tool(read_only=True)
    async def middle() -> int:
        return await leaf() if way == "guarded" else (await rt.call("leaf")).unwrap()

    @rt.tool(read_only=True)
    async def top() -> int:
        return await middle() if way == "guarded" else (await rt.call("middle")).unwrap()

    assert await top() == 1
    found = {event["call_id"]: event.get("parent_id") for event in records(rt)}
    assert found == {"leaf-3": "middle-2", "middle-2": "top-1", "top-1": None}
