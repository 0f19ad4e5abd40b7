"""The ledger of writes. Each write is recorded in the store before it starts, so that a replay after a crash is
recognised.

Rules
-----
- Calls of tools that write (``Tool.is_write``) are recorded if they have a thread, or an id that the caller chose.
- A replay is recognised by tenant, thread, tool, id and arguments. A call with a generated id is recorded, but a replay
  of it is not recognised: the next process numbers its calls from 1 again.
- A call waits until its record is durable, for ``PATIENCE`` seconds at most. The ledger uses the store on its own OS
  thread; calls that wait at the same time share one transaction.
- A call whose record is not confirmed runs without one, unless it finds an earlier start (``earlier_start``).
- A record ends with its call. The record of a call in a turn ends with the turn: until then the agent framework may not
  have saved the call's answer, and a replay would make the call again. A call that was cancelled while its tool ran
  keeps its record.
- A replay leaves a record of its end for ``DANGLES_FOR`` seconds, because the call may be replayed again. So does a replay
  that did not run because ``verify`` found that the first start had happened.
- A call that finds a record of the same write does not run, in any process, until the record is gone or resolved, for
  ``DANGLES_FOR`` seconds at most. ``Thread.close_dangling`` ends the records of its thread. A call with another id or
  other arguments is another write. A call that finds a record that was resolved as happened returns its value.
- A call that has ended in this process does not prevent another one, although its record stays until the end of its turn:
  its caller has the answer.
- A call that ends with an unknown effect leaves an open case (``ledger_records``), durable before its caller is told. A
  record that ends without an answer becomes an open case as well.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from failsoft.core.conversation.thread_state import DANGLES_FOR, mark
from failsoft.runtime.persistence.earlier_start import EarlierStarts
from failsoft.runtime.persistence.ledger_records import (
    KEPT_FOR,
    LedgerRecords,
    case_key,
    describe_write,
    entry_id,
    is_stale,
    make_case,
    place_of,
    read_place,
)
from failsoft.runtime.persistence.process_identity import may_still_run, own_process
from failsoft.runtime.persistence.store_reads import note_outside, submit, submit_blocking
from failsoft.runtime.persistence.write_answers import make_replay_answer, read_answer
from failsoft.runtime.persistence.write_changes import make_change, put_all, replace, take_over
from failsoft.runtime.persistence.write_record import Answer, Change, End, Places, Write, WriteRecord
from failsoft.stores.ports import key_of

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.ledger_entry import Recalled
    from failsoft.stores.failsafe import FailsafeStore
    from failsoft.stores.ports import Store

PATIENCE = 0.5  # seconds for which a write waits for its record
MOST_REPORTED = 10_000
IDLE_SECONDS = 5.0  # after which the OS thread ends, unless turns are open

Key = tuple[str | None, str | None]  # tenant and thread


class EffectLedger:
    """The writes that a runtime has begun."""

    def __init__(
        self, store: Store, run: str, wall: Callable[[], float], new_key: Callable[[], str], *, keeps_arguments: bool
    ) -> None:
        self._store = cast("FailsafeStore", store)
        self.records = LedgerRecords(store, wall, self._store.find_or_raise, run)
        self._run = run  # identifies this runtime among all others
        self._new_key = new_key
        self._keeps_arguments = keeps_arguments
        self._numbers = count(1)
        # Calls that have ended in open turns, by place: the turn, and the record if the effect is unknown.
        self._ended: dict[str, tuple[str, dict[str, Any] | None]] = {}
        # Places of records reported here: no longer unanswered, but they still prevent a replay.
        self._reported = Places(MOST_REPORTED)
        self._running: dict[str, WriteRecord] = {}  # of calls that have not ended, by place
        self._over: deque[str] = deque()  # turns that have ended, and whose records have not
        self.renew_after_fork()

    def renew_after_fork(self) -> None:
        """Start over in a forked child, which has none of its parent's threads."""
        self._lock = threading.RLock()  # entered directly: a signal may interrupt a Condition's __enter__
        self._changed = threading.Condition(self._lock)
        self._waiting: list[WriteRecord] = []
        self._changes: list[Change] = []
        self._thread: threading.Thread | None = None
        self._earlier = EarlierStarts(self.records)

    def is_running(self, place: str, record: Mapping[str, Any]) -> bool:
        """True if the call of a record is running in this process, or has ended here and its caller has the answer."""
        with self._lock:
            return record.get("run") == self._run and (place in self._running or place in self._ended)

    # -- before a write ----------------------------------------------------------------------------------------------

    async def begin(self, call: Write, *, replaces: bool = False) -> Answer:
        """Record a call, and wait for the store without blocking the event loop.

        ``replaces``: the call takes the place of the earlier start that it is a replay of, and that had no effect.
        """
        return self._read(call, await self._earlier.confirm(partial(self._submit, call, replaces), PATIENCE))

    def begin_blocking(self, call: Write, *, replaces: bool = False) -> Answer:
        """``begin`` for callers that block."""
        return self._read(call, self._earlier.confirm_blocking(partial(self._submit, call, replaces), PATIENCE))

    def why_begun_may_run(self, call: Write, longest: float) -> str | None:
        """Return why the earlier start of a call may still run; None if it cannot.

        ``longest``: seconds that a call takes.
        """
        return may_still_run(call.begun_record or {}, self._run, self.records.wall(), longest)

    def _submit(self, call: Write, replaces: bool, wake: Callable[[], None]) -> WriteRecord:
        self.finish_pending()
        turn_id = "" if call.turn is None else call.turn.id
        place, value = place_of(call, self._run), self._describe(call)
        with self._lock:
            other = self._running.get(place)
            if turn_id and other is not None and other.value["turn"] == turn_id:
                place = place_of(call, self._run, alone=True)  # two calls of one turn are never replays of each other
            record = call.write_record = WriteRecord(place, value)
            record.wake = wake
            ended = self._ended.pop(place, None)
            record.replaces = call.begun_record if replaces else None if ended is None else ended[1]
            record.only_replaces = record.is_replay = replaces
            self._running.setdefault(place, record)
        if ended is not None and ended[1] is None:  # not a replay: its caller has the answer of the earlier call
            self._store.delete("pending", record.place)
        with self._lock:
            self._waiting.append(record)
        self._work_soon()
        return record

    def _describe(self, call: Write) -> dict[str, Any]:
        """Return the record of a call."""
        key, at = call.sent_key(self._new_key), self.records.wall()
        made = describe_write(call, self._run, at, next(self._numbers), key, keeps_arguments=self._keeps_arguments)
        made["process"] = own_process()
        return made

    def _read(self, call: Write, record: WriteRecord) -> Answer:
        answer = record.answer or "unknown"
        if answer == "unknown" and record.earlier is not None:
            answer, record.found = read_answer(record.earlier) or "begun", record.earlier
            self._drop(record, "none")
        if answer not in ("kept", "unknown"):
            call.write_record = None  # the record belongs to another call
            self._stop(record)
            call.begun_record = record.found
        if answer == "begun":
            with self._lock:
                self._reported.add(record.place)
            open_call = key_of(
                call.tenant, call.thread, "call", record.found.get("turn", ""), call.caller_id or call.id
            )
            self._store.delete("pending", open_call)
        return answer

    # -- after it ----------------------------------------------------------------------------------------------------

    def end(self, call: Write, *, acted: bool = True) -> None:
        """Note that a recorded call has ended and that its effect is known. ``acted``: its tool may have had one."""
        record, call.write_record = call.write_record, None
        if record is None:
            return
        turn = call.turn
        self._stop(record)
        stays = acted and record.answer == "kept" and not record.is_replay
        if stays and turn is not None and not turn.over:
            with self._lock:
                self._ended[record.place] = (turn.id, None)
            self._store.put("pending", record.place, {**record.value, "acted": True}, ttl=KEPT_FOR)
        else:
            self._drop(record, "happened" if acted else "none")

    def note_happened(self, call: Write) -> None:
        """Note that the earlier start of a call has happened, so that no replay runs. The store is not waited for."""
        found, place = call.begun_record, place_of(call, self._run)
        if found:
            change = Change({place: (found, make_replay_answer(found, "happened"))}, ttl=DANGLES_FOR)
            change.wake = note_outside()
            self._change_soon(change)

    async def end_unknown(self, call: Write, fault: Fault, *, runs_on: bool) -> None:
        """Note that a call has ended with an unknown effect, and wait for the store without blocking the event loop."""
        await submit(lambda wake: self._submit_end(call, fault, wake, runs_on), PATIENCE)

    def end_unknown_blocking(self, call: Write, fault: Fault, *, runs_on: bool) -> None:
        """Note that a call has ended with an unknown effect, and wait for the store in this OS thread."""
        submit_blocking(lambda wake: self._submit_end(call, fault, wake, runs_on), PATIENCE)

    def end_unknown_soon(self, call: Write, fault: Fault) -> None:
        """Note that a call has ended with an unknown effect; its caller was cancelled and does not wait."""
        self._submit_end(call, fault, note_outside(), runs_on=True)

    def _submit_end(self, call: Write, fault: Fault, wake: Callable[[], None], runs_on: bool) -> Change:
        record, call.write_record = call.write_record, None
        turn, same, now = call.turn, mark(call.tool.id, call.args, call.kwargs), self.records.wall()
        if record is None or record.answer != "kept":
            place, value = place_of(call, self._run), self._describe(call)
        else:
            place, value = record.place, record.value
        case = make_case(place, {**value, "runs_on": True} if runs_on else value, fault=fault, ended=now, same=same)
        change = Change({case_key(place, entry_id(place, case)): (None, case)})
        if record is not None:
            self._stop(record)
            with self._lock:
                kept = record.answer == "kept"
                record.end = None if kept else "unknown"
                in_turn = turn is not None and not turn.over
                stays = {**value, "ended": True} if in_turn or record.is_replay else None
                if kept and record.is_replay:
                    self._reported.add(place)
                elif kept and turn is not None and stays is not None:
                    self._ended[place] = (turn.id, stays)
            if kept:
                change.changes = {**change.changes, place: (value, stays)}
        change.otherwise = lambda: put_all(self._store, change)
        change.wake = wake
        self._change_soon(change)
        return change

    def _change_soon(self, change: Change) -> None:
        with self._lock:
            self._changes.append(change)
        self._work_soon()

    def abandon(self, call: Write) -> None:
        """Keep the record of a call whose caller was cancelled while its tool ran; an operator may resolve it."""
        record, call.write_record = call.write_record, None
        if record is None:
            return
        self._stop(record)
        if record.answer == "kept":
            with self._lock:
                self._changes.append(Change({record.place: (record.value, {**record.value, "abandoned": True})}))
            self._work_soon()

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
            places = [place for place, (turn, _) in self._ended.items() if turn in over]
            ended = {place: self._ended.pop(place)[1] for place in places}
            changes = [Change({place: (record, None)}) for place, record in ended.items() if record is not None]
            self._changes += changes  # these leave resolved cases alone
        for place, record in ended.items():
            if record is None:
                self._store.delete("pending", place)
        if changes:
            self._work_soon()

    def flush(self) -> None:
        """End the records of turns that have ended, and wait for the store. May block."""
        self.finish_pending()
        self._serve()

    def _drop(self, record: WriteRecord, end: End) -> None:
        with self._lock:
            record.end, answer = end, record.answer
        self._release(record, end, answer)

    def _release(self, record: WriteRecord, end: End, answer: Answer | None) -> None:
        """Delete the record of a call that has ended; that of a replay says how it has ended."""
        if answer == "unknown" and record.only_replaces:  # it may be in the store all the same
            self._change_soon(Change({record.place: (record.value, make_replay_answer(record.value, "none"))}))
        elif answer != "kept":
            return
        elif not record.is_replay:
            self._store.delete("pending", record.place)
        elif end == "unknown":
            self._store.put("pending", record.place, {**record.value, "ended": True}, ttl=KEPT_FOR)
        else:
            self._store.put("pending", record.place, make_replay_answer(record.value, end), ttl=DANGLES_FOR)

    def recall(self, call: Write) -> Recalled:
        """Return what is known of a write that is not going to run now. Reads the store, so it may block."""
        place = place_of(call, self._run)
        with self._lock:
            here = place in self._ended or place in self._running
        found = self.records.recall(place)
        return None if here and found == "begun" else found

    # -- replays -----------------------------------------------------------------------------------------------------

    def find_open(self, key: Key) -> Iterator[tuple[str, str, str]]:
        """Yield turn, call and tool of a thread's writes that a replay would not run and that were not reported here.

        These are writes of other processes, and writes of this process whose caller was cancelled.
        """
        for place, value in self._store.find("pending", key_of(*key, "begun")):
            if not (place in self._reported or self.is_running(place, value) or self._prevents_nothing(value)):
                owner = read_place(place)
                yield value["turn"], owner.call_id, owner.tool

    def _prevents_nothing(self, value: Mapping[str, Any]) -> bool:
        return "resolved" in value or is_stale(value, self.records.wall())

    def forget(self, key: Key, calls: Container[tuple[str, str]]) -> None:
        """End the records of these calls (turn and id) of a thread, and of those that were reported here.

        They no longer prevent a replay. They stay in the ledger as open cases.
        """
        for place, value in self._store.find("pending", key_of(*key, "begun")):
            with self._lock:
                reported = self._reported.discard(place) and place not in self._running
            if value.get("replayed"):
                self._store.delete("pending", place)
            elif "resolved" not in value and (reported or (value["turn"], read_place(place).call_id) in calls):
                self.records.keep_case(place, make_case(place, value, ended=self.records.wall()))
                self._store.delete("pending", place)

    # -- the OS thread -----------------------------------------------------------------------------------------------

    def _work_soon(self) -> None:
        """Wake the OS thread; without one, do its work here."""
        with self._lock:
            started = self._thread is not None or self._start()
            self._changed.notify()
        if not started:
            self._serve()

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
                idle = not self._has_work() and not self._changed.wait(IDLE_SECONDS) and not self._has_work()
                if idle and not self._ended:
                    self._thread = None
                    return
            self.finish_pending()
            self._serve()

    def _has_work(self) -> bool:
        return bool(self._waiting or self._changes)

    def _serve(self) -> None:
        """Make the waiting changes, and record all waiting calls in one transaction."""
        with self._lock:
            changes, self._changes = self._changes, []
            wanted, self._waiting = [record for record in self._waiting if record.end is None], []
        for change in changes:
            make_change(self._store, change, PATIENCE)
        for record in [record for record in wanted if record.only_replaces]:
            self._give(record, replace(self._store, self.records, record, PATIENCE), {})
            wanted.remove(record)
        if not wanted:
            return
        values = {record.place: record.value for record in reversed(wanted)}  # of equal places, the first record counts
        taken = self._store.claim("pending", values, ttl=KEPT_FOR, timeout=PATIENCE)
        for record in wanted:
            answer: Answer = "unknown"
            if taken is not None and record.place in taken:
                answer = take_over(self._store, self.records, record, taken[record.place], PATIENCE)
            elif taken is not None:
                answer = "begun" if values[record.place] is not record.value else "kept"
            self._give(record, answer, (taken or {}).get(record.place, {}))

    def _give(self, record: WriteRecord, answer: Answer, found: dict[str, Any]) -> None:
        with self._lock:
            record.answer, record.found, late = answer, found, record.end
        if late is not None:
            self._release(record, late, answer)
        record.wake()
