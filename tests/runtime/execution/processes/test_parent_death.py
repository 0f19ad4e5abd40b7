"""However the application dies, nothing of it is left two seconds later.

``FAILSOFT_PARENT_KILLS=20`` kills as many; by default a few.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.runtime.execution.processes import fake_tools
from tests.runtime.execution.processes.conftest import descendants, eventually, is_running

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("FAILSOFT_PARENT_KILLS", "3"))

APPLICATION = """
import asyncio, os, signal, sys, threading
signal.alarm(60)  # the end, whatever becomes of the test
sys.path[:] = {path!r}
from failsoft.core.model.entrypoint import Command
from failsoft.runtime.execution.processes.target import target_of
from failsoft.runtime.execution.processes.pool import Workers
from tests.runtime.execution.processes import fake_tools

fake_tools.log.addHandler(fake_tools.logging.NullHandler())
workers = Workers()

def leave():
    sys.stdin.read()
    os._exit(0)

async def main():
    stuck = [workers.run(target_of(tool), ({mark!r},), {{}}, timeout=None) for tool in fake_tools.STUCK]
    command = workers.run_command(Command(argv=["sh", "-c", "trap '' TERM; sleep 60 & sleep 60"]), {{}}, timeout=None)
    running = [asyncio.ensure_future(one) for one in (*stuck, command)]
    await asyncio.to_thread(sys.stdin.read)
    sys.exit(0)

if {abruptly}:
    threading.Thread(target=leave).start()
asyncio.run(main())
"""


@contextmanager
def application(mark: Path, *, abruptly: bool = False) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """An application in which every tool hangs and a command runs; with all the processes below it."""
    code = APPLICATION.format(path=sys.path, mark=str(mark), abruptly=abruptly)
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as running:
        try:
            assert eventually(lambda: is_under_way(running.pid, mark), 30), "not all tools have begun"
            yield running, descendants(running.pid)
        finally:
            running.kill()


def is_under_way(pid: int, mark: Path) -> bool:
    marks = mark.read_text() if mark.exists() else ""
    sleeping = [line for line in map(command_line, descendants(pid)) if "sleep 60" in line]
    return marks.count("begun") == len(fake_tools.STUCK) and len(sleeping) == 3


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def left_of(below: set[int]) -> dict[int, str]:
    return {pid: command_line(pid) for pid in below if is_running(pid)}


@pytest.mark.parametrize("number", range(TIMES))
def test_no_process_outlives_a_killed_application(tmp_path: Path, number: int) -> None:
    with application(tmp_path / "mark") as (running, below):
        assert len(below) > len(fake_tools.STUCK) + 3
        running.kill()
        running.wait()
        assert eventually(lambda: not left_of(below), 2), left_of(below)


@pytest.mark.parametrize("abruptly", [True, False], ids=["os._exit", "end of the script"])
def test_no_process_outlives_an_application_that_exits(tmp_path: Path, abruptly: bool) -> None:
    with application(tmp_path / "mark", abruptly=abruptly) as (running, below):
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(20) == 0
        assert eventually(lambda: not left_of(below), 2), left_of(below)


def test_workers_are_not_in_the_applications_process_group(tmp_path: Path) -> None:
    """A terminal sends SIGINT to its whole foreground group: neither supervisor nor workers are in it."""
    with application(tmp_path / "mark") as (running, below):
        group = os.getpgid(running.pid)
        assert [pid for pid in below if os.getpgid(pid) == group] == []
