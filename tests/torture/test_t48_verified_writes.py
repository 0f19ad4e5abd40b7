"""T48: a write that was killed, lost or replayed is verified, and made exactly once."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import Scripted, Takes, virtual
from tests.torture.scale import times

from failsoft import Runtime, Verified
from failsoft.core.effects.verification import COMMAND_ENDS
from failsoft.runtime.execution.processes.supervisor import GRACE
from failsoft.stores.memory import MemoryStore

APPLICATION = Path(__file__).with_name("verifying.py")
KILLS = times(100, 6)


def start(folder: Path, loses: str) -> subprocess.Popen[str]:
    said = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "FOLDER": str(folder), "SECONDS": "0.1"}
    command = [sys.executable, str(APPLICATION)]
    return subprocess.Popen(command, env={**os.environ, **said, "LOSES": loses}, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(("loses", "takes"), [("never", 0.2), ("before", 0.45), ("after", 0.35)])
def test_t48_a_write_that_is_killed_at_any_moment_is_made_exactly_once(
    loses: str, takes: float, tmp_path: Path
) -> None:
    """Each start is killed before it can end: a call that has ended is not a replay when it is made again."""
    source = random.Random(48)
    for number in range(KILLS // 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        for most in (takes, 0.14):  # the second one spends 0.15 s on verify alone
            with start(folder, loses) as running:
                assert running.stdout is not None
                assert running.stdout.readline() == "go\n"
                time.sleep(source.uniform(0, most))
                running.kill()
        with start(folder, loses) as last:
            said, _ = last.communicate(timeout=120)
        assert said.splitlines()[-1] == "paid", said
        assert (folder / "paid").read_text().split() == ["4"]


@virtual
async def test_t48_a_replay_beside_the_running_write_is_not_made_whatever_verify_says() -> None:
    async def none(arguments: Any, key: Any, fault: Any) -> Verified:
        return Verified.none()

    store, again = MemoryStore(), Scripted("paid twice")
    first, second = Runtime(store=store), Runtime(store=store)
    first.add(Scripted(Takes(60, "paid")), id="pay", verify=none, timeout=None)
    second.add(again, id="pay", verify=none)
    running = asyncio.ensure_future(first.call("pay", id="c1", thread="chat"))
    await asyncio.sleep(1)
    outcome = await second.call("pay", id="c1", thread="chat")
    assert (outcome.status, again.attempts) == ("failed", 0)
    assert (await running).value == "paid"


@pytest.mark.parametrize("cut", [0.0, 0.05, 0.5, 0.99, 1.0, 1.01, 1.5, 2.0, 3.9, 3.99, 4.05])
@virtual
async def test_t48_a_deadline_at_any_moment_of_verify_never_repeats_the_write(cut: float) -> None:
    async def none(arguments: Any, key: Any, fault: Any) -> Verified:
        await asyncio.sleep(3)
        return Verified.none()

    rt = Runtime()
    pay = Scripted(ConnectionResetError("reset"), "paid")
    rt.add(pay, id="pay", verify=none, retry={"initial_delay": "100ms", "jitter_percent": 0})
    async with rt.turn(timeout=f"{round(cut * 1000) + 1}ms") as turn:
        handle = turn.call("pay")
    await asyncio.sleep(60)
    assert pay.attempts == 1
    assert handle.outcome is not None
    assert handle.outcome.fault is not None
    assert handle.outcome.fault.effect == ("none" if cut > 4.0 else "unknown")


def test_t48_a_command_that_acts_after_sigterm_is_not_verified_before_it_is_gone(tmp_path: Path) -> None:
    paid = tmp_path / "paid"
    script = f"trap '' TERM; sleep 1; echo 4 >> {shlex.quote(str(paid))}"
    pay = {
        "entrypoint": {"command": ["sh", "-c", script]},
        "idempotent": False,
        "timeout": "500ms",
        "retry": {"max_attempts": 2, "initial_delay": "1ms", "budget": False},
        "verify": {"tool": "find_payment", "happened_if": {"paid": 1}, "none_if": {"paid": 0}},
        "verify_delay": "10ms",
    }
    rt = Runtime({"tools": {"pay": pay}})

    @rt.tool(read_only=True)
    def find_payment() -> dict[str, int]:
        return {"paid": payments()}

    def payments() -> int:
        return len(paid.read_text().splitlines()) if paid.exists() else 0

    outcome = rt.call_sync("pay", {})
    asyncio.run(rt.close())
    assert payments() == (outcome.status == "succeeded")


def test_t48_a_command_is_gone_when_it_is_verified() -> None:
    assert COMMAND_ENDS > GRACE
