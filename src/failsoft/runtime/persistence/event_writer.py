"""Write the event stream to the store while the program runs.

Rules
-----
- A separate OS thread writes events in batches, plain successes as runs (``observe.success_runs``). They reach the store
  within about a second; ``flush``, and the end of a turn, wait until they are durable.
- The end of a turn waits for ``PATIENCE`` seconds at most, on an OS thread of the writer: the program's threads may all
  be busy. If the store was too slow, turns do not wait for it during the next ``PAUSE`` seconds.
- Lost events are never acknowledged. A loss is found by the next flush; every turn that had begun by then counts as not
  saved. ``flush`` reports a loss once, to all callers that wait at that time.
- A program that ends without closing its runtime waits up to ``LAST`` seconds for its last events to be written.
"""

from __future__ import annotations

import asyncio
import atexit
from threading import RLock
from time import monotonic as real_time
from typing import TYPE_CHECKING
from weakref import WeakSet

from failsoft.observe.delivery import remaining
from failsoft.observe.raw_records import Batch, cut
from failsoft.observe.recorder import Batches, Recorder
from failsoft.observe.success_runs import Run
from failsoft.stores.ports import Store

if TYPE_CHECKING:
    from failsoft.runtime.execution.clock import Clock
    from failsoft.runtime.persistence.effect_ledger import EffectLedger

PATIENCE = 0.5  # seconds
PAUSE = 2.0
WAITERS = 4  # turns that may wait at the same time; one flush serves them all
LAST = 1.0  # seconds


class StoreWriter:
    """A runtime's side of its store."""

    def __init__(self, store: Store, trace: Recorder, clock: Clock) -> None:
        self._store = store
        self._trace = trace
        self._clock = clock
        self._paused_until = 0.0
        self._closed = False
        self.ledger: EffectLedger | None = None  # its records go to the same store
        self._finding = RLock()
        self._found = 0  # how often new losses were found
        self._known = 0  # losses that delivery and store have counted
        self._reported = 0  # of ``_found``, reported by ``flush``
        self._doubtful = 0  # number of the last event that may be lost
        self._delivery = trace.attach_raw(self._append, name="store")
        self.renew_after_fork()
        _ALIVE.add(self)

    # -- events ------------------------------------------------------------------------------------------------------

    def _append(self, batch: Run | Batch) -> None:
        for stretch in cut(batch):
            self._store.append(stretch)

    def flush(self, deadline: float) -> bool:
        """Wait until all events so far are durable; False if they are not by then (a real, monotonic time)."""
        if self.ledger is not None:
            self.ledger.flush()
        reported = self._reported
        received = self._trace.flush(deadline)  # received by all consumers, not just the store
        durable = self._is_durable(deadline)
        found = self._found
        self._reported = max(self._reported, found)
        return received and durable and found == reported

    def commit(self, deadline: float) -> bool:
        """Wait until the store has all events so far, whatever other consumers do; False if some may be lost."""
        self._trace.drain_if_due()
        known = self._known
        return self._is_durable(deadline) and self._known == known

    async def acknowledge(self, batches: Batches) -> bool:
        """``flush`` for one turn, at its end; losses from before the turn do not count."""
        if self._closed:
            return False
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._waiters, self._has, batches)
        except RuntimeError:  # no thread: the interpreter ends, or another thread has closed the runtime
            return self._has(batches)
        try:
            return await asyncio.wait_for(waiting, 2 * PATIENCE)
        except TimeoutError:  # other turns are waiting before this one
            return False

    def close(self) -> None:
        """End the threads."""
        self._closed = True
        self._waiters.shutdown(wait=False)

    def renew_after_fork(self) -> None:
        """Start over in a forked child, which has none of its parent's threads."""
        from concurrent.futures import ThreadPoolExecutor  # start-up: needed only with a store

        self._waiters = ThreadPoolExecutor(WAITERS, "failsoft store")

    def _has(self, batches: Batches) -> bool:
        self._trace.drain_if_due()
        now = real_time()
        if now < self._paused_until:
            return False
        if not self._is_durable(now + PATIENCE):
            self._paused_until = real_time() + PAUSE
            return False
        return not batches or self._doubtful < batches[0][2]

    def _is_durable(self, deadline: float) -> bool:
        """Wait until the events so far are durable, and note new losses."""
        taken = self._delivery.flush(remaining(deadline))
        kept = self._store.flush(remaining(deadline))
        with self._finding:
            losses = self._delivery.losses + self._store.lost
            if losses > self._known:
                self._known = losses
                self._found += 1
                self._doubtful = self._delivery.offered
        return taken and kept


_ALIVE: WeakSet[StoreWriter] = WeakSet()


def _flush_all() -> None:
    deadline = real_time() + LAST
    for writer in list(_ALIVE):
        writer.flush(deadline)


atexit.register(_flush_all)
