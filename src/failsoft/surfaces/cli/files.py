"""Files that commands read and write, with one clear message for each kind of failure."""

from __future__ import annotations

import os
import sys
import time
from difflib import get_close_matches
from pathlib import Path
from typing import overload

from failsoft.errors import ManifestError
from failsoft.surfaces.cli.console import CommandError

MANIFEST = "failsoft.yaml"
_LARGEST = 1_000_000  # bytes; the manifest reader has its own limit and message


def find_manifest(given: str | None, *, needed: bool = True) -> str | None:
    """Return the manifest's path: the given one, or ``failsoft.yaml`` in this directory."""
    if given is not None:
        return given
    if Path(MANIFEST).exists():
        return MANIFEST
    if not needed:
        return None
    raise CommandError(
        f"there is no {MANIFEST} here",
        hint="Try: failsoft init to write one, or name yours with --manifest FILE.",
    )


def check_address(store: str | None, *, to_write: bool = False) -> Path | None:
    """Raise if the store's address is invalid or, with ``to_write``, not writable; return its file, if it is one."""
    from failsoft.stores.url import open_store

    try:
        found = open_store(store or "memory:", wall=time.time)
    except ManifestError as error:
        hint = "" if ":" in str(store) else f"Try: --store sqlite:///{store}"
        raise CommandError(f"--{error}", hint=hint) from None
    if found is None:
        return None
    from failsoft.stores.sqlite.location import find_obstacle
    from failsoft.stores.sqlite.store import SqliteStore

    if not isinstance(found, SqliteStore):
        return None
    if to_write and (obstacle := find_obstacle(found.file)):
        raise CommandError(f"{found.path}: cannot be used as a store: {obstacle}")
    return found.file


@overload
def read(path: str, most: int = _LARGEST) -> bytes: ...
@overload
def read(path: str, most: int, offset: int) -> bytes | None: ...
def read(path: str, most: int = _LARGEST, offset: int = 0) -> bytes | None:
    """Read a file's bytes from an offset; None if it is shorter. ``-`` is standard input."""
    if path == "-":
        return read_input(most)
    try:
        with Path(path).open("rb") as file:
            if not offset:
                return file.read(most)
            if os.fstat(file.fileno()).st_size < offset:
                return None
            file.seek(offset)
            return file.read(most)
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror or error}"
        raise CommandError(message, hint=_hint_for(Path(path), error)) from None


def cannot_write(path: Path, error: OSError) -> CommandError:
    """Make the error for a path that cannot be written, with a hint."""
    hint = ""
    if isinstance(error, IsADirectoryError):
        hint = "It is a directory: name a file."
    elif isinstance(error, PermissionError):
        hint = "Your user may not write there: look at the permissions, or name another place."
    elif isinstance(error, FileNotFoundError):
        hint = f"There is no directory {path.parent}: make it, or name another place."
    elif isinstance(error, NotADirectoryError):
        hint = f"{path.parent} is not a directory: name another place."
    return CommandError(f"{path}: cannot be written: {error.strerror or error}", hint=hint)


def import_from_here() -> None:
    """Make modules in the current directory importable, like `python -m`: tools.py beside the plan."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def read_input(most: int) -> bytes:
    """Read standard input; empty if it is closed."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read(most)


def _hint_for(path: Path, error: OSError) -> str:
    """Suggest what to do about a file that cannot be read."""
    if str(path).startswith(("{", "[")):
        return "It looks like the content of a file: write it into one, or pipe it in and give -."
    if isinstance(error, IsADirectoryError):
        return f"Try: {path / MANIFEST}" if (path / MANIFEST).is_file() else "It is a directory: name a file."
    if isinstance(error, PermissionError):
        return "Your user may not read it: look at its permissions."
    try:
        near = get_close_matches(path.name, os.listdir(path.parent), n=1, cutoff=0.75)  # noqa: PTH208 - names are wanted
    except OSError:
        return f"There is no directory {path.parent}: look at the path."
    return f"Did you mean {path.with_name(near[0])}?" if near else "Look at the name, and at the directory you are in."
