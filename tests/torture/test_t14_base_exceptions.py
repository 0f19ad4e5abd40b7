"""T14: KeyboardInterrupt, SystemExit and GeneratorExit were swallowed or counted. Here they pass, all of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, RESET

from failsoft import CallFailed, Runtime, classify


class Exit(BaseException):
    """Something that only its own catcher understands."""


ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit, Exit)


def make(rt: Runtime, raised: BaseException) -> dict[str, Callable[[], Any]]:
    """Every way in which a tool can be called."""

    async def at_once() -> None:
        raise raised

    async def later() -> None:
        await asyncio.sleep(0)
        raise raised

    def blocks() -> None:
        raise raised

    calls: dict[str, Callable[[], Any]] = {}
    for name, tool in (("at once", at_once), ("later", later)):
        guarded = rt.add(tool, id=name, breaker={"failure_threshold": 1})
        calls[f"{name}, function"] = lambda guarded=guarded: asyncio.run(guarded())
        calls[f"{name}, by name"] = lambda name=name: asyncio.run(rt.call(name))  # type: ignore[arg-type,misc]
    for name, limit in (("thread", "30s"), ("inline", None)):
        guarded_ = rt.add(blocks, id=name, timeout=limit, breaker={"failure_threshold": 1})
        calls[f"{name}, function"] = guarded_
        calls[f"{name}, by name"] = lambda name=name: asyncio.run(rt.call(name))  # type: ignore[arg-type,misc]
        calls[f"{name}, blocking"] = lambda name=name: rt.call_sync(name)  # type: ignore[misc]
    return calls


@pytest.mark.parametrize("end", ENDS)
def test_t14_base_exceptions_pass_unchanged_and_uncounted(end: type[BaseException]) -> None:
    raised = end("now")
    rt = Runtime()
    calls = make(rt, raised)
    passed = []
    for name, call in calls.items():
        try:
            call()
        except BaseException as error:
            if error is raised:
                passed.append(name)
    assert passed == [*calls]  # all of them
    for tool in rt.tools:
        assert (rt.health(tool).state, rt.health(tool).failure_count) == ("closed", 0)
        assert (rt.metrics(tool)["error_count"], rt.metrics(tool)["success_count"]) == (0, 0)


class Stop(BaseException):
    """Control-flow exceptions of test and agent frameworks."""


@pytest.mark.parametrize("end", [GeneratorExit, Stop])
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("awaited", [False, True])
def test_t14_a_turn_raises_them_when_its_body_ends(end: type[BaseException], sync: bool, awaited: bool) -> None:
    raised = end("now")
    rt = Runtime()

    @rt.tool(id="sync")
    def block() -> None:
        raise raised

    @rt.tool(id="async")
    async def wait() -> None:
        await asyncio.sleep(0)
        raise raised

    @rt.tool(id="other")
    async def other() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        turn = rt.turn(timeout="30s")
        with pytest.raises(end) as caught:
            async with turn:
                call = turn.call("sync" if sync else "async", id="ended")
                turn.call("other", id="other")
                if awaited:
                    assert (await call).status == "failed"
        assert caught.value is raised
        assert [outcome.status for outcome in turn.report.outcomes.values()] == ["failed", "cancelled"]

    asyncio.run(main())
    assert rt.metrics("sync" if sync else "async")["error_count"] == 0


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("sync", [False, True])
def test_t14_asyncio_does_not_log_what_ends_the_program(
    end: type[BaseException], sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rt = Runtime()

    def block() -> None:
        raise end("password=hunter2")

    async def wait() -> None:
        raise end("password=hunter2")

    rt.add(block if sync else wait, id="ends")

    async def main() -> None:
        async with rt.turn() as turn:
            turn.call("ends")

    with pytest.raises(end):
        asyncio.run(main())
    gc.collect()
    assert "hunter2" not in caplog.text
    assert "never retrieved" not in caplog.text


def test_t14_a_body_that_misses_the_value_does_not_hide_them() -> None:
    rt = Runtime()

    @rt.tool(id="ends")
    async def ends() -> None:
        raise Stop("now")

    async def main(error: BaseException | None) -> None:
        async with rt.turn() as turn:
            outcome = await turn.call("ends")
            if error is not None:
                raise error
            outcome.unwrap()

    with pytest.raises(Stop, match="now") as caught:
        asyncio.run(main(None))
    assert isinstance(caught.value.__context__, CallFailed)
    with pytest.raises(Stop, match="the body's own"):
        asyncio.run(main(Stop("the body's own")))


@pytest.mark.parametrize(
    ("group", "classification"),
    [
        (ExceptionGroup("two", [DOWN, RESET]), "transient"),
        (ExceptionGroup("two", [DOWN, INVALID]), "permanent"),
        (ExceptionGroup("outer", [RESET, ExceptionGroup("inner", [INVALID])]), "permanent"),
        (ExceptionGroup("Invalid argument, permission denied", [RESET]), "transient"),  # its own text is no leaf
    ],
)
def test_t14_groups_are_classified_by_their_leaves(group: ExceptionGroup[Exception], classification: str) -> None:
    assert classify(group).classification == classification
    rt = Runtime()

    async def search() -> None:
        raise group

    rt.add(search, retry={"max_attempts": 2, "initial_delay": "1ms"})
    outcome = asyncio.run(rt.call("search"))  # type: ignore[arg-type]
    assert outcome.attempts == (2 if classification == "transient" else 1)


def test_t14_a_base_exception_in_a_group_goes_on() -> None:
    rt = Runtime()

    async def search() -> None:
        raise BaseExceptionGroup("two", [DOWN, KeyboardInterrupt()])

    rt.add(search, breaker={"failure_threshold": 1})
    with pytest.raises(BaseExceptionGroup):
        asyncio.run(rt.call("search"))  # type: ignore[arg-type]
    assert rt.health("search").state == "closed"
