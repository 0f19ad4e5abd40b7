"""The soak test: simulated days from seeds, then real load for some minutes. Exit status 1 if anything is wrong.

    python -m tools.soak                              # 100 days, then 10 minutes
    python -m tools.soak --days 5 --minutes 0.5       # less of both
    python -m tools.soak day 7 --trace day-7.jsonl    # one day, as JSON; its trace goes to a file

Each day runs twice, in two processes with different string hashing: the traces must be identical. docs/soak.md lists
the checks.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.soak.day import live  # noqa: E402 - needs the line above
from tests.soak.invariants import find_violations  # noqa: E402
from tests.soak.load import MOST_GROWTH, Soaked, soak  # noqa: E402

SHOWN = ("calls", "attempts", "effects", "turns", "retries", "opened", "refused", "fallbacks", "cancelled")


def one_day(seed: int, trace: Path | None) -> dict[str, Any]:
    lived = live(seed, path=trace)
    violations = {name: found for name, found in find_violations(lived).items() if found}
    return {"seed": seed, "digest": lived.digest, "violations": violations, "figures": lived.figures()}


def day_elsewhere(seed: int, hash_seed: int) -> dict[str, Any]:
    """Run a day in a separate process."""
    command = [sys.executable, "-m", "tools.soak", "day", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode not in (0, 1):
        return {"seed": seed, "digest": "", "violations": {"the day": ["did not come to its end"]}, "figures": {}}
    made: dict[str, Any] = json.loads(ended.stdout)
    return made


def many_days(days: int, first: int, jobs: int) -> bool:
    """Run all days, each twice; return whether all checks passed."""
    began, bad, total = time.monotonic(), 0, dict.fromkeys(SHOWN, 0)

    def twice(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return day_elsewhere(seed, 1), day_elsewhere(seed, 2)

    with ThreadPoolExecutor(jobs) as pool:
        for one, other in pool.map(twice, range(first, first + days)):
            wrong = dict(one["violations"])
            if one["digest"] != other["digest"]:
                wrong["determinism"] = [f"two traces: {one['digest']}, {other['digest']}"]
            bad += bool(wrong)
            for name in SHOWN:
                total[name] += one["figures"].get(name, 0)
            told = "  ".join(f"{one['figures'].get(name, 0)} {name}" for name in SHOWN[:6])
            print(f"day {one['seed']:4}  {one['digest'][:12]}  {told}  {'VIOLATED' if wrong else 'ok'}", flush=True)
            for name, found in wrong.items():
                print(*(f"    {name}: {text}" for text in found[:5]), sep="\n", flush=True)
    took = time.monotonic() - began
    print(f"{days} days, each lived twice, in {took:.0f} s: {bad} with violations")
    print("  " + ", ".join(f"{count:,} {name}" for name, count in total.items()), flush=True)
    return not bad


def load(minutes: float, rate: float, seed: int, *, memory: bool) -> bool:
    """Run the real load and print its table."""
    soaked = soak(minutes * 60, rate, seed, lambda line: print(line, flush=True))
    if memory:
        judge_memory(soaked)
    print()
    for name, value in table(soaked, rate).items():
        print(f"  {name:34} {value}")
    for text, times in sorted({text: soaked.violations.count(text) for text in soaked.violations}.items()):
        print(f"  VIOLATED: {text}" + (f" ({times} times)" if times > 1 else ""))
    print("nothing is left, and nothing was lost" if not soaked.violations else "the soak has failed", flush=True)
    return not soaked.violations


def judge_memory(soaked: Soaked) -> None:
    if soaked.growth > MOST_GROWTH:
        soaked.violations.append(
            f"memory has grown by {soaked.growth:.1f} MB since the warm-up, {MOST_GROWTH:g} at most"
        )


def table(soaked: Soaked, rate: float) -> dict[str, Any]:
    ends = ", ".join(f"{count:,} {status}" for status, count in soaked.ends.most_common())
    first, *_, last = soaked.memory or [0.0, 0.0]
    return {
        "calls": f"{soaked.calls:,} in {soaked.seconds:g} s: {soaked.calls / soaked.seconds:.0f} a second of {rate:g}",
        "ends": ends,
        "writes, and those done twice": f"{sum(map(bool, soaked.effects)):,}, {soaked.twice}",
        "memory (MB) after warm-up, at end": f"{first:.1f}, {last:.1f}",
        **soaked.figures,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=100, help="simulated days; 0: none")
    parser.add_argument("--first", type=int, default=1, help="the first day's seed")
    parser.add_argument("--jobs", type=int, default=2, help="days at a time")
    parser.add_argument("--minutes", type=float, default=10.0, help="of real load; 0: none")
    parser.add_argument("--rate", type=float, default=1_000.0, help="calls a second")
    parser.add_argument("--seed", type=int, default=1, help="of the real load")
    parser.add_argument("--no-memory", action="store_true", help="for runs too short to have warmed up")
    parts = parser.add_subparsers(dest="part")
    day = parts.add_parser("day", help="one simulated day, as JSON")
    day.add_argument("seed", type=int)
    day.add_argument("--trace", type=Path, help="where its trace goes")
    said = parser.parse_args()
    logging.disable(logging.CRITICAL)  # failures are expected here
    if said.part == "day":
        made = one_day(said.seed, said.trace)
        print(json.dumps(made, ensure_ascii=False))
        return 1 if made["violations"] else 0
    good = many_days(said.days, said.first, said.jobs) if said.days else True
    if said.minutes:
        good = load(said.minutes, said.rate, said.seed, memory=not said.no_memory) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
