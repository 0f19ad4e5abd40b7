"""Check the torture tests: remove each protection in turn, and require that its test fails.

    python tools/torture_check.py            # all
    python tools/torture_check.py 4 18       # T4 and T18

First every test must pass unchanged. Then each patch of ``tests/torture/protections.py`` is applied to a copy of the
source, and its test must fail: by a failed test, not because of a missing file or name. The work tree is not changed.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.torture.protections import PROTECTIONS, Protection  # noqa: E402 - needs the line above

LIMIT = 120  # seconds for one test; a test that hangs without its protection counts as failed
FAILED = re.compile(r"^FAILED [^:]+::(\w+)", re.MULTILINE)
COPIED = ("src", "tests", "docs", "examples", "bench", "tools", "pyproject.toml", "README.md", "Makefile")


def copy_to(folder: Path) -> Path:
    """Copy the parts of the project that the tests need."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "corpus"))
        elif source.exists():
            shutil.copy(source, folder / name)
    return folder


def run(folder: Path, *tests: str) -> tuple[int | None, str]:
    """Run pytest in a copy; return its exit status (None if it was killed) and output."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            said = running.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            running.kill()
            return None, ""
        return running.returncode, said


def is_copy_used(folder: Path) -> bool:
    shown = subprocess.run(
        [sys.executable, "-c", "import failsoft; print(failsoft.__file__)"],
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(shown.stdout.strip()).is_relative_to(folder)


def check(folder: Path, number: int, protection: Protection) -> tuple[bool, str]:
    """Return whether the test passes with its protection and fails without, and which test failed."""
    test = next(path for path in (folder / "tests" / "torture").glob(f"test_t{number:02}_*.py"))
    name = test.relative_to(folder).as_posix()
    status, said = run(folder, name)
    if status != 0:
        return False, "red as it is: " + (", ".join(FAILED.findall(said)) or said[-300:])
    place = folder / "src" / "failsoft" / protection.file
    whole = place.read_text(encoding="utf-8")
    if whole.count(protection.old) != 1:
        return False, f"the patch does not fit {protection.file} any more"
    try:
        place.write_text(whole.replace(protection.old, protection.new), encoding="utf-8")
        status, said = run(folder, name)
    finally:
        place.write_text(whole, encoding="utf-8")
    if status is None:
        return True, f"hung for {LIMIT} s"
    noticed = FAILED.findall(said)
    if status == 1 and noticed:
        return True, noticed[0]
    return False, "stays green" if status == 0 else f"broke instead of failing: {said[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("numbers", nargs="*", type=int, help="which; all if none are named")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    numbers = chosen.numbers or [*PROTECTIONS]
    with tempfile.TemporaryDirectory() as place:
        copies: queue.Queue[Path] = queue.Queue()
        for job in range(chosen.jobs):
            copies.put(copy_to(Path(place) / str(job)))
        if not is_copy_used(Path(place) / "0"):
            sys.exit("the copy is not what Python imports: is PYTHONSAFEPATH or another PYTHONPATH set?")

        def one(number: int) -> tuple[bool, str]:
            folder = copies.get()
            try:
                return check(folder, number, PROTECTIONS[number])
            finally:
                copies.put(folder)

        with ThreadPoolExecutor(chosen.jobs) as pool:
            good = True
            for number, (red, why) in zip(numbers, pool.map(one, numbers), strict=True):
                good &= red
                print(f"T{number:<3} {'red' if red else 'NOT RED':8} {PROTECTIONS[number].what:74} {why}", flush=True)
    print("every test notices" if good else "some tests do not notice")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
