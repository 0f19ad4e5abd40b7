"""The one event stream: calls append raw records, draining turns them into events for everybody who reads.

Rules
-----
- ``record`` is a bare ``deque.append``: it takes no lock and may be called from any thread.
- Whoever drains holds the lock; order, numbers and timestamps are given out there. It happens every ``BATCH`` records,
  at the end of a call that failed, and whenever somebody looks.
- The ring keeps the last events in raw form; a turn keeps its own, so that a long turn loses none.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from failsoft.observe import events
from failsoft.observe.delivery import Delivery, each, left
from failsoft.observe.events import Event
from failsoft.observe.metrics import Metrics

BATCH = 1024
CAPACITY = 16_384

Raw = tuple[str, float, Any, str | None, Any, Any]


class Trace:
    """The stream of one runtime."""

    def __init__(self, monotonic: Callable[[], float], wall: Callable[[], float], *, capacity: int = CAPACITY) -> None:
        self.pending: deque[Raw] = deque()
        self.record = self.pending.append
        self.eager = False  # somebody listens: drain after every call
        self._ring: deque[tuple[Raw, float]] = deque(maxlen=capacity)
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.RLock()
        self._count = 0
        self._metrics: dict[str, Metrics] = {}
        self._deliveries: list[Delivery] = []
        self._numbers = itertools.count(1)

    def next_id(self, tool_id: str) -> str:
        """An id for a call that nobody has named."""
        return f"{tool_id}-{next(self._numbers)}"

    def metrics(self, tool_id: str) -> Metrics:
        """One tool's figures, up to date."""
        self.drain()
        with self._lock:
            return self._metrics_of(tool_id)

    def events(self) -> list[Event]:
        """What the ring holds, oldest first."""
        self.drain()
        with self._lock:
            first = self._count - len(self._ring)
            return [self._event(raw, offset, first + i) for i, (raw, offset) in enumerate(self._ring, 1)]

    def subscribe(self, consumer: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``consumer`` with every event from now on; the function returned ends that."""
        return self.attach(each(consumer), name=f"subscriber {getattr(consumer, '__qualname__', consumer)!r}", wait=True)

    def attach(self, consume: Callable[[Sequence[Event]], None], *, name: str, wait: bool) -> Callable[[], None]:
        """Feed batches of events to a sink."""
        delivery = Delivery(consume, name=name, wait=wait)
        self.drain()
        with self._lock:
            self._deliveries.append(delivery)
            self.eager = self.eager or wait

        def detach() -> None:
            self.drain()
            with self._lock:
                if delivery in self._deliveries:
                    self._deliveries.remove(delivery)
            delivery.close(1.0)

        return detach

    def drain(self) -> None:
        """Turn what is pending into events."""
        if not self.pending:
            return
        with self._lock:
            offset = self._wall() - self._monotonic()
            batch: list[Event] = []
            pop, keep = self.pending.popleft, self._ring.append
            while self.pending:
                raw = pop()
                keep((raw, offset))
                self._count += 1
                event_type, _, tool, _, turn, fields = raw
                if type(fields) is float:
                    metrics = self._metrics_of(tool.id)
                    metrics.successes += 1
                    metrics.busy_seconds += raw[1] - fields
                elif tool is not None:
                    self._metrics_of(tool if isinstance(tool, str) else tool.id).count(event_type, fields)
                if turn is not None or self._deliveries:
                    event = self._event(raw, offset, self._count)
                    if turn is not None:
                        turn.events.append(event)
                    batch.append(event)
            if batch:
                for delivery in self._deliveries:
                    delivery.put(batch)

    def flush(self, deadline: float) -> bool:
        """Drain, and wait until every consumer has what it was given."""
        self.drain()
        return all([delivery.flush(left(deadline)) for delivery in self._deliveries])

    def close(self, deadline: float) -> None:
        self.drain()
        for delivery in self._deliveries:
            delivery.close(left(deadline))

    def renew_after_fork(self) -> None:
        """A forked child has its parent's locks as they were, held or not."""
        self._lock = threading.RLock()
        for delivery in self._deliveries:
            delivery.renew_after_fork()

    def losses(self) -> dict[str, int]:
        """What consumers have failed at, and what they could not take."""
        return {
            "failed": sum(delivery.failed for delivery in self._deliveries),
            "dropped": sum(delivery.dropped for delivery in self._deliveries),
        }

    def _metrics_of(self, tool_id: str) -> Metrics:
        found = self._metrics.get(tool_id)
        if found is None:
            found = self._metrics[tool_id] = Metrics()
        return found

    def _event(self, raw: Raw, offset: float, seq: int) -> Event:
        event_type, at, tool, call_id, turn, fields = raw
        tool_id = tool if tool is None or isinstance(tool, str) else tool.id
        if type(fields) is float:
            call_id = call_id or f"{tool_id}.{seq}"  # nobody asked for its id when it was made
            fields = {"duration_ms": _ms(at - fields), "attempts": 1}
        return Event(seq, event_type, at + offset, tool_id, call_id, None if turn is None else turn.id, fields)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
