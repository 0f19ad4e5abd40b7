"""The SQLite file itself: its form, how it is written, read and pruned. ``stores.sqlite.store`` says when."""

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
from failsoft.stores.sqlite.location import MARK, refuse_foreign

TOGETHER = 64  # rows in one statement: with each one the interpreter's lock is let go and waited for
WAL_SIZE = 8 << 20  # bytes that its file keeps when it is begun anew
EMPTY = 6  # pages of a file without events
ROW = 60  # bytes that a row takes beside its body, about
_PUT = "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)"


def _keep_begun(connection: sqlite3.Connection) -> None:
    """Turn open calls that must not be made twice into records of begun writes."""
    rows = connection.execute("SELECT key, value, until FROM record WHERE kind = 'pending'").fetchall()
    for key, text, until in rows:
        parts, value = key.split("/"), json.loads(text)
        if len(parts) == 5 and parts[2] == "call" and value.get("same") is not None:
            tenant, thread, _, turn, call = parts
            place = "/".join((tenant, thread, "begun", key_of(value["tool"]), call, key_of(value["same"])))
            begun = json.dumps({"run": value["run"], "turn": unquote(turn, errors="surrogatepass")})
            connection.execute(_PUT, ("pending", place, begun, until))


READS = 1  # the oldest form that can be read without being migrated
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
    # 3: records that are over are found without looking at the others
    "CREATE INDEX record_by_until ON record (until) WHERE until IS NOT NULL",
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


class Request:
    """A change whose result its caller waits for."""

    def __init__(self) -> None:
        self.withdrawn = False  # nobody waits any more: do nothing
        self.done = False  # it is in the file

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        """Make the change, inside a transaction."""
        raise NotImplementedError


class Take(Request):
    """A record to be read and deleted."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__()
        self._place = (kind, key)
        self.value: str | None = None

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        self.value = _find(connection, *self._place, now)
        if self.value is not None:
            connection.execute("DELETE FROM record WHERE kind = ? AND key = ?", self._place)


class Claim(Request):
    """Records to be kept where their keys are free."""

    def __init__(self, kind: str, values: Mapping[str, str], until: float | None) -> None:
        super().__init__()
        self._kind = kind
        self._values = values
        self._until = until
        self.taken: dict[str, str] = {}  # the values of keys that are not free

    def perform(self, connection: sqlite3.Connection, now: float) -> None:
        self.taken = {}  # of an earlier try, which has been rolled back
        for key, value in self._values.items():
            found = _find(connection, self._kind, key, now)
            if found is None:
                connection.execute(_PUT, (self._kind, key, value, self._until))
            else:
                self.taken[key] = found


Operation = Put | Append | Request


def size_of(operations: Sequence[Operation]) -> int:
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
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if not READS <= version <= len(MIGRATIONS):
            raise sqlite3.NotSupportedError(
                newer(version) or f"its form is number {version}: it has to be migrated, and it cannot be written"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def find_newer(path: Path) -> str:
    """Say that a newer failsoft has written the file there; empty if none has, or if nobody can tell."""
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
    """Say that a newer failsoft has written the file; empty if none has."""
    known = len(MIGRATIONS)
    if version <= known:
        return ""
    return (
        f"a newer failsoft has written it (its form is number {version}, this failsoft knows {known}): "
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


def _find(connection: sqlite3.Connection, kind: str, key: str, now: float) -> str | None:
    sql = "SELECT value FROM record WHERE kind = ? AND key = ? AND (until IS NULL OR until > ?)"
    found = connection.execute(sql, (kind, key, now)).fetchone()
    return None if found is None else str(found[0])


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
    if words := newer(version):
        raise sqlite3.NotSupportedError(words)
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")  # of several processes one does it
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
