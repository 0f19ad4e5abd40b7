"""A deadline, a cancelled caller or a failed body ends a call at any point of its way."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, OFTEN, Scripted, Takes, real, records, virtual
from tests.runtime.execution.processes import fake_tools

from failsoft import CallFailed, Decision, ErrorReport, Runtime
from failsoft.runtime.execution.processes import command_attempt

PATIENT = {"max_attempts": 3, "initial_delay": "5s", "max_delay": "5s", "max_total_time": "1m", "jitter_percent": 0}

# --- what has not begun at the deadline does not begin after it (R7) ----------------------------------------------------


@virtual
async def test_a_call_that_waits_for_a_slot_at_the_deadline_never_starts() -> None:
    rt = Runtime()
    search = Scripted(Takes(10, "found"))
    rt.add(search, id="search", concurrency=1)
    async with rt.turn(timeout="5s") as turn:
        turn.call("search")
        turn.call("search")
    first, second = turn.report.outcomes.values()
    assert first.fault is not None
    assert second.fault is not None
    assert (first.status, first.attempts, first.fault.effect) == ("timed_out", 1, "unknown")
    assert (second.status, second.attempts, second.fault.effect) == ("timed_out", 0, "none")
    await asyncio.sleep(60)
    assert search.attempts == 1
    assert (await rt.call("search")).status == "succeeded"  # the slot is free again


@virtual
async def test_a_guarded_function_that_waits_for_a_slot_at_the_deadline_never_starts() -> None:
    rt = Runtime()
    search = Scripted(Takes(10, "found"))
    guarded = rt.add(search, id="search", concurrency=1)
    other = asyncio.create_task(rt.call("search"))
    await asyncio.sleep(0)
    async with rt.turn(timeout="5s"):
        with pytest.raises(CallFailed):
            await guarded()
    await other
    await asyncio.sleep(60)
    assert search.attempts == 1


@virtual
async def test_a_call_that_waits_for_a_thread_at_the_deadline_never_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failsoft.runtime.execution.thread_pool.MOST_THREADS", 1)
    rt = Runtime()
    ran: list[int] = []
    go = threading.Event()

    def search(number: int) -> None:
        ran.append(number)
        go.wait(5)

    rt.add(search)
    async with rt.turn(timeout="50ms") as turn:
        turn.call("search", {"number": 1})
        turn.call("search", {"number": 2})
    go.set()
    assert [outcome.attempts for outcome in turn.report.outcomes.values()] == [1, 0]
    await rt.call("search", {"number": 3})
    assert ran == [1, 3]


@pytest.mark.parametrize("kind", ["process", "command"])
@real
async def test_a_call_that_waits_for_its_process_at_the_deadline_never_starts(kind: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    if kind == "process":
        rt = Runtime()
        rt.add(fake_tools.sleeps, id="search", isolation="process")
    else:
        program = [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]
        rt = Runtime({"tools": {"search": {"entrypoint": {"command": program}}}})
    async with rt:
        async with rt.turn(timeout="1ms") as turn:
            turn.call("search", {"path": str(mark)} if kind == "process" else {})
        outcome = turn.report.outcomes["search-1"]
        assert outcome.fault is not None
        assert (outcome.status, outcome.attempts, outcome.fault.effect) == ("timed_out", 0, "none")
        await asyncio.sleep(1.5)
        assert not mark.exists()


# --- attempts so far ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "attempts"),
    [([Takes(60)], 1), ([DOWN, Takes(60)], 2), ([Takes(8, DOWN), "found"], 1)],
    ids=["in the first", "in the second", "between two"],
)
@virtual
async def test_an_abandoned_call_reports_its_attempts(steps: list[Any], attempts: int) -> None:
    rt = Runtime()
    retry = {**PATIENT, "initial_delay": "1s"}
    rt.add(Scripted(*steps), id="search", read_only=True, retry=PATIENT if attempts == 1 else retry)
    async with rt.turn(timeout="20s" if attempts == 2 else "10s") as turn:
        turn.call("search")
    outcome = turn.report.outcomes["search-1"]
    assert outcome.attempts == attempts


@pytest.mark.parametrize(
    ("steps", "attempts"),
    [([Takes(60)], 1), ([DOWN, Takes(60)], 2), ([DOWN, DOWN, "found"], 2)],
    ids=["in the first", "in the second", "between two"],
)
@virtual
async def test_a_call_that_is_cancelled_says_how_often_it_was_tried(steps: list[Any], attempts: int) -> None:
    rt = Runtime()
    rt.add(Scripted(*steps), id="search", read_only=True, retry=PATIENT)
    turn = rt.turn()
    with pytest.raises(KeyError):
        async with turn:
            turn.call("search")
            await asyncio.sleep(7)
            raise KeyError("the body's own")
    assert turn.report.outcomes["search-1"].attempts == attempts
    (cancelled,) = records(turn.report, "CallCancelled")
    assert cancelled["attempts"] == attempts


@virtual
async def test_a_call_that_is_cancelled_before_it_began_was_never_tried() -> None:
    rt = Runtime()
    search = Scripted("found")
    rt.add(search, id="search")
    turn = rt.turn()
    with pytest.raises(KeyError):
        async with turn:
            turn.call("search")
            raise KeyError("the body's own, at once")
    outcome = turn.report.outcomes["search-1"]
    assert outcome.fault is not None
    assert (outcome.status, outcome.attempts, outcome.fault.effect) == ("cancelled", 0, "none")
    assert search.attempts == 0


@virtual
async def test_a_caller_that_leaves_while_its_call_waits_for_a_slot_has_made_no_attempt() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(10, "found")), id="search", concurrency=1)
    first, second = (asyncio.create_task(rt.call("search")) for _ in range(2))
    await asyncio.sleep(1)
    second.cancel()
    await asyncio.wait([second])
    (cancelled,) = records(rt, "CallCancelled")
    assert cancelled["attempts"] == 0
    assert (await first).status == "succeeded"


# --- an Error Handler that is still thinking ----------------------------------------------------------------------------


class Slow:
    def __init__(self, decision: Decision | None) -> None:
        self.decision = decision

    async def handle(self, report: ErrorReport) -> Decision:
        await asyncio.sleep(1.5)
        if self.decision is None:
            raise RuntimeError("no idea")
        return self.decision


@pytest.mark.parametrize(
    "decision",
    [Decision("retry", "again"), Decision("alternative_tool", "the other", tool="cache"), None],
    ids=["retry", "alternative", "fails"],
)
@virtual
async def test_a_decision_that_comes_after_the_deadline_runs_nothing(decision: Decision | None) -> None:
    rt = Runtime(error_handler=Slow(decision))
    search, cache = Scripted(DOWN), Scripted("from yesterday")
    rt.add(search, id="search", read_only=True, breaker=OFTEN)
    rt.add(cache, id="cache", read_only=True)
    async with rt.turn(timeout="1s") as turn:
        turn.call("search")
    assert turn.report.outcomes["search-1"].status == "timed_out"
    await asyncio.sleep(60)
    assert (search.attempts, cache.attempts) == (1, 0)
    (error,) = records(rt, "ToolError")
    assert (error["decision"], error["reason"]) == ("fail_gracefully", "The turn's time is up")


# --- a probe whose caller leaves after its attempt (T2) ---------------------------------------------------------------------


@pytest.mark.parametrize("handler", [None, Slow(Decision("escalate", "too much"))], ids=["ended", "thinking"])
@virtual
async def test_a_probe_that_is_cancelled_after_its_attempt_has_reported_it(handler: Any) -> None:
    rt = Runtime(error_handler=handler)
    search = Scripted(DOWN, DOWN, "found")
    breaker = {"failure_threshold": 1, "timeout": "10s", "count": "calls"}
    rt.add(search, id="search", read_only=True, retry={**PATIENT, "max_attempts": 2}, breaker=breaker)
    first = asyncio.create_task(rt.call("search", retry={"max_attempts": 1}))
    await first
    assert rt.health("search").state == "open"
    await asyncio.sleep(10)
    probe = asyncio.create_task(rt.call("search"))
    await asyncio.sleep(1)
    probe.cancel()
    await asyncio.wait([probe])
    assert rt.health("search").state == "open"
    await asyncio.sleep(10)
    assert (await rt.call("search")).value == "found"
    assert rt.health("search").state == "closed"


@pytest.mark.parametrize("seconds", [0.0, 0.5])
@real
async def test_a_program_runs_only_once_its_caller_knows(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted, attend = tmp_path / "acted", command_attempt._attend

    async def look_away(*given: Any) -> Any:
        await asyncio.sleep(seconds or 100)
        return await attend(*given)

    monkeypatch.setattr(command_attempt, "_attend", look_away)
    async with Runtime({"tools": {"pay": {"entrypoint": {"command": ["touch", str(acted)]}}}}) as rt:
        async with rt.turn() as turn:
            call = turn.call("pay", id="c1")
            await asyncio.sleep(0.4)  # the process is there by now, and could have run the program
            assert not acted.exists()
            if not seconds:
                turn.cancel_open()
        outcome = turn.report.outcomes["c1"]
        assert call.done()
        if seconds:
            assert outcome.status == "succeeded"
        else:
            assert outcome.fault is not None
            assert (outcome.fault.effect, outcome.attempts) == ("none", 0)
        await asyncio.sleep(0.2)
        assert acted.exists() is bool(seconds)
