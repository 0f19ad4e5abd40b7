"""Scenarios that are written for the golden stream: what the specification's own scenes and the torture tests leave out.

They use the public API only, so that they stay as they are when modules move.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial as bind
from typing import Any

from tests.fakes import (
    AUTH,
    DOWN,
    INVALID,
    NOT_FOUND,
    OFTEN,
    ONCE,
    RATE_LIMIT,
    RESET,
    TIMEOUT,
    Scripted,
    Takes,
)
from tests.golden.recording import Scenario

from failsoft import CallFailed, Decision, ErrorReport, NothingDone, Runtime, Verified, classify, in_thread, partial
from failsoft.adapters.plain import close_tool_calls, run_tool_calls
from failsoft.stores.memory import MemoryStore
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.messages import ReportBody, ReportedError, ReportedOutcome
from failsoft.surfaces.daemon.tokens import Grant
from failsoft.testing import FaultPlan, VirtualClock, virtual_time

Scene = Callable[[], Coroutine[Any, Any, object]]
SCENES: dict[str, list[Scenario]] = {}
TWICE = {"max_attempts": 2, "initial_delay": "100ms"}


def scene(group: str) -> Callable[[Scene], Scene]:
    """Enter an async function as a scenario of a group; it runs in virtual time."""

    def enter(story: Scene) -> Scene:
        SCENES.setdefault(group, []).append(Scenario(story.__name__, bind(_run, story)))
        return story

    return enter


def blocking_scene(group: str) -> Callable[[Callable[[VirtualClock], object]], None]:
    """Enter a function that blocks as a scenario of a group; it gets the virtual clock."""

    def enter(story: Callable[[VirtualClock], object]) -> None:
        def play() -> None:
            with virtual_time() as clock:
                story(clock)

        SCENES.setdefault(group, []).append(Scenario(story.__name__, play))

    return enter


def _run(story: Scene) -> None:
    with virtual_time() as clock:
        clock.run(story())


async def attempt(running: Coroutine[Any, Any, Any]) -> None:
    """Await a guarded function that may fail."""
    with suppress(CallFailed):
        await running


# --- partial results ----------------------------------------------------------------------------------------------------


@scene("partial")
async def a_part_is_used_after_retries() -> None:
    rt = Runtime()
    rt.add(Scripted(partial([1], missing="2 of 3"), DOWN, partial([1, 2], missing="1 of 3"), DOWN), id="search")
    await rt.call("search")


@scene("partial")
async def a_part_is_accepted_at_once() -> None:
    rt = Runtime()
    search = rt.add(Scripted(partial([1], missing="2 of 3")), id="search", accept_partial=True)
    await rt.call("search")
    await attempt(search())
    async with rt.turn(id="t1") as turn:
        turn.call("search")


@scene("partial")
async def a_part_is_never_accepted() -> None:
    rt = Runtime()
    rt.add(Scripted(partial([1], missing="2 of 3"), DOWN), id="search", accept_partial=False)
    await rt.call("search")


@scene("partial")
async def a_fallback_is_better_than_a_part() -> None:
    rt = Runtime()
    rt.add(Scripted(partial([1], missing="2 of 3")), id="search", retry=TWICE, fallbacks=["cache"])
    rt.add(Scripted([1, 2, 3]), id="cache")
    await rt.call("search")


# --- who decides, and who phrases ---------------------------------------------------------------------------------------


class Judge:
    """An Error Handler that gives a prepared decision, or fails."""

    def __init__(self, *decisions: Any) -> None:
        self.decisions = list(decisions)

    async def handle(self, report: ErrorReport) -> Any:
        decision = self.decisions.pop(0) if self.decisions else None
        if isinstance(decision, BaseException):
            raise decision
        return decision


@scene("decisions")
async def policies_of_the_manifest_and_of_the_code() -> None:
    rt = Runtime(
        {"policies": [{"name": "money", "when": {"tool": "pay_*"}, "then": "escalate"}]},
        policies=[
            {"name": "patience", "when": {"code": "NotFound"}, "then": {"delay": "5s"}},
            {"name": "words", "when": {"code": "InvalidArgument"}, "then": {"message": "Please call us."}},
            {"name": "other", "when": {"tool": "search", "code": "Unavailable"}, "then": {"tool": "cache"}},
        ],
    )
    rt.add(Scripted(DOWN), id="pay_card", idempotent=True)
    rt.add(Scripted(NOT_FOUND, "found"), id="find")
    rt.add(Scripted(INVALID), id="hotels")
    rt.add(Scripted(DOWN), id="search")
    rt.add(Scripted("cached"), id="cache")
    async with rt.turn(id="t1") as turn:
        for tool in ("pay_card", "find", "hotels", "search"):
            turn.call(tool)


@scene("decisions")
async def an_error_handler_of_ones_own() -> None:
    decisions = (
        Decision("retry", "Once more", 2.0),
        Decision("alternative_tool", "The other one", tool="cache"),
        ValueError("the handler is broken"),
        Decision("escalate", "Enough"),
        "no decision",
        None,
    )
    rt = Runtime(error_handler=Judge(*decisions))
    rt.add(Scripted(DOWN), id="search", retry=TWICE, breaker=OFTEN)
    rt.add(Scripted("cached"), id="cache")
    for _ in range(4):
        await rt.call("search")


@scene("decisions")
async def a_slow_error_handler() -> None:
    class Slow:
        async def handle(self, report: ErrorReport) -> Decision:
            await asyncio.sleep(600)
            return Decision("retry", "Much later")

    rt = Runtime(error_handler=Slow())
    rt.add(Scripted(INVALID), id="search")
    await rt.call("search")


@scene("decisions")
async def the_memory_acts() -> None:
    rt = Runtime(memory="act")
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=OFTEN, fallbacks=["first", "second"])
    rt.add(Scripted(DOWN), id="first", retry=ONCE, breaker=OFTEN)
    rt.add(Scripted("found"), id="second")
    for _ in range(8):
        await rt.call("search")
        await asyncio.sleep(600)


@scene("decisions")
async def a_phraser() -> None:
    async def explain(facts: Mapping[str, Any]) -> str:
        return f"Sorry about {facts['label']}."

    rt = Runtime(explain=explain)
    rt.add(Scripted(DOWN), id="search", retry=ONCE)
    await rt.call("search")
    await rt.call("nowhere")
    async with rt.turn(id="t1") as turn:
        turn.call("search")


@scene("decisions")
async def a_phraser_that_fails_or_hangs() -> None:
    async def explain(facts: Mapping[str, Any]) -> str:
        if facts["label"] == "slow":
            await asyncio.sleep(600)
        raise ValueError("no words")

    rt = Runtime(explain=explain)
    rt.add(Scripted(DOWN), id="search", retry=ONCE)
    rt.add(Scripted(DOWN), id="slow", retry=ONCE)
    await rt.call("search")
    await rt.call("slow")


@scene("decisions")
async def escalations_are_told() -> None:
    told: list[str] = []
    rt = Runtime(on_escalation=lambda outcome: told.append(outcome.id))
    rt.add(Scripted(AUTH), id="search")
    await rt.call("search")
    await rt.close()


# --- calls --------------------------------------------------------------------------------------------------------------


@scene("calls")
async def successes_on_every_way() -> None:
    rt = Runtime()
    search = rt.add(Scripted("at once"), id="search")
    slow = rt.add(Scripted(Takes(0.25, "later")), id="slow")
    for tool in (search, slow):
        await tool()
        await rt.call(tool)
        await rt.call(tool, id="named")
        await rt.call(tool, thread="chat")
        await rt.call(tool, tenant="acme")
        async with rt.turn(id="t1") as turn:
            await tool()
            turn.call(tool)
            turn.call(tool, id="named")
    await rt.run_plan({"calls": [{"tool": "search", "id": "a"}, {"tool": "slow", "depends_on": ["a"]}]})
    await rt.run("search", {}, {"search": lambda _: asyncio.sleep(0.1, "ran")})


@scene("calls")
async def retries_on_every_way() -> None:
    rt = Runtime()
    steps = [RESET, RESET, "found"]
    search = rt.add(Scripted(*steps * 9), id="search", read_only=True)
    await search()
    await search()
    await rt.call("search")
    await rt.call("search", id="named", retry={"max_attempts": 4})
    await rt.call("search", thread="chat", tenant="acme")
    async with rt.turn(id="t1") as turn:
        await search()
        await turn.call("search")


@scene("calls")
async def unknown_tools() -> None:
    rt = Runtime()
    rt.add(Scripted("found"), id="search")
    await rt.call("serach")
    await rt.call("serach", id="mine")
    async with rt.turn(id="t1", thread="chat") as turn:
        first = turn.call("serach")
        turn.call("search", depends_on=[first])
    await rt.run_plan({"calls": [{"tool": "search", "id": "a"}]})


@scene("calls")
async def bad_arguments() -> None:
    rt = Runtime()

    @rt.tool
    async def search(city: str, nights: int = 1) -> str:
        return city

    await rt.call("search", {})
    await rt.call("search", {"city": "Bern", "nights": "two"})
    await rt.call("search", {"town": "Bern"})
    await rt.call("search", {"city": "Bern", "nights": "2"})
    await rt.call("search", ["Bern"])  # type: ignore[call-overload]  # a model may send that
    await attempt(search())  # type: ignore[call-arg]
    async with rt.turn(id="t1") as turn:
        turn.call("search", {"town": "Bern"})


@scene("calls")
async def output_that_does_not_fit() -> None:
    rt = Runtime()
    rt.add(Scripted("no list", ["a"]), id="search", output=list[str])
    await rt.call("search")
    await rt.call("search")


@scene("calls")
async def nested_calls() -> None:
    rt = Runtime()
    pay = rt.add(Scripted("paid", DOWN), id="pay", idempotent=False)
    look = rt.add(Scripted("seen", RESET, "seen", INVALID), id="look", read_only=True)

    @rt.tool
    async def order(what: str) -> str:
        seen = await look()
        return f"{seen} {await pay()} {what}"

    @rt.tool
    async def trip() -> str:
        async with rt.turn(id="inner") as turn:
            turn.call("order", {"what": "flight"})
        return turn.report.message

    await attempt(order("book"))
    await rt.call("order", {"what": "book"})
    async with rt.turn(id="t1") as turn:
        turn.call("order", {"what": "hotel"})
    await rt.call("trip")


@scene("calls")
async def nothing_done() -> None:
    rt = Runtime()
    rt.add(Scripted(NothingDone("sold out"), "paid"), id="pay", idempotent=False)
    await rt.call("pay")


@scene("calls")
async def streams() -> None:
    rt = Runtime()
    begun = [0]

    async def numbers(most: int) -> AsyncIterator[int]:
        begun[0] += 1
        if begun[0] < 3:
            raise ConnectionResetError("lost")
        for number in range(most):
            yield number
            await asyncio.sleep(1)

    async def breaks() -> AsyncIterator[int]:
        yield 1
        raise ConnectionResetError("lost")

    stream = rt.add(numbers, id="numbers", read_only=True)
    assert [one async for one in stream(3)] == [0, 1, 2]
    broken = rt.add(breaks, id="breaks", read_only=True)
    with suppress(ConnectionResetError, CallFailed):
        assert [one async for one in broken()]
    again = (await rt.call("numbers", {"most": 2})).unwrap()
    assert [one async for one in again] == [0, 1]


@scene("calls")
async def blocking_tools_in_threads() -> None:
    rt = Runtime()
    errors: list[Exception] = [RESET, RESET]

    @rt.tool(read_only=True)
    def search(city: str) -> str:
        if errors:
            raise errors.pop()
        return city

    @rt.tool(read_only=True)
    def trip(city: str) -> str:
        return in_thread(search)(city)

    await rt.call("search", {"city": "Bern"})
    await rt.call("search", {"city": "Bern"})
    await rt.call("search", {})
    await rt.call("trip", {"city": "Bern"})
    async with rt.turn(id="t1") as turn:
        await turn.call("search", {"city": "Bern"})


@blocking_scene("calls")
def callers_that_block(clock: VirtualClock) -> None:
    rt = Runtime()
    errors: list[Exception] = [RESET, INVALID]

    @rt.tool(read_only=True, timeout=None)
    def search(city: str) -> str:
        clock.sleep(0.2)
        if city == "XYZ" and errors:
            raise errors.pop()
        return city

    @rt.tool(read_only=True, timeout="1s")
    def slow(seconds: float) -> str:
        clock.sleep(seconds)
        return "late"

    asynchronous = rt.add(Scripted("found", RESET, "found"), id="asynchronous", read_only=True)
    search("Bern")
    for city in ("Bern", "XYZ", "XYZ"):
        rt.call_sync("search", {"city": city})
    rt.call_sync("nowhere")
    rt.call_sync("slow", {"seconds": 0.5})
    for _ in range(2):
        rt.call_sync(asynchronous)
    rt.run_sync("framework", {"city": "Bern"}, {"framework": lambda given: search(**given)})


@blocking_scene("calls")
def blocking_streams(clock: VirtualClock) -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    def numbers(most: int) -> Iterator[int]:
        for number in range(most):
            clock.sleep(1)
            yield number

    assert [*numbers(3)] == [0, 1, 2]


@scene("calls")
async def callers_that_leave() -> None:
    rt = Runtime()
    search = rt.add(Scripted(Takes(9, "found")), id="search", read_only=True)
    waits = rt.add(Scripted(DOWN), id="waits", read_only=True, retry={"initial_delay": "5s"})
    one_at_a_time = rt.add(Scripted(Takes(9, "found")), id="single", concurrency=1)
    calls = (search(), rt.call("search"), waits(), rt.call("waits"), one_at_a_time(), rt.call("single"))
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0.5)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@scene("calls")
async def slots_and_queues() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(2, "found")), id="search", concurrency=1, queue=1)
    await asyncio.gather(*(rt.call("search") for _ in range(4)))


# --- attempts that do not end -------------------------------------------------------------------------------------------


async def stubborn() -> str:
    """Swallow the cancellation, and go on for a while."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    await asyncio.sleep(30)
    return "late"


@scene("deadlines")
async def an_abandoned_attempt() -> None:
    rt = Runtime()
    rt.add(stubborn, read_only=True, timeout="5s", retry=ONCE)
    await rt.call("stubborn")
    async with rt.turn(id="t1") as turn:
        turn.call("stubborn")
    await asyncio.sleep(300)
    await rt.close()


@scene("deadlines")
async def an_attempt_that_is_abandoned_by_a_fallback() -> None:
    rt = Runtime()
    rt.add(stubborn, read_only=True, timeout="5s", retry=ONCE, fallbacks=["cache"])
    rt.add(Scripted("cached"), id="cache")
    await rt.call("stubborn")
    await asyncio.sleep(300)


@scene("deadlines")
async def late_results_of_a_turn() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(8, "found")), id="search", timeout="20s")
    rt.add(Scripted(Takes(9, DOWN)), id="fails", timeout="20s")
    rt.add(Scripted("quick"), id="quick")
    async with rt.turn(id="t1", timeout="5s", thread="chat") as turn:
        first = turn.call("search")
        turn.call("quick", depends_on=[first])
        turn.call("fails")
        turn.call("quick", id="now")
    await asyncio.sleep(60)


@scene("deadlines")
async def a_turn_that_cancels_what_is_open() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(8, "found")), id="search", timeout="20s")
    rt.add(stubborn, read_only=True)
    async with rt.turn(id="t1", timeout="5s", on_timeout="cancel") as turn:
        turn.call("search")
        turn.call("stubborn")
    await asyncio.sleep(300)


@scene("deadlines")
async def a_runtime_that_is_closed_while_calls_are_open() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(8, "found")), id="search", timeout="20s")
    async with rt.turn(id="t1", timeout="5s") as turn:
        turn.call("search")
    await rt.close()


@scene("deadlines")
async def deadlines_of_one_call() -> None:
    rt = Runtime()
    search = rt.add(Scripted(Takes(8, "found")), id="search", timeout="20s", read_only=True)
    await rt.call("search", timeout="2s", retry=ONCE)
    await rt.call("search", timeout="9s")
    await search()


@scene("deadlines")
async def a_tool_that_blocks_the_loop() -> None:
    clock = virtual_clock()
    rt = Runtime()

    @rt.tool(read_only=True, timeout="1s", retry=ONCE)
    async def search() -> str:
        clock(5)
        return "late"

    await rt.call("search")
    await attempt(search())


def virtual_clock() -> Callable[[float], None]:
    """Let virtual time pass without giving up control, as a blocking function does."""
    from failsoft.runtime.execution import clock

    return clock.current().sleep


# --- turns --------------------------------------------------------------------------------------------------------------


@scene("turns")
async def a_turn_whose_caller_leaves() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(9, "found")), id="search", read_only=True)

    async def run() -> None:
        async with rt.turn(id="t1") as turn:
            first = turn.call("search")
            turn.call("search", depends_on=[first])
            await asyncio.sleep(60)

    task = asyncio.ensure_future(run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@scene("turns")
async def a_turn_whose_body_fails() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(9, "found")), id="search", read_only=True)
    with suppress(ZeroDivisionError):
        async with rt.turn(id="t1") as turn:
            turn.call("search")
            await asyncio.sleep(1)
            raise ZeroDivisionError


@scene("turns")
async def cascades_with_defaults_and_optional_calls() -> None:
    rt = Runtime()
    for name in ("a", "b", "c", "d", "e"):
        rt.add(Scripted(INVALID if name == "a" else name), id=name)
    async with rt.turn(id="t1", thread="chat") as turn:
        a = turn.call("a")
        b = turn.call("b", {"a": a}, required=False)
        c = turn.call("c", {"a": a}, defaults={"a": "none"})
        turn.call("d", {"b": b, "c": c}, required=True)
        turn.call("e", {"c": c}, id="e")
    await rt.run_plan(
        {
            "calls": [
                {"id": "a", "tool": "a"},
                {"id": "b", "tool": "b", "args": {"a": {"$ref": "a"}}, "defaults": {"a": 1}},
                {"id": "c", "tool": "c", "args": {"b": {"$ref": "b"}}},
            ],
        }
    )


@scene("turns")
async def turns_inside_turns() -> None:
    rt = Runtime()
    search = rt.add(Scripted("found", RESET, "found", INVALID), id="search", read_only=True)
    async with rt.turn(id="outer") as outer:
        await search()
        async with rt.turn(id="inner") as inner:
            inner.call("search")
        outer.call("search")


# --- conversations ------------------------------------------------------------------------------------------------------


@scene("threads")
async def an_offer_is_made_and_taken() -> None:
    rt = Runtime()
    rt.add(Scripted(TIMEOUT, TIMEOUT, "fine"), id="search", retry=TWICE, read_only=True)
    await rt.call("search", {"city": "Bern"}, thread="chat")
    await rt.threads["chat"].retry("search")
    await rt.threads["chat"].retry("search")


@scene("threads")
async def a_loop_is_prevented() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search", read_only=True)
    for _ in range(4):
        await rt.call("search", {"city": "XYZ"}, thread="chat", tenant="acme")
    async with rt.turn(id="t1", thread="chat", tenant="acme") as turn:
        turn.call("search", {"city": "XYZ"})


@scene("threads")
async def an_offer_is_cleared_by_a_hard_failure() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, AUTH), id="search", retry=ONCE, read_only=True)
    async with rt.turn(id="t1", thread="chat") as turn:
        turn.call("search", {"city": "Bern"})
    async with rt.turn(id="t2", thread="chat") as turn:
        turn.call("search", {"city": "Bern"})
    await rt.threads["chat"].retry("search")


# --- writes and their records -------------------------------------------------------------------------------------------


class Full(MemoryStore):
    """Has no room for the record of a write."""

    def claim(self, *_: Any, **__: Any) -> Any:
        raise OSError("the disk is full")


@scene("writes")
async def a_write_is_recorded() -> None:
    rt = Runtime(store=MemoryStore())
    rt.add(Scripted("paid", DOWN), id="pay", idempotent=False)
    await rt.call("pay", {"amount": 4}, id="c1", thread="chat")
    await rt.call("pay", {"amount": 4}, id="c2", thread="chat")
    async with rt.turn(id="t1", thread="chat") as turn:
        turn.call("pay", {"amount": 5}, id="c3")


@scene("writes")
async def a_write_is_not_started_twice() -> None:
    store = MemoryStore()
    dies = Runtime(store=store)
    dies.add(Scripted(Takes(600)), id="pay", idempotent=False, timeout=None)
    task = asyncio.ensure_future(dies.call("pay", {"amount": 4}, id="c1", thread="chat"))
    await asyncio.sleep(0.5)
    after = Runtime(store=store)
    after.add(Scripted("paid"), id="pay", idempotent=False)
    for _ in range(3):
        await after.call("pay", {"amount": 4}, id="c1", thread="chat")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@scene("writes")
async def a_write_that_the_store_did_not_record() -> None:
    for required in (False, True):
        rt = Runtime(store=Full(), store_required=required)
        rt.add(Scripted("paid"), id="pay", idempotent=False)
        await rt.call("pay", {"amount": 4}, id="c1", thread="chat")


@scene("ledger")
async def open_cases_that_are_resolved() -> None:
    rt = Runtime(store=MemoryStore(), random=random.Random(60))
    rt.add(Scripted(RESET, RESET, "paid"), id="pay", idempotent=False, retry=ONCE)
    for id, verdict, value in (("c1", "happened", "paid by hand"), ("c2", "none", None)):
        await rt.call("pay", {"amount": 4}, id=id, thread="chat")
        rt.ledger.resolve(id, verdict, value)
        await rt.call("pay", {"amount": 4}, id=id, thread="chat")


@scene("writes")
async def keys_and_undeclared_writes() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "paid"), id="charge", idempotency_key="key")
    rt.add(Scripted(RESET, "sent"), id="send_email")
    rt.add(Scripted(RESET, "done"), id="step")
    await rt.call("charge", {"amount": 4}, idempotency_key="k1")
    await rt.call("send_email")
    await rt.call("step")


@scene("verified")
async def a_write_is_verified() -> None:
    for answer in (Verified.happened("paid"), Verified.happened(), Verified.none(), Verified.unknown("no answer")):

        async def verify(arguments: Any, key: Any, fault: Any, answer: Verified = answer) -> Verified:
            return answer

        rt = Runtime()
        rt.add(Scripted(RESET, "paid"), id="pay", verify=verify)
        async with rt.turn(id="t1") as turn:
            turn.call("pay", {"amount": 4})


# --- operation ----------------------------------------------------------------------------------------------------------


@scene("operation")
async def disabled_and_enabled() -> None:
    rt = Runtime()
    search = rt.add(Scripted("found"), id="search")
    rt.disable("search", "maintenance until noon")
    await rt.call("search")
    await attempt(search())
    async with rt.turn(id="t1") as turn:
        turn.call("search")
    rt.enable("search")
    await rt.call("search")


@scene("operation")
async def a_sink_that_is_too_slow() -> None:
    held, begun = threading.Event(), threading.Event()

    class Hangs:
        def write(self, batch: Sequence[object], /) -> None:
            begun.set()
            held.wait(20)

        def close(self) -> None:
            pass

    rt = Runtime()
    rt.add(Scripted("found"), id="search")
    rt.subscribe_batches(Hangs(), capacity=2)
    await rt.call("search")
    await rt.flush("1ms")
    await asyncio.to_thread(begun.wait, 20)
    for _ in range(4):
        await rt.call("search")
        await rt.flush("1ms")
    held.set()


@scene("operation")
async def disabled_while_a_retry_waits() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "found"), id="search", retry={"initial_delay": "2s"}, fallbacks=["cache"])
    rt.add(Scripted("cached"), id="cache")
    task = asyncio.ensure_future(rt.call("search"))
    await asyncio.sleep(0.1)
    rt.disable("search")
    await task


@scene("operation")
async def calls_that_take_long() -> None:
    rt = Runtime()
    search = rt.add(Scripted(Takes(5, "found"), Takes(5, RESET), Takes(5, "found")), id="search", read_only=True)
    await search()
    await rt.call("search")
    async with rt.turn(id="t1", thread="chat") as turn:
        turn.call("search")


@scene("operation")
async def a_service_that_wants_to_be_left_alone() -> None:
    rt = Runtime()
    plan = FaultPlan("429(retry_after=10), ok")
    rt.add(plan.wrap(Scripted("found")), id="search", retry={**ONCE, "max_hint_wait": "2s"})
    await rt.call("search")
    await asyncio.sleep(1)
    await rt.call("search")
    await rt.call("search", tenant="acme")
    await asyncio.sleep(7.5)
    await rt.call("search")


@scene("operation")
async def a_retry_budget_that_is_spent() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET), id="search", read_only=True, breaker=OFTEN, retry={"max_attempts": 4, "jitter_percent": 0})
    for _ in range(8):
        await rt.call("search")


@scene("operation")
async def a_circuit_opens_and_closes() -> None:
    rt = Runtime()
    steps = [DOWN, DOWN, DOWN, "found", "found", "found"]
    options: dict[str, Any] = {"breaker": {"failure_threshold": 2, "timeout": "30s"}, "retry": ONCE}
    search = rt.add(Scripted(*steps), id="search", read_only=True, **options)
    for _ in range(3):
        await rt.call("search")
    await attempt(search())
    await asyncio.sleep(31)
    await rt.call("search")
    await asyncio.sleep(31)
    async with rt.turn(id="t1") as turn:
        turn.call("search")
    await search()
    await rt.call("search")


@scene("operation")
async def a_circuit_opens_under_calls_in_flight() -> None:
    rt = Runtime()
    steps = [Takes(1, RATE_LIMIT), Takes(2, RESET), Takes(3, "found"), Takes(4, DOWN), Takes(5, "found")]
    rt.add(Scripted(*steps), id="search", read_only=True, breaker={"failure_threshold": 2})
    await asyncio.gather(*(rt.call("search") for _ in range(5)))


# --- adapters -----------------------------------------------------------------------------------------------------------


def asked(name: str, arguments: str = "{}", id: str = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@scene("adapters")
async def tool_calls_of_a_model() -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def weather(city: str) -> str:
        return f"Sunny in {city}"

    rt.add(Scripted(DOWN, "found"), id="search", read_only=True)
    rt.add(Scripted(INVALID), id="broken", read_only=True)
    calls = [
        asked("weather", '{"city": "Bern"}', "c1"),
        asked("weather", '{"town": "Bern"}', "c2"),
        asked("weather", '{"city": ', "c3"),
        asked("search", id="c4"),
        asked("broken", id="c5"),
        asked("nowhere", id="c6"),
    ]
    await run_tool_calls(rt, calls)
    await run_tool_calls(rt, calls[3:], thread="chat", tenant="acme", timeout="10s")
    close_tool_calls(rt, calls[:2], thread="chat")


class Key:
    """An agent framework's own object for a run."""


@scene("adapters")
async def an_agent_run_as_a_turn() -> None:
    rt = Runtime()
    tool = Scripted("found", RESET, "found", INVALID)
    rt.declare("search", read_only=True)
    key = Key()
    for _ in range(3):
        run = rt.agent_run(key, thread="chat")
        await rt.run("search", {"city": "Bern"}, {"search": lambda given: tool(**given)}, turn=run)
    rt.end_agent_run(key)


class Steering(Exception):
    """How a framework interrupts itself."""


@scene("adapters")
async def control_flow_of_a_framework() -> None:
    rt = Runtime()
    tool = Scripted(Steering("ask the user"))
    with suppress(Steering):
        await rt.run("book", {}, {"book": lambda given: tool(**given)}, control=(Steering,))
    await rt.run("book", {}, {"book": lambda given: tool(**given)})


# --- the daemon ---------------------------------------------------------------------------------------------------------


@scene("daemon")
async def reports_of_executors_and_runtimes_elsewhere() -> None:
    daemon = Daemon({"tools": {"search": {"fallbacks": ["search_backup"], "breaker": {"failure_threshold": 2}}}})
    for tenant in (None, "acme"):
        for error in ("503", "Connection timeout", {"message": "no", "status": 404}):
            said = ReportedError.model_validate({"tool": "search", "error": error, "call_id": "c1", "turn_id": "t1"})
            daemon.desk.handle(said, tenant, "reporter")
        done = ReportedOutcome(tool="search", via="search_backup", status="succeeded", call_id="c1", turn_id="t1")
        daemon.desk.conclude(done, tenant, "reporter")
    escalated = ReportedError(tool="pay", error="Connection reset by peer", call_id="c2")
    daemon.desk.handle(escalated, None, "reporter")
    daemon.desk.conclude(ReportedOutcome(tool="pay", status="failed", call_id="c2"), None, "reporter")
    fault = classify("503")
    report = ErrorReport(fault, "search", "c3", 1, 0, "closed", 0.1, "", ())
    daemon.desk.review(ReportBody.model_validate(report.to_dict()), "acme", "reporter")
    daemon.audit.record(
        Grant("operator", frozenset({"operate"})), "disable", "search", address="127.0.0.1", reason="why"
    )
    await daemon.close()
