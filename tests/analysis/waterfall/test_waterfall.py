"""The waterfall of real turns in virtual time: the runtime records everything the picture needs."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest
from inline_snapshot import snapshot
from tests.fakes import AUTH, DOWN, ONCE, RESET, Scripted, Takes, virtual

from failsoft import Decision, Runtime, TurnReport, Verified, partial
from failsoft.analysis.waterfall import build
from failsoft.analysis.waterfall.row_text import describe_row, sum_up
from failsoft.analysis.waterfall.terminal import summarise
from failsoft.core.resilience.error_handler import ErrorReport
from failsoft.observe import events

STEADY = {"initial_delay": "500ms", "jitter_percent": 0, "max_total_time": "60s"}


def picture(report: TurnReport) -> str:
    """The picture; the same from the turn's events as from the lines of a trace file, up to the order of the rows."""
    drawn = report.waterfall()
    lines = [json.dumps(event.to_dict()) for event in report.trace]
    again = build(map(json.loads, lines))
    assert sorted(again.to_dict()["rows"], key=lambda row: row["id"]) == sorted(
        drawn.to_dict()["rows"], key=lambda row: row["id"]
    )
    assert again.verdict == drawn.verdict
    return f"\n{drawn}\n"


@virtual
async def test_calls_side_by_side_and_one_after_the_other() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, "flights")), id="flight_search")
    rt.add(Scripted(Takes(2, "hotels")), id="hotel_search")
    rt.add(Scripted(Takes(1, "prices")), id="compare")
    async with rt.turn() as turn:
        flights = turn.call("flight_search", id="flights")
        hotels = turn.call("hotel_search", id="hotels")
        turn.call("compare", {"all": [flights, hotels]}, id="prices")
    assert picture(turn.report) == snapshot("""\

                          0.0 s      0.5 s       1.0 s       1.5 s      2.0 s       2.5 s  3.0 s
  flight search  flights  ███████████████████████                                                 ok
┃ hotel search  hotels    ██████████████████████████████████████████████                          ok
┃ compare  prices                                                       ████████████████████████  ok

█ worked  ┃ what the end waited for
3.0 s: 3.0 s useful (hotel search, compare).
""")


@virtual
async def test_retries_and_their_waits_are_drawn() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, DOWN), Takes(1, DOWN), Takes(2, "ok")), id="search", retry=STEADY, read_only=True)
    async with rt.turn() as turn:
        turn.call("search", id="flights")
    assert picture(turn.report) == snapshot("""\

                   0 s         1 s         2 s         3 s          4 s         5 s
┃ search  flights  ▒▒▒▒▒▒▒▒▒▒▒✗╱╱╱╱╱╱▒▒▒▒▒▒▒▒▒▒▒✗╱╱╱╱╱╱╱╱╱╱█████████████████████████  ok, 3 attempts

█ worked  ▒✗ failed  ╱╱ waiting  ┃ what the end waited for
5.3 s: 2.0 s in 2 failed attempts of search, 1.3 s waiting to try again, 2.0 s useful (search).
""")


@virtual
async def test_fallbacks_are_drawn_in_the_row_of_their_call() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, DOWN)), id="search", retry=ONCE, fallbacks=["mirror", "cache"], read_only=True)
    rt.add(Scripted(Takes(1, DOWN)), id="mirror", retry=ONCE)
    rt.add(Scripted(Takes(1, "old")), id="cache")
    async with rt.turn() as turn:
        turn.call("search", id="flights")
    assert picture(turn.report) == snapshot("""\

                   0.0 s      0.5 s      1.0 s       1.5 s      2.0 s      2.5 s  3.0 s
┃ search  flights  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒✗▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒✗▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆  ok by cache

▒✗ failed  ▆ worked, by another tool  ┃ what the end waited for
3.0 s: 1.0 s in 1 failed attempt of search, 1.0 s in 1 failed attempt of mirror, 1.0 s useful (cache).
""")
    assert [segment.tool for segment in turn.report.waterfall().rows[0].segments] == ["search", "mirror", "cache"]


@virtual
async def test_a_circuit_that_opens_and_a_refusal() -> None:
    rt = Runtime()
    rt.add(
        Scripted(Takes(60)),
        id="search",
        timeout="1s",
        read_only=True,
        retry=STEADY,
        breaker={"failure_threshold": 2},
    )
    async with rt.turn() as turn:
        await turn.call("search", id="first")
        await asyncio.sleep(1)
        turn.call("search", id="second")
    assert picture(turn.report) == snapshot("""\

                  0 s            1 s            2 s             3 s
┃ search  first   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒!╱╱╱╱╱╱╱╱▒▒▒▒▒▒▒▒▒▒▒▒▒▒!◆                 2 timeouts, circuit opened
  search  second                                                       ╳  refused: circuit open

▒! timed out  ╱╱ waiting  ◆ circuit opened  ╳ refused  ┃ what the end waited for
3.5 s: 2.0 s in 2 failed attempts of search, 0.5 s waiting to try again, 1.0 s outside tools.
""")


@virtual
async def test_a_cascade_names_its_root() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, AUTH)), id="trains")
    rt.add(Scripted(Takes(2, "ok")), id="flights")
    rt.add(Scripted("never"), id="compare")
    rt.add(Scripted(Takes(1, "sum")), id="summary")
    async with rt.turn() as turn:
        trains, flights = turn.call("trains", id="trains"), turn.call("flights", id="flights")
        prices = turn.call("compare", {"a": trains, "b": flights}, id="prices")
        turn.call("compare", {"a": prices}, id="itinerary")
        turn.call("summary", {"a": trains, "b": flights}, id="summary", defaults={"a": []})
    assert picture(turn.report) == snapshot("""\

                      0.0 s    0.5 s    1.0 s    1.5 s    2.0 s    2.5 s
  trains              ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒✗                                      UNAUTHENTICATED
┃ flights             ████████████████████████████████████                    ok
  compare  prices                       ○                                     skipped: trains failed
  compare  itinerary                    ○                                     skipped: trains failed
┃ summary                                                 ██████████████████  ok, default for a

█ worked  ▒✗ failed  ○ skipped  ┃ what the end waited for
3.0 s: 3.0 s useful (flights, summary).
""")


@virtual
async def test_the_deadline_is_drawn_with_what_it_cut_off() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, "ok")), id="quick")
    rt.add(Scripted(Takes(6, "late")), id="slow")
    rt.add(Scripted(Takes(1, DOWN)), id="waits", retry={**STEADY, "initial_delay": "2500ms", "max_delay": "4s"})
    async with rt.turn(timeout="4s") as turn:
        quick = turn.call("quick", id="quick")
        slow = turn.call("slow", {"a": quick}, id="slow")
        turn.call("quick", {"a": slow}, id="after")
        turn.call("waits", id="waits")
        await asyncio.sleep(4.5)
        turn.call("quick", id="too late")
    assert picture(turn.report) == snapshot("""\

                   0 s         1 s          2 s          3 s          4 s
  quick            ████████████                                                ok
  slow                         ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▶         left at the deadline
  quick  after                                                        ○        skipped: slow failed
┃ waits            ▒▒▒▒▒▒▒▒▒▒▒✗╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱▓▓▓▓▓▶         left at the deadline
  quick  too late                                                           ○  skipped: no time left

█ worked  ▒✗ failed  ╱╱ waiting  ○ skipped  ▓▶ left unfinished  ┃ what the end waited for
4.5 s: 1.0 s in 1 failed attempt of waits, 2.5 s waiting to try again, 0.5 s unfinished (waits), 0.5 s outside tools.
""")
    await asyncio.sleep(10)
    assert [row.late for row in build(rt.events()).rows if row.id == "slow"] == [3.0]


@virtual
async def test_a_write_that_is_not_repeated() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60)), id="book", timeout="1s", idempotent=False)
    rt.add(Scripted(Takes(60)), id="look", timeout="1s", read_only=True, retry=ONCE)
    async with rt.turn() as turn:
        turn.call("book", id="booking")
        turn.call("look", id="looking")
    assert picture(turn.report) == snapshot("""\

                 0.0 s      0.2 s      0.4 s      0.6 s      0.8 s  1.0 s
┃ book  booking  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒!  timed out, may have acted
  look  looking  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒!  timed out

▒! timed out  ┃ what the end waited for
1.0 s: 1.0 s in 1 failed attempt of book.
""")


@virtual
async def test_a_body_that_raises_leaves_nothing_out() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(60)), id="search")
    turn = rt.turn()
    with pytest.raises(KeyError):
        async with turn:
            turn.call("search", id="running")
            turn.call("search", {"a": turn.call("search", id="other")}, id="waiting")
            await asyncio.sleep(2)
            raise KeyError("body")
    drawn = turn.report.waterfall()
    assert [(row.id, row.status, row.end) for row in drawn.rows] == [
        ("running", "cancelled", 2.0),
        ("other", "cancelled", 2.0),
        ("waiting", "cancelled", 0.0),
    ]
    await asyncio.sleep(0.1)  # now the tasks have heard of it
    assert [row.segments for row in build(rt.events()).rows[:2]] == [row.segments for row in drawn.rows[:2]]


@virtual
async def test_waiting_for_a_slot_is_no_tool_time() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(2, "ok")), id="search", concurrency=1)
    async with rt.turn() as turn:
        turn.call("search", id="first")
        turn.call("search", id="second")
    assert picture(turn.report) == snapshot("""\

                  0.0 s    0.5 s     1.0 s     1.5 s     2.0 s    2.5 s     3.0 s     3.5 s
  search  first   ███████████████████████████████████████                                         ok
┃ search  second  ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄███████████████████████████████████████  ok

█ worked  ┄┄ waiting for a place to run  ┃ what the end waited for
4.0 s: 2.0 s waiting for a place to run, 2.0 s useful (search).
""")


class Slow:
    async def handle(self, report: ErrorReport) -> Decision:
        await asyncio.sleep(1.5)
        return Decision("retry", "once more", 1.0) if report.retry_count == 0 else Decision("escalate", "enough")


@virtual
async def test_a_slow_error_handler_is_no_queue() -> None:
    rt = Runtime(error_handler=Slow())
    rt.add(Scripted(Takes(2, DOWN), Takes(2, DOWN)), id="search", read_only=True)
    async with rt.turn() as turn:
        turn.call("search")
    [row] = turn.report.waterfall().rows
    assert [(segment.kind, round(segment.start, 3), round(segment.end, 3)) for segment in row.segments] == [
        ("failed", 0.0, 2.0),
        ("waiting", 2.0, 4.5),
        ("failed", 4.5, 6.5),
    ]


@virtual
async def test_a_call_that_never_got_to_run_has_ended_all_the_same() -> None:
    rt = Runtime()

    @rt.tool
    async def search(city: str) -> str:
        return city

    async with rt.turn() as turn:
        turn.call("search", {"town": "PAR"}, id="flights")
    outcome, (row,) = turn.report.outcomes["flights"], turn.report.waterfall().rows
    assert (row.status, row.attempts) == (outcome.status, outcome.attempts) == ("failed", 0)
    assert summarise(row) == "refused: INVALID_ARGUMENT"
    assert [tick.text for tick in row.ticks] == ["The arguments do not fit. Missing: city. Not known: town."]


@virtual
async def test_time_for_which_a_service_wants_to_be_left_alone() -> None:
    rt = Runtime(random=Random(1))
    rt.add(
        Scripted(RuntimeError("429 Too Many Requests, try again in 2s"), Takes(1, "ok")),
        id="search",
        retry={**STEADY, "max_attempts": 1},
    )
    await rt.call("search", thread="chat")
    async with rt.turn(thread="chat") as turn:
        turn.call("search", id="flights")
    assert picture(turn.report) == snapshot("""\

                   0.0 s       0.5 s        1.0 s        1.5 s        2.0 s        2.5 s   3.0 s
┃ search  flights  ╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲╲██████████████████████████  ok

█ worked  ╲╲ held back by a rate limit  ┃ what the end waited for
3.0 s: 2.0 s held back by a rate limit, 1.0 s useful (search).
""")
    (row,) = turn.report.waterfall().rows
    assert [line for line in describe_row(row) if "held" in line] == snapshot(
        ["at 0 ms: held back for 2.0 s, the service asked for it"]
    )
    assert sum_up(row) == snapshot("held back 2.0 s · worked 1.0 s")


@virtual
async def test_partial_results_unknown_tools_and_calls_inside_calls() -> None:
    rt = Runtime()
    inner = rt.add(Scripted(Takes(1, DOWN), Takes(1, "in")), id="inner", retry=STEADY, read_only=True)

    @rt.tool
    async def outer() -> Any:
        return await inner()

    rt.add(Scripted(Takes(1, partial(["a"], missing=["b"]))), id="half", accept_partial=True)
    async with rt.turn() as turn:
        turn.call("outer", id="outer")
        turn.call("half", id="half")
        turn.call("nowhere", id="nowhere")
    assert picture(turn.report) == snapshot("""\

                          0.0 s     0.5 s      1.0 s      1.5 s      2.0 s 2.5 s
┃ outer                   ██████████████████████████████████████████████████████  ok
  ↳ inner  outer/inner-1  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒✗╱╱╱╱╱╱╱╱╱╱╱██████████████████████  ok, 2 attempts
  half                    █████████████████████                                   ok, in part
  nowhere                 ╳                                                       refused: NOT_FOUND

█ worked  ▒✗ failed  ╱╱ waiting  ╳ refused  ┃ what the end waited for
2.5 s: 2.5 s useful (outer).
""")


@virtual
async def test_events_of_other_turns_are_passed_over() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(1, "ok")), id="search")
    reports = []
    for number in range(2):
        async with rt.turn(id=f"turn-{number}") as turn:
            turn.call("search", id=f"call-{number}")
        reports.append(turn.report)
    await rt.call("search")
    assert build(rt.events(), turn_id="turn-1") == reports[1].waterfall()
    assert build(rt.events()) == reports[0].waterfall()


def test_every_event_that_is_read_exists() -> None:
    from failsoft.analysis.waterfall.build import _READERS

    there = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
    assert {*_READERS, "LateResult", "TurnTimedOut", "TurnEnded"} <= there


@pytest.mark.parametrize(
    ("answer", "said", "result"),
    [
        (Verified.happened(1), "failed 0.5 s · verified 1.3 s", "ok, verified"),
        (Verified.happened(), "failed 0.5 s · verified 1.3 s", "ok, verified, value lost"),
        (Verified.none(), "failed 0.5 s · verified 1.3 s · waited 0.1 s · worked 0.5 s", "ok, 2 attempts"),
        (Verified.unknown("no answer"), "failed 0.5 s · verified 1.3 s", "UNAVAILABLE, may have acted"),
    ],
    ids=["happened", "lost", "none", "unknown"],
)
@virtual
async def test_the_time_for_verify_is_shown_after_the_attempt(answer: Verified, said: str, result: str) -> None:
    async def verify(arguments: Any, key: Any, fault: Any) -> Verified:
        await asyncio.sleep(0.3)
        return answer

    rt = Runtime()
    retry = {"initial_delay": "100ms", "jitter_percent": 0}
    rt.add(Scripted(Takes(0.5, RESET), Takes(0.5, "paid")), id="pay", verify=verify, retry=retry)
    async with rt.turn() as turn:
        turn.call("pay")
    drawn = turn.report.waterfall()
    assert "≈≈ finding out what happened" in picture(turn.report)
    (row,) = drawn.rows
    assert (sum_up(row), summarise(row)) == (said, result)
    described = "asked verify what happened, answered after 1.3 s: " + answer.answer
    assert any(described in line for line in describe_row(row))
    assert drawn.verdict.seconds("verifying") == pytest.approx(1.3)
    assert 'class="verifying"' in drawn.to_html()
