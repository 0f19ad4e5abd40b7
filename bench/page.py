"""Format a run's JSON: tables for the terminal, and docs/performance.md."""

from __future__ import annotations

from typing import Any

from bench.targets import judge

HEADS = {
    "peer": "", "ns": "ns", "us": "µs", "ms": "ms", "ratio": "ratio", "best": "best round", "instr": "instructions",
    "instr_ratio": "ratio of instructions", "cpu_ms": "CPU ms", "bytes": "bytes a call", "more_bytes": "more than bare",
    "calls_per_s": "calls/s", "growth_kb": "growth, kB", "tool": "tool", "late_ms": "late, ms", "stopped": "stopped",
    "next_ms": "next call, ms", "again_us": "again, µs",
}  # fmt: skip

METHOD = """\
Everything is measured in one run, side by side: a scenario's peers share a process that no other scenario has used,
rounds are interleaved and rotated, a ratio is the median over the rounds of peer to baseline within the same round,
"best round" compares the best rounds. Times are CPU time of the process unless a table says otherwise. Instructions are counted with valgrind and do not depend on what else the machine
does; they say little about waiting for memory. failsoft runs as `Runtime()` makes it, through its public API, with
everything on: breaker, deadline, retries, trace ring, metrics. The peers are set up as their documentation says.

`make bench` measures again; `python -m bench S1 S3` some scenarios only; `make bench-guard` compares the happy path's
instructions with `bench/baseline.json`.
"""


def number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def grid(heads: list[str], rows: list[list[str]]) -> str:
    widths = [
        max(len(head), 3, *(len(row[at]) for row in rows)) if rows else len(head) for at, head in enumerate(heads)
    ]
    lines = ["| " + " | ".join(head.ljust(width) for head, width in zip(heads, widths, strict=True)) + " |"]
    lines.append(
        "|"
        + "|".join("-" * (widths[0] + 2) if not at else "-" * (width + 1) + ":" for at, width in enumerate(widths))
        + "|"
    )
    for row in rows:
        cells = [
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def section(table: dict[str, Any]) -> str:
    """Format one scenario's table."""
    columns = [name for name in table["columns"] if any(row.get(name) is not None for row in table["rows"])]
    rows = [[number(row.get(name)) for name in columns] for row in table["rows"]]
    text = f"## {table['name']}: {table['title']}\n\n" + grid([HEADS[name] for name in columns], rows)
    if table["skipped"]:
        text += "\n\nSkipped: " + "; ".join(f"{name} ({why})" for name, why in table["skipped"].items())
    return text


def verdicts(tables: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"{one['table']}: {one['words']}",
            ("≥ " if one["least"] else "≤ ") + f"{one['limit']:,g}",
            number(one["figure"]),
            number(one["counted"]),
            "yes" if one["met"] else "**no**",
        ]
        for one in judge(tables)
    ]
    return grid(["target", "limit", "measured", "in instructions", "met"], rows)


def page(run: dict[str, Any]) -> str:
    """Format docs/performance.md."""
    machine = run["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return "\n".join(
        [
            "# What failsoft costs",
            "",
            "<!-- written by `make bench`: do not edit -->",
            "",
            METHOD,
            f"Measured on {machine['when']}: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
            f"Python {machine['python']}. Load when it began {machine['load_before']}, when it ended "
            f"{machine['load_after']}"
            + (
                ": the machine was busy with other work, so times scatter and the ratios of instructions are the "
                "steadier figures."
                if machine["load_before"] > machine["cores"]
                else "."
            ),
            "",
            *([f"Measured again later, at another load: {', '.join(run['again'])}.", ""] if run.get("again") else []),
            f"Peers: {versions}.",
            "",
            "## Targets",
            "",
            verdicts(run["tables"]),
            "",
            *(section(table) + "\n" for table in run["tables"]),
        ]
    )
