"""Write the event stream and the open circuits to the store while the program runs.

Rules
-----
- Events go in batches, by a thread of their own; plain successes as runs (``observe.success_runs``). Within about a second they
  are with the store; ``flush``, and the end of a turn, wait until they are durable.
- The end of a turn waits ``PATIENCE`` at most, on threads of our own: the program's may all be taken. A store that has
  kept one waiting is not waited for again for ``PAUSE``.
- Nothing is acknowledged that was lost. A loss is found when somebody flushes; no turn that had begun by then counts
  as safe, whoever has been told of it before. ``flush`` tells of it once, and to all who ask at that time.
- A program that ends without closing its runtime still hands over what it has, within ``LAST`` seconds.
- An open circuit is kept, and so are the consecutive failures of a closed one: processes that run for a moment open a
  circuit together. A circuit that closes is dropped.
- After a restart an open circuit stays open for the rest of its time, by the wall clock, and never for longer than its
  timeout; if that time is over it admits one probe, as it would have. A closed one counts on.
- Each process keeps its own circuits: of two on one store, a restart finds what the last one has kept.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable
from threading import RLock
from time import monotonic as real_time
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.options import BreakerOptions
from failsoft.core.resilience.circuit_breaker import BreakerState
from failsoft.observe.delivery import left
from failsoft.observe.recorder import Batch, Batches, Recorder, cut
from failsoft.observe.success_runs import Run
from failsoft.stores.ports import Store, key_of

if TYPE_CHECKING:
    from failsoft.runtime.execution.clock import Clock
    from failsoft.runtime.persistence.effect_ledger import EffectLedger

PATIENCE = 0.5  # seconds
PAUSE = 2.0
WAITERS = 4  # turns that wait at a time; one flush serves them all
KEPT = 86_400.0  # seconds for which a circuit is remembered that nobody has tried again
LAST = 1.0  # seconds


class Circuit(Protocol):
    """A tool's health, as far as its circuit is kept."""

    state: BreakerState
    options: BreakerOptions
    opened_by: Fault | None
    on_change: Callable[[], None] | None

    def restore(self, state: BreakerState, opened_by: Fault | None) -> None: ...


class StoreWriter:
    """A runtime's side of its store."""

    def __init__(self, store: Store, trace: Recorder, clock: Clock) -> None:
        self._store = store
        self._trace = trace
        self._clock = clock
        self._paused_until = 0.0
        self._closed = False
        self.ledger: EffectLedger | None = None  # whose records go to the same store
        self._circuits: dict[str, Any] = dict(store.find("breaker"))
        self._finding = RLock()
        self._found = 0  # losses
        self._known = 0  # of the delivery's and the store's own
        self._told = 0  # of those found, what ``flush`` has told
        self._doubtful = 0  # the number of the last event that may be among them
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
            self.ledger.finish_pending()
        told = self._told
        heard = self._trace.flush(deadline)  # by everybody, not just the store
        durable = self._is_durable(deadline)
        found = self._found
        self._told = max(self._told, found)
        return heard and durable and found == told

    async def acknowledge(self, batches: Batches) -> bool:
        """The same for one turn, at its end; those before it may have lost something."""
        if self._closed:
            return False
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._waiters, self._has, batches)
        except RuntimeError:  # no thread can be had: the interpreter ends, or another thread has closed the runtime
            return self._has(batches)
        try:
            return await asyncio.wait_for(waiting, 2 * PATIENCE)
        except TimeoutError:  # others are before it: that too is not worth waiting for
            return False

    def close(self) -> None:
        """Keep no threads any longer."""
        self._closed = True
        self._waiters.shutdown(wait=False)

    def renew_after_fork(self) -> None:
        """A forked child has none of its parent's threads."""
        from concurrent.futures import ThreadPoolExecutor  # only who has a store pays for it

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
        """Have what is there now on disk, and find what was lost."""
        taken = self._delivery.flush(left(deadline))
        kept = self._store.flush(left(deadline))
        with self._finding:
            losses = self._delivery.losses + self._store.lost
            if losses > self._known:
                self._known = losses
                self._found += 1
                self._doubtful = self._delivery.offered
        return taken and kept

    # -- circuits ----------------------------------------------------------------------------------------------------

    def keep_circuit(self, health: Circuit, *names: str) -> None:
        """A circuit has opened or closed, or its failures have been counted."""
        key = key_of(*names)
        state, options, fault = health.state, health.options, health.opened_by
        if state.state == "closed" and not state.failures:
            self._store.delete("breaker", key)
        elif state.state == "closed":
            self._store.put("breaker", key, {"failures": state.failures}, ttl=KEPT)
        elif state.state == "open":
            record = {
                "until": self._clock.wall() + options.timeout,
                "failures": state.failures,
                "opened_by": None if fault is None else fault.to_dict(),
            }
            self._store.put("breaker", key, record, ttl=options.timeout + KEPT)

    def restore_circuit(self, health: Circuit, *names: str) -> None:
        """Take up what the process before has left, and keep what becomes of it."""
        health.on_change = lambda: self.keep_circuit(health, *names)
        record = self._circuits.pop(key_of(*names), None)
        if record is None:
            return
        try:
            failures = max(0, int(record["failures"]))
            if "until" not in record:  # it was closed
                counted = min(failures, health.options.failure_threshold - 1)
                if counted:
                    health.restore(BreakerState("closed", failures=counted), None)
                return
            until, fault = float(record["until"]), _fault(record["opened_by"])
        except (KeyError, TypeError, ValueError):  # what cannot be read is nothing
            return
        timeout = health.options.timeout
        rest = min(max(until - self._clock.wall(), 0.0), timeout)
        since = self._clock.monotonic() - timeout + rest
        health.restore(BreakerState("open", failures=failures, generation=1, since=since), fault)


def _fault(data: dict[str, Any] | None) -> Fault | None:
    if data is None:
        return None
    known = {name: data[name] for name in Fault._fields if name in data and name not in ("code", "cause")}
    return Fault(Code(data["code"]), **known)


_ALIVE: WeakSet[StoreWriter] = WeakSet()


def _flush_all() -> None:
    deadline = real_time() + LAST
    for keeper in list(_ALIVE):
        keeper.flush(deadline)


atexit.register(_flush_all)
