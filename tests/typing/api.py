"""The public API as typed code: mypy and pyright read this file, nobody runs it.

Each function shows one way of using failsoft; ``assert_type`` says what a user's editor has to know there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, assert_type

import failsoft
from failsoft import (
    BreakerOptions,
    CallFailed,
    CircuitOpen,
    Code,
    Decision,
    ErrorReport,
    FailsoftError,
    Fallback,
    Fault,
    Handle,
    Handler,
    ManifestError,
    Outcome,
    Override,
    RetryOptions,
    Runtime,
    ToolTimeout,
    ToolUnavailable,
    Turn,
    TurnError,
    TurnReport,
    classify,
    partial,
    tool,
)

rt = Runtime()


# --- tools keep their signature --------------------------------------------------------------------------------------


@rt.tool(timeout="30s", retry={"max_attempts": 3}, fallbacks=["flight_search_backup"], read_only=True)
async def flight_search(destination: str, *, stops: int = 0) -> list[str]:
    return [destination] * stops


@rt.tool
async def hotel_search(city: str) -> dict[str, int]:
    return {city: 1}


@rt.tool(idempotent=False, timeout=timedelta(seconds=5))
def book(flight: str, seats: int) -> bool:
    return bool(flight) and seats > 0


@tool(read_only=True)
async def on_the_default_runtime(city: str) -> float:
    return float(len(city))


async def guarded_functions() -> None:
    assert_type(await flight_search("PAR", stops=1), list[str])
    assert_type(await hotel_search("PAR"), dict[str, int])
    assert_type(await on_the_default_runtime("PAR"), float)
    assert_type(book("AF 1", 2), bool)
    await flight_search(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await flight_search("PAR", seats=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def added_functions() -> None:
    def weather(city: str) -> str:
        return city

    assert_type(rt.add(weather, id="weather", read_only=True)("PAR"), str)


# --- calls -----------------------------------------------------------------------------------------------------------


async def calls() -> None:
    assert_type(await rt.call(flight_search, {"destination": "PAR"}), Outcome[list[str]])
    assert_type(await rt.call(book, {"flight": "AF 1", "seats": 2}), Outcome[bool])
    assert_type(await rt.call("flight_search", {"destination": "PAR"}), Outcome[Any])
    assert_type(await rt.call("ping", id="ping-1", thread="chat-42", tenant="acme", timeout="2s"), Outcome[Any])
    assert_type(
        await rt.call(book, {"flight": "AF 1"}, idempotency_key="k-1", retry={"max_attempts": 1}), Outcome[bool]
    )


def blocking_calls() -> None:
    assert_type(rt.call_sync(book, {"flight": "AF 1", "seats": 2}), Outcome[bool])
    assert_type(rt.call_sync("ping"), Outcome[Any])


def outcomes(outcome: Outcome[list[str]]) -> None:
    assert_type(outcome.value, list[str] | None)
    assert_type(outcome.unwrap(), list[str])
    assert_type(outcome.fault, Fault | None)
    assert_type(outcome.decision, Decision | None)
    assert_type(outcome.attempts, int)
    assert_type(outcome.via, str | None)
    assert_type(outcome.duration, float)
    assert_type(outcome.to_dict(), dict[str, Any])
    if outcome.status == "timed_out":
        return
    if outcome.status == "late":  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
        return


def faults(fault: Fault) -> None:
    assert_type(fault.code, Code)
    assert_type(fault.retryable, bool)
    assert_type(fault.retry_after, float | None)
    assert_type(fault.http_status, int | None)
    assert_type(fault.message, str)


def classification(error: Exception) -> None:
    assert_type(classify(error), Fault)
    assert_type(classify("503 Service Unavailable", overrides=[Override(http_status=503, as_="permanent")]), Fault)


# --- turns -----------------------------------------------------------------------------------------------------------


async def turns() -> TurnReport:
    async with rt.turn(timeout="5m", thread="chat-42") as turn:
        assert_type(turn, Turn)
        flights = turn.call(flight_search, {"destination": "PAR"})
        assert_type(flights, Handle[list[str]])
        assert_type(await flights, Outcome[list[str]])
        assert_type(await flights.value(), list[str])
        prices = turn.call("compare_prices", {"flights": flights}, id="prices", required=True, defaults={"flights": []})
        assert_type(prices, Handle[Any])
        turn.call(hotel_search, {"city": "PAR"}, depends_on=[flights, "prices"])
        async for outcome in turn:
            assert_type(outcome, Outcome[Any])
    return turn.report


def reports(report: TurnReport) -> None:
    assert_type(report.message, str)
    assert_type(report.timed_out, bool)
    outcomes: Mapping[str, Outcome[Any]] = report.outcomes
    assert outcomes


async def plans() -> None:
    plan = {"timeout": "5m", "calls": [{"id": "flights", "tool": "flight_search", "args": {"destination": "PAR"}}]}
    assert_type(await rt.run_plan(plan), TurnReport)


# --- options and errors ----------------------------------------------------------------------------------------------


def options() -> None:
    @rt.tool(
        retry=RetryOptions(max_attempts=3, initial_delay="50ms", max_total_time=timedelta(seconds=5)),
        breaker=BreakerOptions(failure_threshold=3, timeout="20s", count="calls"),
        fallbacks=[Fallback(tool="backup", handle_errors=(Code.UNAVAILABLE,)), "cache"],
        classification=[Override(exception="acme.QuotaError", as_="permanent", category="tool_misconfigured")],
        defaults={"rates": {}},
        required=False,
        tags=["travel"],
        label="price comparison",
    )
    def compare(rates: dict[str, float]) -> float:
        return sum(rates.values())

    assert_type(compare({}), float)


def pages() -> object:
    return partial(["page 1"], missing=["page 2"])


class Stubborn:
    """A user's own Error Handler."""

    async def handle(self, report: ErrorReport) -> Decision:
        return Decision("retry", f"again, whatever {report.tool_id} says", delay=1.0)


def handlers() -> Runtime:
    handler: Handler = Stubborn()
    return Runtime(error_handler=handler)


async def errors() -> None:
    try:
        await flight_search("PAR")
    except CircuitOpen as error:
        assert_type(error.retry_after, float | None)
    except (ToolTimeout, ToolUnavailable) as error:
        assert_type(error.fault, Fault | None)
    except CallFailed as error:
        assert_type(error.outcome, Outcome[Any])
    except (ManifestError, TurnError) as error:
        failure: FailsoftError = error
        raise failure from None


async def lifetime() -> None:
    async with Runtime() as own:
        assert_type(own, Runtime)
        assert_type(own.health("flight_search").state == "half_open", bool)
        assert_type(own.metrics("flight_search")["error_rate"], Any)
    await own.close(grace="1s")
    await own.close(grace=0)
    assert_type(failsoft.__version__, str)


# --- conversations ---------------------------------------------------------------------------------------------------


async def threads() -> None:
    def phrase(facts: Mapping[str, Any]) -> str:
        return str(facts["text"])

    async def phrase_later(facts: Mapping[str, Any]) -> str:
        return str(facts["text"])

    Runtime(explain=phrase)
    Runtime(explain=phrase_later)
    thread = rt.threads["chat-42"]
    for offer in rt.threads("chat-42", tenant="acme").offers:
        assert_type(offer.tool, str)
        assert_type(offer.arguments, Mapping[str, Any])
        assert_type(offer.explanation.user, str)
    outcome = await thread.retry("hotel_search")
    assert_type(await thread.retry(hotel_search), Outcome[Any])
    assert_type(rt.explain(outcome, "de").model, str)
    assert_type(thread.available("hotel_search"), bool)
    assert_type([call.text for call in thread.close_dangling()], list[str])
    thread.clear()
