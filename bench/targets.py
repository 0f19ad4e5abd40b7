"""Upper limits for failsoft's cost, and whether a run meets them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Target(NamedTuple):
    """An upper (or, with ``least``, lower) limit for one cell of a table."""

    table: str
    peer: str
    column: str
    limit: float
    words: str
    least: bool = False
    over: str | None = None  # another peer: the figure is that peer's, divided by ours


TARGETS = (
    Target("S1", "failsoft guarded", "ratio", 12, "guarded function, × the bare await"),
    Target(
        "S1",
        "failsoft guarded",
        "ns",
        6,
        "cheaper than the cheapest stack of peers, ×",
        least=True,
        over="stack cheapest",
    ),
    Target("S1", "failsoft rt.call", "ratio", 20, "rt.call, × the bare await"),
    Target("S1b", "failsoft guarded", "ratio", 1.8, "the tool yields once, × the bare await"),
    Target("S2", "failsoft guarded", "ratio", 25, "blocking function inline, × the bare call"),
    Target("S3", "failsoft guarded", "ratio", 11, "a failing attempt, × a loop by hand"),
    Target(
        "S3",
        "failsoft guarded",
        "ns",
        1,
        "a failing attempt: cheaper than the cheapest stack of peers, ×",
        least=True,
        over="stack cheapest",
    ),
    Target("S4", "failsoft guarded", "ratio", 2, "refused, raised, × raise and catch"),
    # ADR 70 says what the next limits of S4, S5 and S9 consist of
    Target("S4", "failsoft rt.call, a value", "ratio", 1.8, "refused, as a value, × raise and catch"),
    Target("S4 memory", "failsoft guarded", "growth_kb", 1024, "kB left by a million refusals, raised"),
    Target("S4 memory", "failsoft rt.call, a value", "growth_kb", 1024, "kB left by a million refusals, as values"),
    Target("S5", "failsoft guarded", "ratio", 1.8, "10,000 at once, CPU × a bare gather"),
    Target("S5", "failsoft guarded", "more_bytes", 1450, "bytes a call more than bare"),
    Target("S6", "chain: failsoft turn", "ratio", 1.25, "chain of 1,000, × by hand"),
    Target("S6", "fan: failsoft turn", "ratio", 1.6, "fan of 1,000, × by hand"),
    Target("S6", "graph: failsoft turn", "ratio", 1.25, "graph of 1,000, × by hand"),
    Target("S6", "graph: failsoft turn", "ns", 40, "faster than langgraph, ×", least=True, over="graph: langgraph"),
    Target("S7", "failsoft, first use", "ratio", 2, "first use, × import asyncio"),
    Target("S9", "failsoft isolation=process", "ratio", 1.6, "a call in a process, × asyncio.to_thread"),
    Target("S10", "failsoft with the SQLite store", "ratio", 1.5, "with the SQLite store, × with nothing kept"),
    Target("S11", "pydantic-ai, failsoft Agent", "ratio", 1.1, "a run with our Agent, × pydantic-ai"),
    Target("S11", "pydantic-ai, failsoft capability", "ratio", 1.1, "a run with the capability, × pydantic-ai"),
    Target("S11", "LangChain, failsoft middleware", "ratio", 1.1, "ainvoke with the middleware, × LangChain"),
    Target("S11", "LangChain invoke, failsoft middleware", "ratio", 1.1, "invoke with the middleware, × LangChain"),
    Target("S11", "OpenAI Agents SDK, failsoft guard_agent", "ratio", 1.1, "a guarded run, × the OpenAI Agents SDK"),
    Target("S12", "failsoft, half of them at most", "us", 50, "a typical error, fresh, µs (median)"),
    Target("S12", "failsoft, the slowest of them", "again_us", 50, "the slowest usual error, again, µs"),
    Target("S12 long", "failsoft, the slowest of them", "us", 1000, "an error of 1 MB, µs"),
    *(
        Target("S9 stop", f"failsoft isolation=process / {tool}", column, 15, f"{tool}: ms until {words}")
        for tool in ("spin", "sleep", "hog")
        for column, words in (
            ("late_ms", "the caller is answered after the deadline"),
            ("next_ms", "the next call is done"),
        )
    ),
)


def judge(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pair every target with its figure, if the run has one; ``counted`` is the same in instructions."""
    judged = []
    for target in TARGETS:
        row = _row(tables, target.table, target.peer)
        figure = None if row is None else row.get(target.column)
        if row is not None and target.over is not None:
            other = _row(tables, target.table, target.over)
            figure = None if other is None else other[target.column] / row[target.column]
        if row is None or figure is None:
            continue
        met = figure >= target.limit if target.least else figure <= target.limit
        counted = row.get("instr_ratio") if target.column == "ratio" else None
        judged.append(
            {
                "table": target.table,
                "words": target.words,
                "limit": target.limit,
                "least": target.least,
                "figure": figure,
                "counted": counted,
                "met": met,
            }
        )
    return judged


def _row(tables: list[dict[str, Any]], name: str, peer: str) -> dict[str, Any] | None:
    for table in tables:
        if table["name"] == name:
            for row in table["rows"]:
                shown = f"{row['peer']} / {row['tool']}" if "tool" in row else row["peer"]
                if shown == peer or (peer.endswith("cheapest") and shown.startswith(peer)):
                    found: dict[str, Any] = row
                    return found
    return None
