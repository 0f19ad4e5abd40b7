"""Coroutines for callers without an event loop, and for those that have one and block it."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from failsoft import Runtime
from failsoft.runtime.beside import run_here
from failsoft.runtime.scope import SCOPE

WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def look() -> tuple[str, bool]:
    await asyncio.sleep(0)
    return WHO.get(), threading.current_thread() is threading.main_thread()


async def fail() -> None:
    raise KeyError("price")


def test_in_this_thread_each_time_with_the_callers_context() -> None:
    for who in ("Ada", "Ben"):
        token = WHO.set(who)
        assert run_here(look) == (who, True)
        WHO.reset(token)


def test_beside_a_running_loop() -> None:
    async def main() -> tuple[str, bool]:
        WHO.set("Cy")
        return run_here(look)

    assert asyncio.run(main()) == ("Cy", False)


def test_errors_come_out_as_they_are() -> None:
    async def main() -> None:
        run_here(fail)

    with pytest.raises(KeyError, match="price"):
        run_here(fail)
    with pytest.raises(KeyError, match="price"):
        asyncio.run(main())


def test_a_turn_of_another_loop_is_left() -> None:
    async def scope() -> object:
        return SCOPE.get()

    async def main() -> None:
        async with Runtime().turn() as turn:
            assert SCOPE.get() is turn
            assert run_here(scope) is None

    asyncio.run(main())
