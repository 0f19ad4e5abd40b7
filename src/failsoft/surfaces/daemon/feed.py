"""The event feed: batches of stored events for any number of clients, each serialised once.

Rules
-----
- A batch has everything that the store got since the last one. There is at most one every ``INTERVAL`` seconds. Clients
  with the same filter get the same bytes.
- The id of a message is the position of its last event in the store. A client that returns with this id, even after a
  restart of the daemon, gets everything after it.
- There is no queue per client: all clients share the last ``KEPT`` batches. A client that needs an older batch is
  dropped; it can resume after the last id that it got.
- While there are no clients, nothing is read.
- If there are ``MOST_CLIENTS`` already, a new client of an owner with fewer clients replaces one of the owner with most
  clients. The replaced client is dropped, and may resume later.
- A batch goes to ``GROUP`` clients at a time, spread over ``SPREAD`` of the interval, so that other requests can be
  answered. Events are encoded and compressed on a worker thread for the same reason.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple

from failsoft.analysis.source import EventFilter
from failsoft.core.redact.sanitise import sanitise
from failsoft.stores.ports import Store
from failsoft.surfaces.daemon.event_stream import compress
from failsoft.surfaces.daemon.scoping import tenant_of

log = logging.getLogger("failsoft")

INTERVAL: Final = 0.25  # seconds
KEPT: Final = 64  # batches
MOST_EVENTS: Final = 2_000  # per batch
MOST_CLIENTS: Final = 256
PING: Final = b": ping\n\n"
PING_SECONDS: Final = 15.0  # seconds without events after which a client gets a comment
LOOK_SECONDS: Final = 1.0  # seconds between checks of a client's token when there are no events
GROUP: Final = 5  # clients that get a batch at the same time
SPREAD: Final = 0.6  # of the interval
_FARTHEST: Final = 2**62
_encode = json.JSONEncoder(separators=(",", ":")).encode

Positioned = tuple[int, Mapping[str, Any]]


class Wanted(NamedTuple):
    """The events that a client may and wants to see."""

    only: EventFilter = EventFilter()
    tenant: str | None = None  # None: all tenants
    runtime: str | None = None  # None: all runtimes
    call_ids: frozenset[str] | None = None  # None: all calls

    def matches(self, event: Mapping[str, Any]) -> bool:
        """True if the client gets this event."""
        if self.tenant is not None and tenant_of(event) != self.tenant:
            return False
        if self.runtime is not None and event.get("runtime") != self.runtime:
            return False
        if self.call_ids is not None and event.get("call_id") not in self.call_ids:
            return False
        return self.only.matches(event)


def encode(name: str, position: int, data: str) -> bytes:
    """Make one message of a stream."""
    return f"id: {position}\nevent: {name}\ndata: {data}\n\n".encode()


class Batch:
    """Consecutive events, with the messages made of them."""

    __slots__ = ("_made", "_packed", "_rows", "_texts", "after", "last")

    def __init__(self, after: int, rows: Sequence[Positioned]) -> None:
        self.after = after  # the position before it
        self.last = rows[-1][0]
        self._rows = rows
        self._texts: list[str] | None = None
        self._made: dict[Wanted, bytes] = {}
        self._packed: dict[Wanted, bytes] = {}

    def texts(self) -> list[str]:
        """Return the events as JSON, encoded by the first call."""
        if self._texts is None:
            self._texts = [_encode({"id": at, **event}) for at, event in self._rows]
        return self._texts

    def message(self, wanted: Wanted) -> bytes:
        """Return the message for a filter; empty if no event matches."""
        made = self._made.get(wanted)
        if made is None:
            pairs = zip(self._rows, self.texts(), strict=True)
            texts = [text for (_, event), text in pairs if wanted.matches(event)]
            made = self._made[wanted] = encode("batch", self.last, f"[{','.join(texts)}]") if texts else b""
        return made

    def packed(self, wanted: Wanted) -> bytes:
        """Return the compressed message for a filter; empty if no event matches."""
        made = self._packed.get(wanted)
        if made is None:
            message = self.message(wanted)
            made = self._packed[wanted] = compress(message) if message else b""
        return made

    def prepare(self, clients: Iterable[tuple[Wanted, bool]]) -> None:
        """Make the messages for these filters, compressed or not."""
        for wanted, gzip in clients:
            self.packed(wanted) if gzip else self.message(wanted)


class Feed:
    """Reads the store for all clients."""

    def __init__(self, store: Store, *, interval: float = INTERVAL) -> None:
        self._store = store
        self._interval = interval
        self._batches: deque[Batch] = deque(maxlen=KEPT)
        self._position = 0
        self._following: Counter[tuple[Wanted, bool]] = Counter()  # the filters of the clients, compressed or not
        self._waiting: dict[asyncio.Future[None], None] = {}  # clients that have every batch so far
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._owners: Counter[str] = Counter()  # by owner: clients that may stay
        self._to_end: Counter[str] = Counter()  # by owner: clients that must end and have not noticed
        self._told: Counter[str] = Counter()  # by owner: clients that have noticed, and are ending
        self._ending = 0  # all clients in ``_to_end`` and ``_told``
        self.clients = 0
        self.dropped = 0
        self.closed = False

    async def read(self, after: int, limit: int) -> list[Positioned]:
        """Read stored events."""
        rows: list[Positioned] = await asyncio.to_thread(lambda: [*self._store.read(after=after, limit=limit)])
        return rows

    async def latest(self) -> int:
        """Return the position of the latest event."""
        return await asyncio.to_thread(find_latest, self._store)

    def make_room(self, owner: str) -> bool:
        """Let one more client of this owner in, if there is room or another owner has more; False if not."""
        if self.clients - self._ending < MOST_CLIENTS:
            return True
        most, many = max(self._owners.items(), key=lambda item: item[1], default=("", 0))
        if many <= self._owners[owner] + 1:
            return False
        self._owners[most] -= 1
        self._to_end[most] += 1
        self._ending += 1
        _wake(self._waiting)
        return True

    def _must_end(self, owner: str) -> bool:
        """True if the calling client must end, because one of its owner's clients must make room."""
        if not self._to_end[owner]:
            return False
        self._to_end[owner] -= 1
        self._told[owner] += 1
        return True

    def _count_out(self, owner: str) -> None:
        """Count a client out."""
        self.clients -= 1
        self._must_end(owner)
        if self._told[owner]:
            self._told[owner] -= 1
            self._ending -= 1
        else:
            self._owners[owner] -= 1
        if not (self._owners[owner] or self._to_end[owner] or self._told[owner]):
            del self._owners[owner], self._to_end[owner], self._told[owner]

    async def stream(
        self,
        wanted: Wanted,
        after: int | None,
        is_granted: Callable[[], bool] = lambda: True,
        *,
        gzip: bool = False,
        owner: str = "",
    ) -> AsyncGenerator[bytes, None]:
        """Yield the messages for one client, compressed or not: those after a position, or from now on if it is None.

        The stream ends when the daemon stops, and within ``LOOK_SECONDS`` after ``is_granted`` has become false.
        """
        self.clients += 1
        self._owners[owner] += 1
        self._following[wanted, gzip] += 1
        position = after or 0
        make = Batch.packed if gzip else Batch.message
        put = _encode_packed if gzip else encode
        sent = monotonic()
        try:
            if self.clients - self._ending > MOST_CLIENTS:  # several came at once, before any of them was counted
                yield put("dropped", position, "{}")
                return
            await self._start()
            position = await self._first_position(after)
            yield put("open", position, "{}")
            async for batch in self._stored(after, position):
                message = await asyncio.to_thread(make, batch, wanted)
                if not is_granted():
                    return
                position = batch.last
                if message:
                    yield message
            async for reached, news in self._follow(position, owner):
                if not is_granted():
                    return
                if isinstance(news, Batch):
                    if message := make(news, wanted):
                        sent = monotonic()
                        yield message
                elif news is not None:
                    self.dropped += news == "dropped"
                    yield put(news, reached, "{}")
                if monotonic() - sent >= PING_SECONDS:
                    sent = monotonic()
                    yield compress(PING) if gzip else PING
        except Exception as error:  # the store failed; the client may reconnect
            log.warning("a stream of events ended: %s", sanitise(f"{type(error).__name__}: {error}"))
            yield put("dropped", position, "{}")
        finally:
            self._count_out(owner)
            self._following -= Counter({(wanted, gzip): 1})

    async def _first_position(self, after: int | None) -> int:
        """Return the position that a client starts from.

        A position beyond the latest event belongs to another store: the client then gets all events.
        """
        if after is None or after <= self._position:
            return self._position if after is None else after
        return min(after, await self.latest())

    async def _stored(self, after: int | None, position: int) -> AsyncIterator[Batch]:
        """Yield the events that a client has missed, if it resumes; nothing for other clients."""
        while after is not None and position < self._begin() and not self.closed:
            rows = await self.read(position, MOST_EVENTS)
            if not rows:
                return
            yield Batch(position, rows)
            position = rows[-1][0]

    async def _follow(self, position: int, owner: str) -> AsyncIterator[tuple[int, Batch | str | None]]:
        """Yield batches after a position as they come, sometimes None while there are none, and at last why it ends."""
        woken = False  # True: woken without a new batch
        while not self.closed:
            behind = self._batches and position < self._batches[0].after and position < self._position
            if behind or self._must_end(owner):
                yield position, "dropped"
                return
            batch = next((each for each in self._batches if each.last > position), None)
            if batch is None:
                if woken:
                    yield position, None
                await self._next_batch()
                woken = True
                continue
            woken = False
            yield position, batch
            position = batch.last
        yield position, "end"

    def _begin(self) -> int:
        """Return the position from which batches are kept."""
        return self._batches[0].after if self._batches else self._position

    async def _start(self) -> None:
        async with self._starting:  # clients that come at once start from the same position
            if self._task is None:
                self._position = await self.latest()
                self._batches.clear()
                self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Make batches while there are clients."""
        await asyncio.sleep(self._interval)
        loop = asyncio.get_running_loop()
        woken = loop.time()
        while self.clients and not self.closed:
            try:
                rows = await self.read(self._position, MOST_EVENTS)
            except Exception:  # the store may answer later
                rows = []
            if rows:
                batch = Batch(self._position, rows)
                await asyncio.to_thread(batch.prepare, [*self._following])
                self._batches.append(batch)
                self._position = rows[-1][0]
                await self._release()
                woken = loop.time()
            elif loop.time() - woken >= LOOK_SECONDS:
                _wake(self._waiting)
                woken = loop.time()
            if len(rows) < MOST_EVENTS:
                await asyncio.sleep(self._interval * (1 - SPREAD) if rows else self._interval)
        self._task = None

    async def _next_batch(self) -> None:
        news = asyncio.get_running_loop().create_future()
        self._waiting[news] = None
        try:
            await news
        finally:
            del self._waiting[news]

    async def _release(self) -> None:
        """Let the waiting clients take the new batch, a group at a time."""
        waiting = [*self._waiting]
        groups = [waiting[first : first + GROUP] for first in range(0, len(waiting), GROUP)]
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for number, group in enumerate(groups, 1):
            _wake(group)
            due = begun + self._interval * SPREAD * number / len(groups)
            await asyncio.sleep(max(0.0, due - loop.time()))

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        _wake(self._waiting)


def _encode_packed(name: str, position: int, data: str) -> bytes:
    return compress(encode(name, position, data))


def _wake(waiting: Iterable[asyncio.Future[None]]) -> None:
    for news in waiting:
        if not news.done():
            news.set_result(None)


def find_latest(store: Store) -> int:
    """Return the position of a store's latest event, by bisection: stores can only be read forwards."""

    def is_past(position: int) -> bool:
        return not store.read(after=position, limit=1)

    return bisect_positions(is_past)


def bisect_positions(is_past: Callable[[int], bool]) -> int:
    """Return the least position after which there is nothing."""
    if is_past(0):
        return 0
    low, high = 0, 1
    while high < _FARTHEST and not is_past(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if is_past(middle):
            high = middle
        else:
            low = middle
    return high
