"""The waterfall and its verdict in colours, for a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from failsoft.core.waterfall.layout import CRITICAL, CellKind, Line, axis, explain_signs, lay_out
from failsoft.surfaces.cli.console import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

    from failsoft.core.waterfall import Verdict, Waterfall
    from failsoft.core.waterfall.verdict import Kind

STYLES: dict[CellKind, str] = {
    "ok": "green",
    "fallback": "cyan",
    "failed": "red",
    "timeout": "red",
    "killed": "red",
    "waiting": "yellow",
    "held": "yellow",
    "queued": "bright_black",
    "running": "blue",
    "left": "magenta",
    "cancelled": "magenta",
    "refused": "bold red",
    "opened": "bold red",
    "skipped": "bright_black",
    "critical": "bold",
    "none": "",
}
_SHARES: dict[Kind, tuple[str, str]] = {
    "failed": ("▒", "red"),
    "waiting": ("╱", "yellow"),
    "held": ("╲", "yellow"),
    "queued": ("┄", "bright_black"),
    "unfinished": ("▓", "magenta"),
    "useful": ("█", "green"),
    "outside": ("░", "bright_black"),
}
RESULTS = {
    "succeeded": "green",
    "failed": "red",
    "timed_out": "magenta",
    "cancelled": "magenta",
    "skipped": "bright_black",
}
_NAME, _RESULT, _BAR = 20, 27, 16  # the most; what a turn that runs has; the least


def show_waterfall(waterfall: Waterfall, width: int) -> RenderableType:
    """The picture with its axis and legend."""
    plain = lay_out(waterfall, 1)
    name = min(_NAME, max([cell_len(clean(line.name)) for line in plain], default=0))
    wanted = _RESULT  # always the same, so that a picture that grows stands still
    if all(line.row.status is not None for line in plain):
        longest = max([cell_len(clean(line.result)) for line in plain], default=0)
        wanted = min(max(_RESULT, longest), width * 2 // 5)
    result = max(0, min(wanted, width - name - 6 - _BAR))
    bar = max(_BAR, width - name - result - 6)
    lines = [Text(f"{'':{name + 4}}{axis(waterfall, bar)}", "bright_black")]
    lines += [_line(line, name, result) for line in lay_out(waterfall, bar)]
    return Group(*lines, Text(), Padding(show_legend(waterfall, width - 2), (0, 0, 0, 2), expand=False))


def _line(line: Line, name: int, result: int) -> Text:
    row = line.row
    shown = set_cell_size(_cut(clean(line.name), name), name)
    text = Text.assemble((f"{CRITICAL if row.critical else ' '} {shown}", "bold" if row.critical else ""), "  ")
    for kind, cells in groupby(line.cells, key=lambda cell: cell[1]):
        text.append("".join(char for char, _ in cells), STYLES[kind])
    text.append(f"  {_cut(clean(line.result), result)}", RESULTS.get(row.status or "", "blue"))
    text.no_wrap = True
    return text


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def show_legend(waterfall: Waterfall, width: int) -> RenderableType:
    """What the signs mean; lines break between them."""
    lines = [Text()]
    for signs, kind, words in explain_signs(waterfall):
        if lines[-1] and lines[-1].cell_len + 3 + cell_len(f"{signs} {words}") > width:
            lines.append(Text())
        lines[-1].append("   " if lines[-1] else "")
        lines[-1].append(signs, STYLES[kind])
        lines[-1].append(f" {words}", "bright_black")
    return Group(*lines)


def show_verdict(verdict: Verdict, width: int) -> RenderableType:
    """One stacked bar of where the time went, and the same in words."""
    bar = Text()
    at = 0.0
    for share in verdict.path:
        char, style = _SHARES[share.kind]
        start, at = at, at + share.seconds
        scale = width / verdict.duration if verdict.duration else 0.0
        bar.append(char * (round(at * scale) - round(start * scale)), style)
    bar.no_wrap = True
    said = [bar, Text(clean(str(verdict)))]
    return Group(*said, *([Text(clean(verdict.beside), "bright_black")] if verdict.beside else []))


def section(title: str, *parts: RenderableType) -> RenderableType:
    """A titled part of a page."""
    return Group(Text(title, "bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in parts), Text())


def paragraphs(texts: Iterable[str]) -> RenderableType:
    return Group(*(Text(clean(text)) for text in texts))
