"""T27: a hook or sink that raised or hung broke the call. Here it is counted and logged once, and no call notices."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import INVALID, Scripted

from failsoft import Runtime

CALLS = 50
STOP = threading.Event()


def raises(*_: Any) -> Any:
    raise RuntimeError("the hook broke")


def hangs(*_: Any) -> Any:
    STOP.wait(30)


async def raises_later(*_: Any) -> Any:
    raise RuntimeError("the hook broke")


class Handler:
    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    async def handle(self, report: Any) -> Any:
        if self.hook is hangs:
            await asyncio.sleep(30)
        answer = self.hook(report)
        return await answer if inspect.isawaitable(answer) else answer


HOOKS: dict[str, Callable[[Callable[..., Any], Path], Runtime]] = {
    "subscriber": lambda hook, _: subscribed(Runtime(), hook),
    "subscriber that calls wait for": lambda hook, _: subscribed(Runtime(), hook, inline=True),
    "on_escalation": lambda hook, _: Runtime(on_escalation=hook),
    "trace file": lambda hook, folder: Runtime(trace=folder),  # a folder is no file
}


def subscribed(rt: Runtime, hook: Callable[..., Any], *, inline: bool = False) -> Runtime:
    rt.subscribe(hook, inline=inline)
    return rt


@pytest.mark.parametrize("hook", [raises, hangs])
@pytest.mark.parametrize("make", HOOKS.values(), ids=HOOKS.keys())
def test_t27_a_hook_that_raises_or_hangs_does_not_affect_calls(
    make: Callable[..., Runtime], hook: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    STOP.clear()
    with caplog.at_level(logging.WARNING, "failsoft"):
        rt = make(hook, tmp_path)
        rt.add(Scripted("flights"), id="search")
        rt.add(Scripted(INVALID), id="invalid")

        async def main() -> None:
            for _ in range(CALLS):
                assert (await rt.call("search")).value == "flights"
                outcome = await rt.call("invalid")
                assert (outcome.status, outcome.attempts) == ("failed", 1)
            told = await rt.flush("100ms")
            assert told == (make is HOOKS["on_escalation"]), "something was lost, or is still on its way"

        began = time.monotonic()
        asyncio.run(main())
        took = time.monotonic() - began
        STOP.set()
    assert took < 2.5
    assert rt.metrics("search")["success_count"] == CALLS
    told = [record.getMessage() for record in caplog.records]
    unnoticed = hook is hangs and make is HOOKS["subscriber"]  # nothing waits for it, and its queue has room
    assert sum("go on without it" in text or "do not wait for it" in text for text in told) == (not unnoticed)


@pytest.mark.parametrize("hook", [raises, raises_later, lambda _: "no decision", lambda _: None])
def test_t27_a_handler_that_fails_decides_nothing(hook: Callable[..., Any]) -> None:
    rt = Runtime(error_handler=Handler(hook))
    search = Scripted(INVALID)
    rt.add(search, id="search")
    outcome = asyncio.run(rt.call("search"))  # type: ignore[arg-type]
    assert outcome.decision is not None
    assert outcome.decision.strategy == "escalate"  # as the built-in one decides
    assert [event.event_type for event in rt.events()].count("HandlerFailed") == 1


@pytest.mark.parametrize("hook", [raises, raises_later, lambda _: 3], ids=["raises", "raises later", "no text"])
def test_t27_the_default_text_is_used_if_the_explain_callable_fails(hook: Callable[..., Any]) -> None:
    usual, rt = Runtime(), Runtime(explain=hook)
    texts = []
    for one in (usual, rt):
        one.add(Scripted(INVALID), id="search")
        texts.append(asyncio.run(one.call("search")).explanation)  # type: ignore[arg-type]
    assert texts[0] == texts[1]


def test_t27_slow_handlers_and_explain_callables_are_given_up() -> None:
    async def main() -> None:
        from failsoft.testing import virtual_time

        async with virtual_time() as clock:
            rt = Runtime(error_handler=Handler(hangs), explain=slow)
            rt.add(Scripted(INVALID), id="search")
            assert (await rt.call("search")).status == "failed"
            assert clock.time() <= 4.1  # two seconds of patience for each

    asyncio.run(main())


async def slow(facts: Any) -> str:
    await asyncio.sleep(30)
    return "too late"
