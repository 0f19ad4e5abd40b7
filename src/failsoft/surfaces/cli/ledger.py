"""``failsoft ledger``: list, show, resolve and verify writes with an unknown effect."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from failsoft.errors import LedgerError
from failsoft.runtime.runtime import Runtime
from failsoft.surfaces.cli.console import CommandError, clean, json_option, make_console, manifest_option, print_json
from failsoft.surfaces.cli.files import find_manifest, import_from_here
from failsoft.surfaces.cli.sources import open_kept, store_option

if TYPE_CHECKING:
    from failsoft.core.model.ledger_entry import LedgerEntry

T = TypeVar("T")

_STYLES = {"begun": "yellow", "unknown": "yellow", "happened": "green", "none": "cyan"}
_WRONG = frozenset({"verdict", "value", "state"})  # problems of the command itself


@click.group(short_help="List and resolve writes with an unknown effect.")
def ledger() -> None:
    """List and resolve writes with an unknown effect: they may have happened or not."""


@ledger.command("list")
@click.option("--thread", metavar="ID", help="Of this conversation only.")
@click.option("--tenant", metavar="ID", help="Of this tenant only.")
@click.option("--tool", metavar="ID", help="Only entries of this tool.")
@click.option("--all", "everything", is_flag=True, help="Also list resolved cases and writes that are running.")
@store_option
@json_option
def list_entries(
    *, thread: str | None, tenant: str | None, tool: str | None, everything: bool, store: str | None, as_json: bool
) -> int:
    """List the open cases, the oldest first.

    Exit codes: 0, 2 there is no store.
    """
    look = _open(store)
    find = look.ledger.entries if everything else look.ledger.unknown
    entries = _ask(lambda: find(thread=thread, tenant=tenant, tool=tool))
    if as_json:
        print_json({"entries": [entry.to_dict() for entry in entries]})
    else:
        _show_all(entries, everything=everything)
    return 0


@ledger.command()
@click.argument("entry_id", metavar="ID")
@store_option
@json_option
def show(entry_id: str, store: str | None, as_json: bool) -> int:
    """Show one entry. ID is the id of the entry, or of its call if the call has only one.

    Exit codes: 0, 1 there is no such entry, 2 there is no store.
    """
    _show(_ask(lambda: _open(store).ledger.get(entry_id)), as_json=as_json)
    return 0


@ledger.command(
    epilog="Examples: failsoft ledger resolve 3f9a1c happened --value '{\"receipt\": 7}' · failsoft ledger resolve order-7 none"
)
@click.argument("entry_id", metavar="ID")
@click.argument("verdict", metavar="happened|none", type=click.Choice(["happened", "none"]))
@click.option("--value", metavar="JSON", help="What the tool would have returned, after happened.")
@click.option("--by", metavar="NAME", help="The name to record.  [default: your user name]")
@store_option
@json_option
def resolve(entry_id: str, verdict: Any, *, value: str | None, by: str | None, store: str | None, as_json: bool) -> int:
    """Close an open case, because you have found out whether the write happened.

    After happened the same call returns the value and does not run; after none it runs. Exit codes: 0, 1 the case is
    not open, 2 the value is not JSON, or there is no store.
    """
    given = None if value is None else _read_json(value)
    look = _open(store)
    _show(_ask(lambda: look.ledger.resolve(entry_id, verdict, given, by=by or _user())), as_json=as_json)
    return 0


@ledger.command()
@click.argument("entry_id", metavar="ID")
@manifest_option
@click.option("--runtime", metavar="MODULE:RUNTIME", help="A Runtime in one of your modules that has the tool.")
@store_option
@json_option
def verify(entry_id: str, manifest: str | None, runtime: str | None, store: str | None, as_json: bool) -> int:
    """Ask the tool's verify whether the write happened, and close the case accordingly.

    The tool comes from the manifest, or from a Runtime of yours. The call's arguments must have been recorded:
    Runtime(record_arguments=True). Exit codes: 0, 1 it cannot be found out, 2 the manifest or the store cannot be used.
    """
    if runtime is not None and manifest is not None:
        raise click.UsageError("give a manifest or a Runtime: a Runtime has read its own manifest")
    if runtime is not None:
        from failsoft.surfaces.cli.tools import find_runtime

        asked = find_runtime(runtime)
    else:
        import_from_here()
        asked = _open(store, find_manifest(manifest))
    entry = _ask(lambda: asyncio.run(_verify(asked, entry_id)))
    _show(entry, as_json=as_json)
    return 1 if entry.is_open else 0


async def _verify(runtime: Runtime, entry_id: str) -> LedgerEntry:
    entry = await runtime.ledger.verify(entry_id)
    await runtime.flush()
    return entry


def _open(store: str | None, manifest: str | None = None) -> Runtime:
    """Make a runtime on the store, which is closed when the command ends."""
    kept = open_kept(store)
    runtime = Runtime(manifest, store=kept)
    click.get_current_context().call_on_close(lambda: asyncio.run(runtime.close()))
    return runtime


def _ask(do: Callable[[], T]) -> T:
    try:
        return do()
    except LedgerError as error:
        hint = "Try: failsoft ledger list --all" if error.problem == "unknown_id" else ""
        raise CommandError(str(error), hint=hint, code=2 if error.problem in _WRONG else 1) from None


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise CommandError(f"--value is not JSON: {error}", hint="A text needs quotes: --value '\"paid\"'") from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "operator"


def _show_all(entries: Sequence[LedgerEntry], *, everything: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    console = make_console()
    if not entries:
        console.print("The ledger has no entries." if everything else "There are no open cases.")
        return
    table = Table(box=None, pad_edge=False)
    tenants = any(entry.tenant for entry in entries)
    for title in ("entry", "tool", "call", *(("tenant",) if tenants else ()), "thread", "state", "begun", "error"):
        table.add_column(title, overflow="fold")
    for entry in entries:
        state = Text("running" if entry.running else entry.state, style=_STYLES[entry.state])
        table.add_row(
            entry.id, clean(entry.tool), clean(entry.call_id), *((clean(entry.tenant or ""),) if tenants else ()),
            clean(entry.thread or ""), state, (entry.begun or "")[:19].replace("T", " "), clean(entry.error or ""),
        )  # fmt: skip
    console.print(table)


def _show(entry: LedgerEntry, *, as_json: bool) -> None:
    if as_json:
        print_json(entry.to_dict())
        return
    from rich.text import Text

    console = make_console()
    for name, value in entry.to_dict().items():
        if value is None or value == "" or (name in ("running", "arguments_masked") and not value):
            continue
        if name == "value_known" and entry.state != "happened":
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        line = Text(f"{name.replace('_', ' '):<16} ")
        console.print(line + Text(clean(shown), style=_STYLES[entry.state] if name == "state" else ""))
