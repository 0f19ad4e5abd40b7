"""The protocol of a store: small records under keys, and the event stream.

Rules for every store
---------------------
- A record has a *kind* (``KINDS``), a *key* made by ``key_of`` and a value for ``json.dumps``. Reading returns an equal
  value, never the same object. ``put`` replaces.
- A record with a ``ttl`` disappears that many seconds later, by the wall clock: records are read after a restart and on
  other machines.
- ``find`` lists by scope: the first parts of the key, whole parts only. Everything of a tenant or of a thread is one
  listing, which contains no other tenant's or thread's records.
- Events come in batches, as flat records with ``seq``. They are read in the order of appending.
- ``put``, ``delete`` and ``append`` return at once and never raise for the store's own failures: calls may use them. A
  store that writes elsewhere queues them. ``flush`` waits until everything is durable and returns whether it is.
- Records and events lost for good are counted in ``lost``. After a loss, the next ``flush`` (and every one already
  waiting) returns False; later ones do not.
- ``get``, ``find`` and ``read`` see what this process has put before. They may block: not for an event loop.
- ``take``, ``claim`` and ``swap`` are atomic, also between processes: if several want one key at the same time, one gets
  it. They run after the earlier puts and deletes of this process, and may block too.
- All methods may be called from any thread. After ``close`` nothing is accepted; closing twice is harmless.

Rules for every breaker store
-----------------------------
- A circuit has a key, and a version that grows with every change, also if its record has expired in between.
- ``swap`` is atomic, also between processes: it changes a circuit only if its version is still the one given.
- ``watch`` first reports every circuit in the store, then every change by any process within about a second. Watchers
  may be called on any thread; they return at once, and do not call the store.
- Times are wall-clock times: monotonic clocks differ between processes.
- ``load``, ``swap`` and ``watch`` may block and may raise: the runtime calls them on a thread of its own, and goes on with
  its local circuits. ``failsoft.testing.check_breaker_store`` checks a breaker store.

Why so small: trace, recovery memory, pending calls and availability need no more, and anything with keys and an order
can be a store. Three methods coordinate processes: only one may use a retry offer (``take``), begin a write (``claim``)
or resolve one (``swap``). Circuits need compare-and-set and prompt reports of changes, and may be on another server
than the store, so they have their own protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from failsoft.core.model.fault import Fault
from failsoft.core.resilience.circuit_breaker import BreakerState
from failsoft.core.startup.named_tuple import NamedTuple
from failsoft.errors import ManifestError

__all__ = [
    "GROUP",
    "KINDS",
    "BreakerStore",
    "Events",
    "KeptCircuit",
    "Kind",
    "Opener",
    "Records",
    "Store",
    "Watcher",
    "key_of",
    "register_scheme",
]

Kind = Literal["memory", "pending", "availability", "breaker", "disabled", "escalation", "call"]
KINDS: Final[tuple[Kind, ...]] = ("memory", "pending", "availability", "breaker", "disabled", "escalation", "call")

_NOBODY = "%"  # the part None; no escaped part equals it


def key_of(*parts: str | None) -> str:
    """Make a key from its parts, the widest first: tenant, thread, tool … None is a distinct part."""
    from urllib.parse import quote  # imported only if there is a store

    return "/".join(_NOBODY if part is None else quote(part, safe=" ", errors="surrogatepass") for part in parts)


class Records(Protocol):
    """Small values under keys."""

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        """Keep a value forever, or for ``ttl`` seconds."""

    def get(self, kind: Kind, key: str) -> Any:
        """Return the value; None if there is none or it has expired."""

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        """Return all (key, value) in the scope (``key_of`` of its first parts), ordered by key."""

    def delete(self, kind: Kind, key: str) -> None:
        """Delete a value, if there is one."""

    def take(self, kind: Kind, key: str) -> Any:
        """Read and delete a value in one step; None if there is none or another caller has taken it."""

    def claim(
        self, kind: Kind, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float
    ) -> Mapping[str, Any]:
        """Keep the values whose keys are free, wait until they are durable, and return the values of the other keys.

        Raise ``TimeoutError`` if durability is not confirmed within ``timeout`` seconds.
        """

    def swap(
        self, kind: Kind, changes: Mapping[str, tuple[Any, Any]], *, ttl: float | None = None, timeout: float
    ) -> bool:
        """Replace several values at once. ``changes`` has the expected and the new value by key; None means no value.

        Return True if all values were as expected and the new ones are durable, False if nothing has changed. Raise
        ``TimeoutError`` if durability is not confirmed within ``timeout`` seconds.
        """


class Events(Protocol):
    """The event stream."""

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Append a batch of flat records (``Event.to_dict()``)."""

    def read(
        self, *, after: int = 0, limit: int = 1000, turn_id: str | None = None
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return up to ``limit`` (position, event) after a position, oldest first; only of ``turn_id``, if given."""

    def turns(self, limit: int = 100) -> list[str]:
        """Return the ids of the turns with the latest events, latest first."""

    def prune(self, *, before: str | None = None, most: int | None = None) -> int:
        """Drop events older than an ISO time, and all but the latest ``most``; return their number.

        Events that a store keeps together are dropped with the last of them.
        """


class Store(Records, Events, Protocol):
    """Everything that a runtime uses."""

    @property
    def lost(self) -> int:
        """The number of records and events lost so far. (Without it, each False of ``flush`` counts as a loss.)"""

    def flush(self, timeout: float) -> bool:
        """Wait until everything accepted so far is durable; False if it is not within ``timeout`` seconds."""

    def close(self) -> None:
        """Flush and release all resources."""


# --- circuits ---------------------------------------------------------------------------------------------------------


class KeptCircuit(NamedTuple):
    """A circuit in a store."""

    state: BreakerState  # ``since`` is a wall-clock time
    opened_by: Fault | None = None  # the fault that decides which fallbacks apply


Watcher = Callable[[str, KeptCircuit, int], None]  # gets the key, the circuit and its version


class BreakerStore(Protocol):
    """Circuits that several processes share. A store that has one offers it as its attribute ``breakers``."""

    def load(self, key: str) -> tuple[KeptCircuit, int] | None:
        """Return a circuit and its version; None if none is kept."""

    def swap(self, key: str, version: int, circuit: KeptCircuit, *, ttl: float) -> int:
        """Replace a circuit for ``ttl`` seconds and return its new version; 0 if ``version`` is no longer current.

        The version of a circuit that is not kept is 0.
        """

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Report every circuit to ``watcher``, now and whenever it changes; return a function that ends this."""


# --- addresses --------------------------------------------------------------------------------------------------------

Opener = Callable[[str, Callable[[], float]], Store | None]  # opens (address, wall clock); None: nothing is kept
GROUP: Final = "failsoft.stores"  # entry points: the name is the scheme, the value an opener
SCHEMES: Final[dict[str, Opener]] = {}  # registered by programs


def register_scheme(name: str, opener: Opener) -> None:
    """Let ``Runtime(store="name://…")`` open stores of another kind; a scheme registered again is replaced.

    ``opener`` gets the whole address and the runtime's wall clock, and returns the store. A package that is installed
    needs no call: it declares an entry point of the group ``failsoft.stores`` instead.
    """
    if not (name.isascii() and name.replace("-", "").replace(".", "").isalnum() and name == name.lower()):
        raise ManifestError(f'register_scheme: {name!r} is not a scheme: write one such as "mongodb"')
    if name in ("memory", "sqlite"):
        raise ManifestError(f"register_scheme: {name!r} is built in and cannot be replaced")
    if not callable(opener):
        raise ManifestError(f"register_scheme: {name!r}: expected a function of address and clock, got {opener!r:.80}")
    SCHEMES[name] = opener
