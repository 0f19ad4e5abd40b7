"""T37: one retry offer was used by two processes, or again after a kill. Here one of them gets it, and once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes import DOWN, OFTEN, ONCE, Scripted
from tests.torture.scale import times

from failsoft import Runtime

RACES = times(1000, 40)

RACER = """
import asyncio, os, signal, sys
from failsoft import Runtime
from failsoft.runtime.persistence import store_reads

store_reads.PATIENCE = 20.0  # a busy machine may need longer
folder, dies = sys.argv[1], sys.argv[2] == "dies"
rt = Runtime(store=f"sqlite:///{folder}/failsoft.db")

@rt.tool(read_only=True)
async def search(number):
    with open(f"{folder}/ran", "a") as file:
        file.write(f"{number}\\n")
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return number

async def main():
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        outcome = await rt.threads[f"chat-{line.strip()}"].retry("search")
        print(outcome.status if outcome.fault is None else outcome.fault.rule, flush=True)

asyncio.run(main())
"""


def offer(folder: Path, number: int) -> None:
    """Leave an offer in so many conversations."""

    async def main() -> None:
        async with Runtime(store=f"sqlite:///{folder}/failsoft.db", memory="off") as rt:
            rt.add(Scripted(DOWN), id="search", read_only=True, retry=ONCE, breaker=OFTEN)
            for conversation in range(number):
                await rt.call("search", {"number": conversation}, thread=f"chat-{conversation}")
            assert await rt.flush("60s")

    asyncio.run(main())


def start(folder: Path, how: str = "lives") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    racer = subprocess.Popen(
        [sys.executable, "-c", RACER, str(folder), how],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert racer.stdout is not None
    assert racer.stdout.readline() == "ready\n"
    return racer


def tell(racer: subprocess.Popen[str], number: int) -> None:
    assert racer.stdin is not None
    racer.stdin.write(f"{number}\n")
    racer.stdin.flush()


def hear(racer: subprocess.Popen[str]) -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().strip()


def ran(folder: Path) -> list[int]:
    return sorted(map(int, (folder / "ran").read_text().split()))


@pytest.mark.slow
def test_t37_only_one_of_two_processes_uses_the_offer(tmp_path: Path) -> None:
    offer(tmp_path, RACES)
    with start(tmp_path) as one, start(tmp_path) as other:
        for number in range(RACES):
            tell(one, number)
            tell(other, number)
            assert {hear(one), hear(other)} == {"succeeded", "no_offer"}
        one.terminate()
        other.terminate()
    assert ran(tmp_path) == [*range(RACES)]


@pytest.mark.slow
def test_t37_a_kill_does_not_bring_the_offer_back(tmp_path: Path) -> None:
    offer(tmp_path, 1)
    with start(tmp_path, "dies") as killed:
        tell(killed, 0)
        assert hear(killed) == ""
    with start(tmp_path) as after:
        tell(after, 0)
        assert hear(after) == "no_offer"
        after.terminate()
    assert ran(tmp_path) == [0]
