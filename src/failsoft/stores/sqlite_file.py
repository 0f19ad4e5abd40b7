"""The SQLite file itself: its form, how it is written, read and pruned. ``stores.sqlite`` says when."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from failsoft.core.runs import unpack
from failsoft.stores.sqlite_place import MARK, refuse_foreign

TOGETHER = 64  # rows in one statement: with each one the interpreter's lock is let go and waited for
WAL_SIZE = 8 << 20  # bytes that its file keeps when it is begun anew
EMPTY = 6  # pages of a file without events
ROW = 60  # bytes that a row takes beside its body, about

MIGRATIONS = (
    # 1: the first form
    """
    CREATE TABLE record (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, until REAL,
                         PRIMARY KEY (kind, key)) WITHOUT ROWID;
    CREATE TABLE event (position INTEGER PRIMARY KEY AUTOINCREMENT, turn_id TEXT, timestamp TEXT, count INTEGER NOT NULL,
                        body NOT NULL);
    CREATE INDEX event_by_turn ON event (turn_id, position) WHERE turn_id IS NOT NULL;
    """,
)


class Put(NamedTuple):
    """A record on its way to the file."""

    kind: str
    key: str
    value: str | None  # None: deleted
    until: float | None


class Append(NamedTuple):
    """An event, or a run of them, on its way to the file."""

    turn_id: str | None
    timestamp: str | None
    events: int
    body: str | bytes  # JSON, or a packed run


def size_of(operations: Sequence[Put | Append]) -> int:
    """How many records and events they are."""
    return sum(operation.events if isinstance(operation, Append) else 1 for operation in operations)


def as_text(turn_id: str | None) -> str | None:
    """An id as SQLite takes it: it knows no half characters."""
    if turn_id is None or turn_id.isascii():
        return turn_id
    return turn_id.encode("utf-8", "backslashreplace").decode()


def connect(path: Path, *, synchronous: str, patience: float) -> sqlite3.Connection:
    """A connection to a file in the form that this version knows; made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    refuse_foreign(path)
    connection = sqlite3.connect(path, timeout=patience, check_same_thread=False)
    try:
        if connection.execute("PRAGMA application_id").fetchone() != (MARK,):
            connection.execute(f"PRAGMA application_id = {MARK}")  # before WAL: then it is in the file itself
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_SIZE}")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path, *, patience: float) -> sqlite3.Connection:
    """The same for somebody who only reads: then the file may also lie where nothing can be written."""
    try:
        return connect(path, synchronous="normal", patience=patience)
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        wal = path.with_name(f"{path.name}-wal")
        if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or wal.exists():
            raise  # what is in the WAL would be missed
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != len(MIGRATIONS):
        connection.close()
        raise sqlite3.NotSupportedError(f"the file has version {version}, this failsoft knows {len(MIGRATIONS)}")
    return connection


def write(connection: sqlite3.Connection, operations: Sequence[Put | Append], now: float) -> None:
    """All of it, in one transaction."""
    events = [operation for operation in operations if isinstance(operation, Append)]
    puts = [operation for operation in operations if isinstance(operation, Put)]
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if events:
            (last,) = connection.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'event'"
            ).fetchone()
            places = islice(accumulate((event.events for event in events), initial=last), 1, None)
            rows = [(place, *event) for place, event in zip(places, events, strict=True)]
            for begin in range(0, len(rows), TOGETHER):
                some = rows[begin : begin + TOGETHER]
                values = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
                connection.execute(f"INSERT INTO event VALUES {values}", [*chain(*some)])  # noqa: S608 - ours
        for put in puts:
            if put.value is None:
                connection.execute("DELETE FROM record WHERE kind = ? AND key = ?", (put.kind, put.key))
            else:
                connection.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", put)
        if puts:
            connection.execute("DELETE FROM record WHERE until <= ?", (now,))


def prune(connection: sqlite3.Connection, *, before: str | None, most: int | None, size: int | None) -> int:
    """Drop events older than an ISO time, all but the latest ``most``, and what goes beyond ``size`` bytes."""
    gone = 0
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if before is not None:
            gone += _delete(connection, "timestamp < ?", before)
        if most is not None:
            gone += _delete(connection, "position <= (SELECT max(position) FROM event) - ?", most)
        if size is not None:
            gone += _delete(connection, "position <= ?", _last_beyond(connection, size))
    return gone


def _last_beyond(connection: sqlite3.Connection, size: int) -> int:
    """The position up to which events have to go; 0 if the file is no larger. It looks at no more than these."""
    pages, free, page = (
        connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
    )
    excess, last = (pages - free - EMPTY) * page - size, 0
    rows = connection.execute("SELECT position, length(body) FROM event ORDER BY position") if excess > 0 else ()
    for position, length in rows:
        if excess <= 0:
            break
        last = position
        excess -= _room(length + ROW, page)
    return last


def _room(row: int, page: int) -> float:
    """What a row takes: several share a page if they fit, and a long one has pages of its own."""
    return page / (page // row) if row <= page else row + page / 2


def _delete(connection: sqlite3.Connection, where: str, value: Any) -> int:
    (gone,) = connection.execute(f"SELECT total(count) FROM event WHERE {where}", (value,)).fetchone()  # noqa: S608 - ours
    connection.execute(f"DELETE FROM event WHERE {where}", (value,))  # noqa: S608 - ours
    return int(gone)


def expand(position: int, body: str | bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """A row as the events that it holds."""
    if isinstance(body, str):
        yield position, json.loads(body)
    else:
        run = unpack(body)
        yield from enumerate(run, position - len(run) + 1)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the form that this version knows, one step at a time."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise sqlite3.NotSupportedError(f"the file has version {version}; this failsoft knows {len(MIGRATIONS)}")
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")  # of several processes one does it
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            for statement in step.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
