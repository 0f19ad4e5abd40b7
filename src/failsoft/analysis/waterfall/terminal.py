"""Draw a waterfall with characters, for any terminal. Callers may add colours by the kind of each cell.

Rules
-----
- A line has three parts: the call's name, its bar, its result. All bars have the same width.
- The shapes are distinct without colour: attempts are solid, failed ones are grey and end in a sign, waits are
  hatched, unfinished ones end in an arrow, refusals and skips are single signs.
- Every attempt has at least one cell; signs are drawn last.
- Names come from outside (a call's id from a model): control characters are made visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from failsoft.analysis.waterfall.model import PAUSES, SegmentKind, TickKind
from failsoft.analysis.waterfall.verdict import judge
from failsoft.core.redact.printable import visible

if TYPE_CHECKING:
    from failsoft.analysis.waterfall.model import Row, Segment, Timeline

CellKind = SegmentKind | TickKind | Literal["fallback", "critical", "none"]
Cell = tuple[str, CellKind]

CRITICAL = "┃"
FALLBACK = "▆"  # a successful attempt of a fallback
FORMS: dict[SegmentKind, tuple[str, str]] = {  # a segment's cells, and its last cell
    "ok": ("█", "█"),
    "failed": ("▒", "✗"),
    "timeout": ("▒", "!"),
    "killed": ("▒", "†"),
    "waiting": ("╱", "╱"),
    "held": ("╲", "╲"),
    "queued": ("┄", "┄"),
    "verifying": ("≈", "≈"),
    "running": ("▓", "▓"),
    "left": ("▓", "▶"),
    "cancelled": ("▓", "■"),
}
SIGNS: dict[TickKind, str] = {"refused": "╳", "opened": "◆", "skipped": "○"}
TICK_MARKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

LEGEND: tuple[tuple[str, CellKind, str], ...] = (
    ("█", "ok", "worked"),
    ("▒✗", "failed", "failed"),
    ("▒!", "timeout", "timed out"),
    ("▒†", "killed", "killed"),
    ("╱╱", "waiting", "waiting"),
    ("╲╲", "held", "held back by a rate limit"),
    ("┄┄", "queued", "waiting for a place to run"),
    ("≈≈", "verifying", "finding out what happened"),
    (FALLBACK, "fallback", "worked, by another tool"),
    ("◆", "opened", "circuit opened"),
    ("╳", "refused", "refused"),
    ("○", "skipped", "skipped"),
    ("▓", "running", "running"),
    ("▓▶", "left", "left unfinished"),
    ("▓■", "cancelled", "cancelled"),
    (CRITICAL, "critical", "what the end waited for"),
)


class Line(NamedTuple):
    """One drawn row."""

    row: Row
    name: str  # the tool's name for people
    small: str  # the call's id, if the name alone is ambiguous
    cells: tuple[Cell, ...]
    result: str


def lay_out(waterfall: Timeline, bar: int) -> list[Line]:
    """Lay out all rows with bars of ``bar`` characters."""
    span = max([waterfall.duration, *(row.end for row in waterfall.rows)]) or 1.0
    ids = small_ids(waterfall.rows)
    return [
        Line(row, visible(name_of(row)), visible(ids[row.id]), _cells(row, span, bar), visible(summarise(row)))
        for row in waterfall.rows
    ]


def name_of(row: Row) -> str:
    """The row's name: the tool's label, indented for a nested call."""
    return row.name if row.parent is None else f"↳ {row.name}"


def small_ids(rows: Sequence[Row]) -> dict[str, str]:
    """The ids to show beside the names; none for a numbered call whose name is unique."""
    names = Counter(row.name for row in rows)
    return {
        row.id: ""
        if (names[row.name] == 1 and row.short_id.startswith("#")) or row.short_id == row.name
        else row.short_id
        for row in rows
    }


def axis(waterfall: Timeline, bar: int) -> str:
    """Draw the time axis above the bars."""
    span = max([waterfall.duration, *(row.end for row in waterfall.rows)]) or 1.0
    step = next((step for step in TICK_MARKS if span / step * 9 <= bar), span)
    line = ""
    for number in range(int(span / step + 0.01) + 1):
        text = label(number * step, step)
        at = min(_column(number * step, span, bar), bar - len(text))
        if at > len(line) or not line:
            line = line.ljust(at) + text
    return line.ljust(bar)


def summarise(row: Row) -> str:
    """Describe a call's result in a few words."""
    if row.status == "succeeded":
        return ", ".join(_good(row))
    if row.status == "failed":
        return ", ".join(_bad(row))
    if row.status == "skipped":
        return "skipped: no time left" if row.root is None else f"skipped: {row.root_name or row.root} failed"
    if row.status == "timed_out":
        return "left at the deadline" if row.late is None else f"left; came {row.late:.1f} s late"
    return row.status or _open(row)


def _open(row: Row) -> str:
    """Describe the state of a call that has not ended."""
    if not row.segments:
        return "has not begun"
    if row.segments[-1].kind == "waiting":
        return "waiting to try again"
    if row.segments[-1].kind == "held":
        return "held back by a rate limit"
    if row.segments[-1].kind == "verifying":
        return "verified"
    return "running" if row.attempts == 1 else f"running, attempt {row.attempts}"


def kinds_in(waterfall: Timeline) -> set[CellKind]:
    """The kinds that the legend must explain."""
    kinds: set[CellKind] = set()
    for row in waterfall.rows:
        kinds.update(kind_of(row, segment) for segment in row.segments)
        kinds.update(tick.kind for tick in row.ticks)
        if row.critical:
            kinds.add("critical")
    return kinds


def draw(waterfall: Timeline, *, width: int) -> str:
    """Draw the whole picture in plain text."""
    lines = lay_out(waterfall, 1)
    name = min(32, max([len(_whole_name(line)) for line in lines], default=0))
    result = min(36, max([len(line.result) for line in lines], default=0))
    bar = max(20, width - name - result - 6)
    rows = [
        f"{CRITICAL if line.row.critical else ' '} {fit(_whole_name(line), name)}  "
        f"{''.join(char for char, _ in line.cells)}  {fit(line.result, result)}".rstrip()
        for line in lay_out(waterfall, bar)
    ]
    head = f"{'':{name + 4}}{axis(waterfall, bar)}".rstrip()
    legend = [f"{signs} {words}" for signs, _, words in explain_signs(waterfall)]
    return "\n".join([head, *rows, "", *_wrap(legend, width), visible(str(judge(waterfall)))])


def _whole_name(line: Line) -> str:
    return f"{line.name}  {line.small}" if line.small else line.name


def explain_signs(waterfall: Timeline) -> list[tuple[str, CellKind, str]]:
    """The legend, limited to what the picture contains."""
    present = kinds_in(waterfall)
    return [entry for entry in LEGEND if entry[1] in present]


def _wrap(entries: list[str], width: int) -> list[str]:
    lines = [""]
    for entry in entries:
        if lines[-1] and len(lines[-1]) + 2 + len(entry) > width:
            lines.append("")
        lines[-1] += f"{'  ' if lines[-1] else ''}{entry}"
    return lines


def fit(text: str, width: int) -> str:
    """Pad or cut the text to ``width`` characters."""
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _cells(row: Row, span: float, bar: int) -> tuple[Cell, ...]:
    cells: list[Cell] = [(" ", "none")] * bar
    free = 0  # the next free cell; a very short attempt gets it, so that no attempt covers another
    for segment in row.segments:
        start = min(max(_column(segment.start, span, bar), free), bar - 1)
        end = min(max(_column(segment.end, span, bar), start + (segment.kind not in PAUSES)), bar)
        body, last = FORMS[segment.kind]
        kind = kind_of(row, segment)
        if kind == "fallback":
            body = last = FALLBACK
        for column in range(start, end):
            cells[column] = (last if column == end - 1 else body, kind)
        free = max(free, end)
    for tick in row.ticks:
        column = min(max(_column(tick.at, span, bar), free), bar - 1)
        cells[column] = (SIGNS[tick.kind], tick.kind)
        free = max(free, column + 1) if tick.kind == "opened" else free
    return tuple(cells)


def kind_of(row: Row, segment: Segment) -> CellKind:
    """The kind in which a segment is drawn."""
    return "fallback" if segment.kind == "ok" and segment.tool != row.tool else segment.kind


def _column(at: float, span: float, bar: int) -> int:
    return int(at / span * bar + 1e-6)


def label(at: float, step: float) -> str:
    """Format a mark of the axis."""
    if step < 1:
        return f"{at * 1000:g} ms" if step < 0.1 else f"{at:.1f} s"
    return f"{at:g} s"


def _good(row: Row) -> list[str]:
    words = ["ok, in part" if row.partial else "ok"]
    if row.via == "verify":
        words.append("verified" if row.value_known else "verified, value lost")
    elif row.via is not None and row.via != row.tool:
        words[0] += f" by {row.via}"
    elif row.attempts > 1:
        words.append(f"{row.attempts} attempts")
    if row.defaults:
        words.append(f"default for {', '.join(row.defaults)}")
    return words


def _bad(row: Row) -> list[str]:
    failed = [segment for segment in row.segments if segment.kind in ("failed", "timeout", "killed")]
    if not failed:
        refusal = next((tick for tick in row.ticks if tick.kind == "refused"), None)
        circuit = refusal is not None and "ircuit" in refusal.text
        return ["refused: circuit open" if circuit else f"refused: {row.code or 'not run'}"]
    if all(segment.kind != "failed" for segment in failed):
        words = ["timed out" if len(failed) == 1 else f"{len(failed)} timeouts"]
    else:
        words = [row.code or "failed"] + ([f"{len(failed)} attempts"] if len(failed) > 1 else [])
    if any(tick.kind == "opened" for tick in row.ticks):
        words.append("circuit opened")
    if row.may_have_acted:
        words.append("may have acted")
    return words
