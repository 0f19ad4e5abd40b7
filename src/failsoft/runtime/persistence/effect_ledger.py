"""The ledger of writes: each is recorded in the store before it starts, so that a replay after a crash is recognised.

Rules
-----
- Calls of tools that write (``Tool.is_write``) are recorded if they have a thread, or an id that the caller chose.
- A replay is recognised by tenant, thread, tool, id and arguments. A call with a generated id is recorded, but a replay
  of it is not recognised: the next process numbers its calls from 1 again.
- A call waits until its record is durable, for ``PATIENCE`` seconds at most. The ledger uses the store on its own OS
  thread; calls that wait at the same time share one transaction.
- A record ends with its call. The record of a call in a turn ends with the turn: until then the agent framework may not
  have saved the call's answer, and a replay would make the call again. A call that was cancelled while its tool ran
  keeps its record.
- A call that finds a record of the same write does not run, in any process, until the record is gone.
  ``Thread.close_dangling`` drops the records of its thread, and each record expires after ``DANGLES_FOR`` seconds. Another
  id, or other arguments, make another write.
- A call that has ended in this process does not prevent another one, although its record stays until the end of its turn:
  its caller has the answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast
from urllib.parse import unquote

from failsoft.core.conversation.thread_state import DANGLES_FOR, mark
from failsoft.runtime.execution.clock import outside_finished, outside_started
from failsoft.runtime.persistence.store_reads import setter
from failsoft.stores.ports import key_of

if TYPE_CHECKING:
    from failsoft.stores.failsafe import FailsafeStore
    from failsoft.stores.ports import Store

PATIENCE = 0.5  # seconds for which a write waits for its record
MOST_TOLD = 10_000
IDLE_SECONDS = 5.0  # after which the OS thread ends, unless turns are open

Answer = Literal["kept", "begun", "unknown"]
Key = tuple[str | None, str | None]  # tenant and thread


class Writer(Protocol):
    """A tool, as far as the ledger needs it."""

    id: str

    @property
    def is_write(self) -> bool: ...


class WriteTurn(Protocol):
    """The turn of a write."""

    id: str

    @property
    def over(self) -> bool: ...


class Identified(Protocol):
    """The parts of a call by which a replay is recognised."""

    caller_id: str | None
    thread: str | None
    tenant: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def id(self) -> str: ...
    @property
    def tool(self) -> Writer: ...


class Write(Identified, Protocol):
    """A call that is recorded before it starts."""

    write_record: WriteRecord | None

    @property
    def turn(self) -> WriteTurn | None: ...


class WriteRecord:
    """A record on its way into the store, and the store's answer."""

    __slots__ = ("answer", "dropped", "found", "place", "value", "wake")

    def __init__(self, place: str, value: dict[str, Any]) -> None:
        self.place = place
        self.value = value
        self.answer: Answer | None = None  # None: the store has not answered yet
        self.found: dict[str, Any] = {}  # the record that was there before
        self.dropped = False  # its call has ended or was refused: the record is no longer needed
        self.wake: Callable[[], None] = _nothing  # called when there is an answer


class EffectLedger:
    """The writes that a runtime has begun."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = cast("FailsafeStore", store)
        self._run = run  # identifies this runtime among all others
        self._ended: dict[str, str] = {}  # calls that have ended in open turns: turn by place
        # Places of records reported here: no longer unanswered, but they still prevent a replay.
        self._told: dict[str, None] = {}
        self._running: dict[str, WriteRecord] = {}  # of calls that have not ended, by place
        self._over: deque[str] = deque()  # turns that have ended, and whose records have not
        self.renew_after_fork()

    def renew_after_fork(self) -> None:
        """Start over in a forked child, which has none of its parent's threads."""
        self._lock = threading.RLock()  # entered directly: a signal may interrupt a Condition's __enter__
        self._changed = threading.Condition(self._lock)
        self._waiting: list[WriteRecord] = []
        self._thread: threading.Thread | None = None

    # -- before a write ----------------------------------------------------------------------------------------------

    def wants(self, call: Write, tool: Writer) -> bool:
        """True if the call has to be recorded before this tool runs."""
        return call.write_record is None and tool.is_write and (call.caller_id is not None or call.thread is not None)

    async def begin(self, call: Write) -> Answer:
        """Record a call, and wait for the store without blocking the event loop."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        resolve = setter(answered, None)
        record = self._submit(call, lambda: _call_soon(loop, resolve))
        if record.answer is not None:
            return self._read(call, record)
        timer = loop.call_later(PATIENCE, resolve)
        outside_started(loop)
        try:
            await answered
        finally:
            timer.cancel()
            outside_finished(loop)
        return self._read(call, record)

    def begin_blocking(self, call: Write) -> Answer:
        """Record a call, and wait for the store in this OS thread."""
        answered = threading.Lock()
        answered.acquire()
        record = self._submit(call, answered.release)
        answered.acquire(timeout=PATIENCE)
        return self._read(call, record)

    def _submit(self, call: Write, wake: Callable[[], None]) -> WriteRecord:
        self.finish_pending()
        turn_id = "" if call.turn is None else call.turn.id
        place = self._place(call)
        with self._lock:
            other = self._running.get(place)
            if turn_id and other is not None and other.value["turn"] == turn_id:
                place = self._place(call, alone=True)  # two calls of one turn are never replays of each other
            record = call.write_record = WriteRecord(place, {"run": self._run, "turn": turn_id})
            record.wake = wake
            answered = self._ended.pop(place, None) is not None
            self._running.setdefault(place, record)
        if answered:  # not a replay: its caller has the answer of the earlier call
            self._store.delete("pending", record.place)
        with self._lock:
            self._waiting.append(record)
            started = self._thread is not None or self._start()
            self._changed.notify()
        if not started:
            self._serve()
        return record

    def _read(self, call: Write, record: WriteRecord) -> Answer:
        answer = record.answer or "unknown"
        if answer == "begun":
            call.write_record = None  # the record is another call's
            self._stop(record)
            with self._lock:
                self._told[record.place] = None
                if len(self._told) > MOST_TOLD:
                    del self._told[next(iter(self._told))]
            open_call = key_of(
                call.tenant, call.thread, "call", record.found.get("turn", ""), call.caller_id or call.id
            )
            self._store.delete("pending", open_call)
        return answer

    def _place(self, call: Write, *, alone: bool = False) -> str:
        """Return the key of a write's record. Calls with the same key are the same write; ``alone`` makes it unique."""
        if call.caller_id is None or alone:
            id, same = call.id, f"{self._run}.{'' if call.turn is None else call.turn.id}"
        else:
            id, same = call.caller_id, mark(call.tool.id, call.args, call.kwargs)
        return key_of(call.tenant, call.thread, "begun", call.tool.id, id, same)

    # -- after it ----------------------------------------------------------------------------------------------------

    def end(self, call: Write, *, acted: bool = True) -> None:
        """Note that a recorded call has ended. ``acted``: its tool may have had an effect."""
        record, call.write_record = call.write_record, None
        if record is None:
            return
        turn = call.turn
        self._stop(record)
        if acted and record.answer == "kept" and turn is not None and not turn.over:
            with self._lock:
                self._ended[record.place] = turn.id
            self._store.put("pending", record.place, {**record.value, "ended": True}, ttl=DANGLES_FOR)
        else:
            self._drop(record)

    def abandon(self, call: Write) -> None:
        """Keep the record of a call whose caller was cancelled while its tool ran."""
        record, call.write_record = call.write_record, None
        if record is not None:
            self._stop(record)

    def _stop(self, record: WriteRecord) -> None:
        with self._lock:
            if self._running.get(record.place) is record:
                del self._running[record.place]

    def end_turn(self, turn_id: str) -> None:
        """Note that a turn has ended. Finalisers call this at any moment, so it takes no lock: see ``finish_pending``."""
        if self._ended:
            self._over.append(turn_id)

    def finish_pending(self) -> None:
        """End the records of turns that have ended."""
        if not self._over:
            return
        with self._lock:
            over = set()
            while self._over:
                over.add(self._over.popleft())
            places = [place for place, turn in self._ended.items() if turn in over]
            for place in places:
                del self._ended[place]
        for place in places:
            self._store.delete("pending", place)

    def _drop(self, record: WriteRecord) -> None:
        with self._lock:
            record.dropped = True
            answer = record.answer
        if answer == "kept":
            self._store.delete("pending", record.place)

    # -- replays -----------------------------------------------------------------------------------------------------

    def find_open(self, key: Key) -> Iterator[tuple[str, str, str]]:
        """Yield turn, call and tool of a thread's writes that a replay would not run and that were not reported here.

        These are writes of other processes, and writes of this process whose caller was cancelled.
        """
        for place, value in self._store.find("pending", key_of(*key, "begun")):
            with self._lock:
                mine = value["run"] == self._run and (place in self._running or place in self._ended)
                told = place in self._told
            if not mine and not told:
                *_, tool, call_id, _ = _parts(place)
                yield value["turn"], call_id, tool

    def forget(self, key: Key, calls: Container[tuple[str, str]]) -> None:
        """Drop the records of these calls (turn and id) of a thread, and of those that were reported here."""
        for place, value in self._store.find("pending", key_of(*key, "begun")):
            with self._lock:
                told = place in self._told and place not in self._running
                self._told.pop(place, None)
            if told or (value["turn"], _parts(place)[-2]) in calls:
                self._store.delete("pending", place)

    # -- the OS thread -----------------------------------------------------------------------------------------------

    def _start(self) -> bool:
        """Start the thread; False if the interpreter is about to end and refuses."""
        thread = threading.Thread(target=self._work, name="failsoft ledger", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def _work(self) -> None:
        while True:
            with self._lock:
                idle = not self._waiting and not self._changed.wait(IDLE_SECONDS) and not self._waiting
                if idle and not self._ended:
                    self._thread = None
                    return
            self.finish_pending()
            self._serve()

    def _serve(self) -> None:
        """Record all waiting calls in one transaction."""
        with self._lock:
            wanted, self._waiting = [record for record in self._waiting if not record.dropped], []
        if not wanted:
            return
        values = {record.place: record.value for record in reversed(wanted)}  # the first of equals counts
        taken = self._store.claim("pending", values, ttl=DANGLES_FOR, timeout=PATIENCE)
        for record in wanted:
            answer: Answer = "unknown"
            if taken is not None:
                answer = "begun" if record.place in taken or values[record.place] is not record.value else "kept"
            with self._lock:
                record.answer, record.found, late = answer, (taken or {}).get(record.place, {}), record.dropped
            if late and answer == "kept":
                self._store.delete("pending", record.place)
            record.wake()


def _parts(place: str) -> list[str]:
    return [unquote(part, errors="surrogatepass") for part in place.split("/")]


def _nothing() -> None:
    """Do nothing: no caller waits."""


def _call_soon(loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has been closed
        loop.call_soon_threadsafe(do)
