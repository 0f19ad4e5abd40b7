from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLUGIN = "failsoft.testing.pytest_plugin"
PROJECT = """
import asyncio
import threading
import pytest
from failsoft.runtime.execution import clock

threads = []

def test_hours(virtual_time):
    assert clock.current().monotonic() == 0.0
    virtual_time.run(asyncio.sleep(3600))
    assert clock.current().monotonic() == virtual_time.time() == 3600.0

def test_plans(virtual_time, fault_plan):
    plan = fault_plan("timeout", then="ok")
    async def search(): return 1
    tool = plan.wrap(search)
    with pytest.raises(TimeoutError):
        virtual_time.run(tool())
    assert virtual_time.run(tool()) == 1
    assert fault_plan("hang") is not plan

def test_something_hangs(fault_plan):
    threads.append(threading.Thread(target=fault_plan("hang").wrap(lambda: None), daemon=True))
    threads[0].start()

def test_afterwards():
    assert clock.current() is clock.SYSTEM
    threads[0].join(5)
    assert not threads[0].is_alive()
"""


def test_fixtures_in_a_project_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PROJECT)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "-p",
        PLUGIN,
        str(tmp_path),
    ]
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
    assert "4 passed" in result.stdout, result.stdout + result.stderr


def test_testing_does_not_need_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import failsoft.testing; print(failsoft.testing.__all__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "FaultPlan" in result.stdout, result.stderr
