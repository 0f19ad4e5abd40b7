"""Run coroutines for callers that block, whether their thread has an event loop or not."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from failsoft import Decision, ErrorReport, Runtime, decide
from failsoft.runtime.execution.blocking_loop import run_anywhere, run_here, run_on_loop_thread
from failsoft.runtime.scope import SCOPE

WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def look() -> str:
    await asyncio.sleep(0)
    return WHO.get()


async def fail(error: BaseException) -> None:
    raise error


def on_loop(do: object) -> object:
    async def main() -> object:
        return do()  # type: ignore[operator]

    return asyncio.run(main())


def test_a_coroutine_runs_in_its_callers_context() -> None:
    for who in ("Ada", "Ben"):
        token = WHO.set(who)
        assert run_on_loop_thread(look) == who
        WHO.reset(token)


def test_a_coroutine_can_be_run_beside_a_running_loop() -> None:
    token = WHO.set("Cy")
    assert on_loop(lambda: run_on_loop_thread(look)) == "Cy"
    WHO.reset(token)


def test_a_coroutine_can_be_run_from_one_that_blocks_the_shared_loop() -> None:
    async def outer() -> str:
        return run_on_loop_thread(look)

    assert run_on_loop_thread(outer) == "nobody"


@pytest.mark.parametrize("error", [KeyError("price"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_errors_are_raised_unchanged_and_the_loop_keeps_running(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        run_on_loop_thread(lambda: fail(error))
    assert raised.value is error
    assert run_on_loop_thread(look) == "nobody"


def loops() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "failsoft loop"]


def test_all_callers_share_a_loop() -> None:
    run_on_loop_thread(look)
    before = loops()
    callers = [threading.Thread(target=run_on_loop_thread, args=(look,)) for _ in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert loops() == before


def test_a_coroutine_on_the_loop_thread_is_outside_of_the_callers_turn() -> None:
    async def scope() -> object:
        return SCOPE.get()

    async def main() -> None:
        async with Runtime().turn() as turn:
            assert SCOPE.get() is turn
            assert run_on_loop_thread(scope) is None

    asyncio.run(main())


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    run_on_loop_thread(look)
    child = os.fork()
    if not child:
        os._exit(0 if run_on_loop_thread(look) == "nobody" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_async_tool_may_be_a_fallback_of_a_blocking_one() -> None:
    rt = Runtime()

    @rt.tool(fallbacks=["backup"], retry={"max_attempts": 1}, read_only=True)
    def search() -> str:
        raise ConnectionError("503 Service Unavailable")

    @rt.tool(read_only=True)
    async def backup() -> str:
        await asyncio.sleep(0)
        return f"from the backup, for {WHO.get()}"

    token = WHO.set("Di")
    outcome = rt.call_sync("search")
    WHO.reset(token)
    assert (outcome.value, outcome.via) == ("from the backup, for Di", "backup")


def test_an_async_fallback_has_its_own_deadline() -> None:
    rt = Runtime()

    @rt.tool(fallbacks=["backup"], retry={"max_attempts": 1}, read_only=True)
    def search() -> str:
        raise ConnectionError("503 Service Unavailable")

    @rt.tool(read_only=True, timeout="30ms", retry={"max_attempts": 1})
    async def backup() -> None:
        await asyncio.sleep(20)

    assert rt.call_sync("search").status == "failed"


async def running() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_a_thread_keeps_its_loop() -> None:
    assert run_here(running()) is run_here(running())


def test_the_loop_of_a_thread_is_not_made_the_current_one() -> None:
    mine = asyncio.new_event_loop()
    asyncio.set_event_loop(mine)
    try:
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(run_here(running())))
        thread.start()
        thread.join()
        run_here(running())
        assert asyncio.get_event_loop() is mine
    finally:
        asyncio.set_event_loop(None)
        mine.close()


def test_run_anywhere_uses_the_threads_own_loop_unless_one_is_running() -> None:
    own = run_here(running())
    assert run_anywhere(running) is own
    assert on_loop(lambda: run_anywhere(running)) is run_on_loop_thread(running)


def test_a_tool_that_stops_the_loop_comes_to_its_end_all_the_same() -> None:
    async def stops() -> str:
        for _ in range(3):
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0)
        return "ended"

    assert run_here(stops()) == "ended"
    assert run_here(look()) == "nobody"


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """The handler that Python installs, except where its parent process ignores Ctrl-C, as shells do for background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_sigint")
def test_ctrl_c_cancels_the_coroutine_and_then_interrupts_the_caller() -> None:
    seen: list[str] = []

    async def waits() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_here(waits())
    assert seen == ["cancelled"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_sigint")
def test_a_second_ctrl_c_interrupts_a_coroutine_that_does_not_end() -> None:
    async def ignores() -> None:
        for _ in range(2):
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    with pytest.raises(KeyboardInterrupt):
        run_here(ignores())
    assert run_here(look()) == "nobody"


def test_a_handler_of_blocking_calls_stays_on_one_loop() -> None:
    seen: list[asyncio.AbstractEventLoop] = []

    class Handler:
        async def handle(self, report: ErrorReport) -> Decision:
            seen.append(asyncio.get_running_loop())
            return decide(report)

    rt = Runtime(error_handler=Handler())

    @rt.tool(retry={"max_attempts": 1}, read_only=True)
    def search() -> str:
        raise ConnectionError("503 Service Unavailable")

    for _ in range(2):
        assert rt.call_sync("search").status == "failed"
    assert len(seen) == 2
    assert seen[0] is seen[1] is run_here(running())


def test_an_async_escalation_function_stays_on_one_loop() -> None:
    seen: list[asyncio.AbstractEventLoop] = []

    async def tell(_: Any) -> None:
        seen.append(asyncio.get_running_loop())

    rt = Runtime(on_escalation=tell)

    @rt.tool(retry={"max_attempts": 1}, read_only=True)
    def search() -> str:
        raise ConnectionError("503 Service Unavailable")

    for _ in range(2):
        rt.call_sync("search")
    asyncio.run(rt.close())
    assert len(seen) == 2
    assert seen[0] is seen[1]
