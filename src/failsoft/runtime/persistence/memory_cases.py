"""The effect ledger of a runtime without a store: the open cases of this process.

Rules
-----
- Writes are not recorded before they start. A write that ends with an unknown effect, or whose caller leaves while it
  runs, leaves a case.
- At most ``MOST_CASES`` are kept; then the oldest is dropped, and a warning is logged once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from failsoft.core.conversation.thread_state import mark
from failsoft.runtime.persistence.ledger_records import (
    KEPT_FOR,
    LedgerRecords,
    case_key,
    describe_write,
    entry_id,
    make_case,
    place_of,
)
from failsoft.stores.memory import MemoryStore

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.ledger_entry import Recalled
    from failsoft.runtime.persistence.write_record import Write

MOST_CASES = 1000
log = logging.getLogger("failsoft")


class MemoryCases(LedgerRecords):
    """The cases of one process."""

    def __init__(self, wall: Callable[[], float], new_key: Callable[[], str], *, keeps_arguments: bool) -> None:
        super().__init__(MemoryStore(wall=wall), wall)
        self._new_key = new_key
        self._keeps_arguments = keeps_arguments
        self._numbers = count(1)
        self._keys: deque[str] = deque()  # of the cases, the oldest first
        self._warned = False

    def keep(self, call: Write, fault: Fault, *, runs_on: bool) -> None:
        """Keep an open case. ``runs_on``: an attempt of it may still act."""
        place, now = place_of(call, ""), self.wall()
        record = describe_write(
            call, "", now, next(self._numbers), call.sent_key(self._new_key), keeps_arguments=self._keeps_arguments
        )
        if runs_on:
            record["runs_on"] = True
        case = make_case(place, record, fault=fault, ended=now, same=mark(call.tool.id, call.args, call.kwargs))
        key = case_key(place, entry_id(place, case))
        self.store.put("pending", key, case, ttl=KEPT_FOR)
        self._keys.append(key)
        while len(self._keys) > MOST_CASES:
            self.store.delete("pending", self._keys.popleft())
            if not self._warned:
                self._warned = True
                log.warning(
                    "the ledger in memory keeps %d cases and drops older ones: give the runtime a store to keep all",
                    MOST_CASES,
                )

    def recall_call(self, call: Write) -> Recalled:
        """Return what is known of a write that is about to run."""
        found = self.recall(place_of(call, ""))
        return None if found == "begun" else found
