"""No progress: the same call with the same result, again and again, in a thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import records, virtual

from failsoft import ManifestError, Runtime
from failsoft.adapters.plain import run_tool_calls
from failsoft.analysis.why import explain_turn
from failsoft.runtime.conversation import repetitions
from failsoft.testing import check_driver

READ: dict[str, Any] = {"read_only": True}


def add(rt: Runtime, values: Any = None, **options: Any) -> list[int]:
    """Add the tool ``search``; return a list with one item per run."""
    ran: list[int] = []

    async def search(city: str = "Bern") -> Any:
        ran.append(1)
        return {"rooms": [12], "city": city} if values is None else values[len(ran) - 1]

    rt.add(search, id="search", **READ | options)
    return ran


async def by_name(rt: Runtime, **arguments: Any) -> Any:
    return await rt.call("search", arguments, thread="chat")


async def in_a_turn(rt: Runtime, **arguments: Any) -> Any:
    async with rt.turn(thread="chat") as turn:
        turn.call("search", arguments, id="1")
    return turn.report.outcomes["1"]


async def in_the_body(rt: Runtime, **arguments: Any) -> Any:
    async with rt.turn(thread="chat"):
        return await rt.call("search", arguments)


async def blocking(rt: Runtime, **arguments: Any) -> Any:
    return await asyncio.to_thread(rt.call_sync, "search", arguments, thread="chat")


async def full_path(rt: Runtime, **arguments: Any) -> Any:
    return await rt.call("search", arguments, thread="chat", timeout="20s")


ROUTES = [by_name, in_a_turn, in_the_body, blocking, full_path]


@pytest.mark.parametrize("route", ROUTES)
@virtual
async def test_the_fifth_identical_call_with_the_same_result_is_reported_once(route: Any) -> None:
    rt = Runtime()
    ran = add(rt)
    outcomes = [await route(rt) for _ in range(7)]
    assert [outcome.repeats for outcome in outcomes] == [0, 0, 0, 0, 5, 5, 5]
    assert [outcome.value for outcome in outcomes] == [{"rooms": [12], "city": "Bern"}] * 7
    (record,) = records(rt, "NoProgress")
    assert (record["repeats"], record["thread"], record["tool_id"]) == (5, "chat", "search")
    assert record["call_id"] == outcomes[4].id
    assert len(ran) == 7
    assert "same result" in outcomes[4].remark
    assert outcomes[3].remark == ""


@virtual
async def test_other_arguments_results_threads_and_times_are_progress() -> None:
    rt = Runtime()
    add(rt, values=[*range(20)])
    for _ in range(10):
        assert (await by_name(rt)).repeats == 0
    rt = Runtime()
    add(rt)
    for n in range(10):
        assert (await by_name(rt, city=str(n))).repeats == 0
        assert (await rt.call("search", {"city": "Bern"}, thread=f"chat {n}")).repeats == 0
        assert (await rt.call("search", {"city": "Bern"})).repeats == 0
        assert (await rt.call("search", {"city": "Basel"}, thread="chat", tenant=str(n))).repeats == 0
    for _ in range(10):
        await asyncio.sleep(16)
        assert (await by_name(rt, city="Bern")).repeats == 0
    assert records(rt, "NoProgress") == []


@virtual
async def test_polling_tools_are_never_reported() -> None:
    rt = Runtime()
    add(rt, polling=True)
    assert [(await by_name(rt)).repeats for _ in range(10)] == [0] * 10


@pytest.mark.parametrize("route", ROUTES)
@virtual
async def test_max_repeats_refuses_the_next_identical_call(route: Any) -> None:
    rt = Runtime()
    ran = add(rt, max_repeats=3)
    outcomes = [await route(rt) for _ in range(5)]
    assert [outcome.status for outcome in outcomes] == ["succeeded"] * 3 + ["failed"] * 2
    fault = outcomes[4].fault
    assert (fault.rule, fault.code, fault.effect, outcomes[4].attempts) == (
        "no_progress",
        "FAILED_PRECONDITION",
        "none",
        0,
    )
    assert "3 times" in fault.message
    assert "It was not run this time" in outcomes[4].explanation.model
    assert outcomes[4].escalated is False
    assert len(ran) == 3
    assert (await route(rt, city="Basel")).status == "succeeded"
    await asyncio.sleep(61)
    assert (await route(rt)).status == "succeeded"


@virtual
async def test_a_refusal_is_recorded_and_the_thread_can_be_cleared() -> None:
    rt = Runtime()
    add(rt, max_repeats=1)
    await by_name(rt)
    assert (await by_name(rt)).status == "failed"
    assert [record["code"] for record in records(rt, "LoopPrevented")] == ["FAILED_PRECONDITION"]
    rt.threads["chat"].clear("search")
    assert (await by_name(rt)).status == "succeeded"
    assert rt.health("search").state == "closed"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_repeats": 0}, "max_repeats: 0 is not a whole number between 1 and 100"),
        ({"max_repeats": 101}, "between 1 and 100"),
        ({"max_repeats": True}, "is not a whole number"),
        ({"polling": "yes"}, "polling: 'yes' is neither true nor false"),
        ({"polling": True, "max_repeats": 3}, "a polling tool may repeat a call"),
    ],
)
def test_wrong_options_are_refused(options: Any, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        add(Runtime(), **options)


@virtual
async def test_the_options_can_be_written_in_a_manifest() -> None:
    rt = Runtime(manifest={"tools": {"search": {"max_repeats": 2}}})
    add(rt)
    assert [(await by_name(rt)).status for _ in range(3)] == ["succeeded", "succeeded", "failed"]
    rt = Runtime(manifest={"tools": {"search": {"polling": True}}})
    add(rt)
    assert [(await by_name(rt)).repeats for _ in range(6)] == [0] * 6


@virtual
async def test_calls_inside_other_calls_do_not_count() -> None:
    rt = Runtime()
    add(rt)

    @rt.tool(read_only=True)
    async def trip(n: int) -> Any:
        return (await rt.call("search", {})).value, n

    for n in range(7):
        await rt.call("trip", {"n": n}, thread="chat")
    assert records(rt, "NoProgress") == []


@virtual
async def test_the_number_of_remembered_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetitions, "MOST_CALLS", 10)
    rt = Runtime()
    add(rt)
    for n in range(50):
        await by_name(rt, city=str(n))
    assert len(rt._engine.books.conversations.repetitions._calls) == 10


@virtual
async def test_values_that_cannot_be_compared_are_never_the_same() -> None:
    rt = Runtime()
    cycle: list[Any] = []
    cycle.append(cycle)
    add(rt, values=[cycle] * 10)
    assert [(await by_name(rt)).repeats for _ in range(7)] == [0] * 7


@virtual
async def test_the_model_of_a_plain_loop_gets_one_line_and_the_value_stays() -> None:
    rt = Runtime()
    add(rt)
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"city": "Bern"}'}}
    answers = [(await run_tool_calls(rt, [call], thread="chat"))[0]["content"] for _ in range(6)]
    assert answers[3] == '{"rooms": [12], "city": "Bern"}'
    first, *lines = answers[4].splitlines()
    assert first == answers[3]
    assert len(lines) == 1
    assert lines[0].startswith("search has now returned the same result to the same call 5 times")


@virtual
async def test_why_names_it() -> None:
    rt = Runtime()
    add(rt)
    async with rt.turn(thread="chat", id="t") as turn:
        for n in range(5):
            await turn.call("search", {}, id=str(n))
    why = explain_turn("t", [event.to_dict() for event in turn.report.trace])
    assert any("`max_repeats`" in sentence for sentence in why.advice)


@virtual
async def test_the_pipeline_asks_for_it() -> None:
    rt = Runtime()
    add(rt, max_repeats=2)
    with check_driver() as checked:
        for _ in range(4):
            await by_name(rt)
    assert checked.calls == 4
