"""From records to rows, also for incomplete traces."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from failsoft.analysis.waterfall import Waterfall, build

ZERO = 1_762_338_645.0


def record(event_type: str, at: float, call: str | None = None, tool: str = "t", **fields: Any) -> dict[str, Any]:
    moment = datetime.fromtimestamp(ZERO + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    tool_id = None if call is None else tool
    return {
        "event_type": event_type, "turn_id": "turn", "call_id": call, "tool_id": tool_id, "timestamp": moment, **fields,
    }  # fmt: skip


def ok(call: str, start: float, end: float, **fields: Any) -> dict[str, Any]:
    return record("CallSucceeded", end, call, duration_ms=(end - start) * 1000, attempts=1, **fields)


def turn(*records: dict[str, Any], needs: dict[str, Any] | None = None, end: float = 10.0) -> Waterfall:
    started, ended = record("TurnStarted", 0.0), record("TurnEnded", end, duration_ms=end * 1000, needs=needs or {})
    return build([started, *records, ended])


def critical(waterfall: Waterfall) -> list[str]:
    return [row.id for row in waterfall.rows if row.critical]


def test_the_critical_path_follows_the_need_that_ended_last() -> None:
    made = turn(
        ok("short", 0, 1), ok("long", 0, 4), ok("aside", 0, 9), ok("end", 4, 10),
        needs={"end": {"short": ["a"], "long": ["b"]}},
    )  # fmt: skip
    assert critical(made) == ["long", "end"]


def test_a_call_without_dependencies_follows_the_one_that_ended_before_it() -> None:
    made = turn(ok("first", 0, 3), ok("aside", 0, 2), ok("second", 4, 10))
    assert critical(made) == ["first", "second"]
    assert str(made.verdict) == "10.0 s: 9.0 s useful (t), 1.0 s outside tools."


def test_a_turn_of_thousands_of_calls_is_drawn_at_once() -> None:
    began = time.process_time()
    made = turn(*(ok(f"call-{n}", n / 1000, (n + 1) / 1000) for n in range(3000)), end=3.0)
    assert len(critical(made)) > 100
    assert time.process_time() - began < 8.0  # a search among all calls for each of them took a minute


def test_a_skipped_need_ends_the_path() -> None:
    made = turn(
        record("CallSkipped", 1, "skipped", root="gone", because="gone"), ok("end", 2, 10),
        needs={"end": {"skipped": ["a"]}},
    )  # fmt: skip
    assert critical(made) == ["end"]


def test_rows_come_in_the_order_in_which_they_began() -> None:
    made = turn(ok("late", 3, 4), ok("early", 1, 5), record("CallSkipped", 2, "between", root=None, because=None))
    assert [row.id for row in made.rows] == ["early", "between", "late"]


def test_a_trace_that_breaks_off_shows_what_there_was() -> None:
    begun = [record("TurnStarted", 0.0), ok("a", 0, 1)]
    failed = record(
        "ToolError", 3.0, "b", duration_ms=2000, decision="retry", delay_ms=500, error="down", code="UNAVAILABLE",
        rule="status",
    )  # fmt: skip
    made = build([*begun, failed])
    assert [(row.id, row.status) for row in made.rows] == [("a", "succeeded"), ("b", None)]
    assert [(s.kind, s.start, s.end) for s in made.rows[1].segments] == [("failed", 1.0, 3.0), ("waiting", 3.0, 3.5)]
    assert made.duration == 3.0


def test_no_events_at_all() -> None:
    made = build([])
    assert (made.rows, made.duration, made.turn_id) == ((), 0.0, "")
    assert str(made).splitlines()[-1] == "0 ms: no tool ran."


def test_a_call_that_is_held_twice_and_then_abandoned_shows_both_waits() -> None:
    held = {"error": "search asked for time", "decision": "retry"}
    made = turn(
        record("CallHeld", 1, "a", delay_ms=2000, **held),
        record("CallHeld", 2.5, "a", delay_ms=9000, **held),
        record("CallLeft", 4, "a", duration_ms=3000),
    )
    assert made.rows[0].attempts == 0
    assert [(s.kind, s.start, s.end) for s in made.rows[0].segments] == [("held", 1.0, 2.5), ("held", 2.5, 4.0)]
    assert str(made.verdict) == "10.0 s: 3.0 s held back by a rate limit, 7.0 s outside tools."


def test_the_wait_of_an_abandoned_call_ends_at_the_deadline() -> None:
    failed = record(
        "ToolError", 1.0, "a", duration_ms=1000, decision="retry", delay_ms=9000, error="down", rule="status"
    )
    made = turn(failed, record("CallLeft", 4.0, "a", duration_ms=4000), record("CallCancelled", 4.0, "a"), end=4.0)
    assert [(s.kind, s.start, s.end) for s in made.rows[0].segments] == [("failed", 0.0, 1.0), ("waiting", 1.0, 4.0)]
    assert made.rows[0].status == "timed_out"


def test_events_beside_an_attempt_add_no_rows() -> None:
    made = turn(record("ToolTimeout", 1.0, "a", timeout_ms=5), record("Escalated", 1.0, "a"), ok("a", 0, 2))
    assert [(row.id, row.attempts) for row in made.rows] == [("a", 1)]


def test_a_waterfall_can_be_written_as_plain_data() -> None:
    made = turn(ok("a", 0.5, 2.25, primary="p", tool="q")).to_dict()
    assert made["rows"][0]["segments"] == [{"kind": "ok", "tool": "q", "start": 0.5, "end": 2.25, "text": ""}]
    assert (made["rows"][0]["tool"], made["rows"][0]["via"], made["duration"]) == ("p", "q", 10.0)
    assert made["verdict"]["path"][0] == {"kind": "useful", "seconds": 1.75, "tool": "q", "attempts": 1}


def failed(call: str, start: float, end: float, **fields: Any) -> dict[str, Any]:
    return record("ToolError", end, call, duration_ms=(end - start) * 1000, code="UNAVAILABLE", **fields)


def segments(made: Waterfall) -> list[tuple[str, float, float]]:
    [row] = made.rows
    return [(segment.kind, segment.start, segment.end) for segment in row.segments]


def test_an_attempt_was_queued_if_it_says_so() -> None:
    made = turn(ok("a", 3, 5, queued_ms=2000, total_ms=5000))
    assert segments(made) == [("queued", 1.0, 3.0), ("ok", 3.0, 5.0)]
    again = turn(failed("a", 0, 1, decision="retry", delay_ms=500), ok("a", 4, 5, queued_ms=2000, total_ms=5000))
    assert segments(again) == [("failed", 0.0, 1.0), ("waiting", 1.0, 2.0), ("queued", 2.0, 4.0), ("ok", 4.0, 5.0)]
    hardly = turn(ok("a", 3, 5, queued_ms=15))
    assert segments(hardly) == [("ok", 3.0, 5.0)]


def test_a_busy_event_loop_is_no_queue() -> None:
    late = turn(failed("a", 0, 1, decision="retry", delay_ms=500), ok("a", 4, 5, total_ms=5000))
    assert segments(late) == [("failed", 0.0, 1.0), ("waiting", 1.0, 4.0), ("ok", 4.0, 5.0)]
    at_first = turn(failed("a", 3, 4), record("CallFailed", 4, "a", total_ms=4000))
    assert segments(at_first) == [("failed", 3.0, 4.0)]


def test_asking_another_error_handler_is_no_attempt_and_no_queue() -> None:
    made = turn(
        failed("a", 2, 3, decided_ms=2000, decision="retry", delay_ms=500), failed("a", 5, 7, decided_ms=1000)
    )  # both told when the answer was there
    assert segments(made) == [("failed", 0.0, 1.0), ("waiting", 1.0, 4.0), ("failed", 4.0, 6.0)]


def test_a_call_that_was_answered_without_being_run_has_ended() -> None:
    waterfall = build(
        [
            {"event_type": "TurnStarted", "turn_id": "t", "timestamp": "2026-01-01T00:00:00.000Z"},
            {
                "event_type": "LoopPrevented", "turn_id": "t", "call_id": "read-3", "tool_id": "read",
                "timestamp": "2026-01-01T00:00:01.000Z", "error": "no such file", "code": "NOT_FOUND", "reason": "it loops",
            },
        ]
    )  # fmt: skip
    (row,) = waterfall.rows
    assert (row.status, row.code, row.reason, row.critical) == ("failed", "NOT_FOUND", "it loops", False)
    assert row.start == 1.0
