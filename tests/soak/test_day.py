"""Twenty simulated days: nothing is lost, nothing is done twice, and the same seed gives the same trace to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.soak.day import live
from tests.soak.invariants import find_violations

ROOT = Path(__file__).parents[2]
MUST_HAPPEN = (  # on every day, and it does so ten times as a rule: what does not happen is not tested
    "retries", "opened", "closed again", "refused", "fallbacks", "timeouts", "cancelled", "skipped", "left behind",
    "late", "defaults", "loops prevented", "escalated",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_a_simulated_day_violates_no_invariant(seed: int) -> None:
    elsewhere = start(seed)
    lived = live(seed)
    violations = {name: found for name, found in find_violations(lived).items() if found}
    told = json.loads(elsewhere.communicate()[0])
    assert violations == {}
    assert told["digest"] == lived.digest, "the same seed gave another trace in another process"
    figures = lived.figures()
    assert figures["calls"] > 2_500
    assert [name for name in MUST_HAPPEN if not figures[name]] == []


def start(seed: int) -> subprocess.Popen[str]:
    """The same day in another process, whose strings hash differently."""
    mine = os.environ.get("PYTHONHASHSEED", "random")
    other = "1" if mine != "1" else "2"
    return subprocess.Popen(
        [sys.executable, "-m", "tools.soak", "day", str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": other},
        stdout=subprocess.PIPE,
        text=True,
    )
