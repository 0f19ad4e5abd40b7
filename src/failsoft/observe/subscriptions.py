"""Subscriptions to the event stream: a listener gets single events, a sink gets batches.

Rules
-----
- Listeners and sinks run on delivery threads of their own (``observe.delivery``), in the order of the stream. Calls do
  not wait for them, unless a listener asks for that with ``inline``.
- Events are made from raw records on the delivery thread, not by the calls.
- A sink gets at most one batch per ``every`` seconds, unless there are many events or a caller flushes.
- A program that ends without closing its runtime waits up to ``LAST`` seconds for the last events.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from time import monotonic
from typing import Protocol, overload, runtime_checkable
from weakref import WeakSet

from failsoft.core.model.json_values import plain
from failsoft.observe.delivery import Delivery, each
from failsoft.observe.events import CALL_SUCCEEDED, Event, show_event
from failsoft.observe.raw_records import Batch, cut, make
from failsoft.observe.recorder import Recorder
from failsoft.observe.success_runs import Record, Run, name_call, success_fields

LAST = 1.0  # seconds

Stop = Callable[[], None]
OnDrop = Callable[[str, int], None]  # the name of the subscriber, and how many events it missed


@runtime_checkable
class EventSink(Protocol):
    """A consumer of events in batches: a file, a database, a collector on the network."""

    def write(self, batch: Sequence[Event], /) -> None:
        """Take the next events, in order. May block. If it raises, the batch is counted as lost and not repeated."""

    def close(self) -> None:
        """Release what the sink holds. Called once, after the last ``write``."""


class EventBatch(Sequence[Event]):
    """A part of the event stream. Its events are made when they are first read."""

    __slots__ = ("_made", "_parts")

    def __init__(self, *parts: Run | Batch) -> None:
        self._parts = parts
        self._made: list[Event] | None = None

    def __len__(self) -> int:
        return sum(len(part if isinstance(part, Run) else part[0]) for part in self._parts)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self._events()[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events())

    def flat_records(self) -> Iterator[Run | list[Record]]:
        return chain.from_iterable(map(cut, self._parts))

    def _events(self) -> list[Event]:
        if self._made is None:
            self._made = [*chain.from_iterable(map(_make_all, self._parts))]
        return self._made


def flat_records(batch: Sequence[Event]) -> Iterator[Run | list[Record]]:
    """The events as flat records, in order; runs of plain successes in their compact form where they have it."""
    return (
        batch.flat_records() if isinstance(batch, EventBatch) else iter([[plain(event.to_dict()) for event in batch]])
    )


def _make_all(batch: Run | Batch) -> Iterator[Event]:
    if not isinstance(batch, Run):
        raws, offset, first = batch
        yield from (make(raw, offset, seq) for seq, raw in enumerate(raws, first))
        return
    columns = zip(batch.tools, batch.calls, batch.began, batch.ended, strict=False)
    for seq, (tool, call, began, ended) in enumerate(columns, batch.first):
        fields = success_fields(tool, 1, ended - began, ended - began)
        call_id = name_call(tool, call, seq)
        yield Event(seq, CALL_SUCCEEDED, ended + batch.offset, tool, call_id, batch.turn_id, fields)


def subscribe(
    recorder: Recorder,
    listener: Callable[[Event], None],
    *,
    inline: bool = False,
    patience: float | None = None,
    capacity: int | None = None,
    on_drop: OnDrop | None = None,
) -> Stop:
    """Call ``listener`` with every event from now on. The returned function ends the subscription."""
    name = f"subscriber {getattr(listener, '__qualname__', listener)!r}"
    deliver = each(lambda event: listener(show_event(event)))
    delivery = Delivery(
        lambda batch: deliver(EventBatch(batch)),
        name=name,
        wait=inline,
        patience=patience,
        capacity=capacity,
        on_drop=_named(on_drop, name),
    )
    return _attach(recorder, delivery, prompt=True)


def add_sink(
    recorder: Recorder,
    sink: EventSink,
    *,
    name: str,
    every: float | None = None,
    capacity: int | None = None,
    complain: Callable[[BaseException], None] | None = None,
    on_drop: OnDrop | None = None,
) -> Stop:
    """Write every event from now on to ``sink``. The returned function ends that and closes the sink."""
    delivery = Delivery(
        lambda batches: sink.write(EventBatch(*batches)),
        name=name,
        wait=False,
        together=True,
        ask=recorder.drain,
        idle=every,
        capacity=capacity,
        complain=complain,
        on_drop=_named(on_drop, name),
        on_close=sink.close,
    )
    return _attach(recorder, delivery, prompt=False)


def _named(on_drop: OnDrop | None, name: str) -> Callable[[int], None] | None:
    return None if on_drop is None else lambda dropped: on_drop(name, dropped)


def _attach(recorder: Recorder, delivery: Delivery, *, prompt: bool) -> Stop:
    recorder.attach(delivery, prompt=prompt)
    _ALIVE.add(recorder)

    def detach() -> None:
        recorder.detach(delivery)
        delivery.close(LAST)

    return detach


_ALIVE: WeakSet[Recorder] = WeakSet()  # recorders that have had a subscription


def _flush_all() -> None:
    deadline = monotonic() + LAST
    for recorder in list(_ALIVE):
        recorder.flush(deadline)


atexit.register(_flush_all)
