"""``failsoft demo``: a live turn that fails in six ways, then its waterfall and explanations."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from failsoft.surfaces.cli.console import json_option, make_console, print_json
from failsoft.surfaces.cli.files import cannot_write

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from failsoft.analysis.turn_report import TurnReport

_SVG_WIDTH = 100

NEXT = (
    ("init", "a manifest for your own tools"),
    ("check", "its errors, line by line"),
    ('classify "429 Too Many Requests"', "what an error means"),
)


@click.command(short_help="Watch a turn of tool calls fail softly.")
@json_option
@click.option(
    "--svg", metavar="FILE", type=click.Path(path_type=Path), hidden=True, help="Write the page as a picture."
)
def demo(as_json: bool, svg: Path | None) -> int:
    """Watch a turn of tool calls fail softly: no key, no server, four seconds.

    A retry that works, a circuit that opens, a fallback to another tool, a failure that affects only its dependants, a
    booking that is not repeated, and a deadline. Exit code: 0.
    """
    console = None if as_json else make_console(width=_SVG_WIDTH if svg else None, record=svg is not None)
    if console is not None:
        console.print(_opening())
    report = asyncio.run(_play(console if svg is None else None))
    if console is None:
        print_json({**report.to_dict(), "waterfall": report.waterfall().to_dict()})
        return 0
    console.print(_closing(report, console.width, "failsoft" if svg else find_program()))
    if svg is not None:
        _save(console, svg)
    return 0


async def _play(console: Console | None) -> TurnReport:
    from failsoft.surfaces.cli import demo_travel
    from failsoft.surfaces.cli.live import watching

    handles: dict[str, Any] = {}
    async with demo_travel.make_runtime() as rt:
        shown = nullcontext() if console is None else watching(rt, console, handles, span=demo_travel.SECONDS)
        async with shown, rt.turn(timeout=demo_travel.TIMEOUT) as turn:
            demo_travel.submit(turn, handles)
            await demo_travel.continue_turn(turn, handles)
        return turn.report


def _opening() -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from failsoft.surfaces.cli.demo_travel import STORY

    title = Text.assemble(("failsoft", "bold green"), ("  a weekend in Paris, planned with tools that fail", "bold"))
    table = Table.grid(padding=(0, 2))
    for name, trouble, remedy in STORY:
        table.add_row(Text(f"  {name}"), Text(trouble, "red"), Text(f"→ {remedy}", "green"))
    return Group(title, Text(), table, Text())


def find_program() -> str:
    """Return the command that starts failsoft here: its name if it is on the path, else what started this process."""
    started = Path(sys.argv[0])
    if which("failsoft") is not None:
        return "failsoft"
    return str(started) if started.stem == "failsoft" else "python -m failsoft"


def _closing(report: TurnReport, width: int, program: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from failsoft.surfaces.cli.drawing import paragraphs, section, show_verdict, show_waterfall

    picture = report.waterfall()
    longest = max(len(f"{program} {command}") for command, _ in NEXT)
    commands = Group(*(_command(f"{program} {command}", purpose, longest, width - 4) for command, purpose in NEXT))
    return Group(
        show_waterfall(picture, width),
        Text(),
        section("Where the time went", show_verdict(picture.verdict, width - 4)),
        section("What the user would be told", paragraphs([report.message], width - 4)),
        section(
            "What the model would be told about the booking",
            paragraphs([report.outcomes["table"].explanation.model], width - 4),
        ),
        section("What next", commands),
    )


def _command(command: str, purpose: str, longest: int, width: int) -> RenderableType:
    """Format a command to copy and its purpose. The purpose goes below if there is no room beside the command."""
    from rich.text import Text

    beside = longest + 2 + len(purpose) <= width
    gap = " " * (longest - len(command) + 2) if beside else "\n    "
    return Text.assemble((command, "bold cyan"), gap, purpose, no_wrap=beside, overflow="ignore")


def _save(console: Console, path: Path) -> None:
    import re

    from rich._export_format import CONSOLE_SVG_FORMAT

    own = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # no web fonts
    own = own.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")
    try:
        path.write_text(console.export_svg(title="failsoft demo", code_format=own, unique_id="demo"), encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from None
