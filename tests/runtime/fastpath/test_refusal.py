"""Calls that an open circuit refuses at once."""

from __future__ import annotations

import gc

from tests.fakes import DOWN, ONCE, Scripted, virtual

from failsoft import Outcome, Runtime


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
