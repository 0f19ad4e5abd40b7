"""The event stream of a runtime: calls append raw records, draining turns them into events for all consumers.

Rules
-----
- ``record`` is a bare ``list.append``: it takes no lock and may be called from any thread.
- Draining holds the lock, and assigns order, numbers and timestamps. It happens every ``BATCH`` records, at the end of
  a failed call, and before every read.
- A signal handler or a finaliser may read, or make a call, in the middle of draining in the same thread. The outer
  ``drain`` delivers its records; its reads are complete.
- An interrupt in the middle of ``_take`` loses no record: the next ``_take`` continues.
- The ring keeps the latest events in raw form. A turn keeps its own events, so a long turn loses none.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import count
from operator import itemgetter
from weakref import WeakValueDictionary, ref

from failsoft.core.model.outcome import Outcome
from failsoft.observe.delivery import Delivery, remaining
from failsoft.observe.events import CALL_SUCCEEDED, Event
from failsoft.observe.metrics import Metrics, Retries, count_each, count_event
from failsoft.observe.raw_records import PLAIN, Batch, Raw, make, run_of
from failsoft.observe.success_runs import Run

BATCH = 1024
CAPACITY = 2_048  # fits a processor's cache; older events are in the store and in the turns

_TYPE, _TOOL, _TURN, _FIELDS = itemgetter(0), itemgetter(2), itemgetter(4), itemgetter(5)
_OUTSIDE = {None}  # the turns of calls outside of turns
_PLAIN_KINDS = {float}  # the types of the fields of plain successes


class Batches(list[Batch]):
    """The batches that contain a turn's records. They can be read as long as this list is alive.

    Records keep only the turn's id, so the garbage collector can untrack them (tuples of atomic values).
    """

    __slots__ = ("__weakref__", "over", "turn_id")

    def __init__(self, turn_id: str) -> None:
        super().__init__()
        self.turn_id = turn_id
        self.over = False  # whether the turn has ended


class Recorder:
    """The stream of one runtime."""

    def __init__(self, monotonic: Callable[[], float], wall: Callable[[], float], *, capacity: int = CAPACITY) -> None:
        self.pending: list[Raw] = []
        self.record = self.pending.append
        self.limit = BATCH  # drain when more records are pending; 0 while there are prompt deliveries
        self.due = 0  # from this call number on, the fast path checks whether many records are pending
        self.numbers = count(1)  # for calls without an id
        self.number = self.numbers.__next__
        self._ring: deque[Batch] = deque()
        self._capacity = capacity
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.RLock()
        self._draining = self._has_more = False
        self._moving: list[Raw] | None = None  # records that are being moved from ``pending`` to the ring
        self._count = 0
        self._turns: WeakValueDictionary[str, Batches] = WeakValueDictionary()  # turns that keep their events
        self._twins: list[ref[Batches]] = []  # turns that started while another turn had the same id
        self._metrics: dict[str, Metrics] = {}
        self.unknown = Metrics()  # calls of all unregistered names together
        self._prompt: list[Delivery] = []  # get every batch at the end of a call
        self._lazy: list[Delivery] = []  # get large batches

    def metrics(self, tool_id: str) -> Metrics:
        """One tool's metrics, up to date."""
        self.drain()
        with self._lock:
            return self._metrics.get(tool_id) or Metrics()  # do not create metrics for an unknown name

    def has_metrics(self, tool_id: str) -> bool:
        """True if there are events about calls of this name."""
        self.drain()
        return tool_id in self._metrics

    def successes(self, tool_id: str) -> int:
        """The successes of one tool, without pending records."""
        found = self._metrics.get(tool_id)
        return 0 if found is None else found.successes

    def retries(self, tool_id: str) -> Retries:
        """The counters of one tool's retries that depended on attempts and time only."""
        with self._lock:
            return self._metrics_of(tool_id).retries

    def events(self) -> list[Event]:
        """The events in the ring, oldest first."""
        self.drain()
        with self._lock:
            batches = [*self._ring]
            if self._draining:
                batches.append(self._rest())
            kept = [make(raw, offset, seq) for batch, offset, first in batches for seq, raw in enumerate(batch, first)]
        return kept[-self._capacity :]

    def _rest(self) -> Batch:
        """The pending records that are not in the ring yet, for reads during ``drain``."""
        ring, moving = self._ring, self._moving
        moved = len(moving) if moving is not None and ring and ring[-1][0] is moving else 0
        first = ring[-1][2] + len(ring[-1][0]) if ring else 1
        return self.pending[moved:], self._wall() - self._monotonic(), first

    def follow(self, turn_id: str) -> Batches:
        """Keep one turn's events as long as the caller holds the returned list.

        If turns share an id, a turn that has ended gets no events of the next one; simultaneous turns share their events.
        """
        batches = Batches(turn_id)
        with self._lock:
            before = self._turns.get(turn_id)
            if before is not None:
                self._drain()
                kept = [(twin, twin()) for twin in self._twins]
                self._twins = [twin for twin, of in kept if of is not None and (of.turn_id != turn_id or not of.over)]
            if before is None or before.over:
                self._turns[turn_id] = batches
            else:
                self._twins.append(ref(batches))
        return batches

    def events_of(self, batches: Batches) -> tuple[Event, ...]:
        """One turn's events, oldest first, including those that the ring has dropped."""
        self.drain_if_due()
        return tuple(
            make(raw, offset, seq)
            for batch, offset, first in batches
            for seq, raw in enumerate(batch, first)
            if raw[4] == batches.turn_id
        )

    def attach(self, delivery: Delivery, *, prompt: bool) -> None:
        """Deliver batches from now on: to a ``prompt`` delivery at the end of every call, to others when there are many.

        ``make`` converts a record. A delivery that is not prompt gets a batch of plain successes alone as a run, made while
        its records are in the cache.
        """
        self.drain()
        with self._lock:
            if prompt:
                self._prompt = [*self._prompt, delivery]
                self.limit = self.due = 0
            else:
                self._lazy = [*self._lazy, delivery]

    def detach(self, delivery: Delivery) -> None:
        """Deliver the records so far, and no more."""
        self.drain()
        with self._lock:
            self._prompt = [each for each in self._prompt if each is not delivery]
            self._lazy = [each for each in self._lazy if each is not delivery]
            if not self._prompt:
                self.limit = BATCH

    def attach_raw(
        self,
        consume: Callable[[Run | Batch], None],
        *,
        name: str,
        complain: Callable[[BaseException], None] | None = None,
    ) -> Delivery:
        """Deliver raw batches to a consumer that is not prompt."""
        delivery = Delivery(consume, name=name, wait=False, ask=self.drain, complain=complain)
        self.attach(delivery, prompt=False)
        return delivery

    def drain(self) -> None:
        """Turn the pending records into events, and wait for the consumers that calls wait for."""
        if not self.pending:
            return
        with self._lock:
            outermost = self._drain()
        if outermost:
            self._wait()

    def drain_if_many(self, number: int) -> None:
        """Drain if many records are pending. ``number`` is that of the current call; the next check comes when many may
        be pending.

        Comparing call numbers, which exist anyway, saves each call a ``len``.
        """
        pending = len(self.pending)
        if pending > self.limit:
            self.drain()
            pending = 0
        self.due = number + BATCH - pending
        if not self.limit:  # a prompt delivery may have been attached in the middle
            self.due = 0

    def _drain(self) -> bool:
        """Hand out the pending records; False if this thread is draining already. The lock is held."""
        if self._draining:
            self._has_more = True
            return False
        self._draining = self._has_more = True
        try:
            while self._has_more and self.pending:
                self._has_more = False
                self._hand_out(self._take())
        finally:
            self._draining = False
        return True

    def _wait(self) -> None:
        """Wait for consumers without the lock: they may make calls."""
        for delivery in self._prompt:
            delivery.wait()

    def _take(self) -> Batch:
        """Move the pending records to the ring."""
        batch = self._moving
        if batch is None:
            self._moving = batch = self.pending[:]
        size = len(batch)
        if not self._ring or self._ring[-1][0] is not batch:
            self._ring.append((batch, self._wall() - self._monotonic(), self._count + 1))
        taken = self._ring[-1]
        # No signal is handled from here to the loop: there is no call and no jump
        del self.pending[:size]  # records that other threads append meanwhile stay
        self._count += size
        self._moving = None
        while len(self._ring) > 1 and self._count - self._ring[1][2] + 1 >= self._capacity:
            self._ring.popleft()
        return taken

    def _hand_out(self, taken: Batch) -> None:
        """Give a batch to the metrics, the turns and the consumers."""
        batch, offset, first = taken
        kind = batch[0][0]
        if type(kind) is tuple and [*map(_TYPE, batch)].count(kind) == len(batch):  # FAST: saves 12 %
            event_type, tool_id = kind
            plain, turns = event_type == CALL_SUCCEEDED, _OUTSIDE
            (self._metrics_of(tool_id).succeed if plain else self._metrics_of(tool_id).refuse)(len(batch))
        else:
            plain, turns = self._tally(batch), {*map(_TURN, batch)} if self._is_followed() else _OUTSIDE
        for turn_id in turns:
            if turn_id is not None and (batches := self._turns.get(turn_id)) is not None:
                batches.append(taken)
        for twin in self._twins:
            if (batches := twin()) is not None and batches.turn_id in turns:
                batches.append(taken)
        for delivery in self._prompt:
            delivery.offer(taken, len(batch))
        if self._lazy:
            whole = plain and len(turns) == 1 and max(map(len, batch)) == PLAIN
            run = run_of(batch, offset, first, [*map(_TOOL, batch)]) if whole else taken
            for delivery in self._lazy:
                delivery.offer(run, len(batch))

    def _is_followed(self) -> bool:
        """True if a turn or a delivery needs to know which turns a batch belongs to."""
        return bool(self._turns or self._twins or self._lazy)

    def _tally(self, batch: list[Raw]) -> bool:
        """Count all records; those whose fields are a function are already counted. True if all are plain successes."""
        kinds = {*map(type, map(_FIELDS, batch))}
        plain = kinds == _PLAIN_KINDS
        if float in kinds:
            tools = [*map(_TOOL, batch)] if plain else [raw[2] for raw in batch if type(raw[5]) is float]
            for tool_id, successes in count_each(tools).items():
                self._metrics_of(tool_id).succeed(successes)
        if Outcome in kinds:
            for tool_id, refusals in count_each([raw[2] for raw in batch if type(raw[5]) is Outcome]).items():
                self._metrics_of(tool_id).refuse(refusals)
        if dict in kinds:
            for event_type, _, tool, call_id, _, fields, *_ in [raw for raw in batch if type(raw[5]) is dict]:
                count_event(self._metrics_of, self.unknown, event_type, tool, call_id, fields)
        return plain

    def drain_if_due(self) -> None:
        """Drain, and wait for a thread that is draining: all records so far have then been delivered."""
        with self._lock:
            outermost = self._drain()
        if outermost:
            self._wait()

    def flush(self, deadline: float) -> bool:
        """Drain, and wait until every consumer has finished its batches."""
        self.drain_if_due()
        flushed = [
            delivery.flush(remaining(deadline)) for delivery in self.deliveries()
        ]  # flush all, also after a failure
        return all(flushed)

    def close(self, deadline: float) -> None:
        self.drain_if_due()
        for delivery in self.deliveries():
            delivery.close(remaining(deadline))

    def renew_after_fork(self) -> None:
        """Replace the inherited locks. The parent delivers the records that are pending."""
        self._lock = threading.RLock()
        self._draining = False
        prompt, lazy, self._prompt, self._lazy = self._prompt, self._lazy, [], []
        self.drain()
        self._prompt, self._lazy = prompt, lazy
        for delivery in self.deliveries():
            delivery.renew_after_fork()

    def deliveries(self) -> list[Delivery]:
        """Every delivery that is attached."""
        return [*self._prompt, *self._lazy]

    def _metrics_of(self, tool_id: str) -> Metrics:
        found = self._metrics.get(tool_id)
        if found is None:
            found = self._metrics[tool_id] = Metrics()
        return found
