"""``failsoft why``: explain what happened in a turn and where its time went."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from failsoft.surfaces.cli.console import clean, json_option, make_console, print_json
from failsoft.surfaces.cli.sources import open_source, source_options, turn_argument

if TYPE_CHECKING:
    from rich.console import RenderableType

    from failsoft.analysis.waterfall import Row
    from failsoft.analysis.why import Loss, Why

_NAME, _RESULT = 36, 36  # columns, at most
_LEAST = 12  # columns for the attempts of a call; with fewer, a call takes several lines


@click.command(
    short_help="Explain why a turn took so long.",
    epilog="Examples: failsoft why · failsoft why turn-4da43c --json · failsoft why --trace trace.jsonl",
)
@turn_argument
@source_options
@json_option
def why(turn: str, store: str | None, trace: str | None, as_json: bool) -> int:
    """Explain what happened in TURN and where its time went.

    TURN is an id or a part of one, or last. The output has the verdict, one line per call with its attempts, the
    biggest loss, what the recovery memory knows about it, and settings that would have saved time. Exit codes: 0, 1 no
    such turn, 2 nothing to read.
    """
    from failsoft.analysis.why import explain_turn

    opened = open_source(store, trace)
    source, turn_id = opened.source, opened.find(turn)
    explained = explain_turn(turn_id, source.events(turn_id), source.families(), now=time.time())
    if as_json:
        print_json(explained.to_dict())
    else:
        console = make_console()
        console.print(_show(explained, console.width))
    return 0


def _show(explained: Why, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from failsoft.surfaces.cli.drawing import headline, section, show_verdict, wrapped

    parts: list[RenderableType] = [headline(explained), Text()]
    parts += [section("Where the time went", show_verdict(explained.waterfall.verdict, width - 4))]
    if explained.waterfall.rows:
        parts.append(section("Calls", _calls(explained.waterfall.rows, width - 4)))
    if explained.loss is not None:
        tool = explained.waterfall.verdict.name(explained.loss.share.tool or "")
        parts.append(section("The biggest loss", _loss(explained.loss, tool)))
    if explained.advice:
        parts.append(section("What would help", *(wrapped(f"• {each}", width - 4) for each in explained.advice)))
    return Group(*parts)


def _calls(rows: tuple[Row, ...], width: int) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from failsoft.analysis.waterfall.row_text import sum_up
    from failsoft.analysis.waterfall.terminal import CRITICAL, name_of, small_ids, summarise
    from failsoft.surfaces.cli.drawing import RESULTS, wrapped

    table = Table.grid(padding=(0, 2))
    table.add_column(max_width=_NAME, no_wrap=True, overflow="ellipsis")
    table.add_column(max_width=_RESULT, no_wrap=True, overflow="ellipsis")
    table.add_column()
    ids = small_ids(rows)
    names = [len(f"{name_of(row)}  {ids[row.id]}".rstrip()) + 2 for row in rows]
    room = width - min(_NAME, max(names)) - min(_RESULT, max(len(summarise(row)) for row in rows)) - 4
    if room < _LEAST:
        return _stack_calls(rows, width)
    for row in rows:
        name = Text(clean(f"{CRITICAL if row.critical else ' '} {name_of(row)}"), "bold" if row.critical else "")
        if ids[row.id]:
            name.append(clean(f"  {ids[row.id]}"), "bright_black not bold")
        table.add_row(
            name,
            Text(clean(summarise(row)), RESULTS.get(row.status or "", "blue")),
            wrapped(sum_up(row), room, "bright_black"),
        )
    return table


def _stack_calls(rows: tuple[Row, ...], width: int) -> RenderableType:
    """List the calls with the result below the name, so that no result is cut."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from failsoft.analysis.waterfall.row_text import sum_up
    from failsoft.analysis.waterfall.terminal import CRITICAL, name_of, small_ids, summarise
    from failsoft.surfaces.cli.drawing import RESULTS, wrapped

    ids = small_ids(rows)
    parts: list[RenderableType] = []
    for row in rows:
        name = Text(clean(f"{CRITICAL if row.critical else ' '} {name_of(row)}"), "bold" if row.critical else "")
        if ids[row.id]:
            name.append(clean(f"  {ids[row.id]}"), "bright_black not bold")
        below = [wrapped(clean(summarise(row)), width - 8, RESULTS.get(row.status or "", "blue"))]
        if summed := sum_up(row):
            below.append(wrapped(summed, width - 8, "bright_black"))
        parts += [name, Padding(Group(*below), (0, 0, 0, 4))]
    return Group(*parts)


def _loss(loss: Loss, tool: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from failsoft.analysis.waterfall.verdict import format_seconds

    attempts = (
        "1 failed attempt" if loss.share.attempts == 1 else f"{loss.share.attempts} failed attempts and their waits"
    )
    lines = [
        Text.assemble(
            (clean(tool), "bold"),
            clean(f": {format_seconds(loss.share.seconds)} in {attempts}, in {', '.join(loss.calls)}"),
        ),
        Text.assemble("error       ", (loss.code, "red"), clean(f", {loss.classification}: {loss.error}")),
        Text(clean(f"decided     {loss.reason}")),
    ]
    known = "nothing yet" if loss.known is None or not loss.known.seen else str(loss.known)
    return Group(*lines, Text(clean(f"memory      {known}")))
