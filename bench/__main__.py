"""``python -m bench [S1 S3 …] [--json run.json] [--page docs/performance.md] [--rounds N] [--instr]``."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from bench import page
from bench.harness import Plan, has_valgrind

SCENARIOS = {
    "S1": "s1_async", "S1b": "s1b_suspending", "S2": "s2_sync", "S3": "s3_failing", "S4": "s4_refused",
    "S5": "s5_concurrent", "S6": "s6_turn", "S7": "s7_import", "S8": "s8_trace", "S9": "s9_hard_timeout",
    "S10": "s10_store", "S11": "s11_adapters", "S12": "s12_classify",
    "S13": "s13_otel",
}  # fmt: skip
PEERS = (
    "tenacity stamina backoff hyx circuitbreaker aiobreaker purgatory pybreaker pyresilience langgraph anyio Pebble loky "
    "structlog opentelemetry-sdk aiosqlite pydantic-ai-slim langchain openai-agents"
).split()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What failsoft costs, beside its peers.")
    parser.add_argument("scenarios", nargs="*", metavar="S1", help=f"of {' '.join(SCENARIOS)}; all when none is named")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--page", type=Path, help="write the page here")
    parser.add_argument("--from", type=Path, dest="source", help="an earlier run: only what is named is measured again")
    parser.add_argument("--rounds", type=int, default=60, help="interleaved rounds; fresh processes get a tenth")
    parser.add_argument("--instr", action="store_true", help="count instructions too, with valgrind")
    said = parser.parse_args(arguments)
    for name in said.scenarios:
        if name not in SCENARIOS:
            parser.error(f"{name} is no scenario: name some of {' '.join(SCENARIOS)}")
    if said.instr and not has_valgrind():
        print("valgrind is not installed: no instructions are counted")
        said.instr = False
    plan = Plan(rounds=said.rounds, fresh_rounds=max(3, said.rounds // 10), instr=said.instr)
    earlier = json.loads(said.source.read_text()) if said.source else None
    if earlier is None:
        run = measure(said.scenarios or list(SCENARIOS), plan)
    else:
        run = renew(earlier, measure(said.scenarios, plan)) if said.scenarios else earlier
    print("\n" + page.verdicts(run["tables"]))
    if said.json:
        said.json.write_text(json.dumps(run, indent=1) + "\n")
    if said.page:
        said.page.write_text(page.page(run))


def measure(names: list[str], plan: Plan) -> dict[str, Any]:
    """Run scenarios one after another and print their tables as they finish."""
    machine = describe()
    tables: list[dict[str, Any]] = []
    for name in names:
        found = tables_of(name, plan) if len(names) == 1 else tables_of_fresh_process(name, plan)
        for table in found:
            print("\n" + page.section(table), flush=True)
        tables += found
    machine["load_after"] = load()
    return {"machine": machine, "tables": tables}


def tables_of(name: str, plan: Plan) -> list[dict[str, Any]]:
    return [table.to_dict() for table in importlib.import_module(f"bench.{SCENARIOS[name]}").run(plan)]


def tables_of_fresh_process(name: str, plan: Plan) -> list[dict[str, Any]]:
    """Run a scenario in its own process: memory that one scenario leaves must not affect the next."""
    with tempfile.TemporaryDirectory() as place:
        figures = Path(place) / "run.json"
        command = [sys.executable, "-m", "bench", name, "--rounds", str(plan.rounds), "--json", str(figures)]
        subprocess.run(command + ["--instr"] * plan.instr, check=True, stdout=subprocess.DEVNULL)
        return cast("list[dict[str, Any]]", json.loads(figures.read_text())["tables"])


def renew(earlier: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """Update an earlier run with newly measured tables; the page says which ones are from another moment."""
    newer = {table["name"]: table for table in again["tables"]}
    known = {table["name"] for table in earlier["tables"]}
    tables = [newer.get(table["name"], table) for table in earlier["tables"]]
    tables += [table for name, table in newer.items() if name not in known]  # a scenario newer than that run
    return {**earlier, "tables": tables, "again": sorted({*earlier.get("again", ()), *newer})}


def load() -> float:
    return round(os.getloadavg()[0], 1)


def describe() -> dict[str, Any]:
    versions = {}
    for name in PEERS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "when": time.strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": load(),
        "versions": versions,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "an unnamed processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads of a peer must not keep the process alive
