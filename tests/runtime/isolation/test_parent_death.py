"""However the application dies, nothing of it is left two seconds later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runtime.isolation import fake_tools
from tests.runtime.isolation.conftest import descendants, eventually, is_running

TIMES = int(os.environ.get("FAILSOFT_PARENT_KILLS", "3"))

APPLICATION = """
import asyncio, os, sys, threading
sys.path[:] = {path!r}
from failsoft.core.entrypoint import Command
from failsoft.runtime.isolation import Workers, target_of
from tests.runtime.isolation import fake_tools

workers = Workers()

async def main():
    stuck = [workers.run(target_of(tool), ({mark!r},), {{}}, timeout=None) for tool in fake_tools.STUCK]
    command = workers.run_command(Command(argv=["sh", "-c", "trap '' TERM; sleep 60 & sleep 60"]), {{}}, timeout=None)
    await asyncio.gather(*stuck, command)

{last}
"""

LAST = {
    "kill -9": "asyncio.run(main())",
    "os._exit": "threading.Timer(2.0, os._exit, (0,)).start(); asyncio.run(main())",
    "end of the script": "async def brief():\n    task = asyncio.ensure_future(main()); await asyncio.sleep(2)\n"
    "    os.write(1, b'')\n    sys.exit(0)\nasyncio.run(brief())",
}


def start(tmp_path: Path, last: str) -> tuple[subprocess.Popen[bytes], Path]:
    mark = tmp_path / "mark"
    code = APPLICATION.format(path=sys.path, mark=str(mark), last=last)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL), mark


def under_way(application: subprocess.Popen[bytes], mark: Path) -> set[int]:
    """Wait until every tool hangs and the command runs; all processes below the application."""

    def all_there() -> bool:
        marks = mark.read_text() if mark.exists() else ""
        return marks.count("begun") == len(fake_tools.STUCK) and len(commands()) >= 3

    def commands() -> list[str]:
        return [
            line for line in map(command_line, descendants(application.pid)) if "sleep 60" in line.replace("\0", " ")
        ]

    assert eventually(all_there, 20), mark.read_text() if mark.exists() else "nothing has begun"
    return descendants(application.pid)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_kill_minus_nine_leaves_nothing(tmp_path: Path) -> None:
    for number in range(TIMES):
        place = tmp_path / str(number)
        place.mkdir()
        application, mark = start(place, LAST["kill -9"])
        below = under_way(application, mark)
        assert len(below) > len(fake_tools.STUCK) + 3
        application.send_signal(signal.SIGKILL)
        application.wait()
        assert eventually(lambda: not any(map(is_running, below)), 2), {  # noqa: B023 - asked at once
            pid: command_line(pid) for pid in below if is_running(pid)
        }


@pytest.mark.parametrize("last", ["os._exit", "end of the script"])
def test_an_ordinary_end_leaves_nothing(tmp_path: Path, last: str) -> None:
    application, mark = start(tmp_path, LAST[last])
    below = under_way(application, mark)
    assert application.wait(20) == 0
    assert eventually(lambda: not any(map(is_running, below)), 2)


def test_ctrl_c_is_for_the_application_alone(tmp_path: Path) -> None:
    """A terminal sends SIGINT to its whole foreground group: neither supervisor nor workers are in it."""
    application, mark = start(tmp_path, LAST["kill -9"])
    try:
        below = under_way(application, mark)
        group = os.getpgid(application.pid)
        assert [pid for pid in below if os.getpgid(pid) == group] == []
    finally:
        application.kill()
        application.wait()
