"""The SQLite file: its schema, and how it is written, read and pruned. ``stores.sqlite.store`` decides when."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from failsoft.observe.success_runs import unpack
from failsoft.stores.ports import key_of
from failsoft.stores.sqlite.location import MARK, refuse_other_file

TOGETHER = 64  # rows per statement; each statement releases the GIL and waits for it again
WAL_SIZE = 8 << 20  # bytes of the WAL file kept after a checkpoint
EMPTY = 6  # pages of a file without events
ROW = 60  # approximate bytes of a row besides its body
_PUT = "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)"


def _keep_begun(connection: sqlite3.Connection) -> None:
    """Migration: turn open calls that must not run twice into records of begun writes."""
    rows = connection.execute("SELECT key, value, until FROM record WHERE kind = 'pending'").fetchall()
    for key, text, until in rows:
        parts, value = key.split("/"), json.loads(text)
        if len(parts) == 5 and parts[2] == "call" and value.get("same") is not None:
            tenant, thread, _, turn, call = parts
            place = "/".join((tenant, thread, "begun", key_of(value["tool"]), call, key_of(value["same"])))
            begun = json.dumps({"run": value["run"], "turn": unquote(turn, errors="surrogatepass")})
            connection.execute(_PUT, ("pending", place, begun, until))


READS = 1  # the oldest schema version that can be read without migration
MIGRATIONS: tuple[str | Callable[[sqlite3.Connection], None], ...] = (
    # 1: version 0.1.0
    """
    CREATE TABLE record (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, until REAL,
                         PRIMARY KEY (kind, key)) WITHOUT ROWID;
    CREATE TABLE event (position INTEGER PRIMARY KEY AUTOINCREMENT, turn_id TEXT, timestamp TEXT, count INTEGER NOT NULL,
                        body NOT NULL);
    CREATE INDEX event_by_turn ON event (turn_id, position) WHERE turn_id IS NOT NULL;
    """,
    # 2: begun writes have records of their own
    _keep_begun,
    # 3: find expired records without scanning the others
    "CREATE INDEX record_by_until ON record (until) WHERE until IS NOT NULL",
)


class Put(NamedTuple):
    """A record to write."""

    kind: str
    key: str
    value: str | None  # None: deleted
    until: float | None


class Append(NamedTuple):
    """An event, or a run of events, to write."""

    turn_id: str | None
    timestamp: str | None
    events: int
    body: str | bytes  # JSON, or a packed run


class Request:
    """A change whose result the caller waits for."""

    def __init__(self) -> None:
        self.withdrawn = False  # the caller has given up: do not perform it
        self.done = False  # committed

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        """Make the change inside a transaction."""
        raise NotImplementedError


class Take(Request):
    """Read and delete one record."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__()
        self._place = (kind, key)
        self.value: str | None = None

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        self.value = find_record(connection, *self._place, now)
        if self.value is not None:
            connection.execute("DELETE FROM record WHERE kind = ? AND key = ?", self._place)


class Claim(Request):
    """Keep the records whose keys are free."""

    def __init__(self, kind: str, values: Mapping[str, str], until: float | None) -> None:
        super().__init__()
        self._kind = kind
        self._values = values
        self._until = until
        self.taken: dict[str, str] = {}  # the values of the keys that are not free

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        self.taken = {}  # forget an earlier try that was rolled back
        for key, value in self._values.items():
            found = find_record(connection, self._kind, key, now)
            if found is None:
                connection.execute(_PUT, (self._kind, key, value, self._until))
            else:
                self.taken[key] = found


class Swap(Request):
    """Replace several records if all of them have the values expected."""

    def __init__(self, kind: str, changes: Mapping[str, tuple[Any, str | None]], until: float | None) -> None:
        super().__init__()
        self._kind = kind
        self._changes = changes  # the value expected and the text of the new one; None: no record
        self._until = until
        self.swapped = False

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        found = {key: find_record(connection, self._kind, key, now) for key in self._changes}
        self.swapped = all(
            (None if found[key] is None else json.loads(found[key] or "")) == expected
            for key, (expected, _) in self._changes.items()
        )
        if not self.swapped:
            return
        for key, (_, new) in self._changes.items():
            if new is None:
                connection.execute("DELETE FROM record WHERE kind = ? AND key = ?", (self._kind, key))
            else:
                connection.execute(_PUT, (self._kind, key, new, self._until))


Operation = Put | Append | Request


def size_of(operations: Sequence[Operation]) -> int:
    """The number of records and events in the operations."""
    return sum(operation.events if isinstance(operation, Append) else 1 for operation in operations)


def as_text(turn_id: str | None) -> str | None:
    """Escape lone surrogates in an id: SQLite cannot store them."""
    if turn_id is None or turn_id.isascii():
        return turn_id
    return turn_id.encode("utf-8", "backslashreplace").decode()


def connect(path: Path, *, synchronous: str, patience: float) -> sqlite3.Connection:
    """Connect to the file, create it if there is none, and migrate it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    refuse_other_file(path)
    connection = sqlite3.connect(path, timeout=patience, check_same_thread=False)
    try:
        if connection.execute("PRAGMA application_id").fetchone() != (MARK,):
            connection.execute(f"PRAGMA application_id = {MARK}")  # before WAL, so that it is in the file itself
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_SIZE}")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path, *, patience: float) -> sqlite3.Connection:
    """Connect for reading only. The file may be in a place that cannot be written."""
    try:
        return connect(path, synchronous="normal", patience=patience)
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        wal = path.with_name(f"{path.name}-wal")
        if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or wal.exists():
            raise  # reading without the WAL would miss its content
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if not READS <= version <= len(MIGRATIONS):
            raise sqlite3.NotSupportedError(
                newer(version) or f"its schema has version {version}: it has to be migrated, and it cannot be written"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def find_newer(path: Path) -> str:
    """Explain that a newer failsoft has written the file; empty if not, or if it cannot be read."""
    if not path.is_file():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            ours = connection.execute("PRAGMA application_id").fetchone() == (MARK,)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return ""
    return newer(version) if ours else ""


def newer(version: int) -> str:
    """Say that a newer failsoft has written this schema version; empty if not."""
    known = len(MIGRATIONS)
    if version <= known:
        return ""
    return (
        f"a newer failsoft has written it (its schema has version {version}, this failsoft reads up to {known}): "
        "upgrade failsoft, or name another file"
    )


def write(connection: sqlite3.Connection, operations: Sequence[Operation], now: float) -> None:
    """Perform all operations in one transaction: records in their order, events in theirs."""
    events = [operation for operation in operations if isinstance(operation, Append)]
    changes = [operation for operation in operations if not isinstance(operation, Append)]
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
        for change in changes:
            if isinstance(change, Request):
                if not change.withdrawn:
                    change.perform(connection, now)
            elif change.value is None:
                connection.execute("DELETE FROM record WHERE kind = ? AND key = ?", (change.kind, change.key))
            else:
                connection.execute(_PUT, change)
        if changes:
            connection.execute("DELETE FROM record WHERE until <= ?", (now,))


def find_record(connection: sqlite3.Connection, kind: str, key: str, now: float) -> str | None:
    """Return the text of a record, None if there is none or it has expired."""
    sql = "SELECT value FROM record WHERE kind = ? AND key = ? AND (until IS NULL OR until > ?)"
    found = connection.execute(sql, (kind, key, now)).fetchone()
    return None if found is None else str(found[0])


def put_record(connection: sqlite3.Connection, kind: str, key: str, value: str, until: float | None) -> None:
    """Write a record inside a transaction."""
    connection.execute(_PUT, (kind, key, value, until))


def prune(connection: sqlite3.Connection, *, before: str | None, most: int | None, size: int | None) -> int:
    """Drop events older than an ISO time, all but the latest ``most``, and those beyond ``size`` bytes."""
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
    """The last position to delete so that the file fits ``size``; 0 if it fits. Reads only the rows to delete."""
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
    """The bytes of a row in the file: small rows share a page, a long row has pages of its own."""
    return page / (page // row) if row <= page else row + page / 2


def _delete(connection: sqlite3.Connection, where: str, value: Any) -> int:
    (gone,) = connection.execute(f"SELECT total(count) FROM event WHERE {where}", (value,)).fetchone()  # noqa: S608 - ours
    connection.execute(f"DELETE FROM event WHERE {where}", (value,))  # noqa: S608 - ours
    return int(gone)


def expand(position: int, body: str | bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the events of a row."""
    if isinstance(body, str):
        yield position, json.loads(body)
    else:
        run = unpack(body)
        yield from enumerate(run, position - len(run) + 1)


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the file to the current schema version, one step at a time."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if words := newer(version):
        raise sqlite3.NotSupportedError(words)
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")  # one process migrates, the others wait
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            if callable(step):
                step(connection)
            else:
                for statement in step.split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
