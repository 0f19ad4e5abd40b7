"""Write docs/reference/cli.md from the commands' help: ``python -m tools.cli_page``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner
from tools.pages import DOCS, table, write

from failsoft.surfaces.cli import cli

PAGE = DOCS / "reference" / "cli.md"

INTRO = """# Command line

<!-- Written by tools/cli_page.py from the commands themselves. Change src/failsoft/surfaces/cli. -->

`failsoft`, or `python -m failsoft`. Every command has `--help` and `--json`: with that they print
one JSON document and nothing else, also when something goes wrong.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the work failed: a call without a value, a manifest with errors, no such turn |
| 2 | the command could not be carried out as it was given: an option, a file |
| 130 | stopped by Ctrl-C |
| 141 | the program that read the output closed the pipe |

`NO_COLOR` and `FORCE_COLOR` are honoured. Where output goes into a file or a pipe there are no colours.
"""

# Examples that do not depend on files, time or chance
EXAMPLES = {
    "classify": ['failsoft classify "429 Too Many Requests, retry after 20 seconds"'],
    "why": ["failsoft why --trace example"],
    "trace list": ["failsoft trace list --trace example"],
    "trace replay": ["failsoft trace replay --trace example"],
    "trace tail": ["failsoft trace tail --trace example --lines 2"],
}


def walk(group: click.Group, *above: str) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with their full names."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield " ".join((*above, name)), command
            yield from walk(command, *above, name)
        else:
            yield " ".join((*above, name)), command


def entry(name: str, command: click.Command) -> tuple[str, str]:
    """Format one line of the overview."""
    first = re.split(r"\.\s|\n\n", plain(command.help))[0].rstrip(".")
    return f"[`{name}`](#{name.replace(' ', '-')})", command.short_help or f"{first}."


def plain(text: str | None) -> str:
    """Convert help to Markdown and undo click's wrapping."""
    paragraphs = re.split(r"\n\s*\n", (text or "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def usage(name: str, command: click.Command) -> str:
    """Return the first line of the help."""
    return " ".join(["failsoft", name, *command.collect_usage_pieces(context_of(command))])


def context_of(command: click.Command) -> click.Context:
    """Make the context as in use: a command keeps the help option of its first context."""
    return click.Context(command, help_option_names=cli.context_settings["help_option_names"])


def options(command: click.Command) -> Iterator[tuple[str, str, str]]:
    """Format the table of options: option, default, meaning."""
    context = context_of(command)
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        record = parameter.get_help_record(context)
        if record is None:
            continue
        names, about = record
        told = re.search(r"\s*\[(?:default: (?P<default>[^\];]*(?:\][^\]]*)?))?[^\]]*\]$", about)
        default = (told["default"] or "").strip() if told else ""
        yield (
            f"`{names.replace('INTEGER RANGE', 'N')}`",
            f"`{default}`" if default else "",
            about[: told.start()] if told else about,
        )


def show(command: str) -> str:
    """Format a command with its output."""
    result = CliRunner().invoke(cli, shlex.split(command)[1:], env={"COLUMNS": "100"})
    if result.exit_code:
        raise SystemExit(f"{command} ends with {result.exit_code}: {result.output}")
    output = "\n".join(line.rstrip() for line in result.output.splitlines()).strip("\n")
    return f"$ {command}\n{output}"


def pages() -> dict[Path, str]:
    """Return the generated page."""
    parts = [INTRO.strip()]
    parts.append(table(("command", "what it does"), [entry(name, command) for name, command in walk(cli)]))
    for name, command in walk(cli):
        parts += [f"## {name}", f"`{usage(name, command)}`", plain(command.help)]
        listed = list(options(command))
        if listed:
            parts.append(table(("option", "default", "meaning"), listed))
        if command.epilog:
            parts.append(plain(command.epilog))
        if name in EXAMPLES:
            parts.append("```console\n" + "\n".join(show(example) for example in EXAMPLES[name]) + "\n```")
    return {PAGE: "\n\n".join(parts) + "\n"}


if __name__ == "__main__":
    write(pages())
