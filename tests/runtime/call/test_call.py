"""Calls by name: arguments, unknown tools, options of one call, parts and forms of values, the way through the layers."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from tests.fakes import AUTH, DOWN, INVALID, OFTEN, ONCE, RESET, TIMEOUT, Scripted, Takes, phrases, records, virtual

from failsoft import (
    CallFailed,
    Decision,
    ErrorReport,
    FailsoftError,
    Runtime,
    ToolTimeout,
    ToolUnavailable,
    classify,
    partial,
)

# --- arguments and names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Missing: city."),
        ({"town": "PAR", "city": "PAR"}, "Not known: town."),
        ({"city": "PAR", "self": 1}, "Not known: self."),
    ],
)
@pytest.mark.parametrize("kind", ["async", "sync", "sync inline"])
@virtual
async def test_wrong_arguments_are_found_before_the_tool_runs(kind: str, arguments: dict[str, Any], said: str) -> None:
    rt = Runtime()
    ran: list[str] = []

    async def hotels(city: str, nights: int = 1) -> None:
        ran.append(city)

    def blocking_hotels(city: str, nights: int = 1) -> None:
        ran.append(city)

    if kind == "async":
        rt.add(hotels, id="hotels")
    else:
        rt.add(blocking_hotels, id="hotels", timeout="30s" if kind == "sync" else None)
    outcome = await rt.call("hotels", arguments)
    assert (outcome.status, outcome.attempts, ran) == ("failed", 0, [])
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.classification) == ("INVALID_ARGUMENT", "permanent")
    assert (outcome.fault.category, outcome.fault.effect) == ("tool_validation", "none")
    assert said in outcome.fault.message
    assert outcome.decision == Decision("escalate", "Permanent error (no retry)")


@virtual
async def test_wrong_arguments_leave_the_breaker_alone() -> None:
    rt = Runtime()

    @rt.tool(breaker={"failure_threshold": 1})
    async def hotels(city: str) -> str:
        return city

    for _ in range(10):
        await rt.call("hotels", {"town": "PAR"})
        with pytest.raises(CallFailed):
            await hotels()  # type: ignore[call-arg]
    assert rt.health("hotels").state == "closed"
    assert rt.health("hotels").failure_count == 0
    assert await hotels("PAR") == "PAR"


@virtual
async def test_a_type_error_inside_the_tool_is_not_classified_as_wrong_arguments() -> None:
    rt = Runtime()

    @rt.tool
    async def hotels(city: str) -> str:
        return city + 1  # type: ignore[operator]

    outcome = await rt.call("hotels", {"city": "PAR"})
    assert outcome.attempts == 1
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.category) == ("INTERNAL", "internal_contract_bug")
    (record,) = records(rt, "InternalError")
    assert "TypeError" in record["traceback"]


@virtual
async def test_an_unknown_tool_is_a_failure_like_others() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="flight_search")
    outcome = await rt.call("flight_serach", {"a": 1}, id="mine")
    assert (outcome.id, outcome.status, outcome.attempts) == ("mine", "failed", 0)
    assert outcome.fault is not None
    assert outcome.fault.category == "tool_unavailable"
    assert "did you mean flight_search?" in outcome.fault.message
    assert outcome.decision is not None
    assert outcome.decision.strategy == "escalate"
    with pytest.raises(ToolUnavailable):
        outcome.unwrap()
    assert not rt.health("flight_serach").available


@virtual
async def test_a_function_that_is_not_registered_here_is_refused() -> None:
    async def hotels() -> None: ...

    there = Runtime().add(hotels)
    with pytest.raises(FailsoftError, match=r"is not a tool of this Runtime: decorate it with @rt\.tool"):
        await Runtime().call(hotels)
    with pytest.raises(
        FailsoftError, match=r"hotels is a tool of another Runtime .*: decorate it with @rt\.tool of this one"
    ):
        await Runtime().call(there)


@virtual
async def test_a_call_goes_by_id_or_by_function() -> None:
    rt = Runtime()

    @rt.tool
    async def double(number: int) -> int:
        return 2 * number

    assert (await rt.call("double", {"number": 2})).value == 4
    assert (await rt.call(double, {"number": 3})).value == 6
    assert await double(4) == 8


# --- options of one call -----------------------------------------------------------------------------------------------


@virtual
async def test_a_call_can_have_its_own_id_timeout_and_retries() -> None:
    rt = Runtime()
    search = Scripted(Takes(100))
    rt.add(search, id="search", breaker=OFTEN)
    outcome = await rt.call("search", id="mine", timeout="2s", retry={"max_attempts": 2})
    assert (outcome.id, outcome.attempts) == ("mine", 2)
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 2s"
    assert {record["call_id"] for record in records(rt, "ToolError")} == {"mine"}
    assert (await rt.call("search", retry=ONCE)).duration == pytest.approx(30)


@virtual
async def test_thread_and_tenant_reach_the_error_handler() -> None:
    seen: list[ErrorReport] = []

    class Watching:
        async def handle(self, report: ErrorReport) -> Decision:
            seen.append(report)
            return Decision("escalate", "Enough")

    rt = Runtime(error_handler=Watching())
    rt.add(Scripted(TIMEOUT), id="search")
    await rt.call("search", thread="chat-42", tenant="acme")
    assert [(report.thread, report.tenant) for report in seen] == [("chat-42", "acme")]


@virtual
async def test_an_option_that_does_not_exist_is_refused() -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id="search")
    with pytest.raises(TypeError, match="patience"):
        await rt.call("search", patience=3)


@virtual
async def test_the_callers_mapping_is_not_touched() -> None:
    rt = Runtime()

    @rt.tool
    async def greedy(**given: Any) -> int:
        given.clear()
        return len(given)

    arguments = {"a": 1}
    await rt.call(greedy, arguments)
    assert arguments == {"a": 1}


# --- parts and forms of values -----------------------------------------------------------------------------------------


@virtual
async def test_a_partial_result_is_retried_and_the_best_is_kept() -> None:
    rt = Runtime()
    pages = Scripted(partial([1], missing=["2", "3"]), partial([1, 2], missing=["3"]), partial([1], missing=["2", "3"]))
    rt.add(pages, id="pages", retry={"max_attempts": 3})
    outcome = await rt.call("pages")
    assert (outcome.status, outcome.value, outcome.missing, outcome.attempts) == ("succeeded", [1, 2], ["3"], 3)
    assert outcome.decision is not None
    assert outcome.decision.strategy == "partial_success"
    assert records(rt, "ToolError")[0]["classification"] == "transient"
    assert "Used partial result" in phrases(rt)


@virtual
async def test_a_partial_result_that_is_acceptable_is_taken_at_once() -> None:
    rt = Runtime()
    pages = Scripted(partial([1], missing=["2"]))
    guarded = rt.add(pages, id="pages", accept_partial=True)
    outcome = await rt.call("pages")
    assert (outcome.value, outcome.missing, outcome.attempts) == ([1], ["2"], 1)
    assert await guarded() == [1]
    assert records(rt, "ToolError") == []


@virtual
async def test_a_whole_result_beats_a_partial_one() -> None:
    rt = Runtime()
    rt.add(Scripted(partial([1], missing=["2"]), [1, 2]), id="pages")
    outcome = await rt.call("pages")
    assert (outcome.value, outcome.missing, outcome.attempts) == ([1, 2], None, 2)


@pytest.mark.parametrize("form", [list[int], {"type": "array", "items": {"type": "integer"}}], ids=["type", "schema"])
@virtual
async def test_a_value_of_another_form_is_a_permanent_failure(form: Any) -> None:
    rt = Runtime()
    good, bad = Scripted([1, 2]), Scripted(["one"])
    rt.add(good, id="good", output=form)
    rt.add(bad, id="bad", output=form)
    assert (await rt.call("good")).value == [1, 2]
    outcome = await rt.call("bad")
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert outcome.fault is not None
    assert (outcome.fault.classification, outcome.fault.effect) == ("permanent", "happened")
    assert rt.health("bad").failure_count == 0


@virtual
async def test_outcomes_can_be_pickled_and_written_down() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search")
    outcome = await rt.call("search")
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert outcome.to_dict()["fault"]["code"] == "INVALID_ARGUMENT"


# --- an Error Handler of the user's own --------------------------------------------------------------------------------


class Says:
    """An Error Handler with one answer, or one way to fail."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def handle(self, report: ErrorReport) -> Decision:
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, float):
            await asyncio.sleep(self.answer)
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RuntimeError("handler down"), "handler down"),
        (100.0, "took longer than 2s"),
        ("retry", "it returned str, not a Decision"),
    ],
)
@virtual
async def test_a_handler_that_fails_is_replaced_by_the_built_in_one(answer: Any, said: str) -> None:
    rt = Runtime(error_handler=Says(answer))
    rt.add(Scripted(TIMEOUT, "flights"), id="search")
    outcome = await rt.call("search")
    assert (outcome.value, outcome.attempts) == ("flights", 2)
    (record,) = records(rt, "HandlerFailed")
    assert said in record["error"]


@virtual
async def test_a_handler_that_is_not_async_is_reported_with_advice() -> None:
    class Blunt:
        def handle(self, report: ErrorReport) -> Decision:
            return Decision("escalate", f"{report.tool_id} again")

    rt = Runtime(error_handler=Blunt())  # type: ignore[arg-type]
    rt.add(Scripted(TIMEOUT, "flights"), id="search")
    assert (await rt.call("search")).value == "flights"
    (record,) = records(rt, "HandlerFailed")
    assert record["error"] == "TypeError: it returned Decision, which cannot be awaited: write async def handle"


@pytest.mark.parametrize(
    "answer",
    [
        Decision("retry", "again"),
        Decision("alternative_tool", "there is another", tool="nowhere"),
        Decision("partial_success", "half is enough"),
    ],
)
@virtual
async def test_a_handler_cannot_ask_for_what_must_not_or_cannot_be_done(answer: Decision) -> None:
    rt = Runtime(error_handler=Says(answer))
    search = Scripted(INVALID)
    rt.add(search, id="search")
    outcome = await rt.call("search")
    assert (outcome.status, search.attempts) == ("failed", 1)
    assert outcome.decision == Decision("escalate", "Permanent error (no retry)")


@virtual
async def test_a_handler_can_wait_longer_and_choose_another_tool() -> None:
    rt = Runtime(error_handler=Says(Decision("retry", "later", 60.0)))
    search = Scripted(TIMEOUT, "flights")
    rt.add(search, id="search")
    assert (await rt.call("search")).value == "flights"
    assert search.delays == [60.0]
    other = Runtime(error_handler=Says(Decision("alternative_tool", "that one", tool="backup")))
    other.add(Scripted(TIMEOUT), id="search")
    other.add(Scripted("spare"), id="backup")
    assert (await other.call("search")).via == "backup"


# --- escalations -------------------------------------------------------------------------------------------------------


@virtual
async def test_an_escalated_outcome_is_passed_to_on_escalation_without_raising() -> None:
    told: list[str] = []
    rt = Runtime(on_escalation=lambda outcome: told.append(outcome.id))
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker=OFTEN)
    outcome = await rt.call("search", id="mine")
    assert outcome.decision == Decision("escalate", "Transient error (max attempts reached (1))")
    assert outcome.escalated
    assert told == ["mine"]


@virtual
async def test_an_open_circuit_is_no_reason_to_escalate() -> None:
    told: list[str] = []
    rt = Runtime(on_escalation=lambda outcome: told.append(outcome.id))
    rt.add(Scripted(DOWN), id="search", retry=ONCE, breaker={"failure_threshold": 1})
    await rt.call("search", id="opens")
    refused = await rt.call("search", id="refused")
    assert refused.decision is not None
    assert (refused.decision.strategy, refused.escalated) == ("fail_gracefully", False)
    assert "refused" not in told


@virtual
async def test_on_escalation_may_raise_or_be_a_coroutine_function() -> None:
    def broken(outcome: Any) -> None:
        raise RuntimeError("nobody home")

    told: list[str] = []

    async def politely(outcome: Any) -> None:
        await asyncio.sleep(0)
        told.append(outcome.id)

    for listener in (broken, politely):
        rt = Runtime(on_escalation=listener)
        rt.add(Scripted(INVALID), id="search")
        assert (await rt.call("search", id="mine")).status == "failed"
    assert told == ["mine"]


@virtual
async def test_a_tool_that_is_not_required_fails_gracefully_outside_of_turns_too() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="weather", required=False)
    outcome = await rt.call("weather")
    assert outcome.decision == Decision("fail_gracefully", "Permanent error (no retry); the call is optional")
    assert not outcome.escalated


# --- attempts stay apart -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["name", "function", "inline"])
@virtual
async def test_the_error_of_a_retry_does_not_carry_the_first_one_with_it(way: str) -> None:
    """An error is classified with its context; the attempt before is none."""
    rt = Runtime()
    raised: list[Exception] = []

    def fail() -> None:
        raised.append(ConnectionResetError("gone") if not raised else RuntimeError("something else"))
        raise raised[-1]

    async def search() -> None:
        fail()

    guarded = rt.add(search, retry={"max_attempts": 2}) if way != "inline" else None
    inline = rt.add(fail, retry={"max_attempts": 2}, timeout=None)
    if way == "name":
        await rt.call("search")
    else:
        with pytest.raises(CallFailed):
            if guarded is None:
                inline()
            else:
                await guarded()
    assert len(raised) == 2
    assert raised[1].__context__ is None


@virtual
async def test_the_verdict_of_a_worker_on_its_own_error_stands():
    judged = classify("Rate limit exceeded (429)")

    class FromAWorker(Exception):
        remote_fault = judged

    rt = Runtime()
    rt.add(Scripted(FromAWorker("nothing to see in the text")), id="plain", retry={"max_attempts": 1})
    outcome = await rt.call("plain")
    assert outcome.fault.code == "RESOURCE_EXHAUSTED"
    override = [{"exception": "FromAWorker", "as": "permanent"}]
    rt.add(Scripted(FromAWorker("x")), id="own_word", classification=override, retry={"max_attempts": 1})
    assert (await rt.call("own_word")).fault.classification == "permanent"


# --- several failures of one call ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [[], [DOWN, "ok"]], ids=["the long way", "the short way"])
@virtual
async def test_the_fault_is_what_went_wrong_last(before: list[Any]) -> None:
    rt = Runtime()
    rt.add(Scripted(*before, DOWN, AUTH), id="search", read_only=True)
    if before:
        await rt.call("search")
    outcome = await rt.call("search")
    assert outcome.attempts == 2
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.category) == ("UNAUTHENTICATED", "tool_misconfigured")
    assert str(outcome.fault.cause) == str(AUTH)
    assert outcome.decision == Decision("escalate", "Permanent error (no retry)")


@virtual
async def test_a_timeout_after_another_failure_is_raised_as_a_timeout() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, Takes(60)), id="search", read_only=True)
    with pytest.raises(ToolTimeout, match="Tool timeout after 30s"):
        (await rt.call("search")).unwrap()


@virtual
async def test_the_effect_of_an_earlier_attempt_is_not_forgotten() -> None:
    rt = Runtime()
    rt.add(Scripted(RESET, AUTH), id="search")
    outcome = await rt.call("search")
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.effect) == ("UNAUTHENTICATED", "unknown")


@virtual
async def test_when_another_tool_fails_too_the_fault_is_still_that_of_the_tool_that_was_called() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, AUTH), id="search", read_only=True, fallbacks=["cache"])
    rt.add(Scripted(INVALID), id="cache", read_only=True)
    outcome = await rt.call("search")
    assert outcome.fault is not None
    assert (outcome.attempts, outcome.fault.code) == (3, "UNAUTHENTICATED")


@virtual
async def test_a_hard_failure_after_a_transient_one_leaves_no_offer() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN, AUTH), id="search", read_only=True)
    await rt.call("search", thread="chat-42")
    assert rt.threads["chat-42"].offers == []
