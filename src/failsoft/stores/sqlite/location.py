"""Inspect the path of a SQLite store: no file yet, a failsoft store, or another program's file.

Rules
-----
- A failsoft store has ``MARK`` as its application id in the file header, written before anything else. (The first
  version wrote none; its files are recognised by their tables.) An empty file or a database without tables is accepted.
- Any other file is never touched, not even by letting SQLite open and close it for writing.
- Only a damaged failsoft store is moved aside.
- Only SQLite opens a file that SQLite recognises as a database: closing any other handle drops all POSIX locks that the
  process holds on it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

MARK = 0x66736674  # "fsft"
_MARK_AT = 68  # offset in the file header
_TABLES = {"record", "event"}


def refuse_other_file(path: Path) -> None:
    """Raise if the file is not a failsoft store, or is damaged. Changes nothing."""
    found = _size(path)
    if not found:
        return
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        try:
            # Immutable mode ignores the WAL. If a checkpoint was interrupted or is under way (disk full, process
            # killed), the header already has the new length but the file does not.
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
    """True if the file itself is damaged or not a database."""
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def find_obstacle(path: Path) -> str:
    """Describe what prevents a store at ``path``, without writing anything; empty if nothing does."""
    if path.is_dir():
        return "it is a directory: name a file in it"
    place = path
    while identity(place) is None and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return f"{place} is a file, not a directory: name another place"
    if not os.access(place, os.W_OK):
        return f"your user may not write {'it' if place == path else f'in {place}'}: change that, or name another place"
    try:
        refuse_other_file(path)
    except sqlite3.NotSupportedError as error:
        return str(error)
    except (sqlite3.Error, OSError):  # a damaged store is moved aside by the writer
        pass
    return ""


def move_aside(path: Path, when: str) -> Path:
    """Rename a damaged file and its WAL files to a free name."""
    aside = free = path.with_name(f"{path.name}.damaged-{when}")
    number = 1
    while free.exists():
        number += 1
        free = aside.with_name(f"{aside.name}-{number}")
    path.replace(free)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.replace(free.with_name(free.name + suffix))
    return free


def _is_marked(path: Path) -> bool:
    """True if a file that SQLite cannot read has failsoft's mark."""
    with path.open("rb") as file:
        return file.read(100)[_MARK_AT : _MARK_AT + 4] == MARK.to_bytes(4, "big")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
