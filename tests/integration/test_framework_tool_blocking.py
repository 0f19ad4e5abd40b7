"""Tools of a framework that blocks."""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.runtime.execution.blocking_loop import detach_from_turn
from failsoft.runtime.scope import SCOPE

WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Steer(Exception):
    """A framework's control-flow exception."""


def runner(do: Any) -> Any:
    def run(arguments: dict[str, Any]) -> Any:
        return do(**arguments)

    return run


def test_a_value_and_the_callers_context() -> None:
    token = WHO.set("Ada")
    outcome = Runtime().run_sync("search", {"q": 1}, {"search": runner(lambda q: (q, WHO.get()))}, id="c1")
    WHO.reset(token)
    assert (outcome.value, outcome.id) == ((1, "Ada"), "c1")


def test_not_idempotent_until_declared() -> None:
    tries: list[int] = []

    def lose() -> None:
        tries.append(1)
        raise TimeoutError("the answer was lost")

    rt = Runtime()
    assert rt.run_sync("pay", {}, {"pay": runner(lose)}).attempts == 1
    rt.declare("look", read_only=True, retry={"max_attempts": 3, "initial_delay": "1ms"})
    assert rt.run_sync("look", {}, {"look": runner(lose)}).attempts == 3
    assert len(tries) == 4


def test_a_blocking_framework_tool_times_out_at_its_deadline() -> None:
    rt = Runtime({"tools": {"hang": {"timeout": "30ms"}}})
    began = time.monotonic()
    outcome = rt.run_sync("hang", {}, {"hang": runner(lambda: time.sleep(0.5))})
    assert outcome.fault is not None
    assert outcome.fault.message == "Tool timeout after 30ms"
    assert time.monotonic() - began < 0.45


def test_control_flow_exceptions_pass_unchanged() -> None:
    rt, error = Runtime(), Steer("left")

    def steer() -> None:
        raise error

    with pytest.raises(Steer) as raised:
        rt.run_sync("search", {}, {"search": runner(steer)}, control=(Steer,))
    assert raised.value is error
    assert rt.health("search").failure_count == 0


def test_another_framework_tool_serves_as_the_fallback() -> None:
    def fail() -> None:
        raise ConnectionError("503 Service Unavailable")

    rt = Runtime({"tools": {"search": {"fallbacks": ["backup"], "retry": {"max_attempts": 1}}}})
    rt.declare("backup")
    outcome = rt.run_sync("search", {}, {"search": runner(fail), "backup": runner(lambda: "backup")})
    assert (outcome.value, outcome.via) == ("backup", "backup")


def test_a_runner_that_waits_is_refused() -> None:
    async def wait(_: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    rt = Runtime({"tools": {"search": {"timeout": "5s", "retry": {"max_attempts": 1}}}})
    outcome = rt.run_sync("search", {}, {"search": wait})
    assert outcome.fault is not None
    assert "returned a coroutine" in outcome.fault.message


def test_a_blocking_call_does_not_join_the_turn_around_it() -> None:
    async def main() -> object:
        rt = Runtime()
        async with rt.turn() as turn:
            outcome = rt.run_sync("search", {}, {"search": runner(lambda: "found")})
            assert SCOPE.get() is turn
        assert not turn.report.outcomes
        return outcome.value

    assert asyncio.run(main()) == "found"
    detach_from_turn()  # nothing to leave here
