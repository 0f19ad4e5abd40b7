"""S12: what ``classify`` takes, by the kind of error. The best batch counts: whatever disturbs one only makes it longer.

*Fresh* are errors with a number in their text that has not been met before; *again* is the same object once more. What
making them costs is left out. Errors of a library that is not installed are listed as skipped.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from bench.harness import COUNTS, Peer, Plan, Table, instructions
from bench.usual_errors import LONG, USUAL, Ready

AWAITS = False
BATCH = 20
MEDIAN = "failsoft, half of them at most"
DEAREST = "failsoft, the slowest of them"


def counted(ready: Ready) -> Callable[[], Any]:
    """Errors made beforehand, so that valgrind counts only their handling."""

    def prepared() -> Any:
        from failsoft import classify

        make = ready()
        errors = iter([make(10_000 + n) for n in range(COUNTS[-1])])
        return lambda _: classify(next(errors))

    return prepared


PEERS = [Peer(name, counted(ready), counted=True) for name, ready in USUAL.items()]


def measure(kinds: dict[str, Ready], rounds: int, batch: int) -> tuple[list[Any], dict[str, str]]:
    """Microseconds of every kind, fresh and again, with their median and the slowest."""
    from failsoft import classify

    numbers, skipped, ready = count(10_000), {}, {}
    for name, make_ready in kinds.items():
        try:
            ready[name] = make_ready()
        except ImportError as error:
            skipped[name] = f"not installed: {error.name or error}"
    best = {name: [float("inf"), float("inf")] for name in ready}
    now = time.process_time_ns
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, make in ready.items():
                errors = [make(next(numbers)) for _ in range(batch)]
                started = now()
                for error in errors:
                    classify(error)
                fresh = now() - started
                started = now()
                for _ in range(batch):
                    classify(error)
                spent = (fresh, now() - started)
                best[name] = [min(pair) for pair in zip(best[name], spent, strict=True)]
    finally:
        gc.enable()
    rows = [
        {"peer": name, "us": fresh / batch / 1000, "again_us": again / batch / 1000}
        for name, (fresh, again) in best.items()
    ]
    columns = {key: [row[key] for row in rows] for key in ("us", "again_us")}
    for name, pick in ((MEDIAN, statistics.median), (DEAREST, max)):
        rows.append({"peer": name} | {key: pick(values) for key, values in columns.items()})
    return rows, skipped


def run(plan: Plan) -> list[Table]:
    rounds = plan.rounds * (1 if plan.tiny else 5)
    rows, skipped = measure(USUAL, rounds, BATCH)
    long_rows, _ = measure(LONG, plan.rounds, 1)
    if plan.instr:
        spent = instructions(__name__, [row["peer"] for row in rows[:-2]])
        for row in rows:
            row["instr"] = spent.get(row["peer"])
    return [
        Table("S12", "Classifying an error, fresh and again", ["peer", "us", "again_us", "instr"], rows, skipped),
        Table("S12 long", "Classifying an error of 1 MB", ["peer", "us", "again_us"], long_rows, {}),
    ]
