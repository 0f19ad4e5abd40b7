"""S-tests 5: cascading failures."""

from __future__ import annotations

from typing import Any

from tests.fakes import INVALID, Scripted, phrases, records, virtual

from failsoft import Decision, Outcome, Runtime

REQUIRED_SKIPPED = "Required tool skipped due to dependency failure"


def travel() -> tuple[Runtime, dict[str, Scripted]]:
    """The document's tools; flight_search fails with a permanent error."""
    rt = Runtime()
    tools = {"flight_search": Scripted(INVALID)}
    tools |= {
        name: Scripted(name) for name in ("compare_prices", "create_itinerary", "hotel_search", "activity_search")
    }
    for name, tool in tools.items():
        rt.add(tool, id=name)
    return rt, tools


def statuses(outcomes: dict[str, Outcome[Any]]) -> list[str]:
    return [outcome.status for outcome in outcomes.values()]


@virtual
async def test_5_1_dependent_tools_skipped_when_dependency_fails() -> None:
    rt, tools = travel()
    async with rt.turn() as turn:
        a = turn.call("flight_search", id="A")
        b = turn.call("compare_prices", {"flights": a}, id="B")
        turn.call("create_itinerary", {"prices": b}, id="C")
        turn.call("hotel_search", id="D")
    outcomes = turn.report.outcomes
    assert {id: outcome.status for id, outcome in outcomes.items()} == {
        "A": "failed", "B": "skipped", "C": "skipped", "D": "succeeded",
    }  # fmt: skip
    for id in "BC":
        fault = outcomes[id].fault
        assert fault is not None
        assert "Dependency failed" in fault.message
        assert outcomes[id].root == "A"
    assert tools["compare_prices"].attempts == tools["create_itinerary"].attempts == 0
    assert turn.report.results == {"D": "hotel_search"}


@virtual
async def test_5_2_optional_tools_skipped_required_tools_escalate() -> None:
    rt, tools = travel()
    async with rt.turn() as turn:
        a = turn.call("flight_search", id="A")
        turn.call("compare_prices", {"flights": a}, id="B", required=False)
        turn.call("create_itinerary", {"flights": a}, id="C", required=True)
    report = turn.report
    assert report.outcomes["B"].status == report.outcomes["C"].status == "skipped"
    assert not report.outcomes["B"].escalated
    assert report.outcomes["C"].escalated
    assert report.outcomes["C"].decision == Decision("escalate", REQUIRED_SKIPPED)
    assert [escalation.call_id for escalation in report.escalations] == ["A", "C"]
    assert tools["compare_prices"].attempts == tools["create_itinerary"].attempts == 0
    skips = {record["call_id"]: record.get("message") for record in records(report, "CallSkipped")}
    assert skips == {"B": None, "C": REQUIRED_SKIPPED}


@virtual
async def test_5_3_default_values_used_when_available() -> None:
    rt, _ = travel()
    compare = Scripted("cheapest")
    rt.add(compare, id="compare_prices", label="Tool B")
    async with rt.turn() as turn:
        a = turn.call("flight_search", id="A")
        turn.call("compare_prices", {"flights": a}, id="B", defaults={"flights": []})
        turn.call("hotel_search", id="C")
    assert turn.report.results == {"B": "cheapest", "C": "hotel_search"}
    assert compare.arguments == [{"flights": []}]
    assert "Used default value for Tool B" in phrases(turn.report)


@virtual
async def test_5_3_a_tool_without_a_label_is_named_by_its_id() -> None:
    rt, _ = travel()
    rt.add(Scripted("cheapest"), id="compare_prices", defaults={"flights": []})
    async with rt.turn() as turn:
        turn.call("compare_prices", {"flights": turn.call("flight_search")})
    assert "Used default value for compare_prices" in phrases(turn.report)


@virtual
async def test_5_4_independent_tools_continue_despite_failures() -> None:
    rt, _ = travel()
    async with rt.turn() as turn:
        turn.call("flight_search", id="A")
        turn.call("hotel_search", id="B")
        turn.call("activity_search", id="C")
    assert statuses(dict(turn.report.outcomes)) == ["failed", "succeeded", "succeeded"]
    assert turn.report.results == {"B": "hotel_search", "C": "activity_search"}
