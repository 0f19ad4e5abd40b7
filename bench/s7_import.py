"""S7: what an import costs, × `import asyncio`: CPU time of fresh interpreters, less an empty one; bytecode is there.

Rounds are interleaved; the best round of each counts, since whatever disturbs an import only makes it longer.
"""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
import tempfile

from bench.harness import ROOT, Plan, Table, environment, has_valgrind

STATEMENTS = {
    "nothing": "pass",
    "import asyncio": "import asyncio",
    "import failsoft": "import failsoft",
    "failsoft, first use": "import failsoft; failsoft.Runtime(); failsoft.classify('x')",
}
MODULES = (
    "tenacity stamina backoff hyx.retry circuitbreaker aiobreaker purgatory pybreaker pyresilience pydantic anyio "
    "pydantic_ai langgraph.graph agents"
).split()


def command(statement: str) -> list[str]:
    return [sys.executable, "-c", statement]


def cpu_seconds(statement: str, where: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command(statement), check=True, env=where, cwd=ROOT, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def counted(statement: str, where: dict[str, str]) -> int:
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        valgrind + command(statement), check=True, env=where, cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    return int(done.stderr.partition("refs:")[2].split()[0].replace(",", ""))


def run(plan: Plan) -> list[Table]:
    statements, skipped = dict(STATEMENTS), {}
    for module in () if plan.tiny else MODULES:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            skipped[module] = "not installed"
        else:
            statements[f"import {module}"] = f"import {module}"
    with tempfile.TemporaryDirectory() as cache:
        where = environment(PYTHONPYCACHEPREFIX=cache, PYTHONHASHSEED="0")
        for statement in statements.values():
            cpu_seconds(statement, where)  # writes the bytecode
        best = dict.fromkeys(statements, float("inf"))
        for number in range(plan.fresh_rounds * 3):
            for name, statement in (statements if number < plan.fresh_rounds else STATEMENTS).items():
                best[name] = min(best[name], cpu_seconds(statement, where))
        instr = {}
        if plan.instr and has_valgrind():
            instr = {name: counted(statement, where) for name, statement in STATEMENTS.items()}
    empty = best.pop("nothing")
    unit = best["import asyncio"] - empty
    rows = []
    for name, cost in best.items():
        row = {"peer": name, "ms": (cost - empty) * 1000, "ratio": (cost - empty) / unit}
        if name in instr:
            row["instr"] = instr[name] - instr["nothing"]
            row["instr_ratio"] = row["instr"] / (instr["import asyncio"] - instr["nothing"])
        rows.append(row)
    return [
        Table("S7", "An import, × `import asyncio`", ["peer", "ms", "ratio", "instr", "instr_ratio"], rows, skipped)
    ]
