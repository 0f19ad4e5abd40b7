"""Output of commands: a console for people, one JSON document for programs.

Rules
-----
- Text from outside (errors, names in plans, arguments) is never interpreted: the console has markup off, and ``clean``
  makes control characters visible.
- rich detects colours, widths and terminals; ``NO_COLOR`` and ``FORCE_COLOR`` work as in rich.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import click

from failsoft.core.redact.printable import visible as clean
from failsoft.surfaces.cli.streams import is_utf8

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "PLAIN_WIDTH",
    "CommandError",
    "clean",
    "is_live",
    "json_option",
    "make_console",
    "manifest_option",
    "print_json",
    "print_text",
]

F = TypeVar("F", bound=Callable[..., Any])

_BLANKS = re.compile(r"(?<! ) ++(?=\n)")
_SURROGATES = re.compile("[\ud800-\udfff]")
PLAIN_WIDTH = 100  # default width if stdout is not a terminal


class CommandError(Exception):
    """A command cannot do its work. Carries the message, a hint and a list of problems."""

    def __init__(self, message: str, *, hint: str = "", problems: Sequence[str] = (), code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problems = tuple(problems)
        self.code = code


def json_option(command: F) -> F:
    """Add ``--json``, which every command has."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")(command)


def manifest_option(command: F) -> F:
    """Add ``--manifest``."""
    return click.option(
        "-m",
        "--manifest",
        metavar="FILE",
        help="The manifest.  [default: failsoft.yaml]",
        shell_complete=lambda *_: [click.shell_completion.CompletionItem(None, type="file")],
    )(command)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print one document; escape it if stdout cannot encode its characters."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if not is_utf8(sys.stdout) or _SURROGATES.search(text):
        text = json.dumps(value, indent=indent)
    print_text(text)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text in the stream's own encoding. click alone would write UTF-8 to an ASCII stream."""
    click.echo(text, file=sys.stderr if err else sys.stdout)


class Trimmed:
    """A stream for pipes and files that strips trailing blanks from lines."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def make_console(*, width: int | None = None, record: bool = False) -> Console:
    """Make the console for people."""
    from rich.console import Console

    plain = not sys.stdout.isatty()
    if width is None and plain and not os.environ.get("COLUMNS"):
        width = PLAIN_WIDTH
    if record:
        return Console(
            width=width, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor", markup=False,
            highlight=False, emoji=False,
        )  # fmt: skip
    file = cast("IO[str]", Trimmed(sys.stdout)) if plain else None
    console = Console(width=width, file=file, markup=False, highlight=False, emoji=False)
    console.on_broken_pipe = _reraise  # type: ignore[method-assign] # rich's own exits the program
    return console


def _reraise() -> None:
    raise  # noqa: PLE0704 - called inside the except block


def is_live(console: Console) -> bool:
    """True if lines can be redrawn: a real terminal with cursor movement."""
    return sys.stdout.isatty() and console.is_terminal and not console.is_dumb_terminal
