"""A store by its address: ``memory:`` or ``sqlite:///path/to/file.db``."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, unquote, urlsplit

from failsoft.errors import ManifestError
from failsoft.stores.base import Store


def open_store(address: str, *, wall: Callable[[], float]) -> Store | None:
    """The store, None for one that keeps nothing beyond the process (and so need not be kept at all)."""
    if address == "memory:":
        return None
    parts = urlsplit(address)
    if parts.scheme != "sqlite" or parts.netloc or not parts.path.strip("/"):
        raise ManifestError(f'store: {address!r} is not known: write "memory:" or "sqlite:///path/to/file.db"')
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    synchronous = options.pop("synchronous", "normal")
    if options or synchronous not in ("normal", "full"):
        raise ManifestError(f"store: {address!r}: the only option is synchronous=normal or synchronous=full")
    from failsoft.stores.sqlite import SqliteStore

    path = unquote(parts.path)[1:]  # three slashes: relative; four: absolute
    return SqliteStore(path, wall=wall, synchronous="full" if synchronous == "full" else "normal")
