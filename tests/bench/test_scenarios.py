"""Every scenario runs, and gives finite figures for its baseline and for failsoft. How large they are decides nothing."""

from __future__ import annotations

import importlib
import json
import math

import pytest
from bench.harness import Peer, Plan, compare

from bench import __main__ as bench
from bench import page, targets

TINY = Plan(rounds=2, fresh_rounds=1, batches=1, tiny=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("name", bench.SCENARIOS)
def test_a_scenario_gives_finite_figures(name: str) -> None:
    tables = importlib.import_module(f"bench.{bench.SCENARIOS[name]}").run(TINY)

    assert tables
    for table in tables:
        ours = [row for row in table.rows if "failsoft" in row["peer"]]
        assert ours, f"{table.name} does not measure failsoft"
        for row in [table.rows[0], *ours]:
            figures = [value for value in row.values() if isinstance(value, int | float)]
            assert figures
            assert all(math.isfinite(value) for value in figures), row
        assert page.section(json.loads(json.dumps(table.to_dict())))


def test_a_peer_that_is_missing_is_listed() -> None:
    def missing() -> None:
        raise ImportError("No module named 'nowhere'", name="nowhere")

    rows, skipped = compare([Peer("bare", lambda: _tool), Peer("other", missing)], TINY)

    assert [row["peer"] for row in rows] == ["bare"]
    assert skipped == {"other": "not installed: nowhere"}


def test_the_baseline_is_one() -> None:
    rows, _ = compare([Peer("bare", lambda: _tool)], TINY)

    assert rows[0]["ratio"] == rows[0]["best"] == 1.0


async def _tool(x: int) -> int:
    return x


def _run(ratio: float) -> list[dict[str, object]]:
    row = {"peer": "failsoft guarded", "ratio": ratio, "ns": 100.0, "instr_ratio": 5.0}
    stack = {"peer": "stack cheapest: a + b", "ratio": 90.0, "ns": 700.0}
    return [{"name": "S1", "title": "t", "columns": ["peer", "ratio"], "rows": [row, stack], "skipped": {"x": "y"}}]


def test_a_target_is_met_or_not() -> None:
    assert [one["met"] for one in targets.judge(_run(11.9))] == [True, True]
    assert [one["met"] for one in targets.judge(_run(12.1))] == [False, True]
    assert targets.judge(_run(12.1))[1]["figure"] == 7.0


def test_the_page_names_the_machine_and_what_was_missed() -> None:
    machine = bench.describe() | {"load_before": 99.0, "load_after": 3.0}

    text = page.page({"machine": machine, "tables": _run(12.1)})

    assert machine["python"] in text
    assert "busy with other work" in text
    assert "**no**" in text
    assert "Skipped: x (y)" in text


def test_every_target_names_a_figure_that_a_scenario_has() -> None:
    known = {
        "S1",
        "S1b",
        "S2",
        "S3",
        "S4",
        "S4 memory",
        "S5",
        "S6",
        "S7",
        "S9",
        "S9 stop",
        "S10",
        "S11",
        "S12",
        "S12 long",
    }
    assert {target.table for target in targets.TARGETS} == known


def test_some_tables_of_an_earlier_run_can_be_measured_again() -> None:
    other = {"name": "S2", "title": "t", "columns": [], "rows": [], "skipped": {}}

    run = bench.renew({"machine": {}, "tables": [*_run(1.0), other]}, {"machine": {}, "tables": _run(2.0)})

    assert run["tables"] == [*_run(2.0), other]
    machine = bench.describe() | {"load_after": 3.0}
    assert "Measured again later, at another load: S1." in page.page({**run, "machine": machine})


def test_a_scenario_that_an_earlier_run_lacks_is_added() -> None:
    newer = {"name": "S13", "title": "t", "columns": [], "rows": [], "skipped": {}}

    run = bench.renew({"machine": {}, "tables": _run(1.0)}, {"machine": {}, "tables": [newer]})

    assert run["tables"] == [*_run(1.0), newer]
    machine = bench.describe() | {"load_after": 3.0}
    assert "## S13: t" in page.page({**run, "machine": machine})


@pytest.mark.slow
@pytest.mark.parametrize("names", [["S2"], ["S2", "S8"]])
def test_scenarios_do_not_share_a_process(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    here: list[str] = []
    monkeypatch.setattr(bench, "tables_of", lambda name, plan: here.append(name) or [])

    run = bench.measure(names, Plan(rounds=1))

    assert [table["name"] for table in run["tables"]] == ([] if len(names) == 1 else names)
    assert here == (names if len(names) == 1 else [])
