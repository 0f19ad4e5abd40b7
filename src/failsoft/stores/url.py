"""Open a store by its address: ``memory:`` or ``sqlite:///path/to/file.db``.

Options of a file: ``synchronous=full`` (confirmed writes also survive a power failure), ``max_age=720h`` and
``max_size=500MB`` (older and excess events are dropped): ``sqlite:///failsoft.db?max_age=720h&max_size=1GB``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from failsoft.core.model.durations import seconds
from failsoft.core.model.sizes import size
from failsoft.errors import ManifestError

if TYPE_CHECKING:
    from failsoft.stores.sqlite.store import SqliteStore

_LATER = {"redis": "Redis", "rediss": "Redis", "valkey": "Valkey", "postgres": "PostgreSQL", "postgresql": "PostgreSQL"}


def open_store(address: str, *, wall: Callable[[], float]) -> SqliteStore | None:
    """Open the store; None for ``memory:``, which keeps nothing beyond the process."""
    if address == "memory:":
        return None
    parts = urlsplit(address)
    scheme = parts.scheme.partition("+")[0]  # as in postgresql+asyncpg
    if scheme in _LATER:
        # Do not repeat the address: it may contain a password.
        raise ManifestError(
            f"store: {_LATER[scheme]} as a store comes with the next release: for now write "
            '"sqlite:///path/to/file.db", or give a store of your own (failsoft.testing.check_store checks it)'
        )
    if address in ("sqlite://", "sqlite:///:memory:", "sqlite://:memory:"):
        raise ManifestError(f'store: {address!r} keeps nothing: write "memory:", or "sqlite:///path/to/file.db"')
    if parts.scheme != "sqlite" or parts.netloc or not parts.path.strip("/"):
        raise ManifestError(f'store: {address!r} is not known: write "memory:" or "sqlite:///path/to/file.db"')
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if unknown := options.keys() - _OPTIONS.keys():
        raise ManifestError(
            f"store: {address!r}: {min(unknown)!r} is not an option; known options are {', '.join(_OPTIONS)}"
        )
    try:
        read = {name: _OPTIONS[name](value) for name, value in options.items()}
    except ValueError as error:
        raise ManifestError(f"store: {address!r}: {error}") from None
    from failsoft.stores.sqlite.database import find_newer
    from failsoft.stores.sqlite.store import SqliteStore

    path = unquote(parts.path)[1:]  # three slashes: relative; four: absolute
    if newer := find_newer(Path(path)):
        raise ManifestError(f"store: {path}: {newer}")
    return SqliteStore(path, wall=wall, **read)


def _synchronous(value: str) -> str:
    if value not in ("normal", "full"):
        raise ValueError(f"synchronous is normal or full, not {value!r}")
    return value


_OPTIONS: dict[str, Callable[[str], Any]] = {"synchronous": _synchronous, "max_age": seconds, "max_size": size}
