"""Mistakes that are rarer, or that only half an answer was given to. None is silent: each is answered."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import failsoft
from failsoft import FailsoftError, Runtime
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.runtime.registry import _log_misuse as misuse_log


@pytest.fixture(autouse=True)
def _each_mistake_is_new() -> None:
    misuse_log.cache_clear()


async def search(city: str = "Paris") -> str:
    return city


async def unannotated(city):  # type: ignore[no-untyped-def]
    return str(city)


def runtime() -> Runtime:
    rt = Runtime()
    rt.add(search, read_only=True)
    rt.add(unannotated, read_only=True)
    return rt


def ran(mistake: Callable[[], Any]) -> Any:
    made = mistake()
    return asyncio.run(made) if asyncio.iscoroutine(made) else made


def refusal(mistake: Callable[[], Any]) -> str:
    with pytest.raises((FailsoftError, TypeError, KeyError, ValueError, AttributeError)) as refused:
        ran(mistake)
    return str(refused.value)


def warned(mistake: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING, "failsoft"):
        ran(mistake)
        flush_log(5)
    return caplog.text


# --- conditions ---------------------------------------------------------------------------------------------------------


def ended(status: str) -> Any:
    rt = runtime()
    return rt.call_sync("search", {"city": "x"} if status == "succeeded" else {"city": [3]})


STATUSES: list[tuple[str, Callable[[Any], bool], str]] = [
    ("succeeded", lambda outcome: outcome.status == "success", 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status != "ok", 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status == "SUCCEEDED", 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status in ("done", "complete"), 'did you mean "succeeded"?'),
    ("succeeded", lambda outcome: outcome.status == True, "like 'succeeded'"),  # noqa: E712
    ("failed", lambda outcome: outcome.status == "error", 'did you mean "failed"?'),
    ("failed", lambda outcome: outcome.status == "failure", 'did you mean "failed"?'),
    ("failed", lambda outcome: outcome.status == "timeout", 'did you mean "timed_out"?'),
    ("failed", lambda outcome: outcome.status == "timed-out", 'did you mean "timed_out"?'),
    ("failed", lambda outcome: outcome.status == "canceled", 'did you mean "cancelled"?'),
]


@pytest.mark.parametrize(("status", "compare", "right"), STATUSES)
def test_a_status_that_there_is_not(
    status: str, compare: Callable[[Any], bool], right: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = ended(status)
    said = warned(lambda: compare(outcome), caplog)
    assert "outcome.status: ==" in said
    assert right in said


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_status_is_a_text(status: str, caplog: pytest.LogCaptureFixture) -> None:
    found = ended(status).status

    def use() -> None:
        assert found == status == found
        assert found != "skipped"
        assert found != "pending"
        assert found in ("skipped", status)
        assert {found: 1}[status] == 1
        assert json.dumps([found]) == json.dumps([status])
        for copied in (copy.deepcopy(found), pickle.loads(pickle.dumps(found)), ended(status).to_dict()["status"]):
            assert (type(copied), copied) == (str, status)

    assert "never true" not in warned(use, caplog)


def test_a_method_as_a_condition(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        rt = runtime()
        async with rt.turn() as turn:
            handle = turn.call("search")
            for method in (rt.running, handle.done):
                assert method  # type: ignore[truthy-bool]

    said = warned(ask, caplog)
    assert "Runtime.running: a method is always true: write running()" in said
    assert "Handle.done: a method is always true: write done()" in said


def test_methods_that_are_called_are_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        rt = runtime()
        assert not rt.running()
        assert str(inspect.signature(rt.running)) == "(self) -> 'list[RunningCall]'"
        async with rt.turn() as turn:
            handle = turn.call("search")
            assert not handle.done()
            await handle
            assert handle.done()

    assert "always true" not in warned(ask, caplog)


# --- values that are not there yet --------------------------------------------------------------------------------------


async def an_open_outcome() -> None:
    async with runtime().turn() as turn:
        _ = turn.call("search").outcome.value  # type: ignore[union-attr]


def test_the_outcome_of_an_open_call() -> None:
    said = refusal(an_open_outcome)
    assert "'NoneType' object has no attribute 'value'" in said
    assert "the outcome of a handle is None until its call has ended; await the handle" in said


def unfinished(tool: str, make: Callable[[], Any]) -> Callable[[], Any]:
    async def call() -> Any:
        given = make()
        try:
            return await runtime().call(tool, {"city": given})
        finally:
            given.close() if inspect.iscoroutine(given) else given.cancel()

    return call


MAKES: list[tuple[str, Callable[[], Any]]] = [
    ("Task", lambda: asyncio.ensure_future(search())),
    ("Future", lambda: asyncio.get_running_loop().create_future()),
    ("coroutine", search),
]


@pytest.mark.parametrize(("kind", "make"), MAKES)
def test_a_call_with_a_task_in_place_of_its_result(kind: str, make: Callable[[], Any]) -> None:
    outcome = ran(unfinished("search", make))
    assert outcome.attempts == 0
    assert f"city is a {kind}, not its result: write await before it." in outcome.fault.message


@pytest.mark.parametrize(("kind", "make"), MAKES)
def test_a_task_for_a_parameter_without_annotation(
    kind: str, make: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    said = warned(unfinished("unannotated", make), caplog)
    assert f"unannotated: city is a {kind}, not its result: write await before it" in said


def test_a_tool_may_take_a_task(caplog: pytest.LogCaptureFixture) -> None:
    async def follow(task: asyncio.Task[str]) -> str:
        return await task

    async def call() -> None:
        rt = Runtime()
        rt.add(follow, read_only=True)
        assert (await rt.call("follow", {"task": asyncio.create_task(search())})).value == "Paris"

    assert "not its result" not in warned(call, caplog)


def test_progress_may_be_awaited() -> None:
    async def work() -> str:
        await failsoft.progress("half")
        return "done"

    async def call() -> Any:
        rt = Runtime()
        rt.add(work, read_only=True)
        return await rt.call("work")

    assert ran(call).value == "done"
