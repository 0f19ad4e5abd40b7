"""Open a store by its address: ``memory:``, ``sqlite:///path/to/file.db``, or the scheme of another package.

Options of a file: ``synchronous=full`` (confirmed writes also survive a power failure), ``max_age=720h`` and
``max_size=500MB`` (older and excess events are dropped): ``sqlite:///failsoft.db?max_age=720h&max_size=1GB``.

Rules
-----
- A scheme is looked up among the built-in ones, then among those given to ``ports.register_scheme``, then among the
  entry points of the group ``failsoft.stores``. Packages can add schemes, and cannot change the built-in ones.
- Errors about unknown schemes do not repeat the address: it may contain a password.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from failsoft.core.model.durations import seconds
from failsoft.core.model.sizes import size
from failsoft.errors import ManifestError
from failsoft.stores.ports import GROUP, SCHEMES, Opener, Store

__all__ = ["known_schemes", "open_store"]

_LATER = {"redis": "Redis", "rediss": "Redis", "valkey": "Valkey", "postgres": "PostgreSQL", "postgresql": "PostgreSQL"}


def open_store(address: str, *, wall: Callable[[], float]) -> Store | None:
    """Open the store; None for ``memory:``, which keeps nothing beyond the process."""
    parts = urlsplit(address)
    scheme = parts.scheme.partition("+")[0]  # as in postgresql+asyncpg
    opener = _BUILT_IN.get(scheme) or SCHEMES.get(scheme) or _find_entry_point(scheme)
    if opener is None:
        raise ManifestError(_unknown(address, scheme))
    return opener(address, wall)


def known_schemes() -> list[str]:
    """The schemes that can be opened here: the built-in ones, then the others by name."""
    from importlib.metadata import entry_points

    others = {*SCHEMES, *(found.name for found in entry_points(group=GROUP))}
    return [*_BUILT_IN, *sorted(others - _BUILT_IN.keys())]


def _find_entry_point(scheme: str) -> Opener | None:
    """Load the opener that an installed package has for the scheme."""
    if not scheme:
        return None
    from importlib.metadata import entry_points

    for found in entry_points(group=GROUP, name=scheme):
        try:
            opener: Opener = found.load()
        except Exception as error:
            package = "" if found.dist is None else f" of {found.dist.name}"
            raise ManifestError(
                f"store: the opener for {scheme}://{package} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        return opener
    return None


def _unknown(address: str, scheme: str) -> str:
    known = " or ".join(f'"{_EXAMPLES.get(name, f"{name}://…")}"' for name in known_schemes())
    if not scheme:
        return f"store: {address!r} is not known: write {known}"
    if scheme in _LATER:
        return (
            f"store: {_LATER[scheme]} as a store comes with the next release: for now write {known}, "
            "or give a store of your own (failsoft.testing.check_store checks it)"
        )
    return (
        f'store: no store is known for "{scheme}:": write {known}, install a package that has an entry point '
        f"{scheme!r} in the group {GROUP!r}, or call failsoft.stores.ports.register_scheme({scheme!r}, …)"
    )


# --- built-in schemes -------------------------------------------------------------------------------------------------


def _open_memory(address: str, wall: Callable[[], float]) -> None:  # noqa: ARG001 - the form of an opener
    if address != "memory:":
        raise ManifestError(f'store: {address!r} is not known: write "memory:" or "sqlite:///path/to/file.db"')


def _open_sqlite(address: str, wall: Callable[[], float]) -> Store:
    if address in ("sqlite://", "sqlite:///:memory:", "sqlite://:memory:"):
        raise ManifestError(f'store: {address!r} keeps nothing: write "memory:", or "sqlite:///path/to/file.db"')
    parts = urlsplit(address)
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
_EXAMPLES = {"memory": "memory:", "sqlite": "sqlite:///path/to/file.db"}
_BUILT_IN: dict[str, Opener] = {"memory": _open_memory, "sqlite": _open_sqlite}
