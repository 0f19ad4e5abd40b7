"""What `import failsoft` costs, as a ratio to `import asyncio`, in CPU time of fresh interpreters.

Rounds are interleaved, so that a busy moment hits all alike; the best round of each counts, less an empty interpreter.
"""

from __future__ import annotations

import resource
import subprocess
import sys

ROUNDS = 30
STATEMENTS = {
    "nothing": "pass",
    "import asyncio": "import asyncio",
    "import failsoft": "import failsoft",
    "first use": "import failsoft; failsoft.Runtime(); failsoft.classify('x')",
}


def cpu_seconds(statement: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    best = dict.fromkeys(STATEMENTS, float("inf"))
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            best[name] = min(best[name], cpu_seconds(statement))
    base = best.pop("nothing")
    unit = best["import asyncio"] - base
    for name, cost in best.items():
        print(f"{name:16} {(cost - base) * 1000:6.1f} ms  {(cost - base) / unit:5.2f} x import asyncio")


if __name__ == "__main__":
    main()
