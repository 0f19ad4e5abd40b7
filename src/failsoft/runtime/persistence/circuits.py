"""The circuits of a runtime in a breaker store: kept across restarts, and shared by everyone who uses the store.

Rules
-----
- Every runtime decides by its own copy of each circuit, so no call waits for the store. Two runtimes may therefore
  probe a half-open circuit at the same time, until each learns of the other's probe.
- An OS thread writes changes to the store, by compare-and-set. If two runtimes change a circuit at the same time, the
  later state wins (``circuit_breaker.is_later``).
- A change by another runtime is adopted when the store reports it. Until then, admitted calls keep their tickets.
- Openings, half-open states and closings are shared. Counted failures are kept for the next process, but running
  processes do not add up each other's: successes are not shared, so they could not reset the sum.
- The failure of a store is logged once, and the store is tried again. Meanwhile the local copy decides.
- Times are converted at this port: monotonic here, wall-clock in the store. If a wall clock is changed, no circuit
  stays open for longer than its timeout.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic as real_time
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakMethod, WeakSet

from failsoft.core.resilience.circuit_breaker import BreakerState, is_later, is_same
from failsoft.observe.exception_text import exception_text
from failsoft.stores.breakers import open_breakers
from failsoft.stores.ports import BreakerStore, KeptCircuit, key_of

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.options import BreakerOptions
    from failsoft.runtime.execution.clock import Clock
    from failsoft.stores.ports import Store

KEPT = 86_400.0  # seconds for which a circuit is remembered after its last change
START_PATIENCE = 1.0  # seconds for which a new runtime waits for the circuits in the store
FLUSH_PATIENCE = 1.0
RETRY_SECONDS = 0.5  # after a failure of the store; doubled each time
LONGEST_RETRY = 30.0
IDLE_SECONDS = 5.0  # after which the OS thread ends
LAST = 1.0  # seconds that the end of the program waits
TRIES = 100  # swaps of one circuit, while others change it too

log = logging.getLogger("failsoft")


Lock = Callable[[], AbstractContextManager[Any]]  # returns the current lock: a forked child has another one


class Circuit(Protocol):
    """The part of a tool's health that is shared: its circuit."""

    state: BreakerState
    options: BreakerOptions
    opened_by: Fault | None
    on_change: Callable[[], None] | None

    def restore(self, state: BreakerState, opened_by: Fault | None) -> None: ...


def open_circuits(given: str | BreakerStore | None, store: Store | None, clock: Clock, lock: Lock) -> Circuits | None:
    """Share a runtime's circuits through the breaker store given, or its store's; None if they stay in the process."""
    found = open_breakers(given, store, wall=clock.wall)
    return None if found is None else Circuits(found[0], clock, lock, close=found[1])


class SharedCircuit:
    """A circuit, as one runtime has it."""

    __slots__ = ("adopted", "dirty", "health", "key", "version")

    def __init__(self, key: str, health: Circuit, adopted: Callable[[], None]) -> None:
        self.key = key
        self.health = health
        self.adopted = adopted  # called when a state of another runtime was adopted
        self.version = 0  # version of the stored state that this copy follows
        self.dirty = False  # changed here, and not in the store yet


class Circuits:
    """All circuits of a runtime. ``lock`` returns the lock under which their states change."""

    def __init__(
        self, store: BreakerStore, clock: Clock, lock: Lock, *, close: Callable[[], None] | None = None
    ) -> None:
        self._store = store
        self._close_store = close
        self._clock = clock
        self._state_lock = lock
        self._known: dict[str, tuple[KeptCircuit, int]] = {}  # as the store has reported them
        self._shared: dict[str, SharedCircuit] = {}
        self._complained = False
        self._closed = False
        self._stop_watching: Callable[[], None] | None = None
        self._renew()
        self._begin()
        _ALIVE.add(self)

    def _renew(self) -> None:
        self._lock = threading.RLock()  # entered directly: a signal may interrupt a Condition's __enter__
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._waiting: dict[SharedCircuit, None] = {}  # in order
        self._working = False

    def renew_after_fork(self) -> None:
        """Start over in a forked child, which has none of its parent's threads."""
        self._renew()

    def _begin(self) -> None:
        """Read the circuits in the store, for ``START_PATIENCE`` seconds at most."""
        begun = threading.Thread(target=self._watch, name="failsoft circuits", daemon=True)
        try:
            begun.start()
        except RuntimeError:  # the interpreter is about to end
            return
        begun.join(START_PATIENCE)

    def _watch(self) -> None:
        report = WeakMethod(self._on_reported)  # a store may outlive its runtimes

        def watcher(key: str, circuit: KeptCircuit, version: int) -> None:
            found = report()
            if found is not None:
                found(key, circuit, version)

        try:
            self._stop_watching = self._store.watch(watcher)
        except Exception as error:
            self._complain(error)

    # -- circuits of this runtime ------------------------------------------------------------------------------------

    def register(self, health: Circuit, *names: str, adopted: Callable[[], None] | None = None) -> None:
        """Continue a circuit in the state that the store has reported, and share it from now on. Reads nothing.

        A tool that is registered again begins with a closed circuit.
        """
        key = key_of(*names)
        shared = SharedCircuit(key, health, adopted or _nothing)
        health.on_change = lambda: self._on_changed(shared)
        with self._state_lock():
            before = self._shared.get(key)
            self._shared[key] = shared
            found = self._known.get(key)
            if before is not None:
                before.health.on_change = None
                shared.version = before.version
                health.restore(BreakerState(generation=before.health.state.generation), None)
            elif found is not None:
                circuit, shared.version = found
                self._resume(health, circuit)

    def _resume(self, health: Circuit, circuit: KeptCircuit) -> None:
        """Continue the state of an earlier process; counted failures alone do not open a circuit."""
        state = self._as_local(circuit.state)
        if state.state == "closed":
            options = health.options
            recent = "" if options.window is None else state.recent[-options.window :]
            state = state._replace(failures=min(state.failures, options.failure_threshold - 1), recent=recent)
        health.restore(state, circuit.opened_by)

    def _on_changed(self, shared: SharedCircuit) -> None:
        """Queue a circuit that has changed here for the store. Called with the state's lock held."""
        shared.dirty = True
        with self._lock:
            if self._closed:
                return
            self._waiting[shared] = None
            if self._thread is None:
                self._start()
            self._changed.notify_all()

    # -- changes of others -------------------------------------------------------------------------------------------

    def _on_reported(self, key: str, circuit: KeptCircuit, version: int) -> None:
        self._known[key] = circuit, version
        with self._state_lock():
            shared = self._shared.get(key)
            if shared is None or shared.dirty or version <= shared.version:
                return  # changed here as well: ``_sync`` compares the two states
            shared.version = version
            self._adopt(shared, circuit)

    def _adopt(self, shared: SharedCircuit, circuit: KeptCircuit) -> None:
        """Take over the state of another runtime. Called with the state's lock held."""
        state, health = self._as_local(circuit.state), shared.health
        if is_same(state, health.state):
            return
        if state.state == "closed":
            state = state._replace(failures=0, recent="")
        before = health.state.state
        health.restore(state, circuit.opened_by)
        shared.adopted()
        if state.state != before:
            log.info("the circuit of %s is %s: another process has changed it", shared.key, state.state)

    # -- the OS thread -----------------------------------------------------------------------------------------------

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="failsoft circuits", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is about to end
            return False
        self._thread = thread
        return True

    def _work(self) -> None:
        pause = 0.0
        while True:
            with self._lock:
                if pause:
                    self._changed.wait_for(lambda: self._closed, pause)
                elif not self._waiting:
                    self._changed.wait_for(lambda: self._waiting or self._closed, IDLE_SECONDS)
                if not self._waiting or (pause and self._closed):
                    self._thread = None
                    self._changed.notify_all()
                    return
            failed = self._pass_on()
            pause = min(max(2 * pause, RETRY_SECONDS), LONGEST_RETRY) if failed else 0.0

    def _pass_on(self) -> bool:
        """Write all queued circuits to the store; True if the store has failed."""
        if self._stop_watching is None:
            self._watch()
        while True:
            with self._lock:
                shared = next(iter(self._waiting), None)
                self._working = shared is not None
                if shared is None:
                    self._changed.notify_all()
                    return False
                del self._waiting[shared]
            try:
                self._sync(shared)
            except Exception as error:
                with self._lock:
                    self._working = False
                    if self._closed:  # and so may be the store
                        return False
                    self._waiting[shared] = None
                self._complain(error)
                shared.dirty = True
                return True

    def _sync(self, shared: SharedCircuit) -> None:
        """Write this runtime's state to the store, or adopt the store's."""
        health = shared.health
        for _ in range(TRIES):
            with self._state_lock():
                shared.dirty = False
                mine, version = self._as_kept(health), shared.version
            written = self._store.swap(shared.key, version, mine, ttl=health.options.timeout + KEPT)
            if written:
                with self._state_lock():
                    shared.version = max(shared.version, written)
                return
            found = self._store.load(shared.key)
            with self._state_lock():
                shared.version = 0 if found is None else found[1]
                if found is not None and self._comes_first(found[0].state, mine.state):
                    self._adopt(shared, found[0])
                    return

    def _comes_first(self, theirs: BreakerState, mine: BreakerState) -> bool:
        if is_same(theirs, mine):
            return mine.state != "closed"  # only the counted failures differ: the latest count is kept
        return is_later(theirs, mine)

    # -- the end -----------------------------------------------------------------------------------------------------

    def flush(self, deadline: float) -> bool:
        """Wait until every change is in the store; False if it is not by then (a real, monotonic time)."""
        until = min(deadline, real_time() + FLUSH_PATIENCE)
        with self._lock:
            if self._waiting and self._thread is None and not self._start():
                alone = True
            else:
                alone = False
                self._changed.wait_for(lambda: not (self._waiting or self._working), max(0.0, until - real_time()))
                return not (self._waiting or self._working)
        return not (alone and self._pass_on())

    def close(self, deadline: float) -> None:
        """Write all queued circuits to the store, and stop watching."""
        self.flush(deadline)
        with self._lock:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for end in (self._stop_watching, self._close_store):
            try:
                if end is not None:
                    end()
            except Exception as error:
                self._complain(error)

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            name = type(self._store).__name__
            log.error("the circuits cannot be shared by %s; each process uses its own\n%s", name, exception_text(error))

    # -- time --------------------------------------------------------------------------------------------------------

    def _as_kept(self, health: Circuit) -> KeptCircuit:
        state = health.state
        if state.state != "closed":
            state = state._replace(since=self._clock.wall() - self._clock.monotonic() + state.since)
        return KeptCircuit(state, health.opened_by)

    def _as_local(self, state: BreakerState) -> BreakerState:
        if state.state == "closed":
            return state
        age = max(0.0, self._clock.wall() - state.since)
        return state._replace(since=self._clock.monotonic() - age)


def _nothing() -> None:
    """Do nothing: the circuit belongs to no tool's fast path."""


_ALIVE: WeakSet[Circuits] = WeakSet()


def _flush_all() -> None:
    deadline = real_time() + LAST
    for circuits in list(_ALIVE):
        circuits.flush(deadline)


atexit.register(_flush_all)
