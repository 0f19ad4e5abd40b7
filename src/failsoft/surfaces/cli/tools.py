"""``failsoft tools``: list each tool's effect and how it is known."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from failsoft.core.effects.tool_effect import know_effect
from failsoft.errors import ManifestError
from failsoft.runtime.runtime import Runtime
from failsoft.surfaces.cli.console import CommandError, clean, json_option, make_console, manifest_option, print_json
from failsoft.surfaces.cli.files import find_manifest, import_from_here, read

if TYPE_CHECKING:
    from failsoft.core.effects.tool_effect import KnownEffect

_STYLES = {"read": "green", "write": "red", "neither": "yellow"}
_REPEATED = {True: "yes", False: "unless it may have acted", None: "even if it may have acted"}


class Row(NamedTuple):
    """One tool."""

    id: str
    description: str
    known: KnownEffect
    missing: str = ""  # why it cannot be called here

    def to_dict(self) -> dict[str, Any]:
        known = self.known
        return {
            "id": self.id,
            "description": self.description,
            "effect": known.effect,
            "effect_source": known.source,
            "effect_reason": known.reason,
            "safe_to_repeat": known.safe,
            **({"unavailable_because": self.missing} if self.missing else {}),
        }


@click.command(
    short_help="List the tools, and which of them are retried.",
    epilog="Examples: failsoft tools · failsoft tools -m prod.yaml · failsoft tools app.main:rt",
)
@click.argument("runtime", metavar="[MODULE:RUNTIME]", required=False)
@manifest_option
@json_option
def tools(runtime: str | None, manifest: str | None, as_json: bool) -> int:
    """List each tool: whether it reads or writes, how that is known, and whether it is retried.

    The tools come from the manifest, whose functions are imported for it, or from a Runtime in one of your modules.
    Nothing is called. Exit codes: 0, 2 the manifest or the module cannot be used.
    """
    if runtime is not None and manifest is not None:
        raise click.UsageError("give a manifest or a Runtime: a Runtime has read its own manifest")
    with _without_warnings():  # the list shows the same
        rows = _of_manifest(manifest) if runtime is None else _of_runtime(find_runtime(runtime))
    if as_json:
        print_json({"tools": [row.to_dict() for row in rows]})
    else:
        _show(rows)
    return 0


@contextmanager
def _without_warnings() -> Iterator[None]:
    log = logging.getLogger("failsoft")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _of_manifest(manifest: str | None) -> list[Row]:
    from failsoft.config.manifest import load

    path = find_manifest(manifest)
    assert path is not None, "find_manifest raises if none is found"
    import_from_here()
    try:
        written = load(read(path), name=path)
        rows = {row.id: row for row in _of_runtime(Runtime(path))}
    except ManifestError as error:
        raise CommandError(f"{path} has mistakes", problems=error.problems) from None
    except SystemExit:
        raise CommandError(f"importing a module named in {path} exits the program") from None
    for id, tool in written.tools.items():  # tools registered in code: only their names and options are known
        rows.setdefault(id, Row(id, "", know_effect(tool.options, undeclared=written.undeclared)))
    return [rows[id] for id in written.tools]


def _of_runtime(runtime: Runtime) -> list[Row]:
    return [
        Row(
            tool.id,
            _first_line(tool.description),
            tool.known_effect,
            "" if tool.unavailable_fault is None else tool.unavailable_fault.message,
        )
        for tool in runtime._engine.toolbox.tools.values()
    ]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def find_runtime(path: str) -> Runtime:
    """Import a Runtime by its name, as in app.main:rt."""
    module, _, name = path.partition(":")
    if "/" in module or "\\" in module or module.endswith(".py"):
        dotted = module.removeprefix("./").removesuffix(".py").replace("\\", ".").strip("/").replace("/", ".")
        raise CommandError(f"{path} names a file: write the module, as in {dotted}:{name or 'rt'}")
    import_from_here()
    try:
        found: Any = importlib.import_module(module)
        for part in name.split(".") if name else ():
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError, SystemExit) as error:
        raise CommandError(
            f"{path} cannot be found: {error}", hint="Write MODULE:RUNTIME, as in app.main:rt."
        ) from None
    except Exception as error:
        raise CommandError(f"{module} cannot be imported: {type(error).__name__}: {error}") from None
    if not isinstance(found, Runtime):
        raise CommandError(f"{path} is of type {type(found).__name__}: expected a Runtime, as in app.main:rt")
    return found


def _show(rows: Sequence[Row]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = make_console()
    if not rows:
        console.print("There are no tools.")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("tool", "effect", "known", "retried", "why"):
        table.add_column(title, overflow="fold")
    for row in rows:
        known = row.known
        table.add_row(
            clean(row.id),
            Text(known.effect, style=_STYLES[known.effect]),
            known.source,
            _REPEATED[known.safe],
            clean(known.reason),
        )
    console.print(table)
    for row in rows:
        if row.missing:
            console.print(Text(f"{clean(row.id)} cannot be called here: {clean(row.missing)}", style="red"))
    if any(row.known.safe is None for row in rows):
        console.print("Declare read_only: true, or idempotent: true or false, for tools that declare neither.")
