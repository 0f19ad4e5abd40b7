"""``failsoft why``: what happened in a turn, and where its time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failsoft.surfaces.cli.console import clean, json_option, make_console, print_json
from failsoft.surfaces.cli.sources import open_source, source_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from failsoft.core.waterfall import Row
    from failsoft.core.why import Loss, Why

_NAME, _RESULT = 28, 36  # columns, at most


@click.command(
    short_help="Say why a turn took so long.",
    epilog="Examples: failsoft why · failsoft why turn-4da43c --json · failsoft why --trace trace.jsonl",
)
@click.argument("turn", default="last")
@source_options
@json_option
def why(turn: str, store: str | None, trace: str | None, as_json: bool) -> int:
    """Say what happened in TURN and where its time went.

    TURN is an id or a part of one, or last. First comes the verdict, then a line a call with its attempts, then the
    biggest loss and what the recovery memory knows of it. Exit codes: 0, 1 no such turn, 2 nothing to read.
    """
    from failsoft.core.why import explain_turn

    source = open_source(store, trace)
    turn_id = source.find(turn)
    told = explain_turn(turn_id, source.events(turn_id), source.families())
    if as_json:
        print_json(told.to_dict())
    else:
        console = make_console()
        console.print(_show(told, console.width))
    return 0


def _show(told: Why, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from failsoft.surfaces.cli.drawing import section, show_verdict

    head = Text(clean(f"{told.turn_id}  {told.began or ''}"), "bright_black")
    if told.thread is not None:
        head.append(clean(f"  thread {told.thread}"))
    if not told.ended:
        head.append("  it has not ended: it runs, or its process is gone", "yellow")
    parts: list[RenderableType] = [head, Text()]
    parts += [section("Where the time went", show_verdict(told.waterfall.verdict, width - 4))]
    if told.waterfall.rows:
        parts.append(section("Calls", _calls(told.waterfall.rows)))
    if told.loss is not None:
        parts.append(section("The biggest loss", _loss(told.loss)))
    return Group(*parts)


def _calls(rows: tuple[Row, ...]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from failsoft.core.waterfall.layout import CRITICAL, summarise
    from failsoft.core.waterfall.words import sum_up
    from failsoft.surfaces.cli.drawing import RESULTS

    table = Table.grid(padding=(0, 2))
    table.add_column(max_width=_NAME, no_wrap=True, overflow="ellipsis")
    table.add_column(max_width=_RESULT, no_wrap=True, overflow="ellipsis")
    table.add_column()
    for row in rows:
        name = f"{CRITICAL if row.critical else ' '} {'↳ ' * (row.parent is not None)}{row.id}"
        table.add_row(
            Text(clean(name), "bold" if row.critical else ""),
            Text(clean(summarise(row)), RESULTS.get(row.status or "", "blue")),
            Text(clean(sum_up(row)), "bright_black"),
        )
    return table


def _loss(loss: Loss) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from failsoft.core.waterfall.verdict import say_seconds

    attempts = (
        "1 failed attempt" if loss.share.attempts == 1 else f"{loss.share.attempts} failed attempts and their waits"
    )
    lines = [
        Text.assemble(
            (clean(str(loss.share.tool)), "bold"),
            clean(f": {say_seconds(loss.share.seconds)} in {attempts}, in {', '.join(loss.calls)}"),
        ),
        Text.assemble("error       ", (loss.code, "red"), clean(f", {loss.classification}: {loss.error}")),
        Text(clean(f"decided     {loss.reason}")),
    ]
    known = "nothing yet" if loss.known is None or not loss.known.seen else str(loss.known)
    return Group(*lines, Text(clean(f"memory      {known}")))
