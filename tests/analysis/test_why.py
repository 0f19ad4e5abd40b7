"""The explanation of a turn and of its biggest loss."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes import DOWN, ONCE, Scripted, Takes, virtual

from failsoft import Runtime
from failsoft.analysis.why import Why, explain_turn
from failsoft.stores.memory import MemoryStore


async def play(rt: Runtime, *, thread: str | None = None) -> list[dict[str, Any]]:
    rt.add(Scripted(Takes(4, DOWN), Takes(1, DOWN), Takes(2, "fine")), id="search", retry={"jitter_percent": 0})
    rt.add(Scripted(Takes(1, DOWN)), id="other", retry=ONCE)
    rt.add(Scripted(Takes(1, "fine")), id="fine")
    async with rt.turn(id="t", thread=thread) as turn:
        for tool in ("search", "other", "fine"):
            turn.call(tool)
    return [json.loads(json.dumps(event.to_dict())) for event in turn.report.trace]


@virtual
async def test_the_loss_is_the_tool_that_cost_most() -> None:
    told = explain_turn("t", await play(Runtime(), thread="chat"))
    assert (told.turn_id, told.thread, told.ended) == ("t", "chat", True)
    assert told.began == "2025-11-05T10:30:45.000Z"
    assert told.loss is not None
    assert (told.loss.share.tool, told.loss.share.attempts, told.loss.calls) == ("search", 2, ("search-1",))
    assert told.loss.share.seconds > 5
    assert (told.loss.code, told.loss.classification) == ("UNAVAILABLE", "transient")
    assert told.loss.known is None
    assert json.loads(json.dumps(told.to_dict()))["loss"]["error"] == told.loss.error


@virtual
async def test_the_memory_is_asked_where_it_is_at_hand() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    events = await play(rt)
    await rt.flush()
    families = [value for _, value in store.find("memory")]
    told = explain_turn("t", events, families)
    assert told.loss is not None
    assert str(told.loss.known) == "seen in 1 episode; retries worked 1 of 1 times"
    strange = [{**family, "tenant": "acme"} for family in families]
    assert explain_turn("t", events, strange).loss == told.loss._replace(known=None)  # nobody else's


@virtual
async def test_a_turn_without_failures_has_no_loss() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, "fine")), id="fine")
    async with rt.turn(id="t") as turn:
        turn.call("fine")
    told = explain_turn("t", [event.to_dict() for event in turn.report.trace])
    assert told.loss is None
    assert told.to_dict()["loss"] is None


@virtual
async def test_a_truncated_turn_is_explained_as_far_as_it_goes() -> None:
    events = await play(Runtime())
    told: Why = explain_turn("t", events[:3])
    assert not told.ended
    assert explain_turn("t", []).waterfall.rows == ()


@virtual
async def test_retries_that_max_total_time_cut_off_are_named_with_the_setting() -> None:
    rt = Runtime()
    retry = {"max_attempts": 5, "max_total_time": "200ms", "initial_delay": "150ms", "jitter_percent": 0}
    rt.add(Scripted(DOWN), id="get_price", retry=retry)
    async with rt.turn(id="t") as turn:
        turn.call("get_price")
    (outcome,) = turn.report.outcomes.values()
    why = "max total retry time of 200ms reached after 2 of 5 attempts"
    assert outcome.attempts == 2
    assert outcome.fault is not None
    assert outcome.fault.reason.endswith(f"; {why}")
    assert outcome.decision is not None
    assert why in outcome.decision.reason
    (said,) = explain_turn("t", [event.to_dict() for event in turn.report.trace]).advice
    assert said == f"The retries of get_price ended early: {why}. A longer `max_total_time` allows more."
