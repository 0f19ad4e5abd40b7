"""Coroutines for callers that block, whether their thread has an event loop or not."""

from __future__ import annotations

import asyncio
import os
import threading
from contextvars import ContextVar

import pytest

from failsoft import Runtime
from failsoft.runtime.execution.blocking_loop import run_on_loop_thread
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


def test_with_the_callers_context_each_time() -> None:
    for who in ("Ada", "Ben"):
        token = WHO.set(who)
        assert run_on_loop_thread(look) == who
        WHO.reset(token)


def test_beside_a_running_loop() -> None:
    token = WHO.set("Cy")
    assert on_loop(lambda: run_on_loop_thread(look)) == "Cy"
    WHO.reset(token)


def test_from_a_coroutine_that_blocks_the_shared_loop() -> None:
    async def outer() -> str:
        return run_on_loop_thread(look)

    assert run_on_loop_thread(outer) == "nobody"


@pytest.mark.parametrize("error", [KeyError("price"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_errors_come_out_as_they_are_and_the_loop_lives_on(error: BaseException) -> None:
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


def test_a_turn_of_another_loop_is_left() -> None:
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


def test_an_async_tool_stands_in_for_one_that_blocks() -> None:
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


def test_an_async_stand_in_has_its_deadline() -> None:
    rt = Runtime()

    @rt.tool(fallbacks=["backup"], retry={"max_attempts": 1}, read_only=True)
    def search() -> str:
        raise ConnectionError("503 Service Unavailable")

    @rt.tool(read_only=True, timeout="30ms", retry={"max_attempts": 1})
    async def backup() -> None:
        await asyncio.sleep(20)

    assert rt.call_sync("search").status == "failed"
