"""A tool that must not be repeated blindly, and that has acted through a guarded call before it failed (R11, R24)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.fakes import RESET, Takes, records, virtual

from failsoft import CallFailed, Outcome, Runtime

REFUSED = ConnectionRefusedError(111, "refused")
WRITE = {"idempotent": False}


class Bank:
    """Counts payments."""

    def __init__(self, **inner: Any) -> None:
        self.rt = Runtime()
        self.paid = 0
        self.pay = self.rt.add(self._pay, id="pay", **(inner or WRITE))
        self.pay_here = self.rt.add(self._pay_here, id="pay_here", timeout=None, **(inner or WRITE))

    async def _pay(self) -> str:
        self.paid += 1
        return "paid"

    def _pay_here(self) -> str:
        self.paid += 1
        return "paid"

    async def book(self) -> None:
        await self.pay()
        raise REFUSED

    def book_here(self) -> None:
        self.pay_here()
        raise REFUSED


def outcome_of(failed: pytest.ExceptionInfo[CallFailed]) -> Outcome[Any]:
    return failed.value.outcome


async def guarded(bank: Bank) -> Outcome[Any]:
    book = bank.rt.add(bank.book, **WRITE)
    with pytest.raises(CallFailed) as failed:
        await book()
    return outcome_of(failed)


async def by_name(bank: Bank) -> Outcome[Any]:
    bank.rt.add(bank.book, **WRITE)
    return await bank.rt.call("book")


async def with_options(bank: Bank) -> Outcome[Any]:
    bank.rt.add(bank.book, **WRITE)
    return await bank.rt.call("book", thread="t", id="b")


async def after_waiting(bank: Bank) -> Outcome[Any]:
    async def book() -> None:
        await asyncio.sleep(0.01)
        await bank.book()

    return await bank.rt.call(bank.rt.add(book, **WRITE))


async def in_a_turn(bank: Bank) -> Outcome[Any]:
    bank.rt.add(bank.book, **WRITE)
    async with bank.rt.turn() as turn:
        turn.call("book", id="b")
    return turn.report.outcomes["b"]


async def in_the_body_of_a_turn(bank: Bank) -> Outcome[Any]:
    book = bank.rt.add(bank.book, **WRITE)
    async with bank.rt.turn():
        with pytest.raises(CallFailed) as failed:
            await book()
    return outcome_of(failed)


async def beside_each_other(bank: Bank) -> Outcome[Any]:
    async def book() -> None:
        await asyncio.gather(bank.pay())
        raise REFUSED

    return await bank.rt.call(bank.rt.add(book, **WRITE))


async def in_a_turn_of_its_own(bank: Bank) -> Outcome[Any]:
    async def book() -> None:
        async with bank.rt.turn() as turn:
            turn.call("pay")
        raise REFUSED

    return await bank.rt.call(bank.rt.add(book, **WRITE))


async def two_calls_further_in(bank: Bank) -> Outcome[Any]:
    async def arrange() -> Any:
        return await bank.pay()

    arranged = bank.rt.add(arrange)

    async def book() -> None:
        await arranged()
        raise REFUSED

    return await bank.rt.call(bank.rt.add(book, **WRITE))


async def in_a_thread(bank: Bank) -> Outcome[Any]:
    return await bank.rt.call(bank.rt.add(bank.book_here, timeout="5s", **WRITE))


async def run_by_a_framework(bank: Bank) -> Outcome[Any]:
    async def run(_: dict[str, Any]) -> None:
        await bank.book()

    return await bank.rt.run("booking", {}, {"booking": run})


def blocking(bank: Bank) -> Outcome[Any]:
    with pytest.raises(CallFailed) as failed:
        bank.rt.add(bank.book_here, timeout=None, **WRITE)()
    return outcome_of(failed)


def blocking_in_a_thread(bank: Bank) -> Outcome[Any]:
    with pytest.raises(CallFailed) as failed:
        bank.rt.add(bank.book_here, timeout="5s", **WRITE)()
    return outcome_of(failed)


def blocking_by_name(bank: Bank) -> Outcome[Any]:
    return bank.rt.call_sync(bank.rt.add(bank.book_here, **WRITE))


def blocking_framework(bank: Bank) -> Outcome[Any]:
    return bank.rt.run_sync("booking", {}, {"booking": lambda _: bank.book_here()})


AWAITED = [
    guarded, by_name, with_options, after_waiting, in_a_turn, in_the_body_of_a_turn, beside_each_other,
    in_a_turn_of_its_own, two_calls_further_in, in_a_thread, run_by_a_framework,
]  # fmt: skip
BLOCKING = [blocking, blocking_in_a_thread, blocking_by_name, blocking_framework]


def is_told_and_left(bank: Bank, outcome: Outcome[Any]) -> bool:
    assert outcome.fault is not None
    assert "no effect" not in outcome.explanation.model
    return (bank.paid, outcome.attempts, outcome.fault.code, outcome.fault.effect) == (1, 1, "UNAVAILABLE", "unknown")


@pytest.mark.parametrize("book", AWAITED, ids=lambda book: book.__name__)
@virtual
async def test_a_tool_that_has_acted_through_a_call_is_not_repeated(book: Callable[[Bank], Any]) -> None:
    bank = Bank()
    assert is_told_and_left(bank, await book(bank))


@pytest.mark.parametrize("book", BLOCKING, ids=lambda book: book.__name__)
def test_a_tool_that_blocks_and_has_acted_through_a_call_is_not_repeated(
    book: Callable[[Bank], Outcome[Any]],
) -> None:
    bank = Bank()
    assert is_told_and_left(bank, book(bank))


@pytest.mark.parametrize("book", AWAITED, ids=lambda book: book.__name__)
@pytest.mark.parametrize("inner", [{"read_only": True}, {"idempotent": True}], ids=["read-only", "idempotent"])
@virtual
async def test_repeatable_inner_calls_do_not_prevent_a_retry(
    book: Callable[[Bank], Any], inner: dict[str, Any]
) -> None:
    bank = Bank(**inner)
    outcome = await book(bank)
    undeclared = book is two_calls_further_in  # what lies between says nothing about itself
    assert outcome.fault is not None
    effect = "none" if inner == {"read_only": True} else "unknown"  # a repeatable write has acted all the same
    assert (outcome.attempts, outcome.fault.effect) == ((1, "unknown") if undeclared else (5, effect))


@virtual
async def test_the_attempt_that_has_acted_is_the_last_one() -> None:
    bank = Bank()
    refusals = [REFUSED, REFUSED]

    async def book() -> None:
        if refusals:
            raise refusals.pop()
        await bank.book()

    outcome = await bank.rt.call(bank.rt.add(book, **WRITE))
    assert outcome.fault is not None
    assert (bank.paid, outcome.attempts, outcome.fault.effect) == (1, 3, "unknown")


@pytest.mark.parametrize("inner", [RESET, Takes(100)], ids=["reset", "timeout"])
@virtual
async def test_a_call_whose_effect_is_unknown_counts_also_where_the_tool_has_dealt_with_it(inner: Any) -> None:
    rt = Runtime()
    runs: list[int] = []

    @rt.tool(idempotent=False, timeout="5s")
    async def pay() -> None:
        runs.append(1)
        if isinstance(inner, Exception):
            raise inner
        await asyncio.sleep(inner.seconds)

    @rt.tool(idempotent=False)
    async def book() -> None:
        with suppress(CallFailed):
            await pay()
        raise ConnectionRefusedError(111, "refused")

    outcome = await rt.call("book")
    assert outcome.fault is not None
    assert (len(runs), outcome.attempts, outcome.fault.effect) == (1, 1, "unknown")


@virtual
async def test_a_call_that_is_cancelled_inside_counts_too() -> None:
    rt = Runtime()
    runs: list[int] = []

    @rt.tool(idempotent=False)
    async def pay() -> None:
        runs.append(1)
        await asyncio.sleep(20)

    @rt.tool(idempotent=False)
    async def book() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await pay()
        raise ConnectionRefusedError(111, "refused")

    outcome = await rt.call("book")
    assert (len(runs), outcome.attempts) == (1, 1)


@virtual
async def test_a_call_that_did_nothing_is_no_obstacle() -> None:
    rt = Runtime()

    @rt.tool(idempotent=False, retry={"max_attempts": 1}, breaker={"failure_threshold": 100})
    async def pay() -> None:
        raise ConnectionRefusedError(111, "refused")

    @rt.tool(idempotent=False)
    async def book() -> None:
        with suppress(CallFailed):
            await pay()
        raise ConnectionRefusedError(111, "refused here")

    outcome = await rt.call("book")
    assert outcome.fault is not None
    assert (outcome.attempts, outcome.fault.effect) == (5, "none")


@virtual
async def test_a_tool_that_may_be_repeated_is_whatever_it_calls() -> None:
    bank = Bank()
    outcome = await bank.rt.call(bank.rt.add(bank.book, idempotent=True))
    assert (outcome.attempts, bank.paid) == (5, 5)


@virtual
async def test_calls_inside_a_tool_that_must_not_be_repeated_are_its_children() -> None:
    bank = Bank()

    async def book() -> None:
        await bank.pay()

    await bank.rt.add(book, **WRITE)()
    inner, outer = records(bank.rt, "CallSucceeded")
    assert (inner["tool_id"], outer["tool_id"]) == ("pay", "book")
    assert inner["parent_id"] == outer["call_id"]
