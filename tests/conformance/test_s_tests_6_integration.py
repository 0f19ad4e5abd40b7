"""S-tests 6: the Error Handler, and the records of its decisions."""

from __future__ import annotations

from typing import Any

from tests.fakes import DOWN, INVALID, RATE_LIMIT, TIMEOUT, Scripted, Takes, phrases, records, virtual

from failsoft import Decision, ErrorReport, Outcome, Runtime


class Watching:
    """An Error Handler that keeps its reports and always answers with an alternative."""

    def __init__(self, decision: Decision | None = None) -> None:
        self.reports: list[ErrorReport] = []
        self.decision = decision or Decision("escalate", "Enough")

    async def handle(self, report: ErrorReport) -> Decision:
        self.reports.append(report)
        return self.decision


@virtual
async def test_6_1_error_handler_receives_error_notifications() -> None:
    handler = Watching(Decision("retry", "Once more", 0.5))
    rt = Runtime(error_handler=handler)
    rt.add(Scripted(TIMEOUT, TIMEOUT, "flights"), id="flight_search")
    async with rt.turn(timeout="60s", thread="chat-42") as turn:
        turn.call("flight_search", id="flights")
    first, second = handler.reports
    assert first.fault.message == "Connection timeout after 30s"
    assert first.fault.classification == "transient"
    assert (first.tool_id, first.call_id) == ("flight_search", "flights")
    assert (first.attempt, first.retry_count) == (1, 0)
    assert (second.attempt, second.retry_count) == (2, 1)
    assert (first.turn_id, first.thread, first.turn_left) == (turn.id, "chat-42", 60.0)
    assert second.turn_left == 59.5
    assert turn.report.results == {"flights": "flights"}


@virtual
async def test_6_2_error_handler_decides_recovery_strategy() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(10_000), "flights"), id="flight_search", timeout="30s")
    await rt.call("flight_search")
    (record,) = records(rt, "ToolError")
    assert (record["classification"], record["circuit_breaker_state"], record["retry_count"]) == (
        "transient", "closed", 0,
    )  # fmt: skip
    assert record["decision"] == "retry"
    assert record["reason"] == "Transient error + circuit closed + retries available"


@virtual
async def test_6_3_retry_succeeds_after_transient_error() -> None:
    rt = Runtime()
    rt.add(Scripted(TIMEOUT, "flights"), id="flight_search")
    async with rt.turn() as turn:
        turn.call("flight_search", id="flights")
    outcome = turn.report.outcomes["flights"]
    assert (outcome.status, outcome.value, outcome.attempts) == ("succeeded", "flights", 2)
    assert "Tool succeeded on retry 2" in phrases(turn.report)


@virtual
async def test_6_4_alternative_tool_used_when_primary_fails() -> None:
    rt = Runtime()
    primary, backup = Scripted(INVALID), Scripted("flights")
    rt.add(primary, id="flight_search", fallbacks=["flight_search_backup"])
    rt.add(backup, id="flight_search_backup")
    async with rt.turn() as turn:
        turn.call("flight_search", {"destination": "PAR"}, id="flights")
    outcome = turn.report.outcomes["flights"]
    assert (primary.attempts, backup.attempts) == (1, 1)
    assert backup.arguments == [{"destination": "PAR"}]
    assert (outcome.status, outcome.value, outcome.attempts) == ("succeeded", "flights", 2)
    assert (outcome.id, outcome.tool, outcome.via) == ("flights", "flight_search", "flight_search_backup")
    (record,) = records(turn.report, "ToolError")
    assert (record["tool_id"], record["decision"]) == ("flight_search", "alternative_tool")
    assert "Used alternative tool" in phrases(turn.report)


@virtual
async def test_6_5_escalation_triggered_for_permanent_errors() -> None:
    told: list[Outcome[Any]] = []
    rt = Runtime(on_escalation=told.append)
    rt.add(Scripted(INVALID), id="flight_search")
    async with rt.turn() as turn:
        turn.call("flight_search", id="flights")
    outcome = turn.report.outcomes["flights"]
    assert outcome.decision == Decision("escalate", "Permanent error (no retry)")
    assert rt.health("flight_search").state == "closed"
    assert told == [outcome]
    (escalation,) = turn.report.escalations
    assert escalation.call_id == "flights"
    assert escalation.fault == outcome.fault
    assert escalation.explanation.user
    assert "flight search" in turn.report.message


@virtual
async def test_6_6_turn_trace_records_all_error_handling_decisions() -> None:
    rt = Runtime()
    rt.add(Scripted(TIMEOUT, "flights"), id="flight_search")
    rt.add(Scripted(INVALID), id="hotel_search")
    rt.add(Scripted(DOWN), id="activity_search", fallbacks=["cached_activities"])
    rt.add(Scripted(["museum"]), id="cached_activities")
    rt.add(Scripted(RATE_LIMIT), id="weather", required=False)
    async with rt.turn() as turn:
        for tool in ("flight_search", "hotel_search", "activity_search", "weather"):
            turn.call(tool, id=tool)
    report = turn.report
    errors = records(report, "ToolError")
    decisions: dict[str, list[str]] = {}
    for record in errors:
        assert record["error"]
        assert record["classification"] in ("transient", "permanent")
        assert record["circuit_breaker_state"] in ("closed", "open", "half_open")
        assert record["reason"]
        assert record["turn_id"] == turn.id
        decisions.setdefault(record["call_id"], []).append(record["decision"])
    assert decisions == {
        "flight_search": ["retry"],
        "hotel_search": ["escalate"],
        "activity_search": ["retry"] * 4 + ["alternative_tool"],
        "weather": ["retry"] * 4 + ["fail_gracefully"],
    }
    ends = {record["call_id"]: record["event_type"] for record in records(report) if record["event_type"] in _ENDS}
    assert ends == {
        "flight_search": "CallSucceeded",
        "hotel_search": "CallFailed",
        "activity_search": "CallSucceeded",
        "weather": "CallFailed",
    }
    assert [record["seq"] for record in records(report)] == sorted(record["seq"] for record in records(report))


_ENDS = ("CallSucceeded", "CallFailed")
