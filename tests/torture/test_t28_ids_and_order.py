"""T28: results came back under the wrong call, and identical calls became one. Here ids and order are kept."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.fakes import virtual

from failsoft import Runtime, TurnError
from failsoft.adapters.plain import run_tool_calls

CALLS = 200


def make() -> tuple[Runtime, list[int]]:
    rt = Runtime()
    ran: list[int] = []

    async def search(number: int, wait: float = 0.0) -> str:
        await asyncio.sleep(wait)
        ran.append(number)
        return f"result {number}"

    rt.add(search, timeout="5m")
    return rt, ran


@virtual
async def test_t28_out_of_order_results_stay_with_their_calls() -> None:
    source = random.Random(28)
    rt, ran = make()
    async with rt.turn() as turn:
        handles = {
            number: turn.call("search", {"number": number, "wait": source.uniform(0, 100)}, id=f"id-{number}")
            for number in range(CALLS)
        }
    assert ran != sorted(ran)  # they did finish out of order
    assert [*turn.report.outcomes] == [f"id-{number}" for number in range(CALLS)]
    assert turn.report.results == {f"id-{number}": f"result {number}" for number in range(CALLS)}
    for number, handle in handles.items():
        assert (await handle).value == f"result {number}"
        assert (await handle).id == f"id-{number}"


@virtual
async def test_t28_identical_calls_each_run_and_have_their_own_id() -> None:
    rt, ran = make()
    async with rt.turn() as turn:
        handles = [turn.call("search", {"number": 7, "wait": 1}) for _ in range(CALLS)]
    assert len({handle.id for handle in handles}) == len(turn.report.outcomes) == len(ran) == CALLS
    outcomes = await asyncio.gather(*(rt.call("search", {"number": 7}) for _ in range(CALLS)))
    assert len({outcome.id for outcome in outcomes}) == CALLS
    assert len(ran) == 2 * CALLS


@virtual
async def test_t28_an_id_is_given_once() -> None:
    rt, ran = make()
    async with rt.turn() as turn:
        turn.call("search", {"number": 1}, id="a")
        with pytest.raises(TurnError, match="'?a'?"):
            turn.call("search", {"number": 2}, id="a")
    assert turn.report.results == {"a": "result 1"}
    assert ran == [1]


@virtual
async def test_t28_a_model_gets_each_answer_under_its_own_id() -> None:
    source = random.Random(28)
    rt, _ = make()
    asked = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "search", "arguments": f'{{"number": {number % 3}, "wait": {source.random()}}}'},
        }
        for number in range(CALLS)
    ]
    answers = await run_tool_calls(rt, asked)
    assert [answer["tool_call_id"] for answer in answers] == [f"call_{number}" for number in range(CALLS)]
    assert [answer["content"] for answer in answers] == [f"result {number % 3}" for number in range(CALLS)]


@virtual
async def test_t28_turns_of_one_id_one_after_the_other_have_their_own_events() -> None:
    rt, _ = make()
    reports = []
    for tool_calls in (1, 2):
        async with rt.turn(id="same") as turn:
            for _ in range(tool_calls):
                turn.call("search", {"number": 1})
        reports.append(turn.report)
    assert [len(report.trace) for report in reports] == [3, 4]


@virtual
async def test_t28_turns_of_one_id_side_by_side_lose_nothing() -> None:
    rt, _ = make()

    async def answer(call_id: str, pause: float) -> Any:
        async with rt.turn(id="same") as turn:
            await asyncio.sleep(pause)
            turn.call("search", {"number": 1}, id=call_id)
        return turn.report

    reports = await asyncio.gather(answer("a", 1), answer("b", 2), answer("c", 3))
    for report, call_id in zip(reports, "abc", strict=True):
        assert [event.event_type for event in report.trace if event.call_id == call_id] == ["CallSucceeded"]
