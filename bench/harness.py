"""The method of measurement.

- Ratios to a baseline, measured in one run: rounds are interleaved and their order rotates, so that a busy moment
  affects all alike. The ratio is the median over the rounds of peer / baseline within the same round.
- CPU time of the process, helper threads included. A batch lasts about as long for every peer, so that the scheduler
  treats slow and fast peers alike.
- Instructions per call, if valgrind is installed: they do not depend on the machine's load.
- A peer that is not installed is listed as skipped. Peers are measured through their public API only.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BATCH_NS = 150_000  # duration of a batch
SLOW_NS = 50_000_000  # a peer that needs longer for one call gets a few rounds only
COUNTS = (200, 600)  # calls under valgrind, unless a scenario sets its own; the difference counts

Call = Callable[[Any], Any]
Batch = Callable[["Peer", int], int]  # CPU time of so many calls, in ns


@dataclass
class Peer:
    """A peer to measure: ``make`` returns the callable, or raises ImportError."""

    name: str
    make: Callable[[], Any]
    counted: bool = False  # count instructions, too
    blocking: bool = False  # blocking, in a scenario of awaited calls
    call: Call | None = None
    count: int = 0  # calls per batch
    rounds: list[float] = field(default_factory=list)  # ns per call


@dataclass
class Plan:
    """How much to measure."""

    rounds: int = 60
    fresh_rounds: int = 7  # for scenarios that need a new process each time
    batches: int = 5  # per round and peer
    instr: bool = False
    tiny: bool = False  # only check that everything runs


@dataclass
class Table:
    """The result of one scenario."""

    name: str
    title: str
    columns: list[str]
    rows: list[dict[str, Any]]
    skipped: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    peers: Sequence[Peer], plan: Plan, *, awaits: bool = True, divide: int = 1
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Measure peers against the first of them. ``divide``: units per call, such as three attempts."""
    loop = asyncio.new_event_loop()
    try:
        ready, skipped = prepare(peers, loop)
        if not ready:
            return [], skipped
        batch = _async_batches(loop) if awaits else _blocking_batch
        for peer in ready:
            peer.count = 1 if plan.tiny else _calibrate(peer, batch)
        gc.collect()
        gc.freeze()  # one peer's large heap must not slow the others' garbage collection
        for number in range(plan.rounds):
            first = number % len(ready)
            for peer in ready[first:] + ready[:first]:
                if len(peer.rounds) >= 3 and peer.rounds[0] > SLOW_NS:
                    continue
                spent = sum(batch(peer, peer.count) for _ in range(plan.batches))
                peer.rounds.append(spent / (peer.count * plan.batches))
    finally:
        gc.unfreeze()
        loop.close()
    base = ready[0]
    rows = [
        {
            "peer": peer.name,
            "ns": statistics.median(peer.rounds) / divide,
            "ratio": statistics.median(mine / theirs for mine, theirs in zip(peer.rounds, base.rounds, strict=False)),
            "best": min(peer.rounds) / min(base.rounds),
        }
        for peer in ready
    ]
    return rows, skipped


def prepare(peers: Iterable[Peer], loop: asyncio.AbstractEventLoop) -> tuple[list[Peer], dict[str, str]]:
    """Make the installed peers; return the others by name, with what is missing."""

    async def make(peer: Peer) -> Any:
        made = peer.make()
        return await made if inspect.iscoroutine(made) else made

    ready, skipped = [], {}
    for peer in peers:
        peer.rounds = []
        try:
            peer.call = loop.run_until_complete(make(peer))
        except ImportError as error:
            skipped[peer.name] = f"not installed: {error.name or error}"
        else:
            ready.append(peer)
    return ready, skipped


def _calibrate(peer: Peer, batch: Batch) -> int:
    batch(peer, 1)  # late imports and caches
    guess: float = batch(peer, 1)
    if guess < SLOW_NS:
        warm = max(1, min(50, int(20 * BATCH_NS / max(guess, 1))))  # CPython specialises code after a few runs
        guess = min(batch(peer, warm) for _ in range(4)) / warm
    return max(1, min(3000, int(BATCH_NS / max(guess, 1))))


def _blocking_batch(peer: Peer, count: int) -> int:
    call = peer.call
    assert call is not None
    started = time.process_time_ns()
    for _ in repeat(None, count):
        call(7)
    return max(1, time.process_time_ns() - started)


def _async_batches(loop: asyncio.AbstractEventLoop) -> Batch:
    """Measure CPU time of awaited calls and of their cleanup on the loop, less an idle iteration of it."""

    async def run(call: Call, count: int) -> tuple[int, int]:
        now = time.process_time_ns
        started = now()
        for _ in repeat(None, count):
            await call(7)
        called = now()
        await asyncio.sleep(0)
        return called - started, now() - called

    async def nothing(_: Any) -> None:
        pass

    idle = statistics.median(loop.run_until_complete(run(nothing, 1))[1] for _ in range(100))

    def batch(peer: Peer, count: int) -> int:
        assert peer.call is not None
        spent, after = loop.run_until_complete(run(peer.call, count))
        return max(1, spent + max(0, int(after - idle)))

    return batch


# --- instructions ------------------------------------------------------------------------------------------------------


def has_valgrind() -> bool:
    return shutil.which("valgrind") is not None


def add_instructions(rows: list[dict[str, Any]], module: str, peers: Sequence[Peer], *, divide: int = 1) -> None:
    """Fill in ``instr`` and ``instr_ratio`` for the counted peers; ``peers`` are ``module``'s PEERS."""
    counted = instructions(module, [peer.name for peer in peers if peer.counted])
    base = counted.get(peers[0].name)
    for row in rows:
        count = counted.get(row["peer"])
        if count and base:
            row["instr"] = count / divide
            row["instr_ratio"] = count / base


def instructions(module: str, names: Sequence[str]) -> dict[str, float]:
    """Count instructions per call, by name: the difference between many calls and few, each in its own fork."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/%p",
             sys.executable, "-m", "bench.count", module, *names],
            cwd=ROOT, env=environment(PYTHONHASHSEED="0"), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"counting {module} failed:\n{done.stderr}")
        spent: dict[str, dict[int, int]] = {}
        for line in done.stdout.splitlines():
            if line.startswith("@"):
                name, count, pid = json.loads(line[1:])
                text = Path(folder, str(pid)).read_text()
                spent.setdefault(name, {})[count] = int(text.rpartition("summary:")[2].split()[0])
    found = {}
    for name, both in spent.items():
        if len(both) == 2:
            few, many = sorted(both)
            found[name] = (both[many] - both[few]) / (many - few)
    return found


# --- fresh processes ---------------------------------------------------------------------------------------------------


def environment(**more: str) -> dict[str, str]:
    """Return the environment for measured processes: bytecode is cached, as for users."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths = [str(ROOT), str(ROOT / "src"), *filter(None, [kept.get("PYTHONPATH")])]
    if "PYTHONPATH" in kept:  # measures another source tree
        paths = [kept["PYTHONPATH"], str(ROOT)]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), **more}


def memory_kb(which: str) -> int:
    """Return this process's memory on Linux: VmRSS now, VmHWM at its peak. (The peak of getrusage survives exec.)"""
    return int(Path("/proc/self/status").read_text().partition(f"{which}:")[2].split()[0])


class NotInstalled(Exception):
    """A peer is missing in the measuring process."""


def fresh(module: str, *arguments: str, limit: float = 120) -> Any:
    """Run ``module`` in its own process and parse the JSON in the last line of its output."""
    with tempfile.TemporaryFile("w+") as output:  # a file: orphaned workers would hold a pipe open
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT, env=environment(), stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(limit)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read()
    lines = [line for line in text.splitlines() if line.startswith(("{", "["))]
    if lines:
        return json.loads(lines[-1])
    if "ModuleNotFoundError" in text or "ImportError" in text:
        raise NotInstalled(text.splitlines()[-1].partition(": ")[2])
    raise RuntimeError(f"{module} {' '.join(arguments)} failed:\n{text}")


def fresh_rounds(
    module: str, names: Sequence[str], rounds: int, *more: str
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Run every name in its own process, in rotated rounds; return results and the peers that are not installed."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    skipped: dict[str, str] = {}
    for number in range(rounds):
        first = number % len(names)
        for name in [*names[first:], *names[:first]]:
            if name not in skipped:
                try:
                    found[name].append(fresh(module, name, *more))
                except NotInstalled as missing:
                    skipped[name] = f"not installed: {missing}"
    return {name: results for name, results in found.items() if results}, skipped
