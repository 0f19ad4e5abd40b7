"""``make bench-guard``: compare the fast path's instructions per call with the baseline.

The figure is a ratio to a bare call; for a refused call, to raising and catching. More than ``ROOM`` above ``baseline.json`` fails. ``--update`` rewrites the
baseline: commit it with the reason.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.harness import has_valgrind, instructions

BASELINE = Path(__file__).with_name("baseline.json")
ROOM = 1.10
WATCHED = {  # module -> peers to count; the first is the reference
    "bench.s1_async": ["bare", "failsoft guarded", "failsoft rt.call"],
    "bench.s1b_suspending": ["bare", "failsoft guarded"],
    "bench.s2_sync": ["bare", "failsoft guarded"],
    "bench.s4_refused": ["raise and catch", "failsoft guarded", "failsoft rt.call, a value"],
    "bench.s6_turn": ["graph: by hand, unguarded", "graph: failsoft turn"],
}


def ratios() -> dict[str, float]:
    found = {}
    for module, (base, *names) in WATCHED.items():
        counted = instructions(module, [base, *names])
        found |= {f"{module}: {name}": round(counted[name] / counted[base], 3) for name in names}
    return found


def main() -> int:
    if not has_valgrind():
        print("bench-guard: skipped, since valgrind is not installed")
        return 0
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    baselines = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    now = ratios()
    if "--update" in sys.argv:
        baselines[python] = now
        BASELINE.write_text(json.dumps(baselines, indent=2, sort_keys=True) + "\n")
        return 0
    if python not in baselines:
        print(f"bench-guard: skipped, since baseline.json has nothing for Python {python}")
        return 0
    dearer = False
    for name, ratio in now.items():
        before = baselines[python][name]
        too_much = ratio > before * ROOM
        dearer |= too_much
        print(f"{name:45} {before:7.2f} -> {ratio:7.2f} x bare{'   dearer by more than 10 %' if too_much else ''}")
    return int(dearer)


if __name__ == "__main__":
    sys.exit(main())
