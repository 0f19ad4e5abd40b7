"""Format a run: the table for the terminal, and docs/comparison.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.peers import prose
from bench.peers.cases import CASES
from bench.peers.libraries import LIBRARIES

Answer = dict[str, Any]
SIGNS = {"fault": "✗", "avoided": "◐", "none": "✓", "no part": "·", "error": "?"}
RESULTS = {"fault": "the fault is still there", "none": "it is gone", "error": "it could not be run"}


def is_broken(answer: Answer) -> bool:
    """True if the script itself failed; it then says nothing about the library."""
    return "error" in (answer["verdict"], answer.get("option", {}).get("verdict"))


def verdict(answer: Answer) -> str:
    """Return the answer's own verdict, or "avoided" if a documented setting removes the fault."""
    if answer["verdict"] == "fault" and answer.get("option", {}).get("verdict") == "none":
        return "avoided"
    return str(answer["verdict"])


SHOWN = ("none", "avoided", "fault")


class Notes:
    """Notes, numbered in order of appearance; equal notes share a number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def number(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def of(self, answer: Answer) -> Iterator[int]:
        if option := answer.get("option"):
            said = f"{answer['library']}, {answer['case']}: with {option['setting']}"
            yield self.number(f"{said} {RESULTS[option['verdict']]}: {option['words']}.")
        if told := LIBRARIES[answer["library"]].notes.get(answer["case"]):
            yield self.number(f"{answer['library']}, {answer['case']}: {told}.")


def cells(run: dict[str, Any]) -> dict[str, dict[str, Answer]]:
    """Map case and library to cells, in the order of both."""
    found: dict[str, dict[str, Answer]] = {}
    for answer in run["answers"]:
        found.setdefault(answer["case"], {})[answer["library"]] = answer
    return {case: found[case] for case in CASES if case in found}


def installed(run: dict[str, Any]) -> list[str]:
    return [name for name, version in run["versions"].items() if version]


def grid(heads: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *rows]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    text[1] = text[1].replace("- |", "--|").replace("| -", "|--")
    return "\n".join(text)


def table(run: dict[str, Any], notes: Notes | None = None) -> str:
    """Format the table: faults down, libraries across; with ``notes``, their numbers beside the signs."""
    names = installed(run)
    rows = []
    for case, answers in cells(run).items():
        row = [f"{case}: {CASES[case].fault}"]
        for name in names:
            numbers = [*notes.of(answers[name])] if notes else []
            beside = f"<sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""
            row.append(SIGNS[verdict(answers[name])] + beside)
        rows.append(row)
    return grid(["", *names], rows)


def page(run: dict[str, Any]) -> str:
    """Format docs/comparison.md."""
    notes = Notes()
    the_table = table(run, notes)
    return "\n".join(
        [
            prose.HEAD,
            _where(run),
            "",
            "## The table",
            "",
            the_table,
            "",
            *(f"{number}. {text}" for number, text in enumerate(notes.texts, 1)),
            "",
            prose.FAIR,
            "## Library by library",
            "",
            "What each does as well as failsoft, better, or beyond it; and how its cells count up.",
            "",
            *_libraries(run),
            "## What was seen",
            "",
            *_seen(run),
            prose.NOT_RUN.rstrip(),
            "",
        ]
    )


def _where(run: dict[str, Any]) -> str:
    missing = [name for name, version in run["versions"].items() if not version]
    left_out = f" Not installed, and left out: {', '.join(missing)}." if missing else ""
    versions = ", ".join(f"{name} {run['versions'][name]}" for name in installed(run))
    return f"Run on {run['when']} with Python {run['python']}, {run['system']}: {versions}.{left_out}"


def _libraries(run: dict[str, Any]) -> Iterator[str]:
    for name in installed(run):
        if name not in prose.PEERS:
            continue
        answers = [one for one in run["answers"] if one["library"] == name and one["verdict"] != "no part"]
        counts = ", ".join(f"{SIGNS[kind]} {sum(verdict(one) == kind for one in answers)}" for kind in SHOWN)
        yield f"- **[{name}]({LIBRARIES[name].home})** ({counts}). {prose.PEERS[name]}"
    yield ""


def _seen(run: dict[str, Any]) -> Iterator[str]:
    for case, answers in cells(run).items():
        yield f"### {case}: {CASES[case].fault}"
        yield ""
        for name in installed(run):
            if answers[name]["verdict"] != "no part":
                yield f"- {SIGNS[verdict(answers[name])]} {name}: {answers[name]['words']}"
        lacking = [name for name in installed(run) if answers[name]["verdict"] == "no part"]
        if lacking:
            yield f"- · no such part: {', '.join(lacking)}"
        yield ""
