"""Run cases against libraries, each pair in its own process, several at a time."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.peers.cases import CASES
from bench.peers.cases.case import Case
from bench.peers.libraries import LIBRARIES

ROOT = Path(__file__).parents[2]
Answer = dict[str, Any]


def versions() -> dict[str, str | None]:
    """Return the version of each library; None if it is not installed."""
    found: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def look(case: Case, name: str) -> Answer:
    """Run one case against one library; repeat a fault with the documented option, if there is one."""
    library = LIBRARIES[name]()
    base = {"case": case.name, "library": name}
    if lacking := case.lacks(library):
        return {**base, "verdict": "no part", "words": lacking.replace("_", " ").replace("|", " or ")}
    answer = {**base, **_run(case, name)}
    answer.pop("option", None)
    if answer["verdict"] == "fault" and case.name in library.options():
        again = _run(case, name, "--option")
        answer["option"] = {"setting": again.pop("option", ""), **again}
    return answer


def _run(case: Case, name: str, *more: str) -> Answer:
    command = [sys.executable, "-m", "bench.peers.child", case.name, name, *more]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        running = subprocess.Popen(
            command, stdout=out, stderr=err, cwd=ROOT, env=environment, start_new_session=True
        )  # fmt: skip
        try:
            running.wait(case.limit)
        except subprocess.TimeoutExpired:
            return {"verdict": "fault", "words": f"no answer within {case.limit:.0f} s"}
        finally:
            _end_group(running)
        out.seek(0)
        err.seek(0)
        lines = out.read().strip().splitlines()
        if not lines or not lines[-1].startswith("{"):
            return {
                "verdict": "error",
                "words": f"the process ended with {running.returncode}",
                "at": err.read()[-2000:],
            }
        return json.loads(lines[-1])


def _end_group(running: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def run(
    cases: Iterable[str], libraries: Iterable[str], jobs: int = 2, tell: Callable[[Answer], None] = lambda _: None
) -> dict[str, Any]:
    """Return the answers of all pairs, with the facts about the machine and versions."""
    installed = versions()
    pairs = [(CASES[case], library) for case in cases for library in libraries if installed[library]]
    began = time.strftime("%Y-%m-%d")

    def one(pair: tuple[Case, str]) -> Answer:
        answer = look(*pair)
        tell(answer)
        return answer

    with ThreadPoolExecutor(jobs) as pool:
        answers = list(pool.map(one, pairs))
    return {
        "when": began,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {name: installed[name] for name in libraries},
        "answers": answers,
    }
