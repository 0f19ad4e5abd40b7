"""``rt.inspect()`` shows everything that an operator asks about, as JSON, without secrets."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, Scripted, Takes, real, virtual

from failsoft import Override, Runtime
from failsoft.testing import virtual_time

SECRET = "sk-proj-" + "a1B2c3D4" * 6


def tool_of(rt: Runtime, id: str) -> dict[str, Any]:
    (found,) = [tool for tool in rt.inspect().to_dict()["tools"] if tool["id"] == id]
    return dict(found)


@virtual
async def test_a_tool_is_shown_with_its_options_and_its_health() -> None:
    rt = Runtime()

    @rt.tool(timeout="2s", retry={"max_attempts": 3}, fallbacks=["cache"], label="Flight search")
    async def search_flights(city: str, day: int = 1) -> str:
        """Find flights."""
        return "found"

    await rt.call("search_flights", {"city": "PAR"})
    tool = tool_of(rt, "search_flights")
    assert (tool["label"], tool["description"], tool["runs_in"]) == ("Flight search", "Find flights.", "event loop")
    assert tool["schema"]["required"] == ["city"]
    assert tool["schema"]["properties"]["day"] == {"type": "integer", "default": 1}
    assert (tool["effect"], tool["effect_source"], tool["safe_to_repeat"]) == ("read", "recognised", True)
    assert tool["effect_reason"]
    assert (tool["options"]["timeout"], tool["options"]["retry"]["max_attempts"]) == (2.0, 3)
    assert [fallback["tool"] for fallback in tool["options"]["fallbacks"]] == ["cache"]
    assert (tool["available"], tool["unavailable_because"]) == (True, None)
    assert tool["metrics"] == rt.metrics("search_flights")
    assert tool["metrics"]["success_count"] == 1
    assert tool["retry_budget"] == 1.0


@virtual
async def test_a_circuit_is_shown_with_the_error_that_opened_it() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", read_only=True, retry=ONCE, breaker={"failure_threshold": 2, "timeout": "30s"})
    for _ in range(2):
        await rt.call("search")
    await asyncio.sleep(10)
    closed = {"fallback_of": None, "failure_count": 2, "failure_rate": None}
    shown = tool_of(rt, "search")["circuit"]
    assert shown == {
        **closed, "tool": "search", "state": "open", "retry_after": pytest.approx(20), "opened_by": "UNAVAILABLE",
    }  # fmt: skip
    assert rt.inspect().circuits[0]._asdict() == shown


@virtual
async def test_a_fallback_with_a_cooldown_of_its_own_has_a_circuit_of_its_own() -> None:
    rt = Runtime()
    fallback = {"tool": "cache", "cooldown": {"min_consecutive_failures": 1, "cooldown_duration": "60s"}}
    rt.add(Scripted(DOWN), id="search", read_only=True, retry=ONCE, fallbacks=[fallback])
    rt.add(Scripted(DOWN), id="cache", read_only=True, retry=ONCE)
    await rt.call("search")
    (own,) = [circuit for circuit in rt.inspect().circuits if circuit.fallback_of is not None]
    assert (own.tool, own.fallback_of, own.state) == ("cache", "search", "open")


@virtual
async def test_spent_retries_lower_the_budget() -> None:
    rt = Runtime()
    rt.add(Scripted(DOWN), id="search", read_only=True, retry={"max_attempts": 4})
    await rt.call("search")
    assert 0.9 < tool_of(rt, "search")["retry_budget"] < 1.0


@virtual
async def test_running_and_waiting_calls_are_shown() -> None:
    rt = Runtime()
    rt.add(Scripted(Takes(5, "found")), id="search", concurrency=1)
    calls = [asyncio.ensure_future(rt.call("search")) for _ in range(3)]
    await asyncio.sleep(1)
    seen = rt.inspect().to_dict()
    assert [(call["tool"], call["waits_for"]) for call in seen["running"]] == [
        ("search", "tool"), ("search", "next attempt"), ("search", "next attempt"),
    ]  # fmt: skip
    assert (seen["tools"][0]["running"], seen["tools"][0]["waiting"]) == (1, 2)
    await asyncio.gather(*calls)
    assert rt.inspect().running == ()


def test_a_disabled_tool_is_shown_with_the_reason() -> None:
    rt = Runtime()
    rt.add(lambda: 1, id="search")
    rt.disable("search", "maintenance until noon")
    tool = tool_of(rt, "search")
    assert tool["available"] is False
    assert "maintenance until noon" in tool["unavailable_because"]


@pytest.mark.parametrize(
    ("options", "runs_in"),
    [({}, "worker thread"), ({"timeout": None}, "caller"), ({"isolation": "process"}, "process")],
)
def test_inspect_shows_where_a_blocking_tool_runs(options: dict[str, Any], runs_in: str) -> None:
    rt = Runtime()
    rt.add(time.strftime, id="clock", check_types=False, **options)
    assert tool_of(rt, "clock")["runs_in"] == runs_in


@real
async def test_subscribers_are_shown_with_what_waits_for_them() -> None:
    rt = Runtime()
    rt.add(lambda: 1, id="search", timeout=None)
    held, begun = threading.Event(), threading.Event()

    def slow(event: object) -> None:
        begun.set()
        held.wait(20)

    rt.subscribe(slow)
    for _ in range(4):
        await rt.call("search")
        assert begun.wait(20)
    (subscriber,) = rt.inspect().subscribers
    assert "slow" in subscriber.name
    assert (subscriber.queued, subscriber.dropped, subscriber.failed) == (3, 0, 0)
    held.set()


@real
async def test_the_store_is_shown_without_its_address(tmp_path: Path) -> None:
    assert Runtime().inspect().store is None
    async with Runtime(store=f"sqlite:///{tmp_path}/secret-name.db") as rt:
        seen = rt.inspect()
        assert seen.store is not None
        assert seen.store._asdict() == {"kind": "SqliteStore", "required": False, "lost": 0}
        assert "secret-name" not in json.dumps(seen.to_dict())
    assert rt.inspect().closed


def odd() -> list[Callable[[Runtime], object]]:
    def classify(error: object) -> None: ...

    return [
        lambda rt: rt.add(lambda api_key=SECRET, password="hunter2hunter2": 1, id="secrets"),
        lambda rt: rt.add(lambda a, b: 1, id="defaults", defaults={"a": SECRET}),
        lambda rt: rt.add(lambda: 1, id="functions", classification=[classify]),
        lambda rt: rt.add(lambda: 1, id="overrides", classification=[Override(pattern="busy", as_="transient")]),
        lambda rt: rt.add(lambda: 1, id="types", output=Sequence[int]),
        lambda rt: rt.add(lambda *args, **more: 1, id="anything", timeout=None),
        lambda rt: rt.declare("elsewhere"),
    ]


@pytest.mark.parametrize("add", odd())
def test_every_tool_can_be_written_as_json_and_shows_no_secret(add: Callable[[Runtime], object]) -> None:
    rt = Runtime()
    add(rt)
    text = json.dumps(rt.inspect().to_dict(), allow_nan=False)
    assert SECRET not in text
    assert "hunter2" not in text


def test_a_snapshot_says_when_and_of_which_version() -> None:
    import failsoft

    with virtual_time():
        seen = Runtime().inspect().to_dict()
    assert seen["at"] == "2025-11-05T10:30:45.000Z"
    assert seen["versions"]["failsoft"] == failsoft.__version__


def test_a_schema_is_made_once_for_each_tool() -> None:
    rt = Runtime()
    rt.add(lambda city: 1, id="search")
    first, second = rt.inspect().tools[0].schema, rt.inspect().tools[0].schema
    assert first is second
    rt.add(lambda town: 1, id="search", replace=True)
    assert [*rt.inspect().tools[0].schema["properties"]] == ["town"]
