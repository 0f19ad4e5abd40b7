"""Draw the waterfall and its verdict in colour, for a terminal of any width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from failsoft.analysis.waterfall.terminal import CRITICAL, CellKind, Line, axis, explain_signs, lay_out
from failsoft.analysis.waterfall.verdict import KINDS, format_seconds
from failsoft.surfaces.cli.console import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

    from failsoft.analysis.waterfall import Verdict, Waterfall
    from failsoft.analysis.waterfall.verdict import TimeKind
    from failsoft.analysis.why import Why

STYLES: dict[CellKind, str] = {
    "ok": "green",
    "fallback": "cyan",
    "failed": "red",
    "timeout": "red",
    "killed": "red",
    "waiting": "yellow",
    "held": "yellow",
    "queued": "bright_black",
    "verifying": "cyan",
    "running": "blue",
    "left": "magenta",
    "cancelled": "magenta",
    "refused": "bold red",
    "opened": "bold red",
    "skipped": "bright_black",
    "critical": "bold",
    "none": "",
}
_SHARES: dict[TimeKind, tuple[str, str]] = {
    "failed": ("▒", "red"),
    "waiting": ("╱", "yellow"),
    "held": ("╲", "yellow"),
    "queued": ("┄", "bright_black"),
    "verifying": ("≈", "cyan"),
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
_UNITS = re.compile(r"(\d) (ms|s|min|h|%|kB|MB|attempts?|times|of)\b")
_CODE = re.compile(r"`[^`]{1,40}`")
_ROOMY = 80  # columns
_NAME, _RESULT, _BAR = 32, 27, 16  # columns: longest name, result of a running turn, shortest bar


def headline(turn: Why) -> Text:
    """Describe a turn in one line: id, start, duration, calls still running."""
    took = f"{format_seconds(turn.seconds)}" if turn.ended else f"{format_seconds(turn.seconds)} so far"
    head = Text.assemble((clean(turn.turn_id), "bold"), (clean(f"  {turn.began or ''}  {took}"), "bright_black"))
    if turn.thread is not None:
        head.append(clean(f"  thread {turn.thread}"), "bright_black")
    if turn.running:
        calls = ", ".join(f"{call.label} for {format_seconds(call.seconds)}" for call in turn.running)
        head.append(clean(f"\nStill running: {calls}"), "yellow")
    elif not turn.ended:
        head.append("\nNot ended: the turn is running, or its process is gone", "yellow")
    return head


def show_waterfall(waterfall: Waterfall, width: int) -> RenderableType:
    """Draw the waterfall with axis and legend."""
    plain = lay_out(waterfall, 1)
    with_id = width >= _ROOMY  # narrow terminals show names only
    names = [f"{line.name}  {line.small}".rstrip() if with_id else line.name for line in plain]
    name = min(_NAME, max([cell_len(clean(each)) for each in names], default=0), width // 3)
    wanted = _RESULT  # constant, so that a growing picture does not move
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
    shown = _cut(clean(line.name), name)
    small = _cut(clean(f"  {line.small}" if line.small else ""), name - cell_len(shown))
    text = Text.assemble(
        (f"{CRITICAL if row.critical else ' '} {shown}", "bold" if row.critical else ""),
        (set_cell_size(small, name - cell_len(shown)), "bright_black"),
        "  ",
    )
    for kind, cells in groupby(line.cells, key=lambda cell: cell[1]):
        text.append("".join(char for char, _ in cells), STYLES[kind])
    text.append(f"  {_cut(clean(line.result), result)}", RESULTS.get(row.status or "", "blue"))
    text.no_wrap = True
    return text


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def show_legend(waterfall: Waterfall, width: int) -> RenderableType:
    """Explain the signs; lines break between entries."""
    lines = [Text()]
    for signs, kind, words in explain_signs(waterfall):
        if lines[-1] and lines[-1].cell_len + 3 + cell_len(f"{signs} {words}") > width:
            lines.append(Text())
        lines[-1].append("   " if lines[-1] else "")
        lines[-1].append(signs, STYLES[kind])
        lines[-1].append(f" {words}", "bright_black")
    return Group(*lines)


def show_verdict(verdict: Verdict, width: int) -> RenderableType:
    """Show where the time went: a sentence, then one line per category with its share."""
    parts: list[RenderableType] = [wrapped(str(verdict), width)]
    if verdict.duration:
        parts += [Text(), *_shares(verdict, width)]
    if verdict.cost_of_all_calls:
        parts += [Text(), wrapped(verdict.cost_of_all_calls, width, "bright_black")]
    return Group(*parts)


def _shares(verdict: Verdict, width: int) -> Iterator[Text]:
    sums: dict[TimeKind, float] = {}
    for share in verdict.path:
        sums[share.kind] = sums.get(share.kind, 0.0) + share.seconds
    words = {kind: KINDS[kind] for kind in sums}
    longest = max(map(len, words.values()), default=0)
    room = max(8, min(40, width - longest - 20))
    for kind, seconds in sums.items():
        if seconds < verdict.duration * 0.005:
            continue
        char, style = _SHARES[kind]
        part = seconds / verdict.duration
        line = Text(f"{words[kind]:{longest}}  {format_seconds(seconds):>8}  {part:4.0%}  ")
        line.append(char * max(1, round(part * room)), style)
        line.no_wrap = True
        yield line


def wrapped(text: str, width: int, style: str = "") -> Text:
    """Wrap text to a width; keep a number and its unit on one line."""
    kept = _CODE.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), clean(text))
    lines = wrap(_UNITS.sub("\\1\N{NO-BREAK SPACE}\\2", kept), max(20, width), break_on_hyphens=False)
    return Text("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "), style, no_wrap=True)


def section(title: str, *parts: RenderableType) -> RenderableType:
    """Format a titled section of a page."""
    return Group(Text(title, "bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in parts), Text())


def paragraphs(texts: Iterable[str], width: int) -> RenderableType:
    return Group(*(wrapped(text, width) for text in texts))
