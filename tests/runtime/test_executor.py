"""Where a framework's blocking tools run: in daemon threads; what else uses the loop's executor stays where it was."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from failsoft import Runtime
from failsoft.runtime.executor import use_daemon_threads


def thread() -> threading.Thread:
    return threading.current_thread()


async def of_tool(rt: Runtime) -> threading.Thread:
    async def run(_: Any) -> threading.Thread:
        use_daemon_threads(rt)
        return await asyncio.to_thread(thread)

    return (await rt.run("tool", {}, {"tool": run})).unwrap()  # type: ignore[no-any-return]


@pytest.mark.parametrize("used", [True, False])
def test_only_the_work_of_tools_goes_to_daemon_threads(used: bool) -> None:
    async def main() -> tuple[threading.Thread, threading.Thread]:
        if used:
            await asyncio.to_thread(thread)
        return await of_tool(Runtime()), await asyncio.to_thread(thread)

    tools, others = asyncio.run(main())
    assert tools.daemon
    assert others.name.startswith("asyncio")
    assert not others.is_alive()  # joined, as ever


def test_an_executor_of_the_users_is_left_alone() -> None:
    async def main() -> threading.Thread:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="mine"))
        return await of_tool(Runtime())

    assert asyncio.run(main()).name.startswith("mine")


def test_a_loop_without_the_private_name_has_threads_for_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[threading.Thread, threading.Thread]:
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(thread)
        monkeypatch.delattr(loop, "_default_executor", raising=False)
        return await of_tool(Runtime()), await asyncio.to_thread(thread)

    tools, others = asyncio.run(main())
    assert (tools.daemon, others.name.startswith("asyncio")) == (True, True)
