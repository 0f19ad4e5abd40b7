"""Calls of tools that are not registered, in turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import Scripted, records, virtual

from failsoft import Outcome, Runtime

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


class Slow:
    """An Error Handler that needs a second."""

    async def handle(self, report: Any) -> Any:
        await asyncio.sleep(1)


def effect_of(outcome: Outcome[Any]) -> str:
    assert outcome.fault is not None
    return outcome.fault.effect


@virtual
async def test_the_bodys_exception_comes_out_while_the_handler_still_thinks_about_an_unknown_tool() -> None:
    rt = Runtime(error_handler=Slow())
    with pytest.raises(ValueError, match="the body's own"):
        async with rt.turn(thread="chat") as turn:
            turn.call("nowhere", id="N")
            await asyncio.sleep(0.5)
            raise ValueError("the body's own")
    outcome = turn.report.outcomes["N"]
    assert (outcome.status, outcome.tool, outcome.attempts, effect_of(outcome)) == ("cancelled", "nowhere", 0, "none")


@virtual
async def test_a_call_of_an_unknown_tool_that_the_deadline_ends_has_no_attempt() -> None:
    rt = Runtime(error_handler=Slow())
    async with rt.turn(timeout="500ms", thread="chat") as turn:
        turn.call("nowhere", id="N")
    outcome = turn.report.outcomes["N"]
    assert (outcome.status, outcome.attempts, effect_of(outcome)) == ("timed_out", 0, "none")
    assert rt.threads["chat"].offers == []


@virtual
async def test_a_call_that_lacks_a_part_of_a_value_has_no_attempt_when_its_turn_breaks_off() -> None:
    rt = Runtime(error_handler=Slow())
    rt.add(Scripted({"name": "x"}), id="read")
    rt.add(Scripted("written"), id="write", idempotent=False)
    plan = {"calls": [{"id": "R", "tool": "read"}, {"id": "W", "tool": "write", "args": {"a": {"$ref": "R.missing"}}}]}
    report = await rt.run_plan({"timeout": "500ms", **plan})
    outcome = report.outcomes["W"]
    assert (outcome.status, outcome.attempts, effect_of(outcome)) == ("timed_out", 0, "none")


@virtual
async def test_an_unknown_tool_accepts_any_options_and_is_refused_when_it_is_due() -> None:
    rt = Runtime()
    async with rt.turn() as turn:
        handle = turn.call(
            "",
            {"a": 1},
            required=False,
            defaults={"a": 2},
            timeout="1s",
            retry={"max_attempts": 2},
            idempotency_key="k",
        )
        outcome: Outcome[Any] = await handle
    assert outcome.fault is not None
    assert (outcome.fault.rule, outcome.attempts, outcome.escalated) == ("unknown_tool", 0, True)


@virtual
async def test_names_that_a_plan_invents_are_masked_and_cut() -> None:
    rt = Runtime()
    report = await rt.run_plan({"calls": [{"id": "S", "tool": f"get {SECRET}"}, {"id": "L", "tool": "x" * 5000}]})
    assert SECRET not in repr(report.to_dict()) + repr(records(report))
    assert len(report.outcomes["L"].tool) < 200


@virtual
async def test_invented_names_are_kept_nowhere() -> None:
    rt = Runtime()
    rt.add(Scripted("fine"), id="known")
    toolbox = rt._engine.toolbox
    async with rt.turn(thread="chat") as turn:
        for number in range(50):
            turn.call(f"invented_{number}")
    for number in range(50):
        rt.health(f"invented_{number}")
        rt.metrics(f"invented_{number}")
    assert list(toolbox.tools) == ["known"]
    assert len(toolbox.index) == 2  # by its id and by its function
    assert not any(rt._engine.log.trace.has_metrics(f"invented_{number}") for number in range(50))
