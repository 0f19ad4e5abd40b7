"""``python -m bench.yardstick [--benchmark bfcl] [--executor declared] [--seeds 1,2,3] [--mix 503=1,lost=2] …``."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.yardstick import page
from bench.yardstick.benchmarks import BENCHMARKS, PUBLISHED
from bench.yardstick.executors import EXECUTORS, UNMARKED
from bench.yardstick.faults import FAULTS, MARKED, OTHERS, read_mix
from bench.yardstick.grid import run_grid
from bench.yardstick.scoring import Row, can_be_judged, judge, read_row
from bench.yardstick.sweep import Sweep, labels_of, run_sweeps, sweeps_for, without_logs

SEEDS = (1, 2, 3, 4, 5)
FEW = 3  # seeds of the tables without marks
PACKAGES = ("failsoft", "bfcl-eval", "agentdojo", "tenacity", "langchain", "pydantic-ai-slim", "openai-agents")


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    run = json.loads(options.source.read_text()) if options.source else measure(options)
    if options.grid or not (options.source or options.main_only):
        run |= measure_grid()
    rows = [read_row(row) for row in run["main"]]
    print("\n" + page.terminal(run))
    if options.json:
        options.json.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n")
    if options.page:
        options.page.write_text(page.page(run))
    if not can_be_judged(run["mix"]):
        print("The marks are not judged: they are meant for mixes of " + ", ".join(MARKED))
        return 0
    missed = [one for one in judge([*rows, *(read_row(row) for row in run["clean"])]) if not one.holds]
    for one in missed:
        print(f"MISSED: {one.row.benchmark}, {one.row.title}: {one.words}; found {one.found}")
    return 1 if missed else 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.yardstick",
        description="Replay public benchmarks under faults. Exits 1 if a mark is missed.",
    )
    several: dict[str, Any] = {"action": "append", "metavar": "NAME"}
    parser.add_argument("--benchmark", choices=[*BENCHMARKS], help="may be said several times", **several)
    parser.add_argument("--executor", choices=[*EXECUTORS], help="may be said several times", **several)
    parser.add_argument("--task", help="the id of a task; may be said several times", **several)
    parser.add_argument("--seeds", type=read_seeds, default=SEEDS, metavar="1,2,3")
    parser.add_argument("--level", type=read_level, default=0.3, metavar="0.3", help="share of calls that meet a fault")
    parser.add_argument("--levels", type=read_levels, default=(0.05, 0.1), metavar="0.05,0.1", help="without marks")
    parser.add_argument(
        "--mix", type=as_option(read_mix), default=MARKED, metavar="503=1,lost=2", help=" ".join(FAULTS)
    )
    parser.add_argument("--main-only", action="store_true", help="no other levels, no other faults, no grid")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many processes at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page here")
    parser.add_argument("--from", type=Path, dest="source", metavar="FILE", help="an earlier --json: nothing is run")
    parser.add_argument("--grid", action="store_true", help="run the grid, also with --from and --main-only")
    return parser


def as_option(read: Any) -> Any:
    """Let argparse show the message of a ValueError."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


@as_option
def read_seeds(text: str) -> tuple[int, ...]:
    seeds = tuple(int(part) for part in text.split(","))
    if len(seeds) != len(set(seeds)):
        raise ValueError(f"{text}: the same seed twice")
    return seeds


@as_option
def read_level(text: str) -> float:
    level = float(text)
    if not 0 < level <= 1:
        raise ValueError(f"{text} is not a share of calls: write a number up to 1, like 0.3")
    return level


@as_option
def read_levels(text: str) -> tuple[float, ...]:
    return tuple(read_level(part) for part in text.split(",") if part)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    benchmarks = options.benchmark or PUBLISHED
    executors = options.executor or [*EXECUTORS]
    unmarked = options.executor or UNMARKED
    few = options.seeds[:FEW]
    shared: dict[str, Any] = {"only": options.task or ()}
    parts: dict[str, list[Sweep]] = {
        "main": sweeps_for(
            benchmarks, executors, level=options.level, mix_name="main", mix=options.mix, seeds=options.seeds, **shared
        ),
        "clean": sweeps_for(
            benchmarks, executors, level=0.0, mix_name="main", mix=options.mix, seeds=(0,), **shared
        ),
    }  # fmt: skip
    if not options.main_only:
        parts["levels"] = [
            sweep
            for level in options.levels
            for sweep in sweeps_for(
                benchmarks, unmarked, level=level, mix_name="main", mix=options.mix, seeds=few, **shared
            )
        ]
        parts["others"] = [
            sweep
            for name, mix in OTHERS.items()
            for sweep in sweeps_for(
                benchmarks, unmarked, level=options.level, mix_name=name, mix=mix, seeds=few, **shared
            )
        ]
    everything = [sweep for sweeps in parts.values() for sweep in sweeps]
    began = datetime.now(UTC)
    rows = dict(zip(everything, run_sweeps(everything, options.jobs, show), strict=True))
    return {
        **facts(options, benchmarks),
        "minutes": (datetime.now(UTC) - began).total_seconds() / 60,
        **{part: [rows[sweep].as_dict() for sweep in sweeps] for part, sweeps in parts.items()},
    }


def measure_grid() -> dict[str, Any]:
    with without_logs():
        return {"grid": [cell.as_dict() for cell in run_grid()], "grid_commit": commit()}


def show(row: Row) -> None:
    print(
        f"{row.benchmark:<10} {row.executor:<22} {row.mix:<16} {row.level:4.0%} goal {row.goal.value:5.1f} of "
        f"{row.ceiling.value:5.1f} twice {row.twice.value:4.1f} silent {row.silent.value:4.1f}",
        file=sys.stderr,
        flush=True,
    )


def facts(options: argparse.Namespace, benchmarks: Sequence[str]) -> dict[str, Any]:
    return {
        "when": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
        "seeds": list(options.seeds),
        "level": options.level,
        "mix": dict(options.mix),
        "benchmarks": {name: describe(name) for name in benchmarks},
    }


def describe(name: str) -> dict[str, Any]:
    labels = labels_of(name)
    calls = [call for task in labels.tasks for call in task.calls]
    made = BENCHMARKS[name]()
    return {
        "name": made.name,
        "version": made.version,
        "home": made.home,
        "tasks": len(labels.tasks),
        "calls": len(calls),
        "writes": sum(call.tool in labels.writes for call in calls),
        "write_tools": sorted(labels.writes),
        "left_out": labels.left_out,
    }


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
