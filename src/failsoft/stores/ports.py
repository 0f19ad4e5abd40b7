"""What must outlive a call, and how it is kept: small records under a key, and the event stream.

Rules for every store
---------------------
- A record has a *kind* (``KINDS``), a *key* made by ``key_of`` and a value that ``json.dumps`` takes. What comes back is
  equal to it, and never the same object. Putting replaces.
- A record with a ``ttl`` is gone that many seconds later, by the wall clock: what is kept is read after a restart, and
  on other machines.
- ``find`` lists by scope: the first parts of the key, whole parts only. So everything of a tenant or of a thread is one
  listing, and nobody else's is in it.
- Events come in batches, as flat records with ``seq``. They are read in the order in which they were appended.
- ``put``, ``delete`` and ``append`` return at once and never raise for the store's own troubles: a call path may use
  them. One that writes elsewhere queues them; ``flush`` waits until all of it is durable and says whether it is.
- What is lost for good is counted in ``lost``. ``flush`` tells of it by False: once, but to all who ask before the first
  of them has heard of it.
- ``get``, ``find`` and ``read`` see what this process has put before. They may take time: not on an event loop.
- ``take`` and ``claim`` are atomic, also between processes: of several that want one key at the same time, one gets it.
  Both come after what this process has put or deleted before, and they may take time as well.
- All methods may be called from any thread. After ``close`` nothing is taken any more; closing twice is harmless.

Why so little: trace, recovery memory, pending state and availability need no more, and whatever has keys and an order
can be a store. A fleet agrees on two things here: who may use a retry offer (``take``) and who has begun a write
(``claim``). A breaker's probe is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

Kind = Literal["memory", "pending", "availability", "breaker"]
KINDS: Final[tuple[Kind, ...]] = ("memory", "pending", "availability", "breaker")

_NOBODY = "%"  # no escaped part is just this


def key_of(*parts: str | None) -> str:
    """A key out of its parts, the widest first: tenant, thread, tool … None is a part of its own."""
    from urllib.parse import quote  # only who has a store pays for it

    return "/".join(_NOBODY if part is None else quote(part, safe=" ", errors="surrogatepass") for part in parts)


class Records(Protocol):
    """Small values under keys."""

    def put(self, kind: Kind, key: str, value: Any, *, ttl: float | None = None) -> None:
        """Keep a value, for ever or for ``ttl`` seconds."""

    def get(self, kind: Kind, key: str) -> Any:
        """The value, None if there is none or its time is over."""

    def find(self, kind: Kind, scope: str = "") -> list[tuple[str, Any]]:
        """All (key, value) whose key is in the scope (``key_of`` of its first parts), in the order of their keys."""

    def delete(self, kind: Kind, key: str) -> None:
        """Drop a value; none is as good."""

    def take(self, kind: Kind, key: str) -> Any:
        """Read and delete a value in one step. None: there is none, or another caller has taken it."""

    def claim(
        self, kind: Kind, values: Mapping[str, Any], *, ttl: float | None = None, timeout: float
    ) -> Mapping[str, Any]:
        """Keep the values whose keys are free, and wait until they are durable; return the values of the other keys.

        Raise ``TimeoutError`` if that is not known to be done within ``timeout`` seconds.
        """


class Events(Protocol):
    """The event stream."""

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Take a batch of flat records (``Event.to_dict()``)."""

    def read(
        self, *, after: int = 0, limit: int = 1000, turn_id: str | None = None
    ) -> list[tuple[int, dict[str, Any]]]:
        """Up to ``limit`` (position, event), oldest first, from behind a position; of one turn, if one is named."""

    def turns(self, limit: int = 100) -> list[str]:
        """The ids of the turns with the latest events, the latest first."""

    def prune(self, *, before: str | None = None, most: int | None = None) -> int:
        """Drop events older than an ISO time, and all but the latest ``most``; how many that were.

        Events that a store keeps together go when the last of them does.
        """


class Store(Records, Events, Protocol):
    """Everything that a runtime keeps."""

    @property
    def lost(self) -> int:
        """How many records and events were given up so far. (Without it every False of ``flush`` counts as a loss.)"""

    def flush(self, timeout: float) -> bool:
        """Wait until all that was taken is durable; False if it is not by then."""

    def close(self) -> None:
        """Flush and let go."""
