"""The list of escalations that no operator has acknowledged.

Rules
-----
- There is one entry per tenant, runtime, tool and error code. The entry counts the escalations and names the latest
  call. So a broken tool is one entry, however often it is called.
- An acknowledged entry is reopened when the same failure happens again.
- Entries are kept in the store, and survive a restart. If only its count has changed, an entry is written at most every
  ``RECOUNT_SECONDS``: a crash may lose a second of counting, but no entry.
- The ``MOST`` latest entries of each tenant are kept, for ``KEPT_SECONDS``. Beyond ``MOST_IN_ALL`` entries, the tenant
  with most entries loses its oldest.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from failsoft.stores.ports import key_of
from failsoft.surfaces.daemon.tenant_table import TenantTable

if TYPE_CHECKING:
    from failsoft.core.model.outcome import Outcome
    from failsoft.stores.ports import Store

MOST: Final = 1_000  # entries of one tenant
MOST_IN_ALL: Final = 20_000
RECOUNT_SECONDS: Final = 1.0
KEPT_SECONDS: Final = 30 * 86_400.0
LONGEST: Final = 1_000  # characters of a text
_SAID: Final = ("category", "error", "attempts", "call_id", "turn_id")

Entry = dict[str, Any]


class Escalations:
    """The entries of one daemon."""

    def __init__(self, store: Store, wall: Callable[[], float]) -> None:
        self._store = store
        self._wall = wall
        self._lock = threading.Lock()  # ``save`` runs on the thread of commits
        self._entries: TenantTable[Entry] = TenantTable()
        self._unsaved: dict[tuple[str | None, str], None] = {}  # tenants and ids of entries
        self._recounted: dict[tuple[str | None, str], None] = {}  # entries of which only the count has changed
        self._recounts_saved = 0.0
        for _, entry in sorted(store.find("escalation"), key=lambda kept: float(kept[1]["last"])):
            self._entries.put(entry["tenant"], entry["id"], entry)

    def note(self, tenant: str | None, tool: str, event: Mapping[str, Any], runtime: str | None = None) -> None:
        """Count an escalation; ``event`` has the fields of the event ``Escalated``."""
        tool, code = tool[:LONGEST], _short(event.get("code"))
        id = _id_of(tenant, runtime, tool, str(code))
        now = self._wall()
        with self._lock:
            known = self._entries.of(tenant).get(id)
            said = {name: _short(event.get(name)) for name in _SAID}
            entry = {
                "id": id, "tenant": tenant, "runtime": runtime, "tool": tool, "code": code, **said,
                "count": 1 if known is None else known["count"] + 1,
                "first": now if known is None else known["first"], "last": now, "acknowledged": None,
            }  # fmt: skip
            self._entries.put(tenant, id, entry)
            is_recount = known is not None and known["acknowledged"] is None
            (self._recounted if is_recount else self._unsaved)[tenant, id] = None
            if len(self._entries.of(tenant)) > MOST:
                self._drop_oldest(tenant)
            elif len(self._entries) > MOST_IN_ALL:
                self._drop_oldest(self._entries.largest())

    def _drop_oldest(self, tenant: str | None) -> None:
        self._unsaved[tenant, self._entries.drop_oldest(tenant)] = None

    def note_outcome(self, tenant: str | None, outcome: Outcome[Any], turn_id: str | None = None) -> None:
        """Count the escalation of one of the daemon's own calls, if it was escalated."""
        fault = outcome.fault
        if outcome.escalated and fault is not None:
            said = {"code": fault.code.value, "category": fault.category, "error": fault.message}
            more = {"attempts": outcome.attempts, "call_id": str(outcome.id), "turn_id": turn_id}
            self.note(tenant, outcome.tool, {**said, **more})

    def entries(self, tenant: str | None, tool: str | None, *, acknowledged: bool | None) -> list[Entry]:
        """List entries, latest first: those of a tenant, or all of them."""
        with self._lock:
            found = [*(self._entries.values() if tenant is None else self._entries.of(tenant).values())]
        wanted = [
            entry
            for entry in found
            if tool in (None, entry["tool"]) and acknowledged in (None, entry["acknowledged"] is not None)
        ]
        return sorted(wanted, key=place_of, reverse=True)

    def find(self, id: str, tenant: str | None) -> Entry | None:
        """Return an entry; None if there is none, or it is of another tenant than the given one."""
        with self._lock:
            return self._find(id, tenant)[1]

    def _find(self, id: str, tenant: str | None) -> tuple[str | None, Entry | None]:
        for owner in self._entries.tenants() if tenant is None else (tenant,):
            if (found := self._entries.of(owner).get(id)) is not None:
                return owner, found
        return None, None

    def acknowledge(self, id: str, tenant: str | None, by: str, note: str) -> Entry | None:
        """Acknowledge an entry; None if there is none, or it is of another tenant than the given one."""
        with self._lock:
            owner, found = self._find(id, tenant)
            if found is None:
                return None
            made = {**found, "acknowledged": {"by": by, "at": self._wall(), "note": note}}
            self._entries.replace(owner, id, made)
            self._unsaved[owner, id] = None
            return made

    def save(self, *, everything: bool = False) -> None:
        """Put what has changed into the store. If the store raises, the next call tries all of it again."""
        with self._lock:
            now = self._wall()
            if everything or abs(now - self._recounts_saved) >= RECOUNT_SECONDS:
                self._unsaved |= self._recounted
                self._recounted, self._recounts_saved = {}, now
            unsaved, self._unsaved = self._unsaved, {}
            changed = [(key_of(owner, id), self._entries.of(owner).get(id)) for owner, id in unsaved]
        try:
            for key, entry in changed:
                if entry is None:
                    self._store.delete("escalation", key)
                else:
                    self._store.put("escalation", key, entry, ttl=KEPT_SECONDS)
        except BaseException:
            with self._lock:
                self._unsaved = unsaved | self._unsaved
            raise


def place_of(entry: Entry) -> tuple[float, str]:
    """Return the place of an entry in the list; the latest has the highest."""
    return float(entry["last"]), entry["id"]


@lru_cache(MOST)
def _id_of(*parts: str | None) -> str:
    return hashlib.sha256(key_of(*parts).encode()).hexdigest()[:20]


def _short(value: Any) -> str | int | float | None:
    """Return a field of an event as a short text: remote runtimes may send anything."""
    if isinstance(value, str):
        return value[:LONGEST]
    return value if isinstance(value, int | float) else None
