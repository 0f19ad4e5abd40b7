"""The sources that ``why`` and ``trace`` read: a store or a trace file."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource

from failsoft.analysis.source import FileSource, Problem, SourceError, StoreSource, TraceSource
from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import FailsoftError
from failsoft.surfaces.cli.console import CommandError
from failsoft.surfaces.cli.files import check_address, read

if TYPE_CHECKING:
    from failsoft.stores.sqlite.store import SqliteStore

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT = "sqlite:///failsoft.db"
_KEEPS = f'Runtime(store="{DEFAULT}") keeps one. Name yours with --store or FAILSOFT_STORE'
_OTHER = "Name yours with --store or FAILSOFT_STORE, or a trace file with --trace."
LARGEST = 1 << 30  # bytes of a trace from standard input
_WRITES = 'A trace file has one event a line, as JSON: Runtime(trace="trace.jsonl") or failsoft run --trace writes one.'
EXAMPLE = Path(__file__).with_name("example.jsonl")  # recorded by tools/record_example.py


_EXITS: Mapping[Problem, tuple[str, int]] = {  # the hint, and the exit code
    "store file": ("Try: --store sqlite:///{name}", 2),
    "not json": (_WRITES, 2),
    "not an event": (_WRITES, 2),
    "unreadable": (_OTHER, 2),
}


class Opened(NamedTuple):
    """A source, and the command-line option that names it."""

    source: TraceSource
    option: str

    def find(self, wanted: str) -> str:
        """Resolve a turn's id: ``last``, a full id, or a unique part of one."""
        name = self.source.name
        known = self.source.turns(1 if wanted == "last" else 10_000)
        if not known:
            raise CommandError(
                f"there are no turns in {name}", hint="A turn is `async with rt.turn()`, or `failsoft run`.", code=1
            )
        if wanted == "last":
            return known[0]
        found = [wanted] if wanted in known else [id for id in known if wanted in id]
        if len(found) != 1:
            many = f"{len(found)} turns have {wanted!r} in their ids" if found else f"there is no turn {wanted!r}"
            raise CommandError(f"{many} in {name}", hint=f"Try: failsoft trace list{self.option}", code=1)
        return found[0]


def _refuse_empty(_: click.Context, __: click.Parameter, turn: str) -> str:
    if not turn.strip():
        raise click.UsageError("TURN is empty: write a turn's id, or leave it out for the last one")
    return turn


turn_argument = click.argument("turn", default="last", callback=_refuse_empty)
store_option = click.option(
    "--store", metavar="URL", envvar="FAILSOFT_STORE", help=f"The store.  [default: $FAILSOFT_STORE or {DEFAULT}]"
)


def source_options(command: F) -> F:
    """Add ``--store`` and ``--trace``."""
    trace = click.option(
        "--trace",
        metavar="FILE",
        help="Read a trace file instead; - is standard input, example is a bundled sample turn.",
    )
    return store_option(trace(_without_traceback(command)))


def _without_traceback(command: F) -> F:
    """Report malformed events in one sentence: a file can contain anything."""

    @wraps(command)
    def guarded(*args: Any, store: str | None, trace: str | None, **options: Any) -> Any:
        try:
            return command(*args, store=store, trace=trace, **options)
        except SourceError as error:
            raise explain(error, trace) from None
        except (CommandError, FailsoftError, OSError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            raise unreadable(trace or store or "the store", error) from None

    return cast("F", guarded)


def unreadable(name: str, error: Exception) -> CommandError:
    """Make the error for events that cannot be understood."""
    why = sanitise(f"{type(error).__name__}: {error}")[:200]
    hint = "If failsoft wrote them, this is a bug: please report it with the file."
    return CommandError(f"{name}: these are not events written by failsoft ({why})", hint=hint, code=1)


def explain(error: SourceError, trace: str | None) -> CommandError:
    """Make the error for a source that cannot be read, with a hint."""
    hint, code = _EXITS[error.problem]
    if error.problem == "not an event" and trace is None:
        hint, code = _OTHER, 1
    return CommandError(str(error), hint=hint.format(name=trace), code=code)


def open_source(store: str | None, trace: str | None) -> Opened:
    """Open the store or trace file."""
    if trace is not None:
        if click.get_current_context().get_parameter_source("store") is ParameterSource.COMMANDLINE:
            raise CommandError("--trace and --store cannot be combined: give one of them")
        return _open_file(trace)
    found = open_kept(store, or_else=", or a trace file with --trace.")
    logging.getLogger("failsoft").addHandler(logging.NullHandler())  # errors of the store are reported here

    source = StoreSource(str(found.path), found, lambda: str(found.troubles.last) if found.troubles.failures else "")
    source.families()  # a file that is not a store is reported now
    return Opened(source, "" if store is None else f" --store {store}")


def open_kept(address: str | None, *, or_else: str = ".") -> SqliteStore:
    """Open the store itself until the command ends; ``or_else`` names alternatives for the hint."""
    from failsoft.stores.sqlite.store import SqliteStore
    from failsoft.stores.url import open_store

    address = address or os.environ.get("FAILSOFT_STORE") or DEFAULT
    check_address(address)
    store = open_store(address, wall=time.time)
    if not isinstance(store, SqliteStore):
        raise CommandError(f"{address} keeps no events to read", hint=_KEEPS + or_else)
    if not store.path.exists():
        raise CommandError(f"there is no store at {store.path}", hint=_KEEPS + or_else)
    click.get_current_context().call_on_close(store.close)
    return store


def _open_file(path: str) -> Opened:
    option = f" --trace {path}"
    if path == "-":
        return Opened(FileSource("standard input", read(path, LARGEST)), option)
    file = str(EXAMPLE) if path == "example" else path
    if not Path(file).is_file():  # a pipe can be read once
        return Opened(FileSource(path, read(file, LARGEST)), option)

    def read_from(offset: int) -> bytes | None:
        return read(file, LARGEST, offset)

    return Opened(FileSource(path, b"", read_from), option)
