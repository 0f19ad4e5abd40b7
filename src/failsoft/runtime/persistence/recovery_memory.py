"""``rt.memory``: the recovery memory while the program runs. Only failing calls use it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from failsoft.core.resilience import recovery_memory as core
from failsoft.core.resilience.recovery_memory import RETRY, TOOL, Evidence, Family, Memory, Mode, Tally
from failsoft.stores.ports import Store, key_of

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import Fallback

SAVE_EVERY = 64  # changed families that are saved at once; ``flush`` and ``close`` save the rest
TTL = 8 * core.HALF_LIFE  # seconds; after that, the evidence has decayed

log = logging.getLogger("failsoft")


class RecoveryMemory:
    """Memory of what has helped against which errors. ``families()`` shows it, ``forget()`` drops it."""

    def __init__(
        self, mode: Mode, wall: Callable[[], float], successes: Callable[[str], int], store: Store | None = None
    ) -> None:
        self.mode: Mode = mode
        self._wall = wall
        self._successes = successes
        self._store = store
        self._lock = threading.RLock()  # a signal handler may make a call of its own
        self._memory = Memory()
        self._changed: set[Family] = set()
        if store is not None and mode != "off":
            self._load(store)

    # -- for people ----------------------------------------------------------------------------------------------------

    def families(self, *, tenant: str | None = None, tool: str | None = None) -> list[dict[str, Any]]:
        """Return a tenant's error families as plain data, the latest last, each with its tallies by strategy."""
        with self._lock:
            return [
                family.to_dict() for family in self._memory if family.tenant == tenant and tool in (None, family.tool)
            ]

    def forget(self, *, tenant: str | None = None, tool: str | None = None) -> int:
        """Forget the error families of a tenant, or of one tool; return how many there were."""
        with self._lock:
            gone = [family.key for family in self._memory if family.tenant == tenant and tool in (None, family.tool)]
            self._changed = {family for family in self._changed if family.key not in gone}
            self._memory.forget(tenant, tool=tool)
        if self._store is not None:
            for key in gone:
                self._store.delete("memory", key_of(*key))
        return len(gone)

    # -- for calls -----------------------------------------------------------------------------------------------------

    def note_error(self, tenant: str | None, tool: str, fault: Fault) -> Family:
        """Return the family of an error that has just occurred."""
        now = self._wall()
        with self._lock:
            family = self._memory.find(tenant, tool, fault)
            if not family.is_due(now):
                return family
        successes = self._successes(tool)  # drains the stream: not under the lock
        with self._lock:
            self._memory.begin_episode_if_due(family, now, successes)
        return family

    def family_of(self, tenant: str | None, tool: str, fault: Fault) -> Family | None:
        """Return the family of an error that another call had; None if it may belong to another tenant."""
        with self._lock:
            known = self._memory.knows(tenant, tool, fault)
        return self.note_error(tenant, tool, fault) if known else None

    def evidence(self, family: Family) -> Evidence | None:
        """Return the evidence that can be quoted about a family. Other threads may be updating it."""
        if not family.is_quotable:
            return None  # nearly always, and without the lock
        with self._lock:
            return family.evidence

    def skips_retry(self, family: Family) -> Tally | None:
        """Return the tally of a family's retries if it shows that a retry is not worth it, else None."""
        if self.mode != "act":
            return None
        with self._lock:
            return family.tallies[RETRY] if core.skips_retry(family) else None

    def order(self, family: Family, options: Sequence[Fallback]) -> Sequence[Fallback]:
        """Order fallbacks of equal rank by what has helped before."""
        with self._lock:
            return core.order(family, options)

    def learn(self, family: Family, tool: str | None, worked: bool, seconds: float) -> None:
        """Note whether retries (or, with ``tool``, a fallback) have helped."""
        with self._lock:
            family.learn(RETRY if tool is None else TOOL + tool, worked, seconds)
            if self._store is None:
                return
            self._changed.add(family)
            if len(self._changed) < SAVE_EVERY:
                return
        self.save()

    # -- keeping -------------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the changed families to the store."""
        if self._store is None:
            return
        with self._lock:
            changed, self._changed = self._changed, set()
            made = [(key_of(*family.key), family.to_dict()) for family in changed]
        for key, data in made:
            self._store.put("memory", key, data, ttl=TTL)

    def _load(self, store: Store) -> None:
        try:
            kept = [Family.from_dict(data) for _, data in store.find("memory")]
        except Exception:  # not readable: start with an empty memory
            log.exception("the recovery memory could not be read; it starts empty")
            return
        for family in sorted(kept, key=lambda family: family.at):
            self._memory.add(family)

    def renew_after_fork(self) -> None:
        self._lock = threading.RLock()  # a signal handler may make a call of its own
