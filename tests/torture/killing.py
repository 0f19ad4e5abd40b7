"""Kill an application in the middle of a payment and start it again: what T35 and T36 share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

APPLICATION = Path(__file__).with_name("paying.py")
KEPT = ("checkpoints", "history.json", "state.json")  # by the frameworks
TEXT = "It may already have taken effect: check before calling again."


class Replayed(NamedTuple):
    """The result of a killed run."""

    before: int  # payments when it was killed
    after: int  # payments when it had been started again
    told: str  # by the second start

    @property
    def is_right(self) -> bool:
        """Paid once, or not run and reported as unknown."""
        if self.told == "paid":
            return (self.before, self.after) == (0, 1)
        return TEXT in self.told and self.before == self.after <= 1


def kill_and_replay(route: str, folder: Path, delay: float | None, *, replays: int = 1) -> Replayed:
    """Start the application, kill it ``delay`` seconds after it has begun, start it again, and let it end.

    Without a delay it is killed as soon as it has paid. Each of several replays starts from what the framework had kept.
    """
    folder.mkdir()
    with _start(route, folder, seconds=30) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "go\n", "it has not even begun"
        until = time.monotonic() + (60 if delay is None else delay)
        while time.monotonic() < until and not (delay is None and _count(folder)):
            time.sleep(min(0.005, max(0.0, until - time.monotonic())))
        if delay is None and route.endswith("_beside"):
            time.sleep(0.3)  # what runs beside it goes on
        running.kill()
    if route == "worker":
        time.sleep(0.2)  # its tool lives in another process, and may be about to pay
    before = _count(folder)
    kept = {path: path.read_bytes() for name in KEPT if (path := folder / name).exists()}
    for _ in range(replays):
        for path, content in kept.items():
            path.write_bytes(content)
        with _start(route, folder, seconds=0) as again:
            said, _ = again.communicate(timeout=120)
        assert again.returncode == 0
    return Replayed(before, _count(folder), json.loads(said.splitlines()[-1]))


def _start(route: str, folder: Path, *, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, str(APPLICATION)]
    paths = os.pathsep.join([path for path in sys.path if path])
    said = {"PYTHONPATH": paths, "FOLDER": str(folder), "SECONDS": str(seconds), "ROUTE": route}
    return subprocess.Popen(command, env={**os.environ, **said}, stdout=subprocess.PIPE, text=True)


def _count(folder: Path) -> int:
    paid = folder / "paid"
    return len(paid.read_text().splitlines()) if paid.exists() else 0
