"""Calls by name are checked against the signature; direct Python calls are not."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict, Unpack

import pytest
from pydantic import BaseModel, BeforeValidator, Field, field_validator
from tests.fakes import ONCE, real

from failsoft import ManifestError, Outcome, Runtime
from failsoft.adapters.plain import run_tool_calls

if TYPE_CHECKING:
    from nowhere import Hidden  # type: ignore[import-not-found]


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float = 0.0


class Order(BaseModel):
    id: int
    lines: list[str] = []

    @field_validator("id")
    @classmethod
    def known(cls, value: int) -> int:
        if value == 13:
            raise KeyError("no luck")  # not what pydantic expects of a validator
        return value


class Address(TypedDict):
    city: str


class Pair(NamedTuple):
    left: int
    right: int


class Client:
    """A class that no validator knows."""


def made(**options: Any) -> tuple[Runtime, list[Any]]:
    """A runtime with one tool of each kind, and the list of calls that ran."""
    rt = Runtime()
    ran: list[Any] = []

    async def pay(amount: int, to: str = "Ann") -> str:
        ran.append((amount, to))
        return "paid"

    def pay_now(amount: int, to: str = "Ann") -> str:
        ran.append((amount, to))
        return "paid"

    rt.add(pay, **options)
    rt.add(pay_now, **options)
    return rt, ran


async def by_name(rt: Runtime, tool: str, args: Any) -> Outcome[Any]:
    return await rt.call(tool, args)


async def with_options(rt: Runtime, tool: str, args: Any) -> Outcome[Any]:
    return await rt.call(tool, args, id="call-1", thread="chat", timeout="5s")


async def in_turn(rt: Runtime, tool: str, args: Any) -> Outcome[Any]:
    async with rt.turn() as turn:
        return await turn.call(tool, args)


async def in_body(rt: Runtime, tool: str, args: Any) -> Outcome[Any]:
    async with rt.turn():
        return await rt.call(tool, args)


async def in_plan(rt: Runtime, tool: str, args: Any) -> Outcome[Any]:
    return (await rt.run_plan({"calls": [{"id": "it", "tool": tool, "args": args}]})).outcomes["it"]


async def after_another(rt: Runtime, tool: str, args: Any) -> Outcome[Any]:
    async def find() -> Any:
        return args["amount"]

    rt.add(find)
    async with rt.turn() as turn:
        return await turn.call(tool, {**args, "amount": turn.call("find")})


WAYS = pytest.mark.parametrize("way", [by_name, with_options, in_turn, in_body, in_plan, after_another])
TOOLS = pytest.mark.parametrize("tool", ["pay", "pay_now"])
DECLARED = pytest.mark.parametrize("declared", [{}, {"read_only": True}, {"idempotent": False}])
Way = Callable[[Runtime, str, Any], Any]


@WAYS
@TOOLS
@DECLARED
@real
async def test_a_call_with_arguments_that_do_not_fit_is_not_run(way: Way, tool: str, declared: Any) -> None:
    rt, ran = made(**declared)
    outcome = await way(rt, tool, {"amount": "forty"})
    fault = outcome.fault
    assert (outcome.status, outcome.attempts, ran) == ("failed", 0, [])
    assert (fault.code, fault.category, fault.effect, fault.retryable) == (
        "INVALID_ARGUMENT", "tool_validation", "none", False,
    )  # fmt: skip
    assert fault.message == "The arguments do not fit. Invalid: amount. amount must be an integer, not a text."
    assert "amount" in outcome.explanation.model
    assert rt.health(tool).failure_count == 0


@WAYS
@TOOLS
@DECLARED
@real
async def test_values_are_converted_if_nothing_is_lost(way: Way, tool: str, declared: Any) -> None:
    rt, ran = made(**declared)
    for amount in ("40", 40.0, 40):
        assert (await way(rt, tool, {"amount": amount, "to": "Bob"})).value == "paid"
    assert ran == [(40, "Bob")] * 3
    assert all(type(amount) is int for amount, _ in ran)


@TOOLS
def test_from_code_without_an_event_loop(tool: str) -> None:
    rt, ran = made()
    assert "amount" in rt.call_sync(tool, {"amount": "forty"}).fault.message  # type: ignore[union-attr]
    assert rt.call_sync(tool, {"amount": "40"}).value == "paid"
    assert ran == [(40, "Ann")]


@real
async def test_direct_python_calls_are_not_checked() -> None:
    rt = Runtime()

    @rt.tool
    async def echo(amount: int) -> Any:
        return amount

    assert await echo("forty") == "forty"  # type: ignore[arg-type]
    async with rt.turn():
        assert await echo("forty") == "forty"  # type: ignore[arg-type]


@real
async def test_all_that_is_wrong_is_named_at_once() -> None:
    rt, _ = made()
    fault = (await rt.call("pay", {"amount": "forty", "to": 7})).fault
    assert fault is not None
    assert "Invalid: amount, to." in fault.message
    fault = (await rt.call("pay", {"to": 7, "nonsense": 1})).fault
    assert fault is not None
    assert "Missing: amount. Invalid: to. Not known: nonsense." in fault.message


# --- options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["runtime", "tool", "manifest", "defaults", "tool over runtime"])
@real
async def test_type_checks_can_be_turned_off(how: str) -> None:
    manifest: Any = {
        "manifest": {"tools": {"echo": {"check_types": False}}},
        "defaults": {"defaults": {"check_types": False}},
    }.get(how)
    rt = Runtime(manifest, check_types=False if how == "runtime" else None)
    if how == "tool over runtime":
        rt = Runtime(check_types=True)

    async def echo(amount: int) -> Any:
        return amount

    rt.add(echo, **({"check_types": False} if how.startswith("tool") else {}))
    assert (await rt.call("echo", {"amount": "40"})).value == "40"
    async with rt.turn() as turn:
        assert (await turn.call("echo", {"amount": "40"})).value == "40"


@real
async def test_a_tools_own_word_comes_before_the_runtimes() -> None:
    rt = Runtime(check_types=False)

    async def echo(amount: int) -> Any:
        return amount

    rt.add(echo, check_types=True)
    assert (await rt.call("echo", {"amount": "40"})).value == 40


def test_check_types_must_be_a_bool() -> None:
    with pytest.raises(ManifestError, match="check_types"):
        Runtime(check_types="no")  # type: ignore[arg-type]
    with pytest.raises(ManifestError, match="check_types"):
        Runtime().add(len, check_types=1)  # type: ignore[arg-type]


# --- richer annotations -----------------------------------------------------------------------------------------------------


async def send(fn: Callable[..., Any], **args: Any) -> Any:
    """The value the tool receives, or the error message."""
    rt = Runtime()
    rt.add(fn, id="tool", retry=ONCE)
    outcome = await rt.call("tool", args)
    return outcome.value if outcome.fault is None else outcome.fault.message


@real
async def test_pydantic_reads_what_needs_it() -> None:
    async def take(
        order: Order, point: Point, when: datetime, colour: Colour, address: Address, pair: Pair,
        days: list[date], count: Annotated[int, Field(ge=1)] = 1, note: Annotated[str, "what to say"] = "",
    ) -> Any:  # fmt: skip
        return order, point, when, colour, address, pair, days, count, note

    sent: dict[str, Any] = {
        "order": {"id": "7"}, "point": {"x": 1}, "when": "2026-11-17T12:00:00Z", "colour": "red",
        "address": {"city": "Rome"}, "pair": [1, 2], "days": ["2026-11-17"],
    }  # fmt: skip
    got = await send(take, **sent)
    assert got[:2] == (Order(id=7), Point(1))
    assert got[2:7] == (
        datetime(2026, 11, 17, 12, tzinfo=UTC),
        Colour.RED,
        {"city": "Rome"},
        Pair(1, 2),
        [date(2026, 11, 17)],
    )
    told = await send(take, **{**sent, "order": {"id": "x"}, "colour": "blue", "count": 0, "note": 5})
    assert "Invalid: order, colour, count, note." in told
    assert "order: id: Input should be a valid integer" in told


class Booking(BaseModel, strict=True):
    day: date
    guests: set[str]
    people: int


class Stay(TypedDict, total=False):
    nights: int
    since: date


@real
async def test_a_strict_model_accepts_dates_and_sets_from_json() -> None:
    async def take(bookings: list[Booking]) -> Any:
        return bookings

    sent = {"day": "2026-11-17", "guests": ["Ann"], "people": 2}
    assert await send(take, bookings=[sent]) == [Booking(day=date(2026, 11, 17), guests={"Ann"}, people=2)]
    told = await send(take, bookings=[sent, {**sent, "people": "2"}])
    assert told.endswith("bookings[1]: people: Input should be a valid integer.")


@real
async def test_a_limited_type_is_converted_like_the_type_itself() -> None:
    async def take(count: Annotated[int, Field(gt=0)], many: list[Annotated[int, Field(gt=0)]]) -> Any:
        return count, many

    assert await send(take, count="4", many=[1, 2.0]) == (4, [1, 2])
    told = await send(take, count=True, many=["1_000"])
    assert "count must be an integer, not true. many[0] must be an integer, not a text." in told
    assert "count: Input should be greater than 0. many[1]: Input should" in await send(take, count=-1, many=[1, 0])


@real
async def test_a_validator_of_the_users_own_gets_only_values_as_they_were_sent() -> None:
    async def take(count: Annotated[int, BeforeValidator(lambda sent: {"forty": 40}[sent])]) -> Any:
        return count

    assert await send(take, count="forty") == 40


@real
async def test_the_fields_of_a_typed_dict_are_checked() -> None:
    async def take(stay: Stay) -> Any:
        return stay

    assert await send(take, stay={"nights": "2", "since": "2026-11-17"}) == {"nights": 2, "since": date(2026, 11, 17)}
    assert "stay.nights must be an integer" in await send(take, stay={"nights": "two"})
    assert "stay.since: Input should be a valid date" in await send(take, stay={"since": "soon"})


@real
async def test_keywords_typed_by_a_typed_dict_are_checked() -> None:
    async def take(**stay: Unpack[Stay]) -> Any:
        return stay

    assert await send(take, nights="2", since="2026-11-17") == {"nights": 2, "since": date(2026, 11, 17)}
    assert "nights must be an integer" in await send(take, nights="two")


@real
async def test_objects_that_are_not_json_pass() -> None:
    async def take(order: Order, when: datetime | None, client: Client, many: list[Point]) -> Any:
        return order, when, client, many

    order, client = Order(id=1), Client()
    got = await send(take, order=order, when=None, client=client, many=[client])
    assert got[0] is order
    assert (got[1:]) == (None, client, [client])
    assert (await send(take, order=order, when=None, client="a name", many=[]))[2] == "a name"  # nobody knows better


@real
async def test_annotations_that_cannot_be_resolved_are_skipped() -> None:
    class Local(BaseModel):
        id: int

    async def take(local: Local, hidden: Hidden, amount: int, odd: 5 = 5, text: "no such (" = 0) -> Any:  # type: ignore[valid-type]  # noqa: F722
        return local, hidden, amount, odd, text

    assert await send(take, local=1, hidden=2, amount="3", odd="x", text=[]) == (1, 2, 3, "x", [])
    assert "amount must be an integer" in await send(take, local=1, hidden=2, amount="three")


@real
async def test_a_validator_that_breaks_is_a_misfit() -> None:
    async def take(order: Order) -> Any:
        return order

    assert "Invalid: order." in await send(take, order={"id": 13})


@real
async def test_deep_and_cyclic_values_do_no_harm() -> None:
    async def take(order: Order | None = None, items: list[Any] | None = None) -> str:
        return "taken"

    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    cyclic: dict[str, Any] = {}
    cyclic["id"] = cyclic
    assert await send(take, items=deep) == "taken"
    for order in ({"id": deep}, cyclic):
        assert "taken" in (told := await send(take, order=order)) or "order" in told


@real
async def test_arguments_of_methods_and_wrapped_functions_are_checked() -> None:
    class Account:
        async def pay(self, amount: int) -> Any:
            return amount

        async def __call__(self, amount: int) -> Any:
            return amount

    async def pay(currency: str, amount: int) -> Any:
        return amount

    @functools.wraps(pay)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        return await pay(*args, **kwargs)

    async def loose(**amounts: int) -> Any:
        return amounts.get("amount")

    async def defaulted(amount: int = None) -> Any:  # type: ignore[assignment]  # noqa: RUF013
        return amount

    for fn in (Account().pay, Account(), functools.partial(pay, "EUR"), loose, defaulted):
        assert await send(fn, amount="40") == 40
        assert "amount" in str(await send(fn, amount="forty"))
    assert await send(wrapped, currency="EUR", amount="40") == 40
    assert await send(defaulted, amount=None) is None


@real
async def test_a_fallback_gets_what_was_sent_in_its_own_types() -> None:
    rt = Runtime()
    got: list[Any] = []

    async def pay(when: date, amount: int) -> None:
        got.append((when, amount))
        raise ConnectionRefusedError

    async def pay_later(when: str, amount: str) -> str:
        got.append((when, amount))
        return "paid"

    rt.add(pay, fallbacks=["pay_later"], retry=ONCE)
    rt.add(pay_later)
    assert (await rt.call("pay", {"when": "2026-11-17", "amount": "40"})).value == "paid"
    assert got == [(date(2026, 11, 17), 40), ("2026-11-17", "40")]


@real
async def test_retries_get_the_converted_arguments() -> None:
    rt = Runtime()
    got: list[Any] = []

    async def read(amount: int) -> str:
        got.append(amount)
        if len(got) < 3:
            raise ConnectionResetError
        return "done"

    rt.add(read, read_only=True, retry={"max_attempts": 3, "initial_delay": "1ms"})
    assert (await rt.call("read", {"amount": "40"})).value == "done"
    assert got == [40, 40, 40]


@real
async def test_arguments_from_a_plain_loop_are_checked() -> None:
    rt, ran = made()
    asked = [{"type": "function_call", "call_id": "1", "name": "pay", "arguments": '{"amount": "forty"}'}]
    assert "amount must be an integer" in (await run_tool_calls(rt, asked))[0]["output"]
    assert ran == []


def test_simple_types_load_nothing_else() -> None:
    program = """
import asyncio, sys
import failsoft
rt = failsoft.Runtime()
@rt.tool
async def pay(amount: int, tags: list[str] | None = None): return amount
print(asyncio.run(rt.call("pay", {"amount": "40", "tags": ["a"]})).value, "pydantic" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "40 False\n"
