"""Ten seconds of the real soak: not how fast it is, but that nothing is lost and nothing is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.soak.load import Soaked

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_ten_seconds_leave_nothing_behind() -> None:
    command = [sys.executable, "-m", "tools.soak", "--days", "0", "--minutes", "0.17", "--rate", "300", "--no-memory"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing is left, and nothing was lost" in ended.stdout


def test_memory_that_grows_is_noticed() -> None:
    steady, growing = Soaked(60), Soaked(60)
    steady.memory = [80.0 + (at % 3) for at in range(40)]
    growing.memory = [80.0 + at / 4 for at in range(40)]
    assert steady.growth < 1
    assert growing.growth > 5


def test_a_write_that_is_done_twice_is_noticed() -> None:
    assert Soaked(60, effects=bytearray([0, 1, 2, 1, 3])).twice == 2
