"""Calls that an open circuit refuses at once."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, virtual

from failsoft import CircuitOpen, Outcome, Runtime


async def refusing_runtime() -> Runtime:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("down")
    return rt


@virtual
async def test_each_refused_call_has_an_id_of_its_own_which_its_event_names() -> None:
    rt = await refusing_runtime()
    refused = [await rt.call("down") for _ in range(3)]
    ids = [outcome.id for outcome in refused]
    assert len({*ids}) == 3
    assert [event.call_id for event in rt.events() if event.event_type == "CallRefused"] == ids
    assert {outcome.fault.rule for outcome in refused if outcome.fault is not None} == {"circuit_open"}
    refused[0].reword("Try tomorrow.")
    assert refused[1].explanation.user != "Try tomorrow."


@virtual
async def test_each_raised_refusal_has_an_outcome_of_its_own_which_its_event_names() -> None:
    rt = Runtime()
    guarded = rt.tool(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("down")
    raised = []
    for _ in range(3):
        with pytest.raises(CircuitOpen) as caught:
            await guarded()
        raised.append(caught.value)
    ids = [event.call_id for event in rt.events() if event.event_type == "CallRefused"]
    assert [error.outcome.id for error in raised] == ids
    assert len({*ids}) == 3
    assert raised[0].outcome is raised[0].outcome
    raised[0].outcome.reword("Try tomorrow.")
    assert raised[1].outcome.explanation.user != "Try tomorrow."


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
@virtual
async def test_a_raised_refusal_can_be_copied_and_shown_before_anyone_has_read_it(copied: Callable[[Any], Any]) -> None:
    rt = Runtime()
    guarded = rt.tool(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("down")
    for _ in range(2):
        with pytest.raises(CircuitOpen) as caught:
            await guarded()
    caught.value.add_note("asked twice")
    made = copied(caught.value)
    assert (made.outcome, made.__notes__) == (caught.value.outcome, ["asked twice"])
    with pytest.raises(CircuitOpen) as caught:
        await guarded()
    assert repr(caught.value) == f"CircuitOpen({caught.value.outcome!r})"
    assert str(caught.value).startswith("down: ")


@virtual
async def test_a_call_made_while_the_circuit_was_open_runs_if_the_circuit_admits_it_when_awaited() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, "fine"), id="down", retry=ONCE, breaker={"failure_threshold": 1, "timeout": "30s"})
    await rt.call("down")
    call = rt.call("down")
    await asyncio.sleep(31)
    outcome = await call
    assert (outcome.status, outcome.value) == ("succeeded", "fine")


@virtual
async def test_the_event_stream_keeps_no_outcomes_of_refused_calls() -> None:
    rt = await refusing_runtime()

    def outcomes() -> int:
        gc.collect()
        return sum(type(thing) is Outcome for thing in gc.get_objects())

    before = outcomes()
    for _ in range(100):
        await rt.call("down")
    assert outcomes() - before < 10
    assert rt.metrics("down")["refused_count"] == 100
