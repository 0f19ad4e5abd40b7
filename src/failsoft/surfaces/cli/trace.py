"""``failsoft trace``: list, show, follow, export, replay and prune recorded events."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from failsoft.analysis.record_check import Record
from failsoft.analysis.source import SourceError
from failsoft.core.model import sizes
from failsoft.core.model.durations import seconds
from failsoft.errors import ManifestError
from failsoft.observe.success_runs import iso
from failsoft.surfaces.cli.console import CommandError, clean, json_option, make_console, print_json, print_text
from failsoft.surfaces.cli.files import cannot_write, read
from failsoft.surfaces.cli.sources import (
    open_kept,
    open_source,
    source_options,
    store_option,
    turn_argument,
    unreadable,
)

if TYPE_CHECKING:
    from rich.text import Text

    from failsoft.analysis.replay import Cascaded, Replayed
    from failsoft.analysis.why import Why
    from failsoft.core.resilience.policy import Policy

INTERVAL = 0.5  # seconds between reads

_NARROW = 60  # columns; below this width, the list of turns has no start times


@click.group(short_help="List, show, export and replay recorded turns.")
def trace() -> None:
    """List, show, export and replay recorded turns."""


@trace.command("list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="How many turns.")
@source_options
@json_option
def list_turns(limit: int, store: str | None, trace: str | None, as_json: bool) -> int:
    """List the latest turns: start, duration, status, calls still running.

    Exit codes: 0, 1 some turns cannot be read.
    """
    from failsoft.analysis.why import explain_turn

    source = open_source(store, trace).source
    turns, code = [], 0
    for turn_id in source.turns(limit):
        try:
            turns.append(explain_turn(turn_id, source.events(turn_id), now=time.time()))
        except Exception as error:  # the other turns can still be read
            code = 1
            known = isinstance(error, CommandError | SourceError)
            failure = str(error) if known else unreadable(f"{source.name}, turn {turn_id}", error).message
            print_text(clean(failure), err=True)
    if as_json:
        keys = ("turn_id", "began", "seconds", "thread", "ended", "running", "verdict")
        print_json([{key: turn.to_dict()[key] for key in keys} for turn in turns])
        return code
    from rich.text import Text

    console = make_console()
    if not turns:
        console.print(Text(f"There are no turns in {clean(source.name)}.", "bright_black"))
        return code
    lines = [("turn", "began (UTC)", "took", "status", "calls", "where the time went"), *map(_cells, turns)]
    if console.width < _NARROW:  # leave out the start times: the other columns matter more
        lines = [(turn, *others) for turn, _, *others in lines]
    for line in _table(lines):
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, no_wrap=True)
    return code


def _cells(turn: Why) -> tuple[str | Text, ...]:
    """Format a turn as one line of the list."""
    from rich.text import Text

    from failsoft.analysis.waterfall.verdict import format_seconds

    rows = [row for row in turn.waterfall.rows if row.parent is None]
    good = sum(row.status == "succeeded" for row in rows)
    return (
        clean(turn.turn_id),
        Text((turn.began or "")[:19].replace("T", " "), "bright_black"),
        format_seconds(turn.seconds),
        Text(*_status(turn)),
        Text(f"{good}/{len(rows)} ok", "green" if good == len(rows) else "red"),
        clean(str(turn.waterfall.verdict).partition(": ")[2]),
    )


def _table(lines: Sequence[tuple[str | Text, ...]]) -> Iterator[Text]:
    """Lay out columns as wide as needed; the first line is the header."""
    from rich.text import Text

    texts = [[cell if isinstance(cell, Text) else Text(cell) for cell in line] for line in lines]
    widths = [max(cell.cell_len for cell in column) for column in zip(*texts, strict=True)]
    for number, cells in enumerate(texts):
        line = Text(style="" if number else "bold")
        for cell, width in zip(cells[:-1], widths, strict=False):
            line.append_text(cell).append(" " * (width - cell.cell_len + 2))
        yield line.append_text(cells[-1])


def _status(turn: Why) -> tuple[str, str]:
    """Return a turn's status in a word or two, and its colour."""
    from failsoft.analysis.waterfall.verdict import format_seconds

    if not turn.ended:
        stuck = max((call.seconds for call in turn.running), default=None)
        return ("not ended", "yellow") if stuck is None else (f"running, {format_seconds(stuck)}", "blue")
    if turn.waterfall.deadline is not None:
        return "timed out", "magenta"
    good = all(row.status == "succeeded" for row in turn.waterfall.rows if row.parent is None)
    return ("ok", "green") if good else ("failures", "red")


@trace.command()
@turn_argument
@source_options
@json_option
def show(turn: str, store: str | None, trace: str | None, as_json: bool) -> int:
    """Show TURN as a waterfall, then its events line by line. Exit codes: 0, 1 no such turn."""
    from failsoft.analysis.waterfall import build

    opened = open_source(store, trace)
    turn_id = opened.find(turn)
    events = opened.source.events(turn_id)
    picture = build(events, turn_id=turn_id)
    if as_json:
        print_json({"turn_id": turn_id, "events": events, "waterfall": picture.to_dict()})
        return 0
    from rich.text import Text

    from failsoft.analysis.why import explain_turn
    from failsoft.surfaces.cli.drawing import headline, section, show_verdict, show_waterfall

    console = make_console()
    console.print(headline(explain_turn(turn_id, events, now=time.time())), Text(), sep="\n")
    console.print(show_waterfall(picture, console.width), Text(), sep="\n")
    console.print(section("Where the time went", show_verdict(picture.verdict, console.width - 4)))
    console.print(Text("What happened", "bold"))
    _print_lines(events)
    return 0


@trace.command()
@click.option(
    "-n", "--lines", default=20, show_default=True, type=click.IntRange(0), help="How many events to start with."
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events until stopped.")
@source_options
@json_option
def tail(lines: int, follow: bool, store: str | None, trace: str | None, as_json: bool) -> int:
    """Show the latest events, inside and outside turns. Exit code: 0.

    With --json they are one list; with --follow, one event per line.
    """
    source = open_source(store, trace).source
    found = source.tail(max(lines, 1))
    latest = [event for _, event in found[-lines:]] if lines else []
    if as_json and not follow:
        print_json(latest)
        return 0
    _print_latest(latest, as_json=as_json)
    at = found[-1][0] if found else 0
    while follow:
        time.sleep(INTERVAL)
        for position, event in source.read(after=at):
            at = position
            _print_latest([event], as_json=as_json)
        sys.stdout.flush()
    return 0


_FORMS = {".html": "html", ".htm": "html", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}


def _form_of(output: Path | None, form: str | None) -> str:
    """Return the format that the file's name asks for, else the given one; raise if they differ."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix in (".csv", ".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg", ".xml"):
        raise click.UsageError(f"--output {output}: a turn is written as .jsonl or .html, not as {suffix}")
    asked = _FORMS.get(suffix, form or "jsonl")
    if form is not None and asked != form:
        raise click.UsageError(f"--format {form}: --output {output} asks for {asked}: drop one of the two")
    return asked


@trace.command()
@turn_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file to write.  [default: standard output]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "html")),
    help="Events as JSON lines, or the waterfall as a page.  [default: by FILE's name, else jsonl]",
)
@source_options
@json_option
def export(
    turn: str, *, output: Path | None, form: str | None, store: str | None, trace: str | None, as_json: bool
) -> int:
    """Export a turn: its events as JSON lines, or its waterfall as one self-contained HTML file.

    TURN is an id or a part of one, last, or all: the events of all turns and outside turns. Exit codes: 0, 1 no such
    turn.
    """
    form = _form_of(output, form)
    if as_json and output is None:
        raise click.UsageError("--json reports the written file: name one with --output")
    opened = open_source(store, trace)
    source = opened.source
    turn_id = None if turn == "all" else opened.find(turn)
    events = [event for _, event in source.read()] if turn_id is None else source.events(turn_id)
    if form == "html":
        if turn_id is None:
            raise click.UsageError("an HTML page shows one turn: name it")
        from failsoft.analysis.waterfall import build

        made = build(events, turn_id=turn_id).to_html().encode("utf-8", "replace")
    else:
        made = "".join(json.dumps(event) + "\n" for event in events).encode()
    if output is None:
        click.echo(made, nl=False)
        return 0
    try:
        output.write_bytes(made)
    except OSError as error:
        raise cannot_write(output, error) from None
    if as_json:
        print_json({"turn_id": turn_id, "format": form, "file": str(output), "events": len(events)})
    else:
        what = f"The waterfall of {turn_id}" if form == "html" else f"{len(events)} events"
        print_text(clean(f"{what} written to {output}"), err=True)
    return 0


@trace.command()
@turn_argument
@click.option("-m", "--manifest", metavar="FILE", help="The manifest whose policies applied.  [default: none]")
@source_options
@json_option
def replay(turn: str, manifest: str | None, store: str | None, trace: str | None, as_json: bool) -> int:
    """Repeat the decisions of TURN and compare: how each failure was handled, and what became of its dependants.

    Exit codes: 0 the same, 1 not the same or no such turn, 2 nothing to read.
    """
    from failsoft.analysis.replay import replay as decide_again
    from failsoft.analysis.replay import replay_cascades

    opened = open_source(store, trace)
    turn_id = opened.find(turn)
    events = opened.source.events(turn_id)
    decisions, cascades = decide_again(events, _policies(manifest)), replay_cascades(events)
    replayed: list[Replayed | Cascaded] = [*decisions, *cascades]
    replayed.sort(key=lambda each: each.seq)
    different = sum(each.same is False for each in replayed)
    not_comparable = sum(each.same is None for each in replayed)
    if as_json:
        summary = {"turn_id": turn_id, "same": not different, "different": different, "not_recorded": not_comparable}
        lists = {"decisions": [each.to_dict() for each in decisions], "cascades": [each.to_dict() for each in cascades]}
        print_json({**summary, **lists})
    else:
        from failsoft.surfaces.cli.replayed import show_replayed

        show_replayed(replayed, different, not_comparable)
    return int(bool(different))


def _policies(manifest: str | None) -> Sequence[Policy]:
    if manifest is None:
        return ()
    from failsoft.config.manifest import load

    try:
        return load(read(manifest), name=manifest).policies
    except ManifestError as error:
        raise CommandError(f"{manifest} has mistakes", problems=error.problems) from None


@trace.command()
@click.option("--older-than", metavar="TIME", help="Delete events older than this: 12h, 720h …")
@click.option("--most", metavar="N", type=click.IntRange(0), help="Keep the latest N events only.")
@click.option("--size", metavar="SIZE", help="Keep at most this much: 500MB, 64kB …")
@store_option
@json_option
def prune(older_than: str | None, most: int | None, size: str | None, store: str | None, as_json: bool) -> int:
    """Delete old events from a store. The recovery memory is kept.

    Exit codes: 0, 1 it cannot be done now, 2 there is no store.
    """
    import sqlite3

    if older_than is None and most is None and size is None:
        raise click.UsageError("name what to delete: --older-than 720h, --most 100000, or --size 500MB")
    before = None if older_than is None else _before(older_than)
    limit = None if size is None else _bytes(size)
    found = open_kept(store)
    try:
        gone = found.prune(before=before, most=most, size=limit)
    except sqlite3.Error as error:
        raise CommandError(f"{found.path} cannot be pruned: {error}", code=1) from None
    if as_json:
        print_json({"dropped": gone, "store": str(found.path)})
    else:
        print_text(f"{gone} events deleted from {clean(str(found.path))}")
    return 0


def _before(age: str) -> str:
    try:
        return iso(time.time() - seconds(age))
    except ValueError as error:
        raise click.UsageError(f"--older-than: {error}") from None


def _bytes(size: str) -> int:
    try:
        return sizes.size(size)
    except ValueError as error:
        raise click.UsageError(f"--size: {error}") from None


def _print_latest(events: Iterable[Record], *, as_json: bool) -> None:
    if as_json:
        for event in events:
            print_json(event, indent=None)
    else:
        _print_lines(events, everything=True)


def _print_lines(events: Iterable[Record], *, everything: bool = False) -> None:
    from failsoft.surfaces.cli.live import describe_record

    for event in events:
        if event["event_type"] == "CallRunning" and not everything:
            continue  # the picture shows the call or its end
        line: Any = describe_record(event)
        if line is None and everything:
            line = event.get("message") or event["event_type"]
        if line is not None:
            name = f"{event['call_id']}: " if event.get("call_id") else ""
            turn = f"{event['turn_id']}  " if everything and event.get("turn_id") else ""
            print_text(clean(f"{event['timestamp'][11:23]}  {turn}{name}{line}"))
