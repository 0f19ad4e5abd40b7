"""Retries and effects (R11, T5): a call that may have taken effect is repeated only if that is safe."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import Any

import pytest
from tests.fakes import DOWN, OFTEN, ONCE, RATE_LIMIT, RESET, Scripted, Takes, virtual

from failsoft import CallFailed, Runtime


@pytest.mark.parametrize(
    ("declared", "attempts"),
    [
        ({"read_only": True}, 2),
        ({"idempotent": True}, 2),
        ({}, 1),
        ({"idempotent": False}, 1),
    ],
    ids=["read-only", "idempotent", "recognised", "not idempotent"],
)
@pytest.mark.parametrize("error", [RESET, Takes(100)], ids=["reset", "tool timeout"])
@virtual
async def test_an_unknown_effect_is_repeated_only_where_that_is_safe(
    error: Any, declared: dict[str, Any], attempts: int
) -> None:
    rt = Runtime()
    pay = Scripted(error, "paid")
    rt.add(pay, id="pay", **declared)
    outcome = await rt.call("pay")
    assert pay.attempts == outcome.attempts == attempts
    if attempts == 1:
        assert outcome.fault is not None
        assert outcome.fault.effect == "unknown"
        assert outcome.decision is not None
        assert outcome.decision.reason == "Transient error (the effect is unknown and the tool is not idempotent)"


@pytest.mark.parametrize("error", [RATE_LIMIT, ConnectionRefusedError("refused")], ids=["429", "refused"])
@virtual
async def test_a_failure_without_effect_is_always_repeated(error: Exception) -> None:
    rt = Runtime()
    pay = Scripted(error, "paid")
    rt.add(pay, id="pay", idempotent=False)
    assert (await rt.call("pay")).value == "paid"


@virtual
async def test_a_write_of_unknown_effect_has_no_alternative_either() -> None:
    rt = Runtime()
    backup = Scripted("paid elsewhere")
    rt.add(Scripted(RESET), id="pay", idempotent=False, fallbacks=["pay_elsewhere"])
    rt.add(backup, id="pay_elsewhere")
    outcome = await rt.call("pay")
    assert (outcome.status, backup.attempts) == ("failed", 0)


@pytest.mark.parametrize(
    ("said", "tried"), [({"idempotent": False}, 0), ({}, 0), ({"read_only": True}, 1)], ids=["write", "unsaid", "read"]
)
@virtual
async def test_a_write_of_unknown_effect_by_a_fallback_has_no_alternative(said: dict[str, bool], tried: int) -> None:
    """The first tool was refused and its fallback may have paid, so the third tool is not tried."""
    rt = Runtime()
    third = Scripted("paid by a third")
    rt.add(Scripted(DOWN), id="pay", idempotent=False, retry=ONCE, fallbacks=["pay_other", "pay_third"])
    rt.add(Scripted(RESET), id="pay_other", retry=ONCE, **said)
    rt.add(third, id="pay_third", idempotent=False)
    outcome = await rt.call("pay")
    assert third.attempts == tried
    assert outcome.status == ("succeeded" if tried else "failed")


@virtual
async def test_a_write_that_failed_with_a_bug_has_no_alternative() -> None:
    """A KeyError often comes from reading the answer: then the request was sent, and has been served."""
    rt = Runtime()
    backup = Scripted("paid elsewhere")
    rt.add(Scripted(KeyError("id")), id="pay", idempotent=False, fallbacks=["pay_elsewhere"])
    rt.add(backup, id="pay_elsewhere")
    assert ((await rt.call("pay")).status, backup.attempts) == ("failed", 0)


class OddError(Exception):
    """An error that says nothing."""


@pytest.mark.parametrize("limit", ["30s", None], ids=["deadline", "no deadline"])
@virtual
async def test_an_error_that_the_tool_has_dealt_with_says_nothing_about_a_later_one(limit: str | None) -> None:
    """The tool was repeated five times while the exception thrown into it was still being handled."""
    rt = Runtime()
    written: list[int] = []

    async def look_up() -> None:
        await asyncio.sleep(1)
        raise ConnectionRefusedError("the cache is down")

    @rt.tool(idempotent=False, timeout=limit)
    async def save() -> None:
        with suppress(ConnectionRefusedError):
            await asyncio.create_task(look_up())
        written.append(1)
        raise OddError("saved, but the answer is odd")

    outcome = await rt.call("save")
    assert outcome.fault is not None
    assert (outcome.fault.effect, written) == ("unknown", [1])


@pytest.mark.parametrize("how", ["name", "function", "blocking", "awaiting"])
@virtual
async def test_an_exception_that_the_caller_is_handling_does_not_affect_classification(how: str) -> None:
    """In an except block, every exception has the handled one as its context."""
    rt = Runtime()
    written: list[int] = []

    @rt.tool(idempotent=False, timeout="30s" if how == "awaiting" else None)
    def save() -> None:
        written.append(1)
        raise OddError("saved, but the answer is odd")

    try:
        raise ConnectionRefusedError("the first bank refuses")
    except ConnectionRefusedError as error:
        handled = error
        if how in ("name", "awaiting"):
            outcome = await rt.call("save")
        elif how == "function":
            with pytest.raises(CallFailed) as caught:
                save()
            outcome = caught.value.outcome
        else:
            outcome = await asyncio.to_thread(_in_a_thread_that_handles, rt)
    assert handled.__traceback__ is not None  # nor is it touched
    assert outcome.fault is not None
    assert (outcome.fault.effect, written) == ("unknown", [1])


def _in_a_thread_that_handles(rt: Runtime) -> Any:
    try:
        raise ConnectionRefusedError("the first bank refuses")
    except ConnectionRefusedError:
        return rt.call_sync("save")


@virtual
async def test_an_earlier_unknown_effect_is_not_forgotten() -> None:
    """The last attempt was refused, but an earlier one may have acted, and the caller has to know that."""
    rt = Runtime()
    rt.add(Scripted(RESET, RATE_LIMIT), id="pay", retry={"max_attempts": 2})
    outcome = await rt.call("pay")
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


@virtual
async def test_an_undeclared_tool_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime(undeclared="as_specified")
    rt.add(Scripted(RESET), id="pay", breaker=OFTEN)
    rt.add(Scripted(RESET), id="look", breaker=OFTEN, read_only=True)
    rt.add(Scripted(RATE_LIMIT), id="ask", breaker=OFTEN)
    with caplog.at_level(logging.WARNING, "failsoft"):
        for tool in ("pay", "look", "ask", "pay"):
            await rt.call(tool)
    warnings = [record.getMessage() for record in caplog.records if not hasattr(record, "event_type")]
    assert len(warnings) == 1
    assert warnings[0].startswith("pay: nothing says whether this tool reads or writes, so it is retried")


# --- idempotency keys --------------------------------------------------------------------------------------------------


def paying(*steps: Any) -> tuple[Runtime, Scripted]:
    """A runtime with a tool that wants a key in its parameter request_id."""
    rt = Runtime()
    service = Scripted(*steps)

    async def pay(amount: int, request_id: str) -> Any:
        return await service(amount=amount, request_id=request_id)

    rt.add(pay, idempotency_key="request_id")
    return rt, service


@virtual
async def test_a_key_stays_the_same_over_the_retries_of_one_call() -> None:
    rt, service = paying(RESET, RESET, "paid")
    outcome = await rt.call("pay", {"amount": 3})
    keys = [arguments["request_id"] for arguments in service.arguments]
    assert (outcome.value, len(keys), len(set(keys))) == ("paid", 3, 1)  # the key made it safe to repeat
    assert keys[0]


@virtual
async def test_each_call_has_a_key_of_its_own() -> None:
    rt, service = paying("paid")
    for _ in range(3):
        await rt.call("pay", {"amount": 3})
    async with rt.turn() as turn:
        turn.call("pay", {"amount": 3})
        turn.call("pay", {"amount": 3})
    assert len({arguments["request_id"] for arguments in service.arguments}) == 5


@virtual
async def test_a_caller_can_give_the_key() -> None:
    rt, service = paying("paid")
    await rt.call("pay", {"amount": 3}, idempotency_key="abc")
    async with rt.turn() as turn:
        turn.call("pay", {"amount": 3}, idempotency_key="def")
    assert [arguments["request_id"] for arguments in service.arguments] == ["abc", "def"]


# --- attempts that still run (R8) -------------------------------------------------------------------------------------

SAFE = [({"read_only": True}, 3), ({"idempotent": True}, 3), ({}, 1), ({"idempotent": False}, 1)]
SAID = ["read-only", "idempotent", "undeclared", "not idempotent"]


@pytest.mark.parametrize(("declared", "attempts"), SAFE, ids=SAID)
@virtual
async def test_a_coroutine_that_does_not_end_is_not_run_beside_itself(declared: dict[str, Any], attempts: int) -> None:
    rt = Runtime()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(50)

    rt.add(stubborn, timeout="100ms", retry={"max_attempts": 3}, **declared)
    outcome = await rt.call("stubborn")
    assert outcome.attempts == attempts
    if attempts == 1 and not declared:
        assert "the attempt still runs" in outcome.decision.reason


@pytest.mark.parametrize("blocking", [False, True], ids=["awaited", "blocking"])
@pytest.mark.parametrize(("declared", "attempts"), SAFE, ids=SAID)
def test_a_thread_that_does_not_end_is_not_run_beside_itself(
    declared: dict[str, Any], attempts: int, blocking: bool
) -> None:
    rt = Runtime()
    held = threading.Event()
    rt.add(
        lambda: held.wait(30), id="hangs", timeout="30ms", retry={"max_attempts": 3, "initial_delay": "1ms"}, **declared
    )
    try:
        outcome = rt.call_sync("hangs") if blocking else asyncio.run(rt.call("hangs"))
    finally:
        held.set()
    assert outcome.fault.code == "DEADLINE_EXCEEDED"
    assert outcome.attempts == attempts
