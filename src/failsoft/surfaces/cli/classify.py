"""``failsoft classify``: classify an error text and name the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failsoft.core.classify import classify as classify_text
from failsoft.surfaces.cli.console import clean, json_option, make_console, print_json
from failsoft.surfaces.cli.files import read_input

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault

_LONGEST = 8192  # characters to read: a fault keeps no more

_EFFECTS = {
    "none": "none: the tool has not acted",
    "unknown": "unknown: the tool may have acted",
    "happened": "happened: the tool has acted",
}


@click.command(
    short_help="Classify an error text.",
    epilog='Examples: failsoft classify "429 Too Many Requests" · tail -1 error.log | failsoft classify -',
)
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@json_option
def classify(words: tuple[str, ...], as_json: bool) -> int:
    """Classify an error TEXT: what it means, whether a retry can help, and which rule decided.

    TEXT is - for standard input. Exit codes: 0, 2 there is no text.
    """
    text = " ".join(words)
    if text == "-":
        text = read_input(_LONGEST * 4).decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("no text to classify: give it in quotes, or pipe it in and give -")
    fault = classify_text(text.strip())
    if as_json:
        print_json(fault.to_dict())
    else:
        _show(fault)
    return 0


def _show(fault: Fault) -> None:
    from rich.table import Table
    from rich.text import Text

    console = make_console()
    style = "yellow" if fault.retryable else "red"
    console.print(
        Text.assemble((fault.code.value, f"bold {style}"), f"  {fault.classification}, ", (fault.category, "bold"))
    )
    retry = "can help, if repeating the tool is safe" if fault.retryable else "does not help"
    if fault.retry_after is not None:
        retry += f"; wait at least {fault.retry_after:g} s"
    facts = {
        "reason": fault.reason,
        "rule": fault.rule,
        "retry": retry,
        "effect": _EFFECTS[fault.effect],
        "http status": "" if fault.http_status is None else str(fault.http_status),
        "text": fault.message,
    }
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            table.add_row(Text(f"  {name}", "dim"), Text(clean(value)))
    console.print(table)
