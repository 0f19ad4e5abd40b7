"""A replay reproduces every recorded decision, or reports the difference."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes import AUTH, DOWN, ONCE, RATE_LIMIT, RESET, Scripted, Takes, virtual

from failsoft import Runtime
from failsoft.analysis.replay import Cascaded, replay, replay_cascades
from failsoft.core.model.decision import Decision
from failsoft.core.resilience.error_handler import ErrorReport

POLICY = {"name": "never mind", "when": {"tool": "mail"}, "then": "fail_gracefully"}


async def record(**options: Any) -> tuple[Runtime, list[dict[str, Any]]]:
    rt = Runtime(**options)
    rt.add(Scripted(RESET, "fine"), id="search", read_only=True)
    rt.add(Scripted(AUTH), id="book", fallbacks=["other"])
    rt.add(Scripted(DOWN), id="other", retry=ONCE)
    rt.add(Scripted(RATE_LIMIT), id="mail", retry=ONCE, required=False)
    rt.add(Scripted(DOWN), id="down", read_only=True, breaker={"failure_threshold": 2})
    async with rt.turn(thread="chat") as turn:
        for tool in ("search", "book", "mail", "down"):
            turn.call(tool)
    async with rt.turn() as again:
        again.call("down")
    lines = [json.dumps(event.to_dict()) for event in (*turn.report.trace, *again.report.trace)]
    return rt, [json.loads(line) for line in lines]


@virtual
async def test_a_replay_reproduces_every_decision() -> None:
    _, events = await record()
    replayed = replay(events)
    assert len(replayed) >= 7
    assert {each.recorded.strategy for each in replayed} >= {"retry", "alternative_tool", "escalate", "fail_gracefully"}
    assert [each for each in replayed if not each.same] == []
    assert json.loads(json.dumps(replayed[0].to_dict()))["same"] is True


@virtual
async def test_policies_are_looked_for_in_the_book() -> None:
    rt, events = await record(policies=[POLICY])
    assert all(each.same for each in replay(events, rt.policies))
    [decision] = [each for each in replay(events) if each.same is None]
    assert (decision.tool_id, decision.not_comparable) == ("mail", "policy 'never mind' is not available")


@virtual
async def test_a_replay_shows_how_another_handlers_decisions_differ() -> None:
    class Stubborn:
        async def handle(self, report: ErrorReport) -> Decision:
            return Decision("fail_gracefully", "because")

    _, events = await record(error_handler=Stubborn())
    different = [each for each in replay(events) if each.same is False]
    first = next(each for each in different if each.tool_id == "search")
    assert first.recorded == Decision("fail_gracefully", "because", first.recorded.delay)
    assert first.now is not None
    assert first.now.strategy == "retry"


def test_any_difference_counts() -> None:
    event = {
        "event_type": "ToolError", "seq": 1, "call_id": "a", "tool_id": "t", "error": "down", "classification": "transient",
        "circuit_breaker_state": "closed", "retry_count": 0, "decision": "retry", "code": "UNAVAILABLE",
        "reason": "Transient error + circuit closed + retries available", "category": "tool_transient", "effect": "none",
        "rule": "test", "attempt": 1, "retry_delay": 0.1, "delay_ms": 100.0,
    }  # fmt: skip
    changes: list[dict[str, Any]] = [
        {},
        {"delay_ms": 102.0},
        {"reason": "x"},
        {"decision": "escalate"},
        {"alternative": "b"},
    ]
    assert [replay([{**event, **change}])[0].same for change in changes] == [True, False, False, False, False]


def test_events_without_their_grounds_are_marked_and_other_events_are_ignored() -> None:
    shared = {"event_type": "CallRefused", "seq": 1, "reason": "circuit open", "decision": "fail_gracefully"}
    replayed = replay([shared, {"event_type": "CallSucceeded"}, {"event_type": "CallRefused", "seq": 2}])
    assert [(each.same, each.not_comparable) for each in replayed] == [(None, "the event does not record its reasons")]


# --- cascades ---------------------------------------------------------------------------------------------------------


async def record_cascades() -> list[dict[str, Any]]:
    rt = Runtime()
    rt.add(Scripted("fine"), id="good")
    rt.add(Scripted(AUTH), id="bad")
    rt.add(Scripted(Takes(9, "late")), id="slow")
    async with rt.turn(timeout="5s") as turn:
        bad, good, slow = turn.call("bad", id="bad"), turn.call("good", id="good"), turn.call("slow", id="slow")
        turn.call("good", {"a": bad}, id="skips")
        turn.call("good", {"a": bad}, id="matters", required=True)
        turn.call("good", {"a": bad}, id="welcome", required=False, defaults={"a": 1})
        turn.call("good", {"a": bad, "b": good}, id="runs", defaults={"a": 1}, required=True)
        turn.call("good", {"a": [bad], "b": bad}, id="half", defaults={"a": 1})
        turn.call("good", depends_on=["matters"], id="chain", required=True)
        turn.call("good", {"a": slow}, id="late", defaults={"a": 1}, required=True)
        await slow
        turn.call("good", id="too late")
    return [json.loads(json.dumps(event.to_dict())) for event in turn.report.trace]


@virtual
async def test_a_replay_reproduces_every_cascade() -> None:
    cascades = replay_cascades(await record_cascades())
    assert [each for each in cascades if not each.same] == []
    assert {each.call_id: (each.recorded, each.root) for each in cascades} == {
        "skips": ("skip", "bad"),
        "matters": ("escalate", "bad"),
        "welcome": ("skip", "bad"),
        "runs": ("substitute", None),
        "half": ("skip", "bad"),
        "chain": ("escalate", "bad"),
        "late": ("skip", "slow"),
        "too late": ("skip", None),
    }
    assert json.loads(json.dumps(cascades[0].to_dict()))["same"] is True


def changed(events: list[dict[str, Any]], call: str, **fields: Any) -> dict[str, Cascaded]:
    """The cascades that differ after one call's record was changed."""
    kinds = ("CallSkipped", "DefaultUsed")
    other = [{**each, **fields} if each["call_id"] == call and each["event_type"] in kinds else each for each in events]
    return {each.call_id or "": each for each in replay_cascades(other) if each.same is False}


@virtual
async def test_cascades_that_differ_are_reported() -> None:
    events = await record_cascades()
    assert changed(events, "skips", required=True)["skips"].now == "escalate"
    assert changed(events, "skips", defaults=["a"])["skips"].now == "substitute"
    assert changed(events, "runs", defaults=[])["runs"].now == "escalate"
    assert changed(events, "welcome", required=None)["welcome"].now == "substitute"
    assert changed(events, "matters", message="")["matters"].recorded == "skip"
    assert changed(events, "chain", root="matters")["chain"].root_now == "bad"
    assert changed(events, "skips", because="good", root="good")["skips"].now == "run"
    early = [event for event in events if event["event_type"] != "TurnTimedOut"]
    assert {each.call_id for each in replay_cascades(early) if each.same is False} == {"late", "too late"}
    unhelped = [event for event in events if event["event_type"] != "DefaultUsed"]
    [ran] = [each for each in replay_cascades(unhelped) if each.same is False]
    assert (ran.call_id, ran.recorded, ran.now) == ("runs", "run", "skip")


@virtual
async def test_cascades_without_their_grounds_are_marked() -> None:
    events = await record_cascades()
    for event in events:
        event.pop("defaults", None)
    not_comparable = [each for each in replay_cascades(events) if each.same is None]
    assert {each.call_id for each in not_comparable} == {"skips", "matters", "welcome", "runs", "half", "chain"}
    assert {each.not_comparable for each in not_comparable} == {"the event does not record its reasons"}
