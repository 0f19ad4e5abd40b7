"""T41: a turn raised when it ended after the main thread, or while another thread closed the runtime. Here it never does."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.torture.scale import times

from failsoft import FailsoftError, Runtime
from failsoft.stores.sqlite.store import SqliteStore

CLOSES = times(200, 20)
# Python 3.12.0 to 3.12.2 start no OS thread once the main thread has ended (python/cpython#113964)
STARTS_THREADS = not (3, 12) <= sys.version_info < (3, 12, 3)
PROGRAM = """
import asyncio, threading
from failsoft import Runtime

rt = Runtime(store="sqlite:///{path}")

@rt.tool(read_only=True)
async def suspends():
    return 1

@rt.tool(read_only=True)
def blocks():
    return 2

async def main():
    async with rt.turn() as turn:
        turn.call("suspends")
        await asyncio.sleep({wait})
        turn.call("suspends")
        turn.call("blocks")
    print([outcome.status for outcome in turn.report.outcomes.values()], turn.acknowledged)

threading.Thread(target=lambda: asyncio.run(main())).start()
"""


@pytest.mark.parametrize("wait", [0.0, 0.2])
def test_t41_a_turn_may_outlive_the_main_thread(tmp_path: Path, wait: float) -> None:
    path = tmp_path / "a.db"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(path=path, wait=wait)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr
    blocks = "succeeded" if STARTS_THREADS else "failed"
    assert done.stdout.startswith(f"['succeeded', 'succeeded', '{blocks}']")
    store = SqliteStore(path)
    ends = [event["event_type"] for _, event in store.read() if event["event_type"] in ("CallSucceeded", "Escalated")]
    assert sorted(ends) == ["CallSucceeded"] * 2 + ["CallSucceeded" if STARTS_THREADS else "Escalated"]
    store.close()


AT_EXIT = """
import asyncio, atexit
from failsoft import Runtime

rt = Runtime(store="sqlite:///{path}")
rt.add(lambda: 1, id="works", read_only=True)
rt.call_sync("works")

async def end():
    print(await rt.flush())
    await rt.close()
    print("closed")

atexit.register(lambda: asyncio.run(end()))
"""


def test_t41_the_runtime_may_be_closed_at_exit(tmp_path: Path) -> None:
    """The interpreter then takes no more work for other OS threads."""
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT.format(path=tmp_path / "a.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("True\nclosed\n", "")


def test_t41_another_thread_may_close_the_runtime(tmp_path: Path) -> None:
    source = random.Random(41)
    raised: list[BaseException] = []
    for _ in range(CLOSES):
        rt = Runtime(store=f"sqlite:///{tmp_path / 'a.db'}")
        rt.add(lambda: 1, id="blocks", read_only=True)

        async def turns(rt: Runtime = rt) -> None:
            for _ in range(3):
                async with rt.turn() as turn:
                    turn.call("blocks")

        def run(turns: object = turns) -> None:
            try:
                asyncio.run(turns())  # type: ignore[operator]
            except FailsoftError:  # the next turn was begun after the end
                pass
            except BaseException as error:
                raised.append(error)

        other = threading.Thread(target=run)
        other.start()
        time.sleep(source.uniform(0, 0.02))
        asyncio.run(rt.close())
        other.join()
    assert raised == []


def test_t41_a_turn_ends_although_no_thread_can_be_had(tmp_path: Path) -> None:
    rt = Runtime(store=f"sqlite:///{tmp_path / 'a.db'}")
    rt.add(lambda: 1, id="works", timeout=None, read_only=True)

    async def main() -> None:
        async with rt.turn() as turn:
            turn.call("works")
            keeper = rt._engine.books.writer
            assert keeper is not None
            keeper._waiters.shutdown()  # as at the end of the interpreter, or in ``close`` of another thread
        assert [outcome.status for outcome in turn.report.outcomes.values()] == ["succeeded"]
        await rt.close()

    asyncio.run(main())
