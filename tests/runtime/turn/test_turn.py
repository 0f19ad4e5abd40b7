"""Turns on an event loop: handles, order, deadlines and bodies that fail."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
import weakref
from typing import Any, NamedTuple

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, phrases, real, records, virtual

from failsoft import CallFailed, ManifestError, Runtime, TurnError


def tools(**named: Any) -> Runtime:
    rt = Runtime()
    for name, step in named.items():
        rt.add(step if isinstance(step, Scripted) else Scripted(step), id=name)
    return rt


async def echo(**arguments: Any) -> dict[str, Any]:
    return arguments


# --- handles -----------------------------------------------------------------------------------------------------------


@virtual
async def test_handles_are_found_inside_lists_and_dicts() -> None:
    rt = tools(one=Takes(1, 1), two=Takes(2, 2))
    rt.add(echo)
    async with rt.turn() as turn:
        one, two = turn.call("one"), turn.call("two")
        nested = turn.call("echo", {"plain": 3, "list": [one, {"deep": [two]}], "none": [7]})
        outcome = await nested
    assert outcome.value == {"plain": 3, "list": [1, {"deep": [2]}], "none": [7]}


@virtual
async def test_one_failed_handle_among_many_skips_the_call() -> None:
    rt = tools(good="good", bad=INVALID)
    rt.add(echo)
    async with rt.turn() as turn:
        turn.call("echo", {"values": [turn.call("good", id="G"), turn.call("bad", id="B")]}, id="E")
    outcome = turn.report.outcomes["E"]
    assert (outcome.status, outcome.root) == ("skipped", "B")


@virtual
async def test_await_gives_the_outcome_and_value_raises() -> None:
    rt = tools(good=Takes(1, "fine"), bad=INVALID)
    async with rt.turn() as turn:
        good, bad = turn.call("good"), turn.call("bad")
        assert not good.done()
        assert (await good).value == await good.value() == "fine"
        assert (await bad).status == "failed"
        with pytest.raises(CallFailed, match="Invalid airport code"):
            await bad.value()
    assert (await good).value == "fine"  # also after the turn


@virtual
async def test_giving_up_on_a_handle_does_not_cancel_its_call() -> None:
    rt = tools(slow=Takes(10, "done"))
    async with rt.turn() as turn:
        handle = turn.call("slow")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await handle
    assert turn.report.outcomes[handle.id].value == "done"


@virtual
async def test_a_plain_order_passes_no_value() -> None:
    rt = tools(first=Takes(3, "x"), second=Scripted("y"))
    async with rt.turn() as turn:
        first = turn.call("first", id="F")
        turn.call("second", depends_on=[first])
        turn.call("second", depends_on=["F"])
    assert turn.report.duration == pytest.approx(3)
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["succeeded"] * 3


# --- ids and order -----------------------------------------------------------------------------------------------------


@virtual
async def test_ids_are_given_and_submission_order_is_kept() -> None:
    rt = tools(a=Takes(3, "a"), b=Takes(1, "b"))
    async with rt.turn() as turn:
        for tool in ("a", "b", "a", "b"):
            turn.call(tool)
        turn.call("b", id="mine")
    assert list(turn.report.outcomes) == ["a-1", "b-1", "a-2", "b-2", "mine"]
    assert list(turn.report.results.values()) == ["a", "b", "a", "b", "b"]


@virtual
async def test_equal_calls_stay_apart_and_keep_their_own_results() -> None:
    rt = Runtime()

    @rt.tool
    async def slow_first(number: int) -> int:
        await asyncio.sleep(10 - number)
        return number

    async with rt.turn() as turn:
        handles = [turn.call(slow_first, {"number": number}) for number in range(10)]
        same = [turn.call(slow_first, {"number": 5}) for _ in range(3)]
    assert [turn.report.outcomes[handle.id].value for handle in handles] == list(range(10))
    assert len({handle.id for handle in same}) == 3
    assert turn.report.duration == pytest.approx(10)  # side by side


@virtual
async def test_an_id_that_is_taken_and_a_dependency_on_nothing_are_refused() -> None:
    rt = tools(a="a")
    async with rt.turn() as turn:
        turn.call("a", id="one")
        with pytest.raises(TurnError, match="call id 'one' is taken"):
            turn.call("a", id="one")
        with pytest.raises(TurnError, match="depends on 'tow', which is not in this turn"):
            turn.call("a", id="two", depends_on=["tow"])
        with pytest.raises(TurnError, match="write a list of handles or ids, also for one"):
            turn.call("a", id="two", depends_on="one")
        with pytest.raises(TurnError, match="named by its handle or its id, not by int"):
            turn.call("a", id="two", depends_on=[1])  # type: ignore[list-item]
        turn.call("a", id="two")
    assert list(turn.report.outcomes) == ["one", "two"]


@virtual
async def test_siblings_of_a_failure_keep_their_results() -> None:
    rt = tools(bad=INVALID, **{f"t{number}": Takes(number, number) for number in range(5)})
    async with rt.turn() as turn:
        turn.call("bad")
        for number in range(5):
            turn.call(f"t{number}")
    assert list(turn.report.results.values()) == [0, 1, 2, 3, 4]
    assert list(turn.report.failures) == ["bad-1"]


@virtual
async def test_outcomes_come_as_they_arrive() -> None:
    rt = tools(slow=Takes(3, "slow"), fast=Takes(1, "fast"), bad=Takes(2, INVALID))
    arrived = []
    async with rt.turn() as turn:
        for tool in ("slow", "fast", "bad"):
            turn.call(tool)
        async for outcome in turn:
            arrived.append(outcome.tool)
            if outcome.tool == "fast":
                turn.call("slow")
    assert arrived == ["fast", "bad", "slow", "slow"]


@virtual
async def test_an_unknown_tool_is_an_outcome_like_others() -> None:
    rt = tools(good="good")
    rt.add(echo)
    async with rt.turn() as turn:
        unknown = turn.call("godo", {"a": 1})
        turn.call("echo", {"value": unknown}, id="E")
        turn.call("good", id="G")
    outcomes = turn.report.outcomes
    assert outcomes["godo-1"].fault is not None
    assert outcomes["godo-1"].fault.category == "tool_unavailable"
    assert (outcomes["E"].status, outcomes["E"].root) == ("skipped", "godo-1")
    assert outcomes["G"].status == "succeeded"


# --- what the body does ------------------------------------------------------------------------------------------------


@virtual
async def test_guarded_functions_in_the_body_belong_to_the_turn() -> None:
    rt = Runtime()
    search = rt.add(Scripted(Takes(1, "flights")), id="search")

    @rt.tool(timeout=None)
    def price(of: str) -> int:
        return len(of)

    async with rt.turn() as turn:
        flights = await search()
        assert price(flights) == 7
        assert (await rt.call("search")).value == "flights"
    assert list(turn.report.outcomes) == ["search-1", "price-1", "search-2"]
    assert {record["turn_id"] for record in records(turn.report)} == {turn.id}
    assert await search() == "flights"
    assert len(turn.report.outcomes) == 3  # not in the turn any more


@virtual
async def test_a_body_that_raises_cancels_what_is_open_and_goes_on_raising() -> None:
    slow = Scripted(Takes(100))
    rt = tools(fast="fast", slow=slow)
    rt.add(echo)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(ZeroDivisionError):
        async with rt.turn() as turn:
            turn.call("fast")
            handle = turn.call("slow")
            turn.call("echo", {"value": handle})
            await asyncio.sleep(1)
            raise ZeroDivisionError
    assert loop.time() - began == pytest.approx(1)
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["succeeded", "cancelled", "cancelled"]
    effects = [outcome.fault.effect for outcome in turn.report.outcomes.values() if outcome.fault is not None]
    assert effects == ["unknown", "none"]
    await asyncio.sleep(1)
    assert slow.ended == [began + 1]
    assert rt.health("slow").failure_count == 0


@virtual
async def test_cancelling_the_owner_cancels_the_turn() -> None:
    slow = Scripted(Takes(100))
    rt = tools(slow=slow)
    turn = rt.turn()

    async def owner() -> None:
        async with turn:
            turn.call("slow")

    task = asyncio.create_task(owner())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert turn.report.outcomes["slow-1"].status == "cancelled"
    await asyncio.sleep(1)
    assert len(slow.ended) == 1


# --- misuse ------------------------------------------------------------------------------------------------------------


@virtual
async def test_a_turn_is_used_in_its_time_and_once() -> None:
    rt = tools(a="a")
    turn = rt.turn()
    with pytest.raises(TurnError, match="has not begun"):
        turn.call("a")
    async with turn:
        with pytest.raises(TurnError, match="has not ended"):
            _ = turn.report
        turn.call("a")
    with pytest.raises(TurnError, match="has ended"):
        turn.call("a")
    with pytest.raises(TurnError, match="used once"):
        async with turn:
            pass
    assert list(turn.report.outcomes) == ["a-1"]


def test_a_turn_takes_no_calls_from_another_event_loop_of_the_same_thread() -> None:
    rt = Runtime()
    rt.add(echo)
    turn = rt.turn()

    async def submit() -> None:
        turn.call("echo")

    with asyncio.Runner() as its_own:
        its_own.run(turn.__aenter__())
        with asyncio.Runner() as other, pytest.raises(TurnError, match="belongs to another event loop"):
            other.run(submit())
        assert not turn.machine.calls
        its_own.run(submit())
        its_own.run(turn.__aexit__(None, None, None))
    assert [*turn.report.results] == ["echo-1"]


@virtual
async def test_calls_from_another_loop_or_thread_are_refused() -> None:
    rt = tools(a="a")
    said: list[str] = []
    async with rt.turn() as turn:

        def elsewhere() -> None:
            async def call() -> None:
                turn.call("a")

            for way in (lambda: asyncio.run(call()), lambda: turn.call("a")):
                try:
                    way()
                except TurnError as error:
                    said.append(str(error))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert len(said) == 2
    assert all("submit its calls from there" in text for text in said)
    assert turn.report.outcomes == {}


@virtual
async def test_a_handle_of_another_turn_is_refused() -> None:
    rt = tools(a="a")
    rt.add(echo)
    async with rt.turn() as one:
        handle = one.call("a")
    async with rt.turn() as two:
        with pytest.raises(TurnError, match="belongs to another turn"):
            two.call("echo", {"value": [handle]})
        with pytest.raises(TurnError, match="belongs to another turn"):
            two.call("echo", depends_on=[handle])


# --- the deadline ------------------------------------------------------------------------------------------------------


@virtual
async def test_the_deadline_never_touches_the_body() -> None:
    rt = tools(slow=Takes(100), fast="fast")
    rt.add(echo)
    async with rt.turn(timeout="5s") as turn:
        slow = turn.call("slow")
        waiting = turn.call("echo", {"value": slow})
        assert (await slow).status == "timed_out"
        assert (await waiting).status == "skipped"
        await asyncio.sleep(10)
        later = turn.call("fast")
        assert later.done()
        assert (await later).status == "skipped"
    fault = turn.report.outcomes[later.id].fault
    assert fault is not None
    assert (fault.message, fault.effect) == ("Turn timeout after 5s: not started", "none")
    assert turn.report.timed_out
    assert turn.report.duration == pytest.approx(15)


@virtual
async def test_an_abandoned_call_continues_and_its_result_is_recorded_as_late() -> None:
    slow = Scripted(Takes(8, "late"))
    rt = tools(slow=slow)
    async with rt.turn(timeout="5s") as turn:
        turn.call("slow")
    assert turn.report.outcomes["slow-1"].status == "timed_out"
    assert turn.report.duration == pytest.approx(5)
    assert slow.ended == []
    await asyncio.sleep(5)
    assert len(slow.ended) == 1
    assert turn.report.outcomes["slow-1"].status == "timed_out"
    (record,) = records(rt, "LateResult")
    assert (record["call_id"], record["turn_id"]) == ("slow-1", turn.id)
    assert rt.metrics("slow")["late_result_count"] == 1


@virtual
async def test_an_abandoned_call_ends_at_its_own_timeout_and_is_not_repeated() -> None:
    slow = Scripted(Takes(100))
    rt = Runtime()
    rt.add(slow, id="slow", timeout="8s")
    async with rt.turn(timeout="5s") as turn:
        turn.call("slow")
    await asyncio.sleep(100)
    assert (slow.attempts, slow.ended[0] - slow.started[0]) == (1, pytest.approx(8))


@virtual
async def test_on_timeout_cancel_stops_what_runs() -> None:
    slow = Scripted(Takes(100))
    rt = tools(slow=slow)
    async with rt.turn(timeout="5s", on_timeout="cancel") as turn:
        turn.call("slow")
    await asyncio.sleep(0.1)
    assert slow.ended[0] - slow.started[0] == pytest.approx(5)
    assert turn.report.outcomes["slow-1"].status == "timed_out"
    assert records(rt, "LateResult") == []


@virtual
async def test_a_retry_that_waits_is_not_made_after_the_deadline() -> None:
    search = Scripted(DOWN)
    rt = Runtime()
    rt.add(search, id="search", retry={"initial_delay": "4s", "max_delay": "4s", "max_total_time": "1m"})
    async with rt.turn(timeout="5s") as turn:
        turn.call("search")
    await asyncio.sleep(60)
    assert search.attempts == 2  # the second pause would have ended after the deadline
    outcome = turn.report.outcomes["search-1"]
    assert outcome.decision is None or outcome.decision.strategy != "retry"


@virtual
async def test_a_turn_inside_another_has_no_more_time_than_that_one() -> None:
    rt = tools(slow=Takes(100))
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with rt.turn(timeout="5s") as outer:
        await asyncio.sleep(2)
        async with rt.turn(timeout="60s") as inner:
            inner.call("slow")
        assert loop.time() - began == pytest.approx(5)
        assert inner.report.timed_out
    assert outer.report.outcomes == {}
    assert outer.report.timed_out


@virtual
async def test_a_turn_inside_a_tool_ends_with_its_turn() -> None:
    rt = tools(slow=Takes(100))
    inner_reports = []

    @rt.tool(timeout="1h")
    async def agent() -> str:
        async with rt.turn(timeout="60s") as inner:
            inner.call("slow")
        inner_reports.append(inner.report)
        return "done"

    async with rt.turn(timeout="5s") as outer:
        outer.call("agent")
    await asyncio.sleep(1)
    assert inner_reports[0].timed_out
    assert inner_reports[0].duration == pytest.approx(5)
    assert list(outer.report.outcomes) == ["agent-1"]


@virtual
async def test_a_turn_without_a_deadline_of_its_own_has_five_minutes() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(10_000)), id="slow", timeout="1h")
    async with rt.turn() as turn:
        turn.call("slow")
    assert turn.report.duration == pytest.approx(300)


@pytest.mark.parametrize("wrong", [30, "30", "-1s", "soon", float("nan")])
def test_a_turns_timeout_needs_a_unit(wrong: Any) -> None:
    with pytest.raises(ManifestError, match="timeout"):
        Runtime().turn(timeout=wrong)


# --- cascades (R9) -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("required", "defaults", "status", "escalated"),
    [
        (False, None, "skipped", False),
        (False, {"value": []}, "skipped", False),
        (True, None, "skipped", True),
        (True, {"value": []}, "succeeded", False),
        (None, None, "skipped", False),
        (None, {"value": []}, "succeeded", False),
        (None, {"other": []}, "skipped", False),
        (True, {"other": []}, "skipped", True),
    ],
)
@pytest.mark.parametrize("said", ["per call", "per tool"])
@virtual
async def test_dependants_of_a_failed_call(
    required: bool | None, defaults: dict[str, Any] | None, status: str, escalated: bool, said: str
) -> None:
    rt = tools(bad=INVALID)
    options = {"required": required, "defaults": defaults or {}}
    rt.add(echo, **(options if said == "per tool" else {}))
    async with rt.turn() as turn:
        bad = turn.call("bad", id="B")
        turn.call("echo", {"value": bad}, id="E", **(options if said == "per call" else {}))
    outcome = turn.report.outcomes["E"]
    assert (outcome.status, outcome.escalated) == (status, escalated)
    if status == "succeeded":
        assert outcome.value == {"value": []}
        assert "Used default value for echo" in phrases(turn.report)


@virtual
async def test_a_default_of_the_functions_signature_is_no_default_for_a_failed_call() -> None:
    rt = tools(bad=INVALID)

    @rt.tool
    async def with_default(value: str = "spare") -> str:
        return value

    async with rt.turn() as turn:
        turn.call(with_default, {"value": turn.call("bad")}, id="W")
    assert turn.report.outcomes["W"].status == "skipped"


@virtual
async def test_a_dependency_that_failed_for_a_while_only_is_retried_first() -> None:
    rt = tools(flaky=Scripted(DOWN, "fine"))
    rt.add(echo)
    async with rt.turn() as turn:
        turn.call("echo", {"value": turn.call("flaky")}, id="E")
    assert turn.report.outcomes["E"].value == {"value": "fine"}


@virtual
async def test_escalations_of_a_turn_are_reported_and_passed_to_on_escalation() -> None:
    told: list[str] = []
    rt = Runtime(on_escalation=lambda outcome: told.append(outcome.id))
    rt.add(Scripted(INVALID), id="bad")
    rt.add(Scripted(DOWN), id="optional", required=False, retry=ONCE)
    rt.add(echo)
    async with rt.turn() as turn:
        bad = turn.call("bad", id="B")
        turn.call("echo", {"value": bad}, id="R", required=True)
        turn.call("optional", id="O")
    assert sorted(told) == ["B", "R"]
    assert [escalation.call_id for escalation in turn.report.escalations] == ["B", "R"]
    decision = turn.report.outcomes["O"].decision
    assert decision is not None
    assert decision.strategy == "fail_gracefully"


# --- the report --------------------------------------------------------------------------------------------------------


@virtual
async def test_every_call_is_in_exactly_one_part_of_the_report() -> None:
    rt = tools(good="good", bad=INVALID, slow=Takes(100))
    rt.add(echo)
    async with rt.turn(timeout="5s", thread="chat-42") as turn:
        bad = turn.call("bad")
        for tool in ("good", "slow", "nowhere"):
            turn.call(tool)
        turn.call("echo", {"value": bad})
    report = turn.report
    parts = [*report.results, *report.failures, *report.skipped]
    assert sorted(parts) == sorted(report.outcomes)
    assert len(parts) == 5
    assert report.thread == "chat-42"
    loaded = pickle.loads(pickle.dumps(report))
    assert loaded.outcomes == report.outcomes
    assert loaded.message == report.message
    assert [event.to_dict() for event in loaded.trace] == records(report)
    assert report.to_dict()["timed_out"] is True


@virtual
async def test_an_empty_turn_has_a_report() -> None:
    async with Runtime().turn() as turn:
        pass
    assert turn.report.outcomes == {}
    assert [record["event_type"] for record in records(turn.report)] == ["TurnStarted", "TurnEnded"]


@virtual
async def test_a_long_chain_and_a_wide_fan_come_out_whole() -> None:
    rt = Runtime()

    @rt.tool
    async def add_one(number: int) -> int:
        return number + 1

    async with rt.turn() as turn:
        handle: Any = 0
        for _ in range(1000):
            handle = turn.call(add_one, {"number": handle})
        for number in range(1000):
            turn.call(add_one, {"number": number})
    values = list(turn.report.results.values())
    assert values[:1000] == list(range(1, 1001))
    assert values[1000:] == list(range(1, 1001))


# --- after the deadline ------------------------------------------------------------------------------------------------


@virtual
async def test_an_abandoned_call_gets_no_alternative() -> None:
    rt = Runtime()
    backup = Scripted("spare")
    rt.add(Scripted(Takes(100)), id="slow", timeout="8s", fallbacks=["backup"])
    rt.add(backup, id="backup")
    async with rt.turn(timeout="5s") as turn:
        turn.call("slow")
    await asyncio.sleep(100)
    assert backup.attempts == 0


@virtual
async def test_a_call_of_a_turn_can_have_its_own_timeout_and_retries() -> None:
    rt = tools(slow=Takes(100))
    async with rt.turn() as turn:
        turn.call("slow", timeout="2s", retry={"max_attempts": 2})
    outcome = turn.report.outcomes["slow-1"]
    assert outcome.fault is not None
    assert (outcome.attempts, outcome.fault.message) == (2, "Tool timeout after 2s")


@pytest.mark.parametrize("limit", ["30s", None], ids=["thread", "inline"])
@virtual
async def test_a_blocking_function_is_not_run_after_the_deadline(limit: str | None) -> None:
    rt = Runtime()
    ran: list[int] = []
    guarded = rt.add(lambda: ran.append(1), id="late", timeout=limit)
    async with rt.turn(timeout="1s") as turn:
        await asyncio.sleep(2)
        with pytest.raises(CallFailed, match="Turn timeout after 1s: not started"):
            guarded()
    assert ran == []
    assert turn.report.outcomes["late-1"].status == "skipped"


@virtual
async def test_a_call_by_name_in_the_body_keeps_its_own_id() -> None:
    rt = tools(a="a")
    async with rt.turn() as turn:
        assert (await rt.call("a", id="mine")).id == "mine"
        assert (await rt.call("a", retry=ONCE)).id == "a-1"
        with pytest.raises(TurnError, match="call id 'mine' is taken"):
            await rt.call("a", id="mine")
    assert list(turn.report.outcomes) == ["mine", "a-1"]


@virtual
async def test_an_unknown_tool_is_escalated() -> None:
    told: list[str] = []
    rt = Runtime(on_escalation=lambda outcome: told.append(outcome.tool))
    await rt.call("nowhere")
    async with rt.turn() as turn:
        turn.call("elsewhere")
    assert told == ["nowhere", "elsewhere"]
    assert [escalation.call_id for escalation in turn.report.escalations] == ["elsewhere-1"]


@virtual
async def test_a_body_that_raises_leaves_a_record_of_every_running_call():
    rt = Runtime()
    rt.add(Scripted(Takes(100, "late")), id="slow")
    with pytest.raises(LookupError):
        async with rt.turn() as turn:
            turn.call("slow")
            await asyncio.sleep(1)
            raise LookupError
    [cancelled] = records(turn.report, "CallCancelled")
    assert cancelled["tool_id"] == "slow"
    await asyncio.sleep(1)
    assert len(records(turn.report, "CallCancelled")) == 1


@real
async def test_a_blocking_tool_in_a_thread_of_the_body_belongs_to_the_turn():
    rt = Runtime()

    @rt.tool
    def blocking():
        return 7

    async with rt.turn() as turn:
        assert await asyncio.to_thread(blocking) == 7
    assert turn.report.results == {"blocking-1": 7}


class Pair(NamedTuple):
    left: Any
    right: Any


@virtual
async def test_tuples_of_handles_stay_tuples():
    rt = Runtime()

    @rt.tool
    async def give(value):
        return value

    async with rt.turn() as turn:
        one = turn.call("give", {"value": 1})
        turn.call("give", {"value": (one, 2)}, id="plain")
        turn.call("give", {"value": Pair(one, 2)}, id="named")
    assert turn.report.results["plain"] == (1, 2)
    assert turn.report.results["named"] == Pair(1, 2)


# --- what is left of it ------------------------------------------------------------------------------------------------


class Found:
    """A value that can be watched."""


@virtual
async def test_an_unreferenced_turn_is_freed_without_the_garbage_collector() -> None:
    rt = Runtime()
    rt.add(echo)
    watched: list[weakref.ref[Any]] = []

    async def find() -> Found:
        await asyncio.sleep(0)
        return Found()

    rt.add(find, retry=ONCE)
    guarded = rt.add(find, id="again", retry=ONCE)

    async def play() -> None:
        async with rt.turn() as turn:
            first = turn.call("find")
            turn.call("echo", {"of": [first], "and": turn.call("find", timeout="1s")})
            await guarded()
        report = turn.report
        assert len(report.results) == 4
        assert report.trace
        watched.append(weakref.ref(turn))
        watched.append(weakref.ref(turn._events))
        watched.extend(weakref.ref(value) for value in report.results.values() if isinstance(value, Found))

    gc.collect()
    gc.disable()
    try:
        await asyncio.create_task(play())
        await asyncio.sleep(0)
        assert [thing() for thing in watched] == [None] * 5, "only the garbage collector would find what is left"
    finally:
        gc.enable()


@virtual
async def test_inner_calls_of_tasks_that_outlive_the_turn_belong_to_the_turn() -> None:
    rt, started = Runtime(), []
    inner = rt.add(Scripted("fine"), id="inner")

    async def outer() -> None:
        async def later() -> None:
            await asyncio.sleep(5)
            await inner()

        started.append(asyncio.create_task(later()))

    rt.add(outer)
    async with rt.turn(id="T") as turn:
        handle = turn.call("outer")
    await started[0]
    assert [event["turn_id"] for event in records(turn.report) if event["call_id"] == "outer-1/inner-1"] == ["T"]
    with pytest.raises(TurnError, match="has ended"):
        handle.turn.call("outer")


@virtual
async def test_a_default_must_not_contain_a_handle() -> None:
    rt = tools(a="a")
    rt.add(echo)
    async with rt.turn() as turn:
        first = turn.call("a")
        with pytest.raises(TurnError, match="'of' has a handle in it"):
            turn.call("echo", {"of": first}, defaults={"of": [first]})
    assert [*turn.report.outcomes] == ["a-1"]


@virtual
async def test_a_guarded_function_that_waits_for_its_next_attempt_does_not_hold_up_the_turn() -> None:
    rt = Runtime()
    began: dict[str, float] = {}
    clock = asyncio.get_running_loop().time

    @rt.tool(read_only=True, retry={"initial_delay": "5s", "max_delay": "5s", "max_total_time": "1m"})
    async def flaky() -> str:
        if "flaky" not in began:
            began["flaky"] = clock()
            raise ConnectionError("refused")
        return "there"

    @rt.tool
    async def other() -> None:
        began["other"] = clock()

    async with rt.turn() as turn:
        waiting = asyncio.ensure_future(flaky())
        await asyncio.sleep(1)
        turn.call("other")
        assert await waiting == "there"
    assert began["other"] - began["flaky"] == pytest.approx(1)


@real
async def test_a_finished_event_loop_is_freed() -> None:
    rt = Runtime()

    @rt.tool(timeout="5s")
    async def naps() -> None:
        await asyncio.sleep(0)

    loops: list[weakref.ref[Any]] = []

    async def once() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await naps()

    def one_after_the_other() -> None:
        for _ in range(4):
            asyncio.run(once())

    await asyncio.to_thread(one_after_the_other)
    gc.collect()
    assert [loop() is None for loop in loops] == [True, True, True, False]


@virtual
async def test_an_unknown_call_option_is_rejected() -> None:
    rt = tools(good="good")
    async with rt.turn() as turn:
        with pytest.raises(TypeError, match=r"a call has no option 'retries'; there are id, depends_on, "):
            turn.call("good", retries=3)  # type: ignore[call-overload]
    assert not turn.report.outcomes


@virtual
async def test_a_call_with_its_own_options_receives_resolved_arguments() -> None:
    rt = tools(one=Takes(1, 1))
    rt.add(echo)
    async with rt.turn() as turn:
        one = turn.call("one")
        outcome = await turn.call("echo", {"of": [one], "and": one}, timeout="9s", retry={"max_attempts": 1})
    assert outcome.value == {"of": [1], "and": 1}
    assert outcome.duration == 0.0  # from when it could begin


@virtual
async def test_arguments_that_are_no_mapping_are_refused() -> None:
    rt = tools(good="good")
    async with rt.turn() as turn:
        with pytest.raises(TurnError, match="args: write one mapping from names to values, not str"):
            turn.call("good", "PAR")  # type: ignore[arg-type]
    assert not turn.report.outcomes


@virtual
async def test_a_call_has_the_arguments_of_the_moment_it_was_submitted() -> None:
    rt = tools(slow=Takes(1, "slow"))
    rt.add(echo)
    arguments = {"city": "PAR"}
    async with rt.turn() as turn:
        first = turn.call("echo", arguments)
        later = turn.call("echo", arguments, depends_on=[turn.call("slow")])
        arguments["city"] = "LON"
        second = turn.call("echo", arguments)
    outcomes = turn.report.outcomes
    assert [outcomes[handle.id].value["city"] for handle in (first, later, second)] == ["PAR", "PAR", "LON"]


@virtual
async def test_calls_start_in_the_order_of_submission_those_that_need_others_too() -> None:
    rt = tools()
    began: list[str] = []

    async def note(name: str) -> str:
        began.append(name)
        return name

    rt.add(note, id="note")
    async with rt.turn() as turn:
        first = turn.call("note", {"name": "first"})
        turn.call("note", {"name": "second"}, depends_on=[first])
        turn.call("note", {"name": "third"})
    assert began == ["first", "second", "third"]


@virtual
async def test_a_call_that_depends_on_a_failed_one_is_skipped_on_submission() -> None:
    rt = tools(bad=INVALID, good="good")
    async with rt.turn() as turn:
        bad = turn.call("bad", id="B")
        before = turn.call("good", depends_on=[bad])
        assert not before.done()
        await bad
        assert before.done()
        after = turn.call("good", depends_on=["B"])
        assert after.done()
    assert [handle.outcome and (handle.outcome.status, handle.outcome.root) for handle in (before, after)] == [
        ("skipped", "B"),
        ("skipped", "B"),
    ]


@virtual
async def test_dependants_of_a_failed_call_are_skipped_even_if_all_lanes_are_busy() -> None:
    slow, good = Scripted(Takes(1)), Scripted("good")
    rt = tools(bad=INVALID, slow=slow, good=good)
    with pytest.raises(ZeroDivisionError):
        async with rt.turn() as turn:
            bad = turn.call("bad", id="B")
            for _ in range(3):  # each takes a lane of its own
                turn.call("slow")
            needs_bad = turn.call("good", depends_on=[bad])
            with_default = turn.call("good", {"x": bad}, defaults={"x": 1}, depends_on=["slow-3"])
            await bad
            assert needs_bad.done()
            assert not with_default.done()
            await with_default
            assert good.arguments == [{"x": 1}]
            raise ZeroDivisionError
    assert needs_bad.outcome is not None
    assert (needs_bad.outcome.status, needs_bad.outcome.root) == ("skipped", "B")
    assert slow.attempts == 3


@virtual
async def test_an_invalid_call_is_rejected_on_submission() -> None:
    rt = tools(good="good")
    async with rt.turn() as turn:
        turn.call("good", id="G")
        with pytest.raises(TurnError, match="call id 'G' is taken"):
            turn.call("good", id="G")
        with pytest.raises(TurnError) as refused:
            turn.call("good", id="H", depends_on=["F", "G", "X"])
        assert str(refused.value).splitlines() == [
            "call 'H' depends on 'F', which is not in this turn",
            "call 'H' depends on 'X', which is not in this turn",
        ]
    assert list(turn.report.outcomes) == ["G"]


@virtual
async def test_the_deadline_ends_calls_that_no_lane_has_started() -> None:
    rt = tools(bad=INVALID, good="good")

    async def expires() -> None:
        turn._expire()  # as a timer would that is due between two lanes

    rt.add(expires, id="expires")
    async with rt.turn(timeout="5s") as turn:
        turn.call("expires", id="E")
        turn.call("good", id="G")
        turn.call("good", id="H", depends_on=["G"])
    assert {id: outcome.status for id, outcome in turn.report.outcomes.items()} == {
        "E": "timed_out",
        "G": "timed_out",
        "H": "skipped",
    }
    assert turn.report.outcomes["G"].attempts == 0


@virtual
async def test_calls_that_no_lane_has_started_are_cancelled_with_the_body() -> None:
    tool = Scripted("good")
    rt = tools(good=tool)
    with pytest.raises(ZeroDivisionError):
        async with rt.turn() as turn:
            turn.call("good", id="G")
            raise ZeroDivisionError
    await asyncio.sleep(1)
    assert turn.report.outcomes["G"].status == "cancelled"
    assert tool.arguments == []


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="this Python starts no task eagerly")
@virtual
async def test_a_guarded_function_in_a_turns_body_ends_where_tasks_start_eagerly() -> None:
    rt = Runtime()
    guarded = rt.add(Scripted("found"), id="search")
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    async with asyncio.timeout(5), rt.turn() as turn:
        assert await guarded() == "found"
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["succeeded"]


@virtual
async def test_a_plans_reference_may_lead_into_a_value() -> None:
    rt = Runtime()
    rt.add(Scripted({"price": 3, "list": [{"id": "x"}]}), id="get_flights")
    rt.add(lambda value: value, id="get_same")

    async def refer(ref: str, **more: Any) -> Any:
        call = {"id": "same", "tool": "get_same", "args": {"value": {"$ref": ref}}, **more}
        report = await rt.run_plan({"calls": [{"id": "flights", "tool": "get_flights"}, call]})
        return report.outcomes["same"]

    assert (await refer("flights.price")).value == 3
    assert (await refer("flights.list[0].id")).value == "x"
    assert (await refer("flights.prise", defaults={"value": 9})).value == 9
    for wrong, said in {
        "flights.prise": "has no .prise; did you mean price?",
        "flights.list[1]": "has no .list[1]",
        "flights.price.x": "has no .price.x",
        "flights.list[0].__class__": "has no .list[0].__class__",
        "flights.price[0]": "has no .price[0]",
    }.items():
        outcome = await refer(wrong)
        assert (outcome.status, outcome.attempts, outcome.fault.effect) == ("failed", 0, "none")
        assert outcome.fault.message == f"The arguments do not fit. Invalid: value. The value of flights {said}"
