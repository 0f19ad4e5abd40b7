"""The files that commands read, with one clear message for each way in which that can fail."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from failsoft.errors import ManifestError
from failsoft.surfaces.cli.show import CommandError

MANIFEST = "failsoft.yaml"
_LARGEST = 1_000_000  # bytes from standard input; the reader has its own limit and says so


def find_manifest(given: str | None, *, needed: bool = True) -> str | None:
    """The manifest's path: the given one, else ``failsoft.yaml`` if it is here."""
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


def check_address(store: str | None) -> None:
    """Say so if there can be no such store."""
    from failsoft.stores.open import open_store

    try:
        open_store(store or "memory:", wall=time.time)
    except ManifestError as error:
        raise CommandError(f"--{error}") from None


def read(path: str, most: int = _LARGEST) -> bytes:
    """A file's bytes; ``-`` is standard input."""
    if path == "-":
        return sys.stdin.buffer.read(most)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}") from None
