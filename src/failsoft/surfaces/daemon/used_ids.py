"""The ids that callers have chosen for calls: a request that is sent again must not run its tool again.

Rules
-----
- An id is kept in the store before its call begins, for ``KEPT_SECONDS``, and again with the state of the call once it
  has ended. So it is known after a restart as well.
- A write that a killed process has begun, or whose case is resolved, may be sent again: the runtime answers what the
  ledger knows, and runs it only once an operator has resolved that nothing was done.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from failsoft.core.model.errors import LedgerError
from failsoft.stores.ports import Records, key_of

log = logging.getLogger("failsoft")

KEPT_SECONDS: Final = 86_400.0


class Ledger(Protocol):
    """The places where the cases of calls are found."""

    def get(self, id: str, *, tenant: str | None = None) -> Any:
        """Return the entry of a call; raise ``LedgerError`` if there is none."""


class UsedIds:
    """The ids of one daemon's calls."""

    def __init__(self, store: Records, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    def find(self, id: str) -> dict[str, Any] | None:
        """Return what is known of an earlier call with this id: its tool, and how it ended; None if there was none."""
        found: dict[str, Any] | None = self._store.get("call", key_of(id))
        return found

    def may_run(self, id: str, tool: str, tenant: str | None) -> bool:
        """True if the runtime will not run the call again, or only because an operator has resolved that it may."""
        try:
            entry = self._ledger.get(id, tenant=tenant)
        except LedgerError:
            return False
        return bool(entry.tool == tool and entry.state != "unknown")

    def begin(self, id: str, tool: str) -> None:
        """Keep the id of a call that begins."""
        self._keep(id, tool, None)

    def end(self, id: str, tool: str, status: str) -> None:
        """Keep how a call has ended. If the store fails, its outcome counts all the same."""
        try:
            self._keep(id, tool, status)
        except Exception as error:
            log.warning("how the call %s ended could not be kept: %s", id, type(error).__name__)

    def _keep(self, id: str, tool: str, status: str | None) -> None:
        self._store.put("call", key_of(id), {"tool": tool, "status": status}, ttl=KEPT_SECONDS)
