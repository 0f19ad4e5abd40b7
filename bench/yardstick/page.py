"""Format a run: tables for the terminal, and docs/yardstick.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.yardstick import prose
from bench.yardstick.faults import FAULTS
from bench.yardstick.scoring import Row, can_be_judged, judge, read_row

HEADS = ["executor", "goal", "ceiling", "twice", "silent", "false unknown", "attempts", "seconds"]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
    lines = [heads, *rows]
    text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def terminal(run: dict[str, Any]) -> str:
    rows = [read_row(row) for row in run["main"]]
    return "\n".join(
        f"{facts['name']} at {run['level']:.0%}\n\n{figures([row for row in rows if row.benchmark == name])}\n"
        for name, facts in run["benchmarks"].items()
    )


def figures(rows: Sequence[Row]) -> str:
    return table(
        HEADS,
        [
            [
                row.title, str(row.goal), str(row.ceiling), str(row.twice), str(row.silent), str(row.false_alarm),
                f"{row.attempts.value:.2f}", f"{row.seconds.value:.1f}",
            ]
            for row in rows
        ],
    )  # fmt: skip


def page(run: dict[str, Any]) -> str:
    """Format docs/yardstick.md."""
    return "\n".join(_lines(run)).rstrip() + "\n"


def _lines(run: dict[str, Any]) -> Iterator[str]:
    main = [read_row(row) for row in run["main"]]
    verify = any(row.executor.startswith("verify") for row in main)
    yield from (prose.HEAD, _where(run), "")
    yield from _results(run, main)
    if can_be_judged(run["mix"]):
        yield from _marks(main)
    yield from _twice(main)
    yield from (prose.METHOD, _faults(run["mix"]), "", prose.COLUMNS)
    yield prose.EXECUTORS.rstrip() + "\n" + (prose.VERIFY if verify else "")
    if run.get("levels"):
        yield from ("## Fewer faults", "", "The same mix at other levels, with fewer seeds and without marks.", "")
        yield from _tables(run, run["levels"], lambda row: f"{row.level:.0%} of calls")
    if run.get("others"):
        text = f"One kind at a time, {run['level']:.0%} of calls, with fewer seeds and without marks."
        yield from ("## Other faults", "", text, "")
        yield _faults({name: 1.0 for name in FAULTS if name not in run["mix"]})
        yield ""
        yield from _tables(run, run["others"], lambda row: row.mix)
    if run.get("grid"):
        yield from (prose.GRID, f"Run at commit {run['grid_commit']}.", "", _grid(run["grid"]), "")
    yield prose.LIMITS


def _grid(cells: Sequence[dict[str, Any]]) -> str:
    """One line per shape and fault; for each executor: turns done, calls done, and turns that were silently wrong."""
    executors = list(dict.fromkeys(cell["executor"] for cell in cells))
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for cell in cells:
        line = lines.setdefault((cell["shape"], f"{cell['visible']}, {cell['lasting']}"), {})
        line[cell["executor"]] = f"{cell['goal']:.0f} / {cell['right']:.0f} / {cell['silent']:.0f}"
    rows = [[*key, *(line[executor] for executor in executors)] for key, line in lines.items()]
    return table(["shape", "fault", *executors], rows)


def _where(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {found}" for name, found in run["versions"].items())
    seeds = ", ".join(map(str, run["seeds"]))
    return (
        f"Run on {run['when']} at commit {run['commit']} with Python {run['python']} in {run['minutes']:.0f} minutes: "
        f"{versions}. Seeds {seeds}."
    )


def _results(run: dict[str, Any], main: Sequence[Row]) -> Iterator[str]:
    yield from (f"## Results with {run['level']:.0%} of calls faulty", "")
    for name, facts in run["benchmarks"].items():
        rows = [row for row in main if row.benchmark == name]
        out = f" Left out: {len(facts['left_out'])}." if facts["left_out"] else ""
        title = f"[{facts['name']}]({facts['home']})" if facts["home"] else facts["name"]
        yield f"**{title}** {facts['version']}: {facts['tasks']} tasks, {facts['calls']} calls, {facts['writes']} of them"
        yield f"writes, {rows[0].runs} runs a row.{out} [The columns](#method) are explained below."
        yield from ("", figures(rows), "")


def _marks(main: Sequence[Row]) -> Iterator[str]:
    yield from ("## Marks", "")
    judged = judge(main)
    rows = [
        [one.row.benchmark, one.row.title, one.words, one.found, "yes" if one.holds else "**no**"] for one in judged
    ]
    yield from (table(["benchmark", "executor", "mark", "found", "reached"], rows), "")


def _twice(main: Sequence[Row]) -> Iterator[str]:
    yield from ("## Writes that ran twice", "")
    for row in main:
        if row.twice_cases and row.executor.startswith(("undeclared", "declared", "verify")):
            yield f"- {row.benchmark}, {row.title}: " + "; ".join(row.twice_cases)
    others = [row for row in main if not row.executor.startswith(("undeclared", "declared", "verify"))]
    counts = [f"{row.title} on {row.benchmark} {len(row.twice_cases)}" for row in others if row.twice_cases]
    if not any(row.twice_cases for row in main if row not in others):
        yield "With failsoft: none."
    if counts:
        yield from ("", f"Without failsoft, writes in all runs: {', '.join(counts)}. The JSON output lists each.")
    yield ""


def _faults(mix: dict[str, float]) -> str:
    return table(["fault", "meaning"], [[f"`{name}`", FAULTS[name].words] for name in mix])


def _tables(run: dict[str, Any], data: Sequence[dict[str, Any]], group: Any) -> Iterator[str]:
    rows = [read_row(row) for row in data]
    for key in dict.fromkeys(group(row) for row in rows):
        for name, facts in run["benchmarks"].items():
            yield from (f"{facts['name']}, {key}:", "")
            yield from (figures([row for row in rows if row.benchmark == name and group(row) == key]), "")
