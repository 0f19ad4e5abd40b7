"""Resolving in one process while others resolve or start the same write: exactly one of them has its way (T35, ADR 60)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.torture.scale import times

from failsoft import LedgerEntry, LedgerError, Runtime
from failsoft.stores.sqlite.store import SqliteStore

RACES = times(1000, 40)
KILLS = times(100, 8)

RACER = """
import json, sys, time
from failsoft import LedgerError, Runtime
from failsoft.runtime.persistence import effect_ledger
from failsoft.stores.sqlite.store import SqliteStore

effect_ledger.PATIENCE = 20.0  # a busy machine may need longer
folder, role, begin, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rt = Runtime(store=SqliteStore(folder + "/kept.db"))

def pay(amount):
    with open(folder + "/paid", "a") as file:
        file.write(f"{amount}\\n")
    return "paid"

rt.add(pay, idempotent=False)
print("ready", flush=True)
sys.stdin.readline()
for number in range(begin, end):
    if role == "start":
        outcome = rt.call_sync("pay", {"amount": number}, id=f"c{number}")
        told = outcome.value if outcome.fault is None else outcome.fault.rule
    else:
        try:
            told = rt.ledger.resolve(f"c{number}", role, "by hand" if role == "happened" else None).state
        except LedgerError as error:
            told = error.problem
    print(json.dumps([number, told]), flush=True)
"""

BEGINNER = """
import os, sys
from failsoft import Runtime
from failsoft.runtime.persistence import effect_ledger
from failsoft.stores.sqlite.store import SqliteStore

effect_ledger.PATIENCE = 20.0
folder, begin, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rt = Runtime(store=SqliteStore(folder + "/kept.db"))
left = [end - begin]

async def pay(amount):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), 9)
    await asyncio.sleep(1000)

rt.add(pay, idempotent=False, timeout="1h")
import asyncio

async def main():
    await asyncio.gather(*(rt.call("pay", {"amount": number}, id=f"c{number}") for number in range(begin, end)))

asyncio.run(main())
"""


def start(code: str, *words: object) -> subprocess.Popen[str]:
    paths = os.pathsep.join([path for path in sys.path if path])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], env={**os.environ, "PYTHONPATH": paths}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def begin(folder: Path, number: int) -> None:
    """Have a process begin writes, and kill it in the middle of all of them."""
    with start(BEGINNER, folder, 0, number) as dying:
        dying.wait(timeout=120)
    assert dying.returncode == -signal.SIGKILL


def paid(folder: Path) -> list[int]:
    path = folder / "paid"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.mark.slow
def test_t35_of_those_who_resolve_and_start_a_write_at_once_one_has_its_way(tmp_path: Path) -> None:
    begin(tmp_path, RACES)
    roles = ("happened", "none", "start")
    racers = [start(RACER, tmp_path, role, 0, RACES) for role in roles]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    told: dict[str, dict[int, str]] = {}
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for role, racer in zip(roles, racers, strict=True):
        out, _ = racer.communicate(timeout=600)
        told[role] = dict(json.loads(line) for line in out.splitlines())
    made = paid(tmp_path)
    assert len(made) == len(set(made)), "a write was made twice"
    for number in range(RACES):
        won = [role for role in ("happened", "none") if told[role][number] == role]
        assert len(won) == 1, (number, told["happened"][number], told["none"][number])
        started = told["start"][number]
        if won == ["happened"]:
            assert number not in made
            assert started in ("begun_before", "by hand"), (number, started)
        else:
            assert started == ("paid" if number in made else "begun_before"), (number, started)


@pytest.mark.slow
def test_t35_a_resolver_that_is_killed_leaves_a_case_open_or_closed(tmp_path: Path) -> None:
    begin(tmp_path, KILLS)
    source = random.Random(60)
    acknowledged: dict[int, str] = {}
    at = 0
    while at < KILLS:
        with start(RACER, tmp_path, source.choice(("happened", "none")), at, KILLS) as racer:
            assert racer.stdout is not None
            assert racer.stdin is not None
            assert racer.stdout.readline() == "ready\n"
            racer.stdin.write("go\n")
            racer.stdin.flush()
            time.sleep(source.uniform(0, 0.05))
            racer.kill()
            for line in racer.stdout.read().splitlines():
                try:
                    number, verdict = json.loads(line)
                except ValueError:
                    break
                if verdict in ("happened", "none"):
                    acknowledged[number] = verdict
                at = max(at, number)
        at += 1
    with start(RACER, tmp_path, "start", 0, KILLS) as racer:
        out, _ = racer.communicate("go\n", timeout=600)
    told = dict(json.loads(line) for line in out.splitlines()[1:])
    made = paid(tmp_path)
    assert len(made) == len(set(made))
    for number, verdict in acknowledged.items():
        assert told[number] == ("by hand" if verdict == "happened" else "paid"), (number, verdict, told[number])
    assert set(told.values()) <= {"by hand", "paid", "begun_before"}


RUNNER = """
import asyncio, sys
from failsoft import Runtime
from failsoft.stores.sqlite.store import SqliteStore

rt = Runtime(store=SqliteStore(sys.argv[1] + "/kept.db"))

async def pay(amount):
    print("running", flush=True)
    await asyncio.sleep(1000)

rt.add(pay, idempotent=False, timeout="1h")

async def main():
    task = asyncio.ensure_future(rt.call("pay", {"amount": 0}, id="c0"))
    await asyncio.to_thread(sys.stdin.readline)
    task.cancel()
    await asyncio.wait([task])
    print("cancelled", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def test_t35_a_write_that_runs_in_another_process_is_not_resolved(tmp_path: Path) -> None:
    with start(RUNNER, tmp_path) as runner:
        assert runner.stdout is not None
        assert runner.stdin is not None
        try:
            assert runner.stdout.readline() == "running\n"
            rt = Runtime(store=SqliteStore(str(tmp_path / "kept.db")))
            for verdict in ("happened", "none"):
                with pytest.raises(LedgerError, match=f"running in process {runner.pid}: wait until it ends") as raised:
                    rt.ledger.resolve("c0", verdict)  # type: ignore[arg-type]
                assert raised.value.problem == "running"
            runner.stdin.write("cancel\n")
            runner.stdin.flush()
            assert runner.stdout.readline() == "cancelled\n"
            resolved = until(lambda: rt.ledger.resolve("c0", "happened", "by hand"))
            assert resolved.state == "happened"
        finally:
            runner.kill()


def until(resolve: Callable[[], LedgerEntry]) -> LedgerEntry:
    """Resolve a case as soon as its process has written that its caller has left."""
    for _ in range(500):
        try:
            return resolve()
        except LedgerError as error:
            if error.problem != "running":
                raise
            time.sleep(0.02)
    raise AssertionError("the process has not written that its caller has left")
