"""Find the breaker store of a runtime: the one it was given, or its store's."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from failsoft.errors import ManifestError
from failsoft.stores.ports import BreakerStore, Store
from failsoft.stores.url import open_store

METHODS = ("load", "swap", "watch")
Close = Callable[[], None]


def open_breakers(
    given: str | BreakerStore | None, store: Store | None, *, wall: Callable[[], float]
) -> tuple[BreakerStore, Close | None] | None:
    """Return the breaker store, and what closes it if it was opened here; None if circuits stay in the process."""
    if given is None:
        return None if store is None else (cast("BreakerStore", getattr(store, "breakers")), None)  # noqa: B009 - not of Store
    if not isinstance(given, str):
        return _require(given, type(given).__name__), None
    try:
        opened = open_store(given, wall=wall)
    except ManifestError as error:
        raise ManifestError(*(problem.replace("store: ", "breakers: ", 1) for problem in error.problems)) from error
    if opened is None:
        return None
    return _require(getattr(opened, "breakers", None), type(opened).__name__), opened.close


def _require(found: object, name: str) -> BreakerStore:
    lacking = [method for method in METHODS if not callable(getattr(found, method, None))]
    if lacking:
        raise ManifestError(
            "breakers: expected an address, or an object that failsoft.testing.check_breaker_store accepts, "
            f"got {name}, which has no {', '.join(lacking)}"
        )
    return cast("BreakerStore", found)
