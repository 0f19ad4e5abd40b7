"""The sources that ``why`` and ``trace`` read: a store or a trace file."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

import click
from click.core import ParameterSource

from failsoft.core.redact.sanitise import sanitise
from failsoft.errors import FailsoftError
from failsoft.surfaces.cli.console import CommandError
from failsoft.surfaces.cli.files import check_address, read

if TYPE_CHECKING:
    from failsoft.stores.sqlite.store import SqliteStore

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Record = Mapping[str, Any]

DEFAULT = "sqlite:///failsoft.db"
_KEEPS = f'Runtime(store="{DEFAULT}") keeps one. Name yours with --store or FAILSOFT_STORE'
_OTHER = "Name yours with --store or FAILSOFT_STORE, or a trace file with --trace."
EVERYTHING = 100_000_000  # events
LARGEST_NUMBER = 1e14  # milliseconds: 3,000 years
LARGEST = 1 << 30  # bytes of a trace from standard input
_WRITES = 'A trace file has one event a line, as JSON: Runtime(trace="trace.jsonl") or failsoft run --trace writes one.'
_TEXT, _NUMBER = (str, "not text"), (int | float | None, "not a number")
_NUMBERS = ("seq", "duration_ms", "delay_ms", "queued_ms", "decided_ms", "total_ms", "timeout_ms", "attempts")
_FIELD_TYPES: dict[str, tuple[Any, str]] = {  # the types that readers rely on
    "event_type": _TEXT,
    "timestamp": _TEXT,
    **dict.fromkeys(("turn_id", "call_id", "tool_id", "error", "reason", "code"), (str | None, "not text")),
    **dict.fromkeys(_NUMBERS, _NUMBER),
    **dict.fromkeys(("needs", "labels"), (dict | None, "not an object")),
}
EXAMPLE = Path(__file__).with_name("example.jsonl")  # recorded by tools/record_example.py


class Source(NamedTuple):
    """Recorded events, from a store or a file."""

    name: str
    option: str  # the command-line option that names it
    turns: Callable[[int], list[str]]  # ids, the latest first
    events: Callable[[str], list[Record]]  # of one turn
    read: Callable[[int], list[tuple[int, Record]]]  # everything after a position
    families: Callable[[], list[Record]]  # the recovery memory

    def find(self, wanted: str) -> str:
        """Resolve a turn's id: ``last``, a full id, or a unique part of one."""
        known = self.turns(1 if wanted == "last" else 10_000)
        if not known:
            raise CommandError(
                f"there are no turns in {self.name}",
                hint="A turn is `async with rt.turn()`, or `failsoft run`.",
                code=1,
            )
        if wanted == "last":
            return known[0]
        found = [wanted] if wanted in known else [id for id in known if wanted in id]
        if len(found) != 1:
            many = f"{len(found)} turns have {wanted!r} in their ids" if found else f"there is no turn {wanted!r}"
            raise CommandError(f"{many} in {self.name}", hint=f"Try: failsoft trace list{self.option}", code=1)
        return found[0]


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


def open_source(store: str | None, trace: str | None) -> Source:
    """Open the store or trace file."""
    if trace is not None:
        if click.get_current_context().get_parameter_source("store") is ParameterSource.COMMANDLINE:
            raise CommandError("--trace and --store cannot be combined: give one of them")
        return _open_file(trace)
    found = open_kept(store, or_else=", or a trace file with --trace.")
    logging.getLogger("failsoft").addHandler(logging.NullHandler())  # errors of the store are reported here

    def unless_failed(value: T) -> T:
        if found.troubles.failures:
            raise CommandError(f"{found.path} cannot be read as a store: {found.troubles.last}", hint=_OTHER)
        return value

    def checked(events: Iterable[tuple[int, Record]]) -> list[tuple[int, Record]]:
        kept = [*events]
        for position, event in kept:
            wrong = _find_mistake(event)
            if wrong:
                raise CommandError(f"{found.path}: record {position} is not an event: {wrong}", hint=_OTHER, code=1)
        return kept

    families = [value for _, value in unless_failed(found.find("memory"))]
    return Source(
        str(found.path),
        "" if store is None else f" --store {store}",
        lambda limit: unless_failed(found.turns(limit)),
        lambda turn_id: [event for _, event in checked(unless_failed(found.read(turn_id=turn_id, limit=EVERYTHING)))],
        lambda after: checked(unless_failed(found.read(after=after, limit=EVERYTHING))),
        lambda: families,
    )


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


def _open_file(path: str) -> Source:
    name = "standard input" if path == "-" else path
    events = [*_parse(read(str(EXAMPLE) if path == "example" else path, LARGEST), name)]

    def turns(limit: int) -> list[str]:
        return list(dict.fromkeys(event["turn_id"] for event in reversed(events) if event.get("turn_id")))[:limit]

    return Source(
        name,
        f" --trace {path}",
        turns,
        lambda turn_id: [event for event in events if event.get("turn_id") == turn_id],
        lambda after: [*enumerate(events, 1)][after:],
        list,
    )


def _parse(data: bytes, name: str) -> list[Record]:
    if data.startswith(b"SQLite format 3\0"):
        raise CommandError(f"{name} is a store, not a trace file", hint=f"Try: --store sqlite:///{name}")
    lines = data.decode("utf-8", "replace").split("\n")
    events: list[Record] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line, parse_constant=_refuse_number, parse_float=_finite)
        except (ValueError, RecursionError):
            if number == len(lines):  # the writer was cut off, or is writing right now
                continue
            raise CommandError(f"{name}:{number}: this line is not JSON", hint=_WRITES) from None
        wrong = _find_mistake(event)
        if wrong:
            raise CommandError(f"{name}:{number}: this line is not an event: {wrong}", hint=_WRITES)
        events.append(event)
    return events


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _find_mistake(event: Any) -> str:
    """Return why a record is not an event; empty if it is one."""
    if not isinstance(event, dict):
        return "it is not an object"
    for field, (field_type, what) in _FIELD_TYPES.items():
        if not isinstance(event.get(field), field_type):
            return f"{field} is {what}" if field in event else f"it has no {field}"
    for field in _NUMBERS:
        number = event.get(field)
        if number is not None and (isinstance(number, bool) or not -LARGEST_NUMBER <= number <= LARGEST_NUMBER):
            return f"{field} is out of range"
    try:
        datetime.fromisoformat(event["timestamp"])
    except (ValueError, OverflowError):
        return f"{event['timestamp']!r:.40} is not an ISO time"
    for id, needs in (event.get("needs") or {}).items():
        if not isinstance(needs, list | dict) or not all(isinstance(need, str) for need in needs):
            return f"needs of {id!r:.40} is not a list of ids"
    if not all(isinstance(label, str) for label in (event.get("labels") or {}).values()):
        return "a label is not text"
    return ""
