"""What lies where a SQLite store wants its file to be: nothing yet, a store of ours, or somebody else's file.

Rules
-----
- A store of ours bears ``MARK`` as its application id: in the file's head, from before anything else is written to it.
  (The first ones had none; they are known by their tables.) An empty file, and a database without tables, become one.
- Anything else is somebody else's and is not touched, not even as SQLite does that opens and closes it.
- Only a store of ours that is damaged is moved aside.
- Where SQLite finds a database, nobody but SQLite opens it: whoever else closes it drops the locks of the whole process.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

MARK = 0x66736674  # "fsft"
_MARK_AT = 68  # in the head of the file
_TABLES = {"record", "event"}


def refuse_foreign(path: Path) -> None:
    """Raise if the file there is not ours, or damaged; nothing of it is changed by looking."""
    found = _size(path)
    if not found:
        return
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        try:
            # Looking does not see what waits beside the file. One that was cut off, or still is at it, while that is
            # moved into it (the disk was full, the process was killed) has its new length in its head before it has it.
            connection.execute("PRAGMA writable_schema = ON")
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            if mark == MARK:
                return
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.DatabaseError as error:
            if not is_no_database(error) or _is_marked(path):
                raise
            mark, tables = -1, set()
    unused = not tables and not _size(path.with_name(f"{path.name}-wal"))
    if mark or not (unused or tables >= _TABLES):
        raise sqlite3.NotSupportedError("the file is not failsoft's and is left as it is: name another one")


def is_no_database(error: Exception) -> bool:
    """Is it the file's fault, for good?"""
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has the name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def find_obstacle(path: Path) -> str:
    """What keeps a store from being written there, as far as can be seen without trying; empty if nothing does."""
    if path.is_dir():
        return "it is a directory: name a file in it"
    place = path
    while identity(place) is None and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return f"{place} is a file, no directory: name another place"
    if not os.access(place, os.W_OK):
        return f"your user may not write {'it' if place == path else f'in {place}'}: change that, or name another place"
    try:
        refuse_foreign(path)
    except sqlite3.NotSupportedError as error:
        return str(error)
    except (sqlite3.Error, OSError):  # a damaged store is moved aside in time
        pass
    return ""


def move_aside(path: Path, when: str) -> Path:
    """Give a damaged file, and what belongs to it, another name that is free."""
    aside = free = path.with_name(f"{path.name}.damaged-{when}")
    number = 1
    while free.exists():
        number += 1
        free = aside.with_name(f"{aside.name}-{number}")
    path.replace(free)
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.replace(free.with_name(free.name + suffix))
    return free


def _is_marked(path: Path) -> bool:
    """Was it ours? For a file that SQLite cannot read."""
    with path.open("rb") as file:
        return file.read(100)[_MARK_AT : _MARK_AT + 4] == MARK.to_bytes(4, "big")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
