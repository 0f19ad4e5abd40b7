"""Fallbacks: their choice, their order, the name they answer under, and their health (R14, R15, R18, R19)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, TIMEOUT, Scripted, phrases, records, virtual

from failsoft import BreakerOptions, Code, Fallback, RetryOptions, Runtime, partial


@virtual
async def test_fallbacks_are_asked_in_order_until_one_serves() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search", fallbacks=["second", "third"])
    rt.add(Scripted(INVALID), id="second")
    rt.add(Scripted("flights"), id="third")
    outcome = await rt.call("search", {}, id="mine")
    assert (outcome.id, outcome.tool, outcome.via, outcome.attempts) == ("mine", "search", "third", 3)
    assert [record["alternative"] for record in records(rt, "FallbackUsed")] == ["second", "third"]


@virtual
async def test_a_chain_that_fails_reports_the_primary_and_counts_all() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", fallbacks=["second"], retry={"max_attempts": 2})
    rt.add(Scripted(INVALID), id="second")
    outcome = await rt.call("search")
    assert (outcome.status, outcome.attempts, outcome.via) == ("failed", 3, None)
    assert outcome.fault is not None
    assert outcome.fault.message == "Service unavailable (503)"
    assert outcome.escalated


@virtual
async def test_handle_errors_says_what_a_fallback_takes() -> None:
    for error, via in ((DOWN, "backup"), (INVALID, None)):
        rt = Runtime()
        options = [Fallback(tool="backup", handle_errors=(Code.UNAVAILABLE, Code.INTERNAL))]
        rt.add(Scripted(error), id="search", fallbacks=options, retry=ONCE)
        rt.add(Scripted("flights"), id="backup")
        assert (await rt.call("search")).via == via


@virtual
async def test_the_error_that_opened_a_circuit_selects_the_fallback() -> None:
    for listed, via in ((Code.RESOURCE_EXHAUSTED, None), (Code.DEADLINE_EXCEEDED, "backup")):
        rt = Runtime()
        search = Scripted(TIMEOUT)
        options = [Fallback(tool="backup", handle_errors=(listed,))]
        rt.add(search, id="search", fallbacks=options, retry=ONCE, breaker={"failure_threshold": 1})
        rt.add(Scripted("flights"), id="backup")
        await rt.call("search")
        assert rt.health("search").state == "open"
        refused = await rt.call("search")
        assert search.attempts == 1
        assert (refused.via, refused.attempts) == (via, 0 if via is None else 1)


@virtual
async def test_retries_come_before_alternatives() -> None:
    rt = Runtime()
    search, backup = Scripted(DOWN), Scripted("flights")
    rt.add(search, id="search", fallbacks=["backup"], retry={"max_attempts": 3})
    rt.add(backup, id="backup")
    outcome = await rt.call("search")
    assert (search.attempts, backup.attempts, outcome.attempts) == (3, 1, 4)
    assert [record["decision"] for record in records(rt, "ToolError")] == ["retry", "retry", "alternative_tool"]
    assert rt.metrics("search")["fallback_count"] == 1


@virtual
async def test_a_fallback_retries_by_its_own_options_or_by_those_said_here() -> None:
    for here, attempts in ((None, 2), (RetryOptions(max_attempts=4), 4)):
        rt = Runtime()
        backup = Scripted(DOWN)
        rt.add(Scripted(INVALID), id="search", fallbacks=[Fallback(tool="backup", retry=here)])
        rt.add(backup, id="backup", retry={"max_attempts": 2})
        await rt.call("search")
        assert backup.attempts == attempts


@virtual
async def test_a_fallback_that_is_cut_off_is_left_out() -> None:
    rt = Runtime()
    second, third = Scripted(DOWN), Scripted("flights")
    rt.add(Scripted(INVALID), id="search", fallbacks=["second", "third"])
    rt.add(second, id="second", retry=ONCE, breaker={"failure_threshold": 1})
    rt.add(third, id="third")
    await rt.call("second")
    assert (await rt.call("search")).via == "third"
    assert second.attempts == 1


@virtual
async def test_a_fallback_with_its_own_cooldown_has_a_health_of_its_own() -> None:
    rt = Runtime()
    backup = Scripted(DOWN)
    cooldown = BreakerOptions(failure_threshold=2, timeout="20s")
    rt.add(
        Scripted(INVALID),
        id="search",
        fallbacks=[Fallback(tool="backup", cooldown=cooldown, retry=RetryOptions(max_attempts=1))],
    )
    rt.add(backup, id="backup", breaker={"failure_threshold": 100})
    for _ in range(4):
        await rt.call("search")
    assert backup.attempts == 2  # then it was cut off, as this tool's fallback only
    assert rt.health("backup").state == "closed"
    await asyncio.sleep(20)
    await rt.call("search")
    assert backup.attempts == 3


@virtual
async def test_a_fallback_of_a_fallback_is_asked_before_the_rest() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search", fallbacks=["second", "last"])
    rt.add(Scripted(INVALID), id="second", fallbacks=["third"])
    rt.add(Scripted("flights"), id="third")
    rt.add(Scripted("never"), id="last")
    assert (await rt.call("search")).via == "third"


@virtual
async def test_a_tool_that_two_chains_lead_to_is_tried_once() -> None:
    rt = Runtime()
    last = Scripted(INVALID)
    rt.add(Scripted(INVALID), id="one", fallbacks=["two", "last"])
    rt.add(Scripted(INVALID), id="two", fallbacks=["last"])
    rt.add(last, id="last")
    outcome = await rt.call("one")
    assert (outcome.status, outcome.attempts, last.attempts) == ("failed", 3, 1)


@virtual
async def test_a_fallback_that_does_not_exist_is_left_out() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search", fallbacks=["nowhere"])
    outcome = await rt.call("search")
    assert outcome.decision is not None
    assert outcome.decision.strategy == "escalate"
    assert "Used alternative tool" not in phrases(rt)


@virtual
async def test_arguments_that_the_fallback_does_not_take_are_its_failure() -> None:
    rt = Runtime()

    async def other(town: str) -> str:
        return town

    rt.add(Scripted(INVALID), id="search", fallbacks=["other", "third"])
    rt.add(other, id="other")
    rt.add(Scripted("flights"), id="third")
    outcome = await rt.call("search", {"city": "PAR"})
    assert (outcome.via, outcome.value) == ("third", "flights")


@pytest.mark.parametrize("count", ["attempts", "calls"])
@virtual
async def test_the_breaker_counts_attempts_or_calls(count: Any) -> None:
    rt = Runtime()
    search = Scripted(DOWN)
    rt.add(search, id="search", retry={"max_attempts": 2}, breaker={"failure_threshold": 4, "count": count})
    for _ in range(4):
        await rt.call("search")
    assert search.attempts == (4 if count == "attempts" else 8)
    assert rt.health("search").state == "open"


@virtual
async def test_a_part_of_the_primary_is_not_said_to_come_from_a_fallback_that_failed() -> None:
    rt = Runtime()
    rt.add(Scripted(partial(["AF 1234"], missing=["page 2"])), id="search", retry=ONCE, fallbacks=["backup"])
    rt.add(Scripted(INVALID), id="backup")
    outcome = await rt.call("search")
    assert (outcome.value, outcome.via, outcome.attempts) == (["AF 1234"], "search", 2)
    (succeeded,) = records(rt, "CallSucceeded")
    assert succeeded["tool_id"] == "search"


@virtual
async def test_the_better_part_of_a_fallback_is_its_own() -> None:
    rt = Runtime()
    rt.add(Scripted(partial([1], missing=["2", "3"])), id="search", retry=ONCE, fallbacks=["backup"])
    rt.add(Scripted(partial([1, 2], missing=["3"])), id="backup", retry=ONCE)
    outcome = await rt.call("search")
    assert (outcome.value, outcome.via, outcome.missing) == ([1, 2], "backup", ["3"])


@virtual
async def test_a_fallback_that_does_not_take_the_arguments_is_not_run() -> None:
    rt = Runtime()
    rt.add(Scripted(INVALID), id="search", fallbacks=["by_town", "cache"])

    async def by_town(town: str) -> str:
        return town

    rt.add(by_town)
    rt.add(Scripted("from yesterday"), id="cache")
    outcome = await rt.call("search", {"city": "PAR"})
    assert (outcome.via, outcome.attempts) == ("cache", 2)
    (refused,) = records(rt, "CallRefused")
    assert (refused["tool_id"], refused["category"]) == ("by_town", "tool_validation")
    assert "Missing: town." in refused["error"]
    assert records(rt, "InternalError") == []


@virtual
@pytest.mark.parametrize("stand_in", [{"idempotent": True}, {}], ids=["idempotent", "undeclared"])
async def test_a_write_that_a_replacement_may_have_made_is_not_made_by_the_next_one(stand_in: dict[str, Any]) -> None:
    """Though the replacement may be repeated, and though its last attempt was refused."""
    rt, paid = Runtime(), []
    refused = ConnectionRefusedError(111, "Connection refused")

    @rt.tool(idempotent=False, retry={"max_attempts": 1}, fallbacks=["gadget", "pay_elsewhere"])
    async def pay() -> None:
        raise refused

    @rt.tool(retry={"max_attempts": 2, "initial_delay": "1ms"}, **stand_in)
    async def gadget() -> None:
        paid.append("it")
        raise TimeoutError("no answer") if len(paid) == 1 else refused

    @rt.tool(idempotent=False)
    async def pay_elsewhere() -> None:
        paid.append("elsewhere")

    outcome = await rt.call("pay")
    assert paid == ["it", "it"]
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


# --- writes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [{}, {"idempotent": True}, {"idempotent": False}], ids=str)
@pytest.mark.parametrize("first", [{"idempotent": True}, {"idempotency_key": "key"}, {}], ids=str)
@virtual
async def test_no_other_write_follows_one_that_may_have_acted(first: dict[str, Any], second: dict[str, Any]) -> None:
    rt, bank = Runtime(), Scripted("paid")
    rt.add(Scripted(TIMEOUT), id="pay_by_card", fallbacks=["pay_by_bank"], retry=ONCE, **first)
    rt.add(bank, id="pay_by_bank", **second)
    outcome = await rt.call("pay_by_card")
    assert (outcome.status, bank.attempts) == ("failed", 0)
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


@pytest.mark.parametrize("second", [{}, {"idempotent": True}, {"idempotent": False}, {"read_only": True}], ids=str)
@virtual
async def test_a_tool_of_which_nothing_is_known_has_fallbacks_as_specified(second: dict[str, Any]) -> None:
    rt = Runtime()
    rt.add(Scripted(TIMEOUT), id="model_a", fallbacks=["model_b"], retry=ONCE)
    rt.add(Scripted("text"), id="model_b", **second)
    assert (await rt.call("model_a")).via == "model_b"


@virtual
async def test_tools_that_are_only_declared_idempotent_may_replace_each_other() -> None:
    rt = Runtime()
    rt.add(Scripted(TIMEOUT), id="model_a", idempotent=True, fallbacks=["model_b"], retry=ONCE)
    rt.add(Scripted("text"), id="model_b", idempotent=True)
    assert (await rt.call("model_a")).via == "model_b"


@virtual
async def test_a_read_only_fallback_in_between_does_not_permit_another_write() -> None:
    rt, bank, cash = Runtime(), Scripted("paid"), Scripted("noted")
    rt.add(
        Scripted(TIMEOUT),
        id="pay_by_card",
        idempotent=True,
        retry=ONCE,
        fallbacks=["gadget", "pay_by_bank", "get_cash"],
    )
    rt.add(Scripted(ConnectionRefusedError("connection refused")), id="gadget", retry=ONCE)
    rt.add(bank, id="pay_by_bank", idempotent=True)
    rt.add(cash, id="get_cash", read_only=True)
    assert (await rt.call("pay_by_card")).via == "get_cash"
    assert bank.attempts == 0


@virtual
async def test_a_write_that_was_refused_is_done_by_other_means() -> None:
    rt = Runtime()
    refused = ConnectionRefusedError("connection refused")
    rt.add(Scripted(refused), id="pay_by_card", idempotent=True, retry=ONCE, fallbacks=["pay_by_bank"])
    rt.add(Scripted("paid"), id="pay_by_bank", idempotent=True)
    assert (await rt.call("pay_by_card")).via == "pay_by_bank"


@virtual
async def test_a_policy_that_wants_another_write_is_not_followed() -> None:
    policy = {
        "name": "bank",
        "when": {"tool": "pay_by_card"},
        "then": {"strategy": "alternative_tool", "tool": "pay_by_bank"},
    }
    rt, bank = Runtime({"policies": [policy]}), Scripted("paid")
    rt.add(Scripted(TIMEOUT), id="pay_by_card", idempotent=True, retry=ONCE)
    rt.add(bank, id="pay_by_bank", idempotent=True)
    assert (await rt.call("pay_by_card")).status == "failed"
    assert bank.attempts == 0
