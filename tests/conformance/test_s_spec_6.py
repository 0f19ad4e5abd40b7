"""S-spec 6, the Error Handler: its inputs, its decisions and its own failures."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.fakes import AUTH, DOWN, INVALID, NOT_FOUND, ONCE, TIMEOUT, Scripted, Takes, phrases, records, virtual

from failsoft import Decision, ErrorReport, Runtime, partial
from failsoft.core.resilience.error_handler import decide, rebuild
from failsoft.testing import FaultPlan


class Asked:
    """An Error Handler that records its reports and gives prepared answers."""

    def __init__(self, answer: Any = None) -> None:
        self.reports: list[ErrorReport] = []
        self.answer = answer

    async def handle(self, report: ErrorReport) -> Decision:
        self.reports.append(report)
        answer = self.answer(report) if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        return decide(report) if answer is None else answer


# --- 6.1 the flow -----------------------------------------------------------------------------------------------------


@virtual
async def test_6_1_every_error_reaches_the_handler() -> None:
    handler = Asked()
    rt = Runtime(error_handler=handler)
    rt.add(Scripted(TIMEOUT, INVALID), id="search")
    await rt.call("search")
    assert [report.fault.classification for report in handler.reports] == ["transient", "permanent"]


@pytest.mark.parametrize(
    ("rule", "tool"),
    [
        ("circuit_open", "down"),
        ("bad_arguments", "picky"),
        ("rate_hold", "limited"),
        ("unknown_tool", "nowhere"),
        ("tool_marked_unavailable", "gone"),
        ("queue_full", "narrow"),
        ("tool_timeout", "slow"),
        ("output_mismatch", "odd"),
        ("partial_result", "half"),
    ],
)
@virtual
async def test_6_1_refusals_and_own_faults_reach_it_too(rule: str, tool: str) -> None:
    handler = Asked()
    rt = Runtime({"tools": {"gone": {"entrypoint": {"function": "no_such_module:f"}}}}, error_handler=handler)
    rt.add(Scripted(DOWN), id="down", retry=ONCE, breaker={"failure_threshold": 1})
    rt.add(lambda a: a, id="picky")
    rt.add(FaultPlan("429(retry_after=60)").wrap(Scripted()), id="limited", retry=ONCE)
    rt.add(Scripted(Takes(5, "late")), id="narrow", concurrency=1, queue=0)
    rt.add(Scripted(Takes(5, "late")), id="slow", timeout="1s", retry=ONCE)
    rt.add(Scripted("text"), id="odd", output=int)
    rt.add(Scripted(partial([1], missing=["page 2"])), id="half", retry=ONCE)
    if tool in ("down", "limited"):
        await rt.call(tool)
    busy = asyncio.ensure_future(rt.call(tool)) if tool == "narrow" else None
    await asyncio.sleep(0)
    handler.reports.clear()
    await rt.call(tool, {"b": 1} if tool == "picky" else {})
    assert handler.reports[0].fault.rule == rule
    if busy is not None:
        await busy


@virtual
async def test_6_1_unknown_tools_in_a_turn_reach_it_and_it_can_let_them_pass() -> None:
    handler = Asked(Decision("fail_gracefully", "it is a joke"))
    rt = Runtime(error_handler=handler)
    async with rt.turn(id="t1", thread="chat") as turn:
        turn.call("nowhere")
    assert not turn.report.escalations
    assert (handler.reports[0].turn_id, handler.reports[0].thread) == ("t1", "chat")
    assert records(rt, "CallRefused")[0]["reason"] == "it is a joke"


@pytest.mark.parametrize("strategy", ["retry", "alternative_tool", "partial_success", "escalate", "fail_gracefully"])
@virtual
async def test_6_1_each_strategy_is_carried_out(strategy: Any) -> None:
    search, backup = Scripted(partial([1], missing=["page 2"]), "whole"), Scripted("backup")
    told: list[Any] = []
    tool = "backup" if strategy == "alternative_tool" else None
    rt = Runtime(error_handler=Asked(Decision(strategy, "because", 0.5, tool)), on_escalation=told.append)
    rt.add(search, id="search", fallbacks=["backup"])
    rt.add(backup, id="backup")
    outcome = await rt.call("search")
    done = {
        "retry": ("succeeded", "whole", "search", 2),
        "alternative_tool": ("succeeded", "backup", "backup", 2),
        "partial_success": ("succeeded", [1], "search", 1),
        "escalate": ("failed", None, None, 1),
        "fail_gracefully": ("failed", None, None, 1),
    }
    assert (outcome.status, outcome.value, outcome.via, outcome.attempts) == done[strategy]
    await rt.close()
    assert len(told) == (strategy == "escalate")
    assert outcome.duration == (0.5 if strategy == "retry" else 0)


# --- 6.2 the inputs ---------------------------------------------------------------------------------------------------


@virtual
async def test_6_2_all_inputs_are_in_the_report() -> None:
    handler = Asked()
    policies = [{"name": "a word", "then": {"message": "Please wait."}}]
    rt = Runtime(error_handler=handler, policies=policies)
    rt.add(
        Scripted(DOWN, "x", DOWN, "x", DOWN, "x", DOWN, partial([1], missing=["page 2"])),
        id="search",
        fallbacks=["backup"],
        required=True,
        retry={"initial_delay": "1s", "jitter_percent": 0, "max_delay": "1s"},
    )
    rt.add(Scripted("x"), id="backup")
    for _ in range(3):  # a memory to speak of
        await rt.call("search", {}, tenant="acme", retry=ONCE)
        await rt.call("search")
        await asyncio.sleep(3600)
    handler.reports.clear()
    async with rt.turn(timeout="10s", id="t1", thread="chat", tenant="acme") as turn:
        turn.call("search", id="c1")
    first, second = handler.reports[:2]
    assert (first.tool_id, first.call_id, first.turn_id, first.thread, first.tenant) == (
        "search",
        "c1",
        "t1",
        "chat",
        "acme",
    )
    assert (first.fault.message, first.fault.classification) == ("Service unavailable (503)", "transient")
    assert (first.attempt, first.retry_count, second.attempt, second.retry_count) == (1, 0, 2, 1)
    assert first.breaker_state == "closed"
    assert (first.turn_left, second.turn_left) == (10, 9)
    assert first.alternatives == ("backup",)
    assert (first.has_partial, second.has_partial) == (False, True)
    assert first.required is True
    assert (first.retry_delay, first.no_retry) == (1, "")
    assert first.policy is not None
    assert first.policy.name == "a word"
    assert first.evidence is not None
    assert "backup worked 3 of 3 times" in str(first.evidence)


@virtual
async def test_6_2_decision_and_inputs_are_in_the_trace_and_can_be_decided_again() -> None:
    book = [{"name": "give up late", "when": {"attempt": 3}, "then": "fail_gracefully"}]
    rt = Runtime(policies=book)
    rt.add(Scripted(DOWN, DOWN, NOT_FOUND), id="search", fallbacks=["backup"], retry={"max_attempts": 2})
    rt.add(Scripted(AUTH), id="backup")
    rt.add(Scripted(DOWN), id="down", breaker={"failure_threshold": 1}, retry={"max_attempts": 5})
    async with rt.turn(thread="chat") as turn:
        turn.call("search")
        turn.call("down")
    await rt.call("down")
    decided = [*records(rt, "ToolError"), *records(rt, "CallRefused")]
    assert len(decided) == 5
    for record in decided[:-1]:
        again = decide(rebuild(record, rt.policies))
        assert (again.strategy, again.reason) == (record["decision"], record["reason"])
        assert record["thread"] == "chat"
        assert record["turn_left"] > 0


# --- a user's handler that fails --------------------------------------------------------------------------------------


class Slow:
    def __init__(self, *, stubborn: bool = False) -> None:
        self.stubborn = stubborn

    async def handle(self, report: ErrorReport) -> Decision:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
                self.stubborn = False  # once


@pytest.mark.parametrize("stubborn", [False, True])
@virtual
async def test_a_slow_handler_is_waited_for_2_seconds_and_no_longer(stubborn: bool) -> None:
    rt = Runtime(error_handler=Slow(stubborn=stubborn))
    search = Scripted(INVALID)
    rt.add(search, id="search")
    outcome = await rt.call("search")
    assert outcome.duration == 2
    assert outcome.decision == Decision("escalate", "Permanent error (no retry)")
    assert records(rt, "HandlerFailed")[0]["error"] == "took longer than 2s"
    assert "The Error Handler failed; the built-in one decided" in phrases(rt)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        ("retry", "it returned str, not a Decision"),
        (Decision("pray", "x"), "there is no strategy 'pray': there are retry, alternative_tool, partial_success,"),  # type: ignore[arg-type]
        (Decision("retry", "x", float("nan")), "makes no sense"),
        (Decision("retry", "x", -1), "makes no sense"),
        (Decision("retry", "x", 1e9), "makes no sense"),
        (asyncio.CancelledError(), "cancelled itself"),
    ],
)
@virtual
async def test_a_handler_that_raises_or_answers_nonsense_is_replaced_by_the_built_in(answer: Any, why: str) -> None:
    rt = Runtime(error_handler=Asked(answer))
    rt.add(Scripted(TIMEOUT, "flights"), id="search")
    outcome = await rt.call("search")
    assert outcome.value == "flights"
    assert why in records(rt, "HandlerFailed")[0]["error"]


@pytest.mark.parametrize(
    "wish",
    [
        Decision("retry", "x"),
        Decision("alternative_tool", "x", None, "nowhere"),
        Decision("alternative_tool", "x", None, "search"),
        Decision("alternative_tool", "x"),
        Decision("partial_success", "x"),
    ],
)
@virtual
async def test_decisions_that_cannot_be_carried_out_are_rejected_and_recorded(wish: Decision) -> None:
    rt = Runtime(error_handler=Asked(wish))
    search = Scripted(INVALID)
    rt.add(search, id="search")
    outcome = await rt.call("search")
    assert (outcome.status, search.attempts) == ("failed", 1)
    assert outcome.decision == Decision("escalate", "Permanent error (no retry)")
    (told,) = records(rt, "HandlerFailed")
    assert told["error"].startswith(f"it asked for {wish.strategy}, which ")


@virtual
async def test_the_trace_says_why_a_handlers_unsafe_retry_was_not_made() -> None:
    rt = Runtime(error_handler=Asked(Decision("retry", "do it")))
    pay = Scripted(ConnectionResetError("Connection reset by peer"))
    rt.add(pay, id="pay", idempotent=False)
    await rt.call("pay")
    assert pay.attempts == 1
    assert [record["error"] for record in records(rt, "HandlerFailed")] == [
        "it asked for retry, which is not possible here: the effect is unknown and the tool is not idempotent"
    ]


@virtual
async def test_a_handler_cannot_make_an_unsafe_repetition_happen() -> None:
    handler = Asked(lambda report: Decision("alternative_tool", "do it elsewhere", None, "other_bank"))
    rt = Runtime(error_handler=handler)
    pay, other = Scripted(Takes(5, "paid")), Scripted("paid twice")
    rt.add(pay, id="pay", idempotent=False, timeout="1s")
    rt.add(other, id="other_bank")
    assert (await rt.call("pay")).status == "failed"
    assert other.attempts == 0


@virtual
async def test_a_handler_may_name_a_tool_that_is_no_fallback_but_none_twice() -> None:
    rt = Runtime(error_handler=Asked(Decision("alternative_tool", "elsewhere", None, "other")))
    other = Scripted(INVALID)
    rt.add(Scripted(INVALID), id="search")
    rt.add(other, id="other")
    outcome = await rt.call("search")
    assert (outcome.attempts, other.attempts) == (2, 1)
    assert [record.get("handled", False) for record in records(rt, "ToolError")] == [True, False]


@virtual
async def test_a_handlers_delay_never_shortens_the_services_hint() -> None:
    plan = FaultPlan("429(retry_after=1.5), ok")
    rt = Runtime(error_handler=Asked(Decision("retry", "at once", 0)))
    rt.add(plan.wrap(Scripted("flights")), id="search")
    await rt.call("search")
    assert [taken.at for taken in plan.log] == [0, 1.5]


@virtual
async def test_a_handlers_retry_ends_with_the_turn() -> None:
    search = Scripted(DOWN, "flights")
    rt = Runtime(error_handler=Asked(Decision("retry", "in a minute", 60)))
    rt.add(search, id="search", retry={"max_attempts": 5})
    async with rt.turn(timeout="10s") as turn:
        handle = turn.call("search")
    assert not turn.report.timed_out
    assert (await handle).status == "succeeded"  # after the usual wait, not in a minute


def test_blocking_callers_have_the_same_handler() -> None:
    class Handler:
        async def handle(self, report: ErrorReport) -> Decision:
            await asyncio.sleep(0)
            if report.tool_id == "broken":
                raise RuntimeError("no idea")
            return Decision("alternative_tool", "elsewhere", None, "backup")

    def search() -> str:
        raise ValueError("bad airport")

    def backup() -> str:
        return "by other means"

    rt = Runtime(error_handler=Handler())
    rt.add(search, timeout=None)
    rt.add(search, id="broken", timeout=None)
    rt.add(backup, timeout=None)
    started = time.perf_counter()
    assert rt.call_sync("search").value == "by other means"
    assert rt.call_sync("broken").decision == Decision("escalate", "Permanent error (no retry)")
    assert "RuntimeError: no idea" in records(rt, "HandlerFailed")[0]["error"]
    assert rt.call_sync("nowhere").status == "failed"
    assert time.perf_counter() - started < 2
