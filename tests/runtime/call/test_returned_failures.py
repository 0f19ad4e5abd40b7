"""Values that are failures: ``failed_if``, returned exceptions and outcomes, results of protocols; on every route."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from mcp.types import CallToolResult, TextContent
from tests.fakes import Scripted, virtual

from failsoft import CallFailed, Code, Fault, NothingDone, Outcome, Runtime, classify, partial
from failsoft.testing import check_driver

FAILED = {"ok": False, "error": "no stock"}
PATTERN = {"ok": False, "message": "error"}


async def by_name(rt: Runtime, fn: Callable[..., Any], **options: Any) -> Outcome[Any]:
    rt.add(fn, id="pay", **options)
    return await rt.call("pay", {})


async def guarded(rt: Runtime, fn: Callable[..., Any], **options: Any) -> Outcome[Any]:
    try:
        value = await rt.add(fn, id="pay", **options)()
    except CallFailed as failed:
        return failed.outcome
    return Outcome("1", "pay", "succeeded", value)


async def in_a_turn(rt: Runtime, fn: Callable[..., Any], **options: Any) -> Outcome[Any]:
    rt.add(fn, id="pay", **options)
    async with rt.turn() as turn:
        turn.call("pay", {}, id="1")
    return turn.report.outcomes["1"]


async def in_a_thread(rt: Runtime, fn: Callable[..., Any], **options: Any) -> Outcome[Any]:
    rt.add(fn, id="pay", **options)
    return await rt.call("pay", {}, thread="chat")


async def blocking(rt: Runtime, fn: Callable[..., Any], **options: Any) -> Outcome[Any]:
    rt.add(fn, id="pay", **options)
    return await asyncio.to_thread(rt.call_sync, "pay", {})


def returns(value: Any) -> Callable[[], Any]:
    async def pay() -> Any:
        return value

    return pay


ROUTES = [by_name, guarded, in_a_turn, in_a_thread, blocking]
WRITE = {"idempotent": False}


@pytest.mark.parametrize("route", ROUTES)
@virtual
async def test_a_returned_exception_counts_as_if_it_were_raised(route: Any) -> None:
    outcome = await route(Runtime(), returns(ValueError("bad city")), **WRITE)
    assert outcome.status == "failed"
    assert (outcome.fault.code, outcome.fault.category) == ("INVALID_ARGUMENT", "tool_validation")
    assert (outcome.fault.message, outcome.fault.effect) == ("bad city", "unknown")


@pytest.mark.parametrize(
    ("value", "effect"),
    [
        ({"ok": False, "error": "busy", "status": 503}, "none"),
        ({"ok": False, "error": "busy", "status": 429}, "none"),
        ({"ok": False, "error": {"code": 404, "message": "no such account"}}, "none"),
        ({"ok": False, "error": "503 Service Unavailable"}, "none"),
        ({"ok": False, "error": "Connection refused", "status": 503}, "none"),
        ({"ok": False, "error": "Connection refused", "status": 500}, "unknown"),
        ({"ok": False, "error": "Connection refused", "status": 200}, "unknown"),
        ({"ok": False, "error": "Connection refused"}, "unknown"),
        ({"ok": False, "error": "Name or service not known"}, "unknown"),
        ({"ok": False, "error": "Rate limit exceeded"}, "unknown"),
        ({"ok": False, "error": "Your card was declined"}, "unknown"),
        ({"ok": False, "error": "invalid amount"}, "unknown"),
        ({"ok": False, "error": "the user wrote '503 Service Unavailable'"}, "unknown"),
    ],
)
@virtual
async def test_a_returned_failure_had_no_effect_only_if_a_status_or_a_code_says_so(value: Any, effect: str) -> None:
    """R36: the other side's word. Named refusals in a text are not enough: the tool chose what it returns."""
    outcome = await by_name(Runtime(), returns(value), failed_if=PATTERN, **WRITE)
    assert outcome.fault is not None
    assert outcome.fault.effect == effect
    assert effect == "none" or outcome.attempts == 1


@pytest.mark.parametrize("route", ROUTES)
@virtual
async def test_a_returned_nothing_done_says_that_nothing_happened(route: Any) -> None:
    outcome = await route(Runtime(), returns(NothingDone("no stock", code="FAILED_PRECONDITION")), **WRITE)
    assert (outcome.status, outcome.fault.code, outcome.fault.effect) == ("failed", "FAILED_PRECONDITION", "none")


@pytest.mark.parametrize("route", ROUTES)
@virtual
async def test_a_returned_outcome_counts_as_its_call(route: Any) -> None:
    rt = Runtime()

    @rt.tool(read_only=True)
    async def stock(number: int) -> int:
        if number < 0:
            raise ValueError("negative")
        return number

    async def failing() -> Any:
        return await rt.call("stock", {"number": -1})

    async def working() -> Any:
        return await rt.call("stock", {"number": 3})

    outcome = await route(rt, failing, read_only=True)
    assert (outcome.status, outcome.fault.message, outcome.fault.rule[:8]) == ("failed", "negative", "nested: ")
    outcome = await route(Runtime(), working, read_only=True)
    assert (outcome.status, outcome.value) == ("succeeded", 3)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "value",
    [
        CallToolResult(content=[TextContent(type="text", text="no stock")], is_error=True),
        ToolMessage("no stock", tool_call_id="1", status="error"),
    ],
)
@virtual
async def test_the_flag_of_a_protocols_result_needs_no_option(route: Any, value: Any) -> None:
    outcome = await route(Runtime(), returns(value), **WRITE)
    assert (outcome.status, outcome.fault.message, outcome.fault.effect) == ("failed", "no stock", "unknown")
    assert outcome.fault.cause.returned is value


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "failed_if",
    [
        PATTERN,
        lambda value: value["ok"] is False,
        lambda value: None if value["ok"] else value["error"],
        lambda value: None if value["ok"] else RuntimeError(value["error"]),
    ],
)
@virtual
async def test_failed_if_makes_a_value_a_failure_that_keeps_its_text(route: Any, failed_if: Any) -> None:
    outcome = await route(Runtime(), returns(FAILED), failed_if=failed_if, **WRITE)
    assert (outcome.status, outcome.fault.message, outcome.fault.effect) == ("failed", "no stock", "unknown")
    assert "no stock" in outcome.explanation.model
    done = await route(
        Runtime(), returns({"ok": True, "error": "503 Service Unavailable"}), failed_if=failed_if, **WRITE
    )
    assert (done.status, done.value) == ("succeeded", {"ok": True, "error": "503 Service Unavailable"})


@virtual
async def test_a_returned_failure_is_retried_if_that_is_safe_and_never_otherwise() -> None:
    down = {"ok": False, "error": "connection reset by peer"}
    for options, attempts in (({"read_only": True}, 3), ({"idempotent": False}, 1)):
        rt = Runtime()
        rt.add(Scripted(down, down, {"ok": True}), id="pay", failed_if=PATTERN, **options)
        outcome = await rt.call("pay", {})
        assert outcome.attempts == attempts


@virtual
async def test_a_fault_from_failed_if_is_taken_as_it_is_and_its_text_is_sanitised() -> None:
    said = Fault(
        Code.NOT_FOUND, "permanent", "tool_validation", "none", "token=sk-abcdefghijklmnopqrstuvwxyz123456", "r", "mine"
    )
    outcome = await by_name(Runtime(), returns(FAILED), failed_if=lambda _: said)
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.effect, outcome.fault.rule) == ("NOT_FOUND", "none", "mine")
    assert "sk-abc" not in outcome.fault.message


def _raises(_: Any) -> bool:
    raise KeyError("ok")


async def _later() -> bool:
    return True


@pytest.mark.parametrize(
    "failed_if",
    [_raises, lambda _: 3, lambda _: [], lambda _: object(), lambda _: _later(), lambda _: Fault(*["x"] * 7)],
)
@pytest.mark.parametrize("route", ROUTES)
@virtual
async def test_a_failed_if_that_does_not_work_never_makes_a_success(route: Any, failed_if: Any) -> None:
    outcome = await route(Runtime(), returns({"ok": True}), failed_if=failed_if, read_only=True)
    assert (outcome.status, outcome.attempts, outcome.fault.category) == ("failed", 1, "internal_contract_bug")
    assert (outcome.fault.effect, outcome.fault.rule) == ("unknown", "broken_failed_if")
    assert outcome.fault.message.startswith("failed_if of pay ")
    assert outcome.fault.cause.returned == {"ok": True}


@virtual
async def test_none_is_asked_about_too() -> None:
    outcome = await by_name(Runtime(), returns(None), failed_if=lambda value: "no answer" if value is None else None)
    assert (outcome.status, outcome.fault and outcome.fault.message) == ("failed", "no answer")


@virtual
async def test_a_partial_result_stays_one() -> None:
    outcome = await by_name(Runtime(), returns(partial([1], missing=["2"])), failed_if=PATTERN, accept_partial=True)
    assert (outcome.status, outcome.value, outcome.missing) == ("succeeded", [1], ["2"])


@virtual
async def test_a_stream_is_judged_by_its_first_item() -> None:
    rt = Runtime()

    @rt.tool(failed_if=PATTERN, idempotent=False)
    async def rows(ok: bool) -> Any:
        yield {"ok": ok, "error": "no rows"}
        yield 2

    assert [row async for row in rows(True)][1] == 2
    with pytest.raises(CallFailed, match="no rows"):
        _ = [row async for row in rows(False)]


@pytest.mark.parametrize("error", [KeyboardInterrupt("now"), SystemExit(3), asyncio.CancelledError()])
@virtual
async def test_a_returned_exit_is_a_failure_and_ends_nothing(error: BaseException) -> None:
    outcome = await by_name(Runtime(), returns(error), **WRITE)
    assert (outcome.status, outcome.fault and outcome.fault.effect) == ("failed", "unknown")


@virtual
async def test_an_override_classifies_a_returned_failure() -> None:
    rule = {"pattern": "no stock", "as": "permanent", "to_code": "FAILED_PRECONDITION"}
    outcome = await by_name(Runtime(), returns(FAILED), failed_if=PATTERN, classification=[rule])
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.attempts) == ("FAILED_PRECONDITION", 1)


@virtual
async def test_a_fallback_takes_over_and_is_judged_by_its_own_option() -> None:
    rt = Runtime()
    rt.add(returns({"fine": 1}), id="other", read_only=True, failed_if={"fine": 0})
    rt.add(returns(FAILED), id="pay", read_only=True, failed_if=PATTERN, fallbacks=["other"])
    outcome = await rt.call("pay", {})
    assert (outcome.status, outcome.via, outcome.value) == ("succeeded", "other", {"fine": 1})


@virtual
async def test_a_returned_failure_counts_for_the_breaker_and_in_the_metrics() -> None:
    rt = Runtime()
    down = {"ok": False, "error": "connection reset by peer"}
    rt.add(returns(down), id="pay", read_only=True, failed_if=PATTERN, breaker={"failure_threshold": 2})
    await rt.call("pay", {})
    assert rt.health("pay").state == "open"
    assert rt.metrics("pay")["success_count"] == 0


@virtual
async def test_the_pipeline_asks_for_the_reading() -> None:
    rt = Runtime()
    rt.add(returns(FAILED), id="pay", idempotent=False, failed_if=PATTERN)
    with check_driver() as checked:
        await rt.call("pay", {})
    assert checked.calls == 1


@virtual
async def test_turns_and_plans_treat_it_like_any_failure() -> None:
    rt = Runtime()
    rt.add(returns(FAILED), id="pay", idempotent=False, failed_if=PATTERN)
    rt.add(returns(ValueError("odd")), id="odd", idempotent=False)

    @rt.tool(read_only=True)
    async def receipt(paid: Any) -> Any:
        return paid

    report = await rt.run_plan(
        {"calls": [
            {"id": "a", "tool": "pay", "args": {}},
            {"id": "b", "tool": "receipt", "args": {"paid": {"$ref": "a"}}},
            {"id": "c", "tool": "odd", "args": {}},
        ]}
    )  # fmt: skip
    assert {one.id: one.status for one in report.outcomes.values()} == {"a": "failed", "b": "skipped", "c": "failed"}


def test_classification_alone_does_not_change() -> None:
    assert classify(ValueError("x")).effect == "none"


# --- hostile values -----------------------------------------------------------------------------------------------------


class WithoutClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RuntimeError("no class")


class Unhashable(type):
    def __hash__(cls) -> int:
        raise RuntimeError("no hash")


class WithHostileMetaclass(metaclass=Unhashable):
    pass


class HostileText(str):
    __slots__ = ()

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


HOSTILE = [WithHostileMetaclass, lambda: HostileText("503")]
ASKED: list[Any] = [{"ok": False}, {"text": "^Error"}, lambda value: value]


@pytest.mark.parametrize(
    ("hostile", "failed_if"),
    [*itertools.product(HOSTILE, [None, *ASKED]), *itertools.product([WithoutClass], ASKED)],
)
@pytest.mark.parametrize("thread", [None, "chat"])
def test_values_whose_own_methods_raise_do_not_break_the_call(hostile: Any, thread: str | None, failed_if: Any) -> None:
    @virtual
    async def run() -> None:
        rt, value = Runtime(), hostile()
        options = {} if failed_if is None else {"failed_if": failed_if}

        async def search() -> Any:
            return value

        rt.add(search, id="search", read_only=True, retry={"max_attempts": 1}, **options)
        for _ in range(2):
            outcome = await rt.call("search", {}, thread=thread)
            assert outcome.value is (value if outcome.fault is None else None)
        if failed_if is None:
            assert outcome.status == "succeeded"

    run()
